"""A job's table and its agents, with rounds over consumer groups that a test begins.

A test may tell what happens as a script: each word is a commit, something that changes in the log, or a round.

| word | means |
|---|---|
| `3`, `z:3/1@900` | group g commits offset 3 of orders-0; group z commits it of orders-1, with a stamp of second 900 |
| `end=14`, `start=4`, `hw=9` | the log of orders-0 has grown by data records to this offset, begins there, is replicated up to there |
| `crash=2`, `crash=-1` | it begins there again if its broker is killed; where it begins now |
| `open=4`, `open=` | in orders-0 a transaction is open from this offset on, since 400 seconds before second 1000; none is any more |
| `state=FILLING`, `edition=e2` | what the agent answers about the counts of orders-0 |
| `away`, `back` | the agent answers with an error; it answers again |
| `+15`, `+15*4` | a round, so many seconds after the one before; four of them |
"""

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from streaming.broker.protocol.group_json import GroupDetail, GroupPartition
from streaming.cluster.consumers import group_rounds
from streaming.cluster.consumers.group_details import GroupDetails
from streaming.cluster.consumers.group_partitions import GroupPartitions
from streaming.cluster.consumers.group_rounds import GroupRounds, Surroundings, ask_agents
from streaming.cluster.consumers.group_snapshot import GroupBoard, GroupSnapshot
from streaming.cluster.consumers.group_tracker import GroupTracker
from streaming.cluster.verdicts.group_judge import judge_groups
from streaming.cluster.view.family import EVERYTHING
from streaming.cluster.view.table import Table
from streaming.cluster.view.view import view
from streaming.common.rows import TRANSACTIONS
from streaming.errors import AgentError
from streaming.pages.api.listed_groups import GroupResults, ListedGroups
from tests.consumers.group_agents import Emptied, FakeAgent, Records
from tests.exposition.reading import page, samples
from tests.view.rows import log, new_observer, new_table, states
from tests.worlds.transactions import transaction

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
STOPPED_MS = 600_000
MIXED = ["data", "aborted", "control", "data", "gone", "data", "data", "control", "data", "data"]
"""Ten offsets with all that may be at one: from 2 on five data records, seven batches."""

_COMMIT = re.compile(r"(?:(\w+):)?(-?\d+)(?:/(\d+))?(?:@(-?\d+))?")
_MARKS = {"start": "log_start_offset", "crash": "start_after_crash", "hw": "high_watermark"}


