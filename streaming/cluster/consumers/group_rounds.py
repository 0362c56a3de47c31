"""The rounds in which consumer groups are looked at: after each micro-batch, and now and then without one.

A round asks all agents what has changed in the coordinators' logs, takes the ends of all logs from the table, and asks the agents of their
leaders for positions. Its results are on the board when it is over. Nothing of it waits for Spark, and a page waits for it half a second at
most.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import compress
from typing import Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.broker.protocol.group_messages import Following, GroupsRequest, KnownLog, RecordsRequest
from streaming.broker.protocol.group_stream import GroupsAnswer, RecordsAnswer
from streaming.broker.protocol.history_json import KeptGroups
from streaming.cluster.consumers.group_questions import MOST_ASKED, Question
from streaming.cluster.consumers.group_snapshot import GroupBoard, GroupSnapshot
from streaming.cluster.consumers.group_tracker import GroupTracker, RoundView
from streaming.cluster.view.decisions import End
from streaming.cluster.view.exported import keep, observe
from streaming.cluster.view.table import RECORD_KINDS, Table, Uncounted
from streaming.cluster.view.value_matrix import LOG
from streaming.common.arrays import Longs
from streaming.common.lanes import Lane
from streaming.common.log_key import LogKey, keys_in
from streaming.errors import AgentError
from streaming.kafka.groups.commit_store import CommitStore
from streaming.queries import QueryLook, QueryLooks

log = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")

_AT_ONCE = 1 << 16

ANSWER_SECONDS = 5.0
"""How long an answer about a group waits for agents."""

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

NOTED_SECONDS = 600.0
"""That an agent does not answer is logged so often at most, for each thing that it is asked."""

HEARD_SECONDS = 60.0
"""What an agent has sent counts for so long."""

KEPT_SECONDS = 3600.0
"""What an agent that is away has sent of commits is kept for so long, though it does not count: a group that stands still when the agent is
back has stood since before."""


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
        self._answered: set[str] = set()  # about groups, in this round
        self._noted: dict[tuple[str, str], float] = {}  # by agent and what it is asked, when it was logged that it does not answer
        self._due, self._ended = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def recall(self, kept: KeptGroups) -> None:
        """Go on with what the rounds of a job before have kept. From any thread, before `start`."""
        self._tracker.recall(kept)

    def kept(self) -> KeptGroups:
        """What the rounds of the next job go on with. From any thread."""
        return self._tracker.kept(self._board.last)

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
        # look at the checkpoints of streaming queries. What was found counts as of now: a look takes no longer than a round waits
        if self._around.queries:
            self._tracker.queries.take(self._looks.look(QUERIES_SECONDS), round(self._around.monotonic() * 1000))
        self._ask_records(agents, now)
        self._ask_positions(agents, now)
        took = {"seconds": round(self._around.monotonic() - now, 3), "positions_left": self._tracker.left}
        log.debug("a round over consumer groups has ended", extra={"asked": ",".join(agents), "answered": ",".join(self._answered), **took})
        return self._tracker.finish()

    def take_groups(self, agents: Mapping[str, Agent], now: float) -> None:
        """Ask agents what has changed, and take over what counts by now."""
        self._changes.forget(self._silent(self._changes.agents - {*agents}, now, KEPT_SECONDS))
        free = {agent: each for agent, each in agents.items() if self._groups.free(agent)}
        calls = {agent: partial(each.groups, self._changes.request(agent)) for agent, each in free.items()}
        answers, errors = self._groups.call(calls, GROUPS_SECONDS)
        for agent, answer in answers.items():
            self._changes.take(agent, answer)
            self._heard[agent] = now
        self._answered = {*answers}
        self._note("groups", errors)
        self._changes.settle()

    def _ask_positions(self, agents: Mapping[str, Agent], now: float) -> None:
        """Ask for the ends of logs first, without which nothing is known, and then for as much as each agent answers in a moment."""
        take = self._tracker.answer
        self._ask_questions(self._tracker.begin(self.view(self._around.clock())), self._end_calls, POSITIONS_SECONDS, agents, now, take)
        asked = self._tracker.ask(lambda agent: self._most.get(agent, FIRST_ASKED))
        self._ask_questions(asked, self._place_calls, PLACES_SECONDS, agents, now, take)
        self._ask_questions(self._tracker.ask_moves(), self._move_calls, PLACES_SECONDS, agents, now, self._tracker.answer_moves)
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
            if question.agent in agents and calls.free(question.agent):
                fitting[question.agent] = partial(_positions, agents[question.agent], question)
        answers, errors = calls.call(fitting, seconds)
        for answer in answers.values():
            take(answer.question, answer.positions)
            self._adapt(answer)
        self._note("positions", errors)

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
        free = {agent: each for agent, each in agents.items() if self._record_calls.free(agent)}
        calls = {agent: partial(each.records, self._records.request(agent)) for agent, each in free.items()}
        answers, errors = self._record_calls.call(calls, RECORDS_SECONDS)
        for agent, answer in answers.items():
            self._records.take(agent, answer)
        self._note("records", errors)

    def _silent(self, agents: set[str], now: float, seconds: float) -> set[str]:
        """Those of some agents that have sent nothing for so long."""
        return {agent for agent in agents if now - self._heard.get(agent, -seconds) >= seconds}

    def _note(self, what: str, errors: Mapping[str, AgentError]) -> None:
        """Log that agents do not answer what they are asked, now and then: why not is in their own words, which may vary."""
        now = self._around.monotonic()
        for agent, error in errors.items():
            if now - self._noted.get((agent, what), -NOTED_SECONDS) >= NOTED_SECONDS:
                log.warning("an agent does not answer about consumer groups", extra={"agent": agent, "asked": what, "error": str(error)})
                self._noted[agent, what] = now

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
            heard={agent for agent, at in self._heard.items() if steady - at < HEARD_SECONDS},
            silent={*snapshot.agents} - self._answered,
            now_ms=snapshot.now_ms,
            steady_ms=round(steady * 1000),
            reading=self._changes.reading,
            cluster_topics=self._around.cluster_topics(),
            deletions=self._around.deletions(),
            read_ms={agent: at for agent, at in zip(snapshot.agents, snapshot.read_ms.tolist(), strict=True) if at >= 0},
        )


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
    """What rounds need of the job. ``queries``: what looks at the checkpoint of each streaming query, by its name."""

    agents: Callable[[], Mapping[str, Agent]]  # the clients of all agents that are up
    cluster_topics: Callable[[], Mapping[str, int] | None]  # how many partitions each topic has, None if that is not known
    deletions: Callable[[], Mapping[str, int]] = dict  # as for `DeletedTopics`
    clock: Callable[[], float] = time.time  # Unix seconds
    consumer: Callable[[], str] = str  # the job's id as one
    monotonic: Callable[[], float] = time.monotonic  # seconds of `time.monotonic`, for how long ago something was
    queries: Mapping[str, Callable[[], QueryLook]] = field(default_factory=dict)


class GroupChangesTaken:
    """The answers of all agents.

    What agents say of the coordinators' logs, held back until the table holds their journals as far as they went then. So a commit is
    never newer than the data that it is held against.

    Args:
        reached: up to where an agent's journal is in the table.
        consumer: the job's id as a consumer.

    Only the thread that polls uses it.
    """

    def __init__(self, store: CommitStore, reached: Callable[[str], End | None], consumer: Callable[[], str]) -> None:
        self._store = store
        self._reached = reached
        self._consumer = consumer
        self._agents: dict[str, _OfAgent] = {}

    def request(self, agent: str) -> GroupsRequest:
        """What to ask an agent: everything since its last answer."""
        return GroupsRequest(known=self._agents.get(agent, _OfAgent()).known, consumer=self._consumer())

    def take(self, agent: str, answer: GroupsAnswer) -> None:
        """An agent has answered."""
        of = self._agents.setdefault(agent, _OfAgent())
        of.waiting.append(answer)
        of.known = [KnownLog(**{name: getattr(each, name) for name in KnownLog.__slots__}) for each in answer.changes]

    def settle(self) -> None:
        """Put into the store what counts by now: the answers up to the last one whose end is reached."""
        for agent, of in self._agents.items():
            reached = self._reached(agent)
            counting = [number for number, answer in enumerate(of.waiting) if _is_reached(answer, reached)]
            for answer in of.waiting[: counting[-1] + 1] if counting else ():
                for changes in answer.changes:
                    self._store.take(agent, changes)
                others = {(each.topic, each.coordinator) for each in answer.others}
                of.reading = {(each.broker, each.topic, each.coordinator) for each in answer.others if each.following == Following.READING}
                self._store.forget(agent, others | {(each.topic, each.coordinator) for each in answer.changes})
            del of.waiting[: counting[-1] + 1 if counting else 0]

    @property
    def reading(self) -> set[tuple[str, int, str, int]]:
        """The logs, by agent and broker, that the agents have and whose commits they do not know now."""
        return {(agent, *log) for agent, of in self._agents.items() for log in of.reading}

    def forget(self, agents: set[str]) -> None:
        """These agents take part no more."""
        for agent in agents & self._agents.keys():
            del self._agents[agent]
            self._store.forget(agent)

    @property
    def agents(self) -> set[str]:
        """The agents that have answered."""
        return set(self._agents)


@dataclass(slots=True)
class _OfAgent:
    known: list[KnownLog] = field(default_factory=list)  # what was received, counting already or not
    waiting: list[GroupsAnswer] = field(default_factory=list)
    reading: set[tuple[int, str, int]] = field(default_factory=set)  # broker, topic, partition


def _is_reached(answer: GroupsAnswer, reached: End | None) -> bool:
    return reached is not None and reached.journal == answer.journal and reached.seq >= answer.seq


class Calls(Generic[_Answer]):
    """Calls of one kind, at most one to each agent at a time. Only the thread that polls uses it."""

    def __init__(self, name: str) -> None:
        self._lane = Lane(name, _AT_ONCE, _AT_ONCE)  # a thread each: those that do not answer take none from the others
        self._running: dict[str, Future[_Answer]] = {}

    def free(self, agent: str) -> bool:
        """Whether no call to this agent is still under way."""
        return agent not in self._running

    def call(self, calls: Mapping[str, Callable[[], _Answer]], seconds: float) -> tuple[dict[str, _Answer], dict[str, AgentError]]:
        """Call agents, and wait for so long at most; calls of earlier polls are not waited for again.

        Returns:
            the answers and the errors that have arrived, those of earlier calls among them, by agent.
        """
        begun = {agent: self._lane.do(call) for agent, call in calls.items() if self.free(agent)}
        self._running |= begun
        wait(begun.values(), seconds)
        ended = {agent: each for agent, each in self._running.items() if each.done()}
        self._running = {agent: each for agent, each in self._running.items() if agent not in ended}
        answers: dict[str, _Answer] = {}
        errors: dict[str, AgentError] = {}
        for agent, each in ended.items():
            try:
                answers[agent] = each.result()
            except AgentError as error:
                errors[agent] = error
            except Exception as error:  # of one agent: the answers of the others count
                log.exception("an agent's answer about consumer groups is not understood", extra={"agent": agent})
                errors[agent] = AgentError(f"agent {agent}: {error}")
        return answers, errors

    def close(self) -> None:
        """Begin no more calls."""
        self._lane.close()


class CountedRecords:
    """The counts of all agents. Only the thread that polls uses it.

    How many records each log has on disk, as its agent counts them: asked for in changes, and put into the table.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._versions: dict[str, RecordsRequest] = {}
        self._counted: dict[str, set[LogKey]] = {}  # by agent
        self._errors: dict[str, dict[LogKey, str]] = {}  # by agent
        self._idle: set[str] = set()  # agents that count no log
        self._waiting: dict[str, dict[LogKey, Longs]] = {}  # by agent, the counts of logs that were not in the table yet

    def request(self, agent: str) -> RecordsRequest:
        """The question for an agent: everything since its last answer."""
        return self._versions.get(agent, RecordsRequest())

    def take(self, agent: str, answer: RecordsAnswer) -> None:
        """An agent has answered."""
        self._versions[agent] = RecordsRequest(answer.process, answer.number)
        keys, known = keys_in(answer.rows), self._counted.setdefault(agent, set())
        if answer.whole:
            self._lose(agent, known.difference(keys))
        ends, *counts = (answer.rows[name].to_numpy() for name in ("next_offset", *RECORD_KINDS))
        counted = ends >= 0
        known.update(compress(keys, counted.tolist()))
        self._put(agent, list(compress(keys, counted.tolist())), np.stack(counts)[:, counted])
        self._lose(agent, set(compress(keys, (~counted).tolist())))
        self._take_errors(agent, keys, answer)
        self._idle = self._idle | {agent} if not answer.process else self._idle - {agent}
        self._publish()

    def settle(self) -> None:
        """Try again to put the counts of logs into the table that were not in it."""
        for agent, counts in self._waiting.items():
            if counts:
                self._put(agent, list(counts), np.stack(list(counts.values()), axis=1))

    def forget(self, agents: Iterable[str]) -> None:
        """These agents take part no more: it is not known what their logs have by now."""
        for agent in agents:
            self._versions.pop(agent, None)
            self._lose(agent, self._counted.pop(agent, set()))
            self._errors.pop(agent, None)
            self._waiting.pop(agent, None)
            self._idle.discard(agent)
            self._publish()

    @property
    def agents(self) -> set[str]:
        """The agents that have answered."""
        return set(self._counted)

    def _put(self, agent: str, keys: Sequence[LogKey], counts: Longs) -> None:
        """Set the counts of some logs, shape (`RECORD_KINDS`, logs)."""
        self._wait_no_more(agent, keys)
        missing = self._table.set_records(keys, counts).tolist()
        self._waiting.setdefault(agent, {}).update((keys[item], counts[:, item].copy()) for item in missing)

    def _lose(self, agent: str, keys: set[LogKey]) -> None:
        """It is not known any more how many records these logs have."""
        if keys:
            self._table.set_records(list(keys), np.full((len(RECORD_KINDS), len(keys)), -1))
            self._counted.get(agent, set()).difference_update(keys)
            self._wait_no_more(agent, keys)

    def _wait_no_more(self, agent: str, keys: Iterable[LogKey]) -> None:
        waiting = self._waiting.get(agent)
        if waiting:
            for key in waiting.keys() & keys:
                del waiting[key]

    def _take_errors(self, agent: str, keys: Sequence[LogKey], answer: RecordsAnswer) -> None:
        """Take over why logs are not counted: of those that the answer is about, or of all if it has all."""
        before = {} if answer.whole else self._errors.get(agent, {})
        texts = pc.fill_null(answer.rows["error"], "")
        now = {keys[item]: texts[item].as_py() for item in np.flatnonzero(pc.not_equal(texts, "").to_numpy()).tolist()}
        there = {*keys} if before else set()
        self._errors[agent] = {key: error for key, error in before.items() if key not in there} | now

    def _publish(self) -> None:
        """Why the other logs have no counts."""
        errors = {key: error for of_agent in self._errors.values() for key, error in of_agent.items()}
        self._table.set_uncounted(Uncounted(errors=errors, idle=frozenset(self._idle)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Positions:
    question: Question
    positions: pa.Table
    seconds: float


def _positions(agent: Agent, question: Question) -> _Positions:
    begun = time.monotonic()
    return _Positions(question=question, positions=agent.positions(question.asked), seconds=time.monotonic() - begun)


def ask_agents(calls: Mapping[str, Callable[[], _Answer]]) -> dict[str, _Answer]:
    """Make some calls at once, and return what has come in time."""
    made: Calls[_Answer] = Calls("details")
    answers, errors = made.call(calls, ANSWER_SECONDS)
    made.close()
    for name, error in errors.items():
        log.info("a consumer group is shown without what an agent knows", extra={"of": name, "error": str(error)})
    return answers
