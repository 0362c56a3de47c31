"""What of a judged cluster is compared with a later moment: problems, what can be seen at all, brokers, agents, the controller, leaders."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from streaming.broker.protocol.history_json import KeptBlind, KeptChanges, KeptLeader, KeptSighting
from streaming.broker.protocol.status_json import ClusterEvent, Problem
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.first_lines import OF_SIGHT
from streaming.cluster.view.broker_status import newest

PartitionKey = tuple[str, str, int]
"""Topic, topic id and partition: a topic that is made anew is another one."""

ProblemKey = tuple[str, int, str, int, str, str, str]
"""What a problem is about, as long as it goes on: kind, broker, topic, partition, group, log dir and agent.

Its id is finer: it changes where more comes to be known, such as whose transaction it is, or where another partition joins.
"""

_TAKES_TIME = frozenset(
    each.name for each in (kinds.LOG_DIR_FULL, kinds.GROUP_WILL_LOSE, kinds.RETENTION_OVERDUE, kinds.ARRIVES_EXPIRED, kinds.CLIENT_ABORTS)
)
"""Kinds that a job finds only after it has looked for a while."""

YOUNG_MS = 15 * 60_000
"""So long a job looks until it finds them."""

_YOUNG = "young"

BY_PARTITION = frozenset({kinds.HANGING.name, kinds.STUCK.name})
"""Kinds of which each partition has a problem of its own; others name a partition as long as it is the only one."""


def key_of(problem: Problem) -> ProblemKey:
    """What it is about."""
    partition = problem.partition if problem.kind in BY_PARTITION else -1
    return problem.kind, problem.broker, problem.topic, partition, problem.group, problem.log_dir, problem.agent


@dataclass(frozen=True, slots=True)
class Blind:
    """Something that cannot be seen: of a ``broker``, or of any if that is -1. ``groups``: only consumer groups are concerned."""

    name: str
    broker: int = -1
    groups: bool = False

    def hides(self, problem: Problem) -> bool:
        """Whether a problem may be there and not be seen because of it."""
        if self.name == _YOUNG:
            return problem.kind in _TAKES_TIME
        if self.groups:
            return bool(problem.group)
        return -1 in (self.broker, problem.broker) or self.broker == problem.broker


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A problem as it was seen last.

    ``blind``: what could not be seen then. ``first_ms``: since when it is known. ``missing_ms``: since when it is not seen any more, -1
    while it is.
    """

    problem: Problem
    blind: frozenset[Blind]
    first_ms: int
    missing_ms: int = -1

    def is_hidden(self, now: frozenset[Blind]) -> bool:
        """Whether it may still be there although it is not seen, because less can be seen than when it was."""
        return any(each.hides(self.problem) for each in now - self.blind)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterMoment:
    """A judged cluster at one time.

    ``problems``: by what they are about, those that follow from others too. ``blind``: what cannot be seen. ``epochs``: of each broker's
    registration, -1 not known. ``agents``: when the process of each began, by its own clock, -1 not known. ``controller``: node id, -1 not
    known. ``leaders``: of the partitions for which it is known, the node id.
    """

    at_ms: int
    problems: Mapping[ProblemKey, Sighting]
    blind: frozenset[Blind]
    epochs: Mapping[int, int]
    agents: Mapping[str, int]
    controller: int
    leaders: Mapping[PartitionKey, int]


def moment_of(circumstances: Circumstances, problems: Sequence[Problem], *, young: bool = False) -> ClusterMoment:
    """What is compared of a look.

    Args:
        problems: all that are found in it.
        young: the job has looked for less than `YOUNG_MS`.
    """
    blind = frozenset(_blind(circumstances, problems)) | ({Blind(_YOUNG)} if young else set())
    latest = newest(circumstances.brokers)
    return ClusterMoment(
        at_ms=circumstances.now_ms,
        problems=_sightings(problems, blind, circumstances.now_ms),
        blind=blind,
        epochs={} if latest is None else {each.broker: each.epoch for each in latest.registered},
        agents={each.name: each.started_ms for each in circumstances.agents},
        controller=-1 if latest is None else latest.controller,
        leaders=dict(_leaders(circumstances)),
    )


def kept_moment(moment: ClusterMoment, events: list[ClusterEvent], since_ms: int) -> KeptChanges:
    """A moment as it is kept for the next job, with the events before it."""
    return KeptChanges(
        events=events,
        since_ms=since_ms,
        at_ms=moment.at_ms,
        sightings=[
            KeptSighting(problem=each.problem, blind=_kept_blind(each.blind), first_ms=each.first_ms, missing_ms=each.missing_ms)
            for each in moment.problems.values()
        ],
        blind=_kept_blind(moment.blind),
        epochs={str(broker): epoch for broker, epoch in moment.epochs.items()},
        agents=dict(moment.agents),
        controller=moment.controller,
        leaders=[
            KeptLeader(topic=topic, topic_id=topic_id, partition=partition, leader=leader)
            for (topic, topic_id, partition), leader in moment.leaders.items()
        ],
    )


def recalled_moment(kept: KeptChanges) -> ClusterMoment:
    """The moment that a job before has kept. Raises ValueError if it is none."""
    sightings = (
        Sighting(problem=each.problem, blind=_recalled_blind(each.blind), first_ms=each.first_ms, missing_ms=each.missing_ms)
        for each in kept.sightings
    )
    return ClusterMoment(
        at_ms=kept.at_ms,
        problems={key_of(each.problem): each for each in sightings},
        blind=_recalled_blind(kept.blind),
        epochs={int(broker): epoch for broker, epoch in kept.epochs.items()},
        agents=kept.agents,
        controller=kept.controller,
        leaders={(each.topic, each.topic_id, each.partition): each.leader for each in kept.leaders},
    )


def _kept_blind(blind: frozenset[Blind]) -> list[KeptBlind]:
    return [KeptBlind(name=each.name, broker=each.broker, groups=each.groups) for each in blind]


def _recalled_blind(kept: list[KeptBlind]) -> frozenset[Blind]:
    return frozenset(Blind(each.name, each.broker, each.groups) for each in kept)


def _sightings(problems: Sequence[Problem], blind: frozenset[Blind], now_ms: int) -> dict[ProblemKey, Sighting]:
    """Of several about the same, the first: they are sorted, the most severe incident first, and a root before what follows from it."""
    found: dict[ProblemKey, Sighting] = {}
    for each in problems:
        found.setdefault(key_of(each), Sighting(problem=each, blind=blind, first_ms=_first_ms(each, now_ms)))
    return found


def _first_ms(problem: Problem, now_ms: int) -> int:
    return problem.since_ms if 0 <= problem.since_ms <= now_ms else now_ms


def _blind(circumstances: Circumstances, problems: Sequence[Problem]) -> Iterator[Blind]:
    yield from (Blind(each.id, each.broker) for each in problems if each.kind in OF_SIGHT)
    yield from (Blind("not current", each) for each in circumstances.not_current)
    if circumstances.stale:
        yield Blind("agents")
    if circumstances.groups is None:
        yield Blind("groups", groups=True)


def _leaders(circumstances: Circumstances) -> Iterator[tuple[PartitionKey, int]]:
    logs = circumstances.view.logs
    topics, leaders = logs.columns["topic"].tolist(), circumstances.view.observed.roles.leader[logs.items].tolist()
    for topic, topic_id, partition, leader in zip(topics, logs.topic_ids, logs.columns["partition"].tolist(), leaders, strict=True):
        if leader >= 0:
            yield (circumstances.topics[topic], topic_id, partition), leader