@dataclass
class GroupJob:
    """A job's table, its agents, and the rounds."""

    table: Table
    agents: dict[str, FakeAgent]
    topics: dict[str, int] | None = None
    now: float = 1_000.0
    ahead: float = 0.0  # of the clock of the table
    marks: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)  # what a log was put with the last time
    behind: dict[str, float] = field(default_factory=dict)  # for how many seconds nothing has come from an agent
    down: set[str] = field(default_factory=set)
    deletions: dict[str, int] = field(default_factory=dict)  # of topics, by their ids

    def __post_init__(self) -> None:
        self.board = GroupBoard(monotonic=lambda: self.now)
        self.table._monotonic = lambda: self.now
        self.tracker = GroupTracker(EVERYTHING, STOPPED_MS)
        around = Surroundings(
            agents=lambda: dict(self.agents),
            cluster_topics=lambda: self.topics,
            deletions=lambda: dict(self.deletions),
            clock=lambda: self.now + self.ahead,
            monotonic=lambda: self.now,
        )
        self.rounds = GroupRounds(self.table, self.board, self.tracker, around)

    def put(self, topic: str = "orders", partition: int = 0, *, agent: str = "a1", **values: Any) -> None:
        """Set the offsets of a log, led by the only broker of its agent."""
        self.marks[topic, partition] = {"agent": agent, **values}
        self.table.apply(states(row(topic, partition, agent=agent, **values)))

    def reach(self, agent: str = "a1", seq: int = 1, journal: str = "j") -> None:
        self.table.apply(states({"change": "arrived", "agent": agent, "topic_id": journal, "partition": 0, "log_end_offset": seq}))

    def round(self, seconds: float = 0.0, places_seconds: float = 600.0, seconds_of_others: float = 600.0) -> GroupSnapshot:
        """A round, so long after the one before; it waits so long at most where commits and moves are, and for other answers."""
        self.now += seconds
        read = {agent: self.now - self.behind.get(agent, 0.0) for agent in ("a1", "a2")}
        for agent in read.keys() - self.down:
            self.table.mark_agent(agent, read[agent])
        self.table.set_reading({agent: at for agent, at in read.items() if agent not in self.down})
        with pytest.MonkeyPatch.context() as patch:  # a busy machine makes no answer a late or slow one
            for name in ("GROUPS_SECONDS", "RECORDS_SECONDS", "POSITIONS_SECONDS"):
                patch.setattr(group_rounds, name, seconds_of_others)
            patch.setattr(group_rounds, "PLACES_SECONDS", places_seconds)
            self.rounds.round()
        snapshot = self.board.latest(round((self.now + self.ahead) * 1000))
        assert snapshot is not None
        return snapshot

    def answers(self) -> ListedGroups | None:
        """What the job answers about groups now; None if nothing is known of any."""
        groups, seen = self.board.latest(round((self.now + self.ahead) * 1000)), self.table.snapshot(self.now + self.ahead)
        if groups is None:
            return None
        return ListedGroups(
            judged=judge_groups(groups, groups.at_ms),
            results=GroupResults(groups, EVERYTHING.has_consumer),
            messages=lambda: GroupPartitions(groups, view(seen), seen.topic_names),
            details=lambda messages: GroupDetails(messages, self.agents, ask_agents),
        )

    def play(self, script: str) -> list[GroupSnapshot]:
        """Do what a script says; returns the snapshots of its rounds."""
        agent, found = self.agents["a1"], list[GroupSnapshot]()
        for word in script.split():
            name, _, value = word.partition("=")
            if word.startswith("+"):
                seconds, _, times = word[1:].partition("*")
                found += [self.round(float(seconds)) for _ in range(int(times or 1))]
            elif word in ("away", "back"):
                agent.error = AgentError("away") if word == "away" else None
            elif name in ("state", "edition"):
                setattr(self._log, name, value)
            elif "=" in word:
                self._put(name, value)
            else:
                told = _COMMIT.fullmatch(word)
                assert told, word
                stamp = {"commit_ms": 1000 * int(told[4])} if told[4] else {}
                agent.commit(int(told[2]), group=told[1] or "g", partition=int(told[3] or 0), **stamp)
        return found

    @property
    def _log(self) -> Records:
        return self.agents[self.marks["orders", 0]["agent"]].logs["orders", 0]

    def _put(self, name: str, value: str) -> None:
        marks = self.marks["orders", 0]
        if name == "open":
            marks |= {"transactional": True, "transactions": opened(int(value), 400) if value else None}
        else:
            marks |= {_MARKS.get(name, name): int(value)}
        if name == "end":
            kinds = self._log.kinds
            kinds += ["data"] * (int(value) - len(kinds))
        self.put(**marks)

    def detail(self, name: str = "g") -> GroupDetail | None:
        """One group."""
        answers = self.answers()
        return None if answers is None else answers.named(name)

    def about(self, name: str = "g") -> GroupDetail:
        """One group that is there."""
        found = self.detail(name)
        assert found is not None
        return found

    def one(self, name: str = "g") -> GroupPartition:
        """The only partition of a group."""
        (found,) = self.about(name).partitions
        return found

    def page(self) -> dict[str, float]:
        """The values of groups' series, by name and labels."""
        found = samples(page(self.table, new_observer(), now=self.now + self.ahead, groups=self.board))
        return {
            f"{name.removeprefix('segtail_')}{{{','.join(value for _, value in sorted(labels))}}}": value
            for (name, labels), value in found.items()
            if name.startswith("segtail_group")
        }


def row(topic: str, partition: int = 0, *, agent: str = "a1", end: int = 0, **values: Any) -> dict[str, Any]:
    broker = int(agent[1:])
    marks = {"high_watermark": end, "log_end_offset": end} | values
    facts = {"broker": broker, "leader": broker, "leader_epoch": 1, "agent": agent}
    return log(topic, partition, **facts, **marks)


def opened(first: int, seconds: float, *, marker: int = -1, now_ms: int = 1_000_000) -> bytes:
    """The column of a log in which a transaction began so long ago; ``marker``: the offset of its marker, -1 while it is open."""
    at_ms = now_ms - round(1000 * seconds)
    return np.array([transaction(9, first, age=0, marker=marker, start_ms=at_ms, last_ms=at_ms)], TRANSACTIONS).tobytes()


def world(script: str = "", *, end: int = 10, kinds: list[str] | None = None, **values: Any) -> GroupJob:
    """A log with these records, or so many, and its coordinator's; what happens first is a script."""
    found = GroupJob(new_table(), {"a1": FakeAgent(logs={("orders", 0): Records([*(kinds or ["data"] * end)])})})
    found.put("__consumer_offsets", end=1000)
    found.put(end=end, **values)
    found.reach()
    found.play(script)
    return found


def held_back(first: int, script: str = "", kinds: list[str] | None = None) -> GroupJob:
    """Ten records, with a transaction that is open from ``first`` on."""
    return world(script, kinds=kinds, transactional=True, transactions=opened(first, 400))


def emptied(job: GroupJob, kinds: list[str], bounds: tuple[int, int] = (-1, -1)) -> None:
    """Retention deletes all of the log."""
    log = Emptied([*kinds])
    log.first, log.bounds = len(kinds), bounds
    job.agents["a1"].logs["orders", 0] = log
    job.put(end=len(kinds), log_start_offset=len(kinds))


def restarted(job: GroupJob, script: str = "+15") -> GroupJob:
    """The next job, with the same agents and logs."""
    kept = job.rounds.kept()
    after = GroupJob(job.table, job.agents, now=job.now, marks=job.marks, deletions=job.deletions)
    after.rounds.recall(kept)
    assert after.rounds.kept() == kept, "nothing is forgotten before the first round"
    after.play(script)
    return after
