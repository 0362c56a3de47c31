"""The rounds in which consumer groups are looked at: after each micro-batch, and now and then without one.

A round asks all agents what has changed in the coordinators' logs, takes the ends of all logs from the table, and asks the agents of their
leaders for positions. What it has found out is on the board when it is over. Nothing of it waits for Spark, and a page waits for it half a
second at most.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from streaming.broker.protocol.group_messages import GroupsRequest, RecordsRequest
from streaming.broker.protocol.group_stream import GroupsAnswer, RecordsAnswer
from streaming.broker.protocol.history_json import KeptCommit
from streaming.broker.protocol.problems import Reason
from streaming.cluster.consumers.counted_records import CountedRecords
from streaming.cluster.consumers.group_calls import Calls
from streaming.cluster.consumers.group_changes import GroupChangesTaken
from streaming.cluster.consumers.group_questions import MOST_ASKED, Question
from streaming.cluster.consumers.group_snapshot import GroupBoard, GroupSnapshot
from streaming.cluster.consumers.group_tracker import GroupTracker, RoundView
from streaming.cluster.view.exported import keep, observe
from streaming.cluster.view.table import Table
from streaming.cluster.view.value_matrix import LOG
from streaming.errors import AgentError
from streaming.queries.query_look import QueryLook
from streaming.queries.query_looks import QueryLooks

log = logging.getLogger(__name__)

PAUSE_SECONDS = 15.0
"""Without a micro-batch a round comes after so long: an agent that goes away makes no micro-batch."""

BACKLOG_SECONDS = 2.0
"""As long as positions are missing that were not asked for yet, a round comes after so long."""

QUERIES_SECONDS = 1.0
"""How long a round waits for looks at the checkpoints of streaming queries. What comes later counts in the next one."""

GROUPS_SECONDS, RECORDS_SECONDS, POSITIONS_SECONDS, PLACES_SECONDS = 2.0, 1.0, 5.0, 2.0
"""How long a round waits for answers: about groups, about the records of logs, about their ends, about the positions of commits. What
arrives later counts in the next one."""

FIRST_ASKED, LEAST_ASKED = 1024, 128
"""For how many positions of commits an agent is asked at first, and at least, until it is known how quick it is."""

HEARD_SECONDS = 60.0
"""What an agent has sent counts for so long."""

KEPT_SECONDS = 3600.0
"""What an agent that is away has sent of commits is kept for so long, though it does not count: a group that stands still when the agent is
back has stood since before."""

REFUSED_SECONDS = 300.0
"""An agent of an earlier version is asked again after so long."""


class Agent(Protocol):
    """The calls of an agent's client that rounds need."""

    def groups(self, request: GroupsRequest | None = None) -> GroupsAnswer:
        """See `streaming.spark.client.agent_client.AgentClient.groups`."""

    def records(self, request: RecordsRequest | None = None) -> RecordsAnswer:
        """See `streaming.spark.client.agent_client.AgentClient.records`."""

    def positions(self, question: pa.Table) -> pa.Table:
        """See `streaming.spark.client.agent_client.AgentClient.positions`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What rounds need of the job. ``agents``: the clients of all agents that are up. ``clock``: Unix seconds; ``monotonic``:
    seconds of `time.monotonic`, for how long ago something was.

    ``cluster_topics``: how many partitions each topic has, None if that is not known. ``consumer``: the job's id as one. ``queries``: what
    looks at the checkpoint of each streaming query, by its name.
    """

    agents: Callable[[], Mapping[str, Agent]]
    cluster_topics: Callable[[], Mapping[str, int] | None]
    clock: Callable[[], float] = time.time
    consumer: Callable[[], str] = str
    monotonic: Callable[[], float] = time.monotonic
    queries: Mapping[str, Callable[[], QueryLook]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Positions:
    question: Question
    positions: pa.Table
    seconds: float


class GroupRounds:
    """Rounds on a thread of their own, between `start` and `close`."""

    def __init__(self, table: Table, board: GroupBoard, tracker: GroupTracker, around: Surroundings) -> None:
        self._table = table
        self._board = board
        self._tracker = tracker
        self._around = around
        self._changes = GroupChangesTaken(tracker.store, table.reached, around.consumer)
        self._groups: Calls[GroupsAnswer] = Calls("groups")
        self._looks = QueryLooks(around.queries)
        self._records = CountedRecords(table)
        self._record_calls: Calls[RecordsAnswer] = Calls("records")
        self._end_calls: Calls[_Positions] = Calls("ends")
        self._place_calls: Calls[_Positions] = Calls("positions")
        self._move_calls: Calls[_Positions] = Calls("positions of moves")
        self._most: dict[str, int] = {}
        self._pause = PAUSE_SECONDS
        self._heard: dict[str, float] = {}
        self._refused: dict[str, float] = {}
        self._answered: set[str] = set()  # about groups, in this round
        self._due, self._ended = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def recall(self, kept: Sequence[KeptCommit]) -> None:
        """Go on with what the rounds of a job before have kept. From any thread."""
        self._tracker.recall(kept)

    def kept(self) -> list[KeptCommit]:
        """What the rounds of the next job go on with. From any thread."""
        last = self._board.last
        return [*(() if last is None else last.kept()), *self._tracker.recalled]

    def start(self) -> None:
        """Begin with the rounds."""
        self._thread = threading.Thread(target=self._run, name="groups", daemon=True)
        self._thread.start()

    def landed(self) -> None:
        """A micro-batch is in the table: a round begins now. From any thread."""
        self._board.announce()
        self._due.set()

    def close(self) -> None:
        """End the thread; a call that is under way is not waited for."""
        self._ended.set()
        self._due.set()
        if self._thread is not None:
            self._thread.join(GROUPS_SECONDS + POSITIONS_SECONDS)
        self._looks.close()
        self._groups.close()
        self._record_calls.close()
        self._end_calls.close()
        self._place_calls.close()
        self._move_calls.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            self._due.wait(self._pause)
            self._due.clear()
            if self._ended.is_set():
                return
            try:
                self.round()
            except Exception:
                log.exception("a round over consumer groups failed, their metrics are of the one before")

    def round(self) -> None:
        """Do one round, and publish what it has found out."""
        number = self._board.begin()
        try:
            self._board.publish(self._found(), number)
        finally:
            self._board.end(number)

    def _found(self) -> GroupSnapshot:
        now = self._around.monotonic()
        agents = self._around.agents()
        self.take_groups(agents, now)
        self._take_queries()
        self._ask_records(agents, now)
        self._ask_positions(agents, now)
        took = {"seconds": round(self._around.monotonic() - now, 3), "positions_left": self._tracker.left}
        log.debug("a round over consumer groups has ended", extra={"asked": ",".join(agents), "answered": ",".join(self._answered), **took})
        return self._tracker.finish()

    def take_groups(self, agents: Mapping[str, Agent], now: float) -> None:
        """Ask agents what has changed, and take over what counts by now."""
        self._changes.forget(self._silent(self._changes.agents - {*agents}, now, KEPT_SECONDS))
        free = {agent: each for agent, each in agents.items() if self._groups.free(agent) and not self._is_refused(agent, now)}
        calls = {agent: partial(each.groups, self._changes.request(agent)) for agent, each in free.items()}
        answers, errors = self._groups.call(calls, GROUPS_SECONDS)
        for agent, answer in answers.items():
            self._changes.take(agent, answer)
            self._heard[agent] = now
        self._answered = {*answers}
        self._note(errors, now)
        self._changes.settle()

    def _take_queries(self) -> None:
        """Look at the checkpoints of streaming queries. What was found counts as of now: a look takes no longer than a round waits."""
        if self._around.queries:
            self._tracker.queries.take(self._looks.look(QUERIES_SECONDS), round(self._around.monotonic() * 1000))

    def _ask_positions(self, agents: Mapping[str, Agent], now: float) -> None:
        """Ask for the ends of logs first, without which nothing is known, and then for as much as each agent answers in a moment."""
        take = self._tracker.answer
        self._ask_questions(self._tracker.begin(self.view(self._around.clock())), self._end_calls, POSITIONS_SECONDS, agents, now, take)
        asked = self._tracker.ask(lambda agent: self._most.get(agent, FIRST_ASKED))
        self._ask_questions(asked, self._place_calls, PLACES_SECONDS, agents, now, take)
        moves = [each for each in self._tracker.ask_moves() if not self._is_refused(each.agent, now)]
        self._ask_questions(moves, self._move_calls, PLACES_SECONDS, agents, now, self._tracker.answer_moves)
        self._pause = BACKLOG_SECONDS if self._tracker.left else PAUSE_SECONDS

    def _ask_questions(
        self,
        questions: Iterable[Question],
        calls: Calls[_Positions],
        seconds: float,
        agents: Mapping[str, Agent],
        now: float,
        take: Callable[[Question, pa.Table], None],
    ) -> None:
        fitting: dict[str, Callable[[], _Positions]] = {}
        for question in questions:
            if self._is_refused(question.agent, now):
                self._tracker.refuse(question)
            elif question.agent in agents and calls.free(question.agent):
                fitting[question.agent] = partial(_positions, agents[question.agent], question)
        answers, errors = calls.call(fitting, seconds)
        for answer in answers.values():
            take(answer.question, answer.positions)
            self._adapt(answer)
        self._note(errors, now)

    def _adapt(self, answer: _Positions) -> None:
        """Ask an agent for more at once if it was quick, and for less if it was slow."""
        agent = answer.question.agent
        if not len(answer.question.key):
            return
        if answer.seconds > PLACES_SECONDS:
            self._most[agent] = max(self._most.get(agent, FIRST_ASKED) // 2, LEAST_ASKED)
        elif answer.seconds < PLACES_SECONDS / 2:
            self._most[agent] = min(self._most.get(agent, FIRST_ASKED) * 2, MOST_ASKED)

    def _ask_records(self, agents: Mapping[str, Agent], now: float) -> None:
        self._records.forget(self._silent(self._records.agents - {*agents}, now, HEARD_SECONDS))
        self._records.settle()
        free = {agent: each for agent, each in agents.items() if self._record_calls.free(agent) and not self._is_refused(agent, now)}
        calls = {agent: partial(each.records, self._records.request(agent)) for agent, each in free.items()}
        answers, errors = self._record_calls.call(calls, RECORDS_SECONDS)
        for agent, answer in answers.items():
            self._records.take(agent, answer)
        self._note(errors, now)

    def _silent(self, agents: set[str], now: float, seconds: float) -> set[str]:
        """Those of some agents that have sent nothing for so long."""
        return {agent for agent in agents if now - self._heard.get(agent, -seconds) >= seconds}

    def _is_refused(self, agent: str, now: float) -> bool:
        return now - self._refused.get(agent, -REFUSED_SECONDS) < REFUSED_SECONDS

    def _note(self, errors: Mapping[str, AgentError], now: float) -> None:
        for agent, error in errors.items():
            if error.reason == Reason.AGENT_VERSION:
                if agent not in self._refused:
                    log.warning("an agent of an earlier version says nothing of consumer groups: upgrade it", extra={"agent": agent})
                self._refused[agent] = now
            else:
                log.debug("an agent does not answer about consumer groups", extra={"agent": agent, "error": str(error)})

    def view(self, now: float) -> RoundView:
        """The logs as they are in the table ``now``, in Unix seconds."""
        steady = self._around.monotonic()
        snapshot = self._table.snapshot(now)
        snapshot = replace(snapshot, context=replace(snapshot.context, deletable=None))  # which only pages keep
        there = snapshot.columns.select(np.flatnonzero(snapshot.columns["kind"] == LOG))
        observed = observe(there, snapshot)
        return RoundView(
            observed=observed,
            retention=cache(partial(keep, observed, snapshot)),
            topic_ids=[snapshot.topic_ids[slot] for slot in there["slot"].tolist()],
            agents=snapshot.agents,
            heard={agent for agent, at in self._heard.items() if steady - at < HEARD_SECONDS} | {*self._refused},
            silent={*snapshot.agents} - self._answered,
            now_ms=snapshot.now_ms,
            steady_ms=round(steady * 1000),
            reading=self._changes.reading,
            cluster_topics=self._around.cluster_topics(),
            read_ms={agent: at for agent, at in zip(snapshot.agents, snapshot.read_ms.tolist(), strict=True) if at >= 0},
        )


def _positions(agent: Agent, question: Question) -> _Positions:
    begun = time.monotonic()
    return _Positions(question=question, positions=agent.positions(question.asked), seconds=time.monotonic() - begun)
