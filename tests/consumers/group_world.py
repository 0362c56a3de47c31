"""A job's table and its agents, with rounds over consumer groups that a test begins."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from streaming.broker.protocol.group_json import GroupDetail
from streaming.cluster.consumers import group_rounds
from streaming.cluster.consumers.group_calls import ask_agents
from streaming.cluster.consumers.group_details import GroupDetails
from streaming.cluster.consumers.group_partitions import GroupPartitions
from streaming.cluster.consumers.group_rounds import GroupRounds, Surroundings
from streaming.cluster.consumers.group_snapshot import GroupBoard, GroupSnapshot
from streaming.cluster.consumers.group_tracker import GroupTracker
from streaming.cluster.verdicts.group_judge import judge_groups
from streaming.cluster.view.export import EVERYTHING
from streaming.cluster.view.table import Table
from streaming.cluster.view.view import view
from streaming.pages.api.listed_groups import GroupResults, ListedGroups
from tests.consumers.group_agents import FakeAgent, Records
from tests.exposition.reading import page, samples
from tests.view.rows import log, new_observer, new_table, states

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
STOPPED_MS = 600_000


@dataclass
class GroupJob:
    """A job's table, its agents, and the rounds."""

    table: Table
    agents: dict[str, FakeAgent]
    topics: dict[str, int] | None = None
    now: float = 1_000.0
    ahead: float = 0.0  # of the clock of the table
    offsets: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    behind: dict[str, float] = field(default_factory=dict)  # for how many seconds nothing has come from an agent
    down: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.board = GroupBoard(monotonic=lambda: self.now)
        self.table._monotonic = lambda: self.now
        self.tracker = GroupTracker(EVERYTHING, STOPPED_MS)
        around = Surroundings(
            agents=lambda: dict(self.agents),
            cluster_topics=lambda: self.topics,
            clock=lambda: self.now + self.ahead,
            monotonic=lambda: self.now,
        )
        self.rounds = GroupRounds(self.table, self.board, self.tracker, around)

    def put(self, topic: str = "orders", partition: int = 0, *, agent: str = "a1", **values: Any) -> None:
        """Set the offsets of a log, led by the only broker of its agent."""
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

    def detail(self, name: str = "g") -> GroupDetail | None:
        """One group."""
        answers = self.answers()
        return None if answers is None else answers.named(name)

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


def world(*, end: int = 10, kinds: list[str] | None = None, **values: Any) -> GroupJob:
    agent = FakeAgent(logs={("orders", 0): Records(kinds or ["data"] * end)})
    found = GroupJob(new_table(), {"a1": agent})
    found.put("__consumer_offsets", end=1000)
    found.put(end=end, **values)
    found.reach()
    return found
