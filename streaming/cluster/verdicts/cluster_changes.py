"""What has changed in a cluster from one moment to another, and what may have changed unseen."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from streaming.broker.protocol.history_json import KeptBlind, KeptChanges, KeptLeader, KeptSighting
from streaming.broker.protocol.status_json import SEVERITIES, ClusterEvent, EventKind, Problem
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.first_lines import OF_SIGHT
from streaming.cluster.verdicts.incidents import MOST_PROBLEMS
from streaming.cluster.view.broker_status import newest
from streaming.common.units import format_count, format_list, format_name

PartitionKey = tuple[str, str, int]
"""Topic, topic id and partition: a topic that is created again is another one."""

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

_MANY = 3
"""From so many problems of one kind on that begin or end together, they are one event."""

SURE_MS = 45_000
"""So long a problem is not seen before it is over: a job notices within half a minute that it does not see everything."""

_TURNS_INTO = {kinds.STALLED.name: (kinds.HANGING.name, kinds.STUCK.name)}
"""Kinds that are not over where one of these begins in the same topic: it is the cause, which is known by then."""

_MOST_NAMED = 3

_MOST_LEADERS = 200_000
"""So many are remembered of partitions that cannot be seen now: topics that go meanwhile are not noticed."""


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
    """A problem as it was seen last."""

    problem: Problem
    blind: frozenset[Blind]  # what could not be seen then
    first_ms: int  # since when it is known
    missing_ms: int = -1  # since when it is not seen any more, -1 while it is

    def is_hidden(self, now: frozenset[Blind]) -> bool:
        """Whether it may still be there although it is not seen, because less can be seen than when it was."""
        return any(each.hides(self.problem) for each in now - self.blind)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterMoment:
    """A judged cluster at one time."""

    at_ms: int
    problems: Mapping[ProblemKey, Sighting]  # by what they are about, those that follow from others too
    blind: frozenset[Blind]  # what cannot be seen
    epochs: Mapping[int, int]  # of each broker's registration, -1 not known
    agents: Mapping[str, int]  # when the process of each began, by its own clock, -1 not known
    controller: int  # node id, -1 not known
    leaders: Mapping[PartitionKey, int]  # of the partitions for which it is known, the node id


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterChanges:
    """The events between two moments, the oldest first, and the later moment as the next one is compared with it."""

    events: tuple[ClusterEvent, ...]
    now: ClusterMoment


def moment_of(circumstances: Circumstances, problems: Sequence[Problem], *, young: bool = False) -> ClusterMoment:
    """What is compared of a look. ``problems``: all that are found in it. ``young``: the job has looked for less than `YOUNG_MS`.

    What of a judged cluster is compared with a later moment: problems, what can be seen at all, brokers, agents, the controller,
    leaders.
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


def _blind(circumstances: Circumstances, problems: Sequence[Problem]) -> Iterator[Blind]:
    yield from (Blind(each.id, each.broker) for each in problems if each.kind in OF_SIGHT)
    yield from (Blind("not current", each) for each in circumstances.not_current)
    if circumstances.stale:
        yield Blind("agents")
    if circumstances.groups is None:
        yield Blind("groups", groups=True)


def _sightings(problems: Sequence[Problem], blind: frozenset[Blind], now_ms: int) -> dict[ProblemKey, Sighting]:
    """The first problem of several about the same: they are sorted, the most severe incident first, and a root before what follows."""
    found: dict[ProblemKey, Sighting] = {}
    for each in problems:
        first_ms = each.since_ms if 0 <= each.since_ms <= now_ms else now_ms
        found.setdefault(key_of(each), Sighting(problem=each, blind=blind, first_ms=first_ms))
    return found


def key_of(problem: Problem) -> ProblemKey:
    """What it is about."""
    partition = problem.partition if problem.kind in BY_PARTITION else -1
    return problem.kind, problem.broker, problem.topic, partition, problem.group, problem.log_dir, problem.agent


def _leaders(circumstances: Circumstances) -> Iterator[tuple[PartitionKey, int]]:
    logs = circumstances.view.logs
    topics, leaders = logs.columns["topic"].tolist(), circumstances.view.observed.roles.leader[logs.items].tolist()
    for topic, topic_id, partition, leader in zip(topics, logs.topic_ids, logs.columns["partition"].tolist(), leaders, strict=True):
        if leader >= 0:
            yield (circumstances.topics[topic], topic_id, partition), leader


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


def _kept_blind(blind: frozenset[Blind]) -> list[KeptBlind]:
    return [KeptBlind(name=each.name, broker=each.broker, groups=each.groups) for each in blind]


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


def _recalled_blind(kept: list[KeptBlind]) -> frozenset[Blind]:
    return frozenset(Blind(each.name, each.broker, each.groups) for each in kept)


def changes(before: ClusterMoment, after: ClusterMoment) -> ClusterChanges:
    """What has changed.

    What has changed between two moments of a cluster, as events: pure functions. A problem that is not seen any more has ended once
    it has not been seen for a while, though as much can be seen as when it was there: an agent that is away is noticed later than
    what it does not report. Else it is carried over, and nothing is said of it until as much can be seen again.
    """
    found = [*_of_brokers(before, after), *_of_agents(before, after), *_of_leaders(before, after), *_of_problems(before, after)]
    return ClusterChanges(events=tuple(sorted(found, key=lambda each: each.at_ms)), now=_carried(before, after))


def _of_brokers(before: ClusterMoment, after: ClusterMoment) -> Iterator[ClusterEvent]:
    at_ms = after.at_ms
    for broker in sorted(before.epochs.keys() & after.epochs.keys()):
        if 0 <= before.epochs[broker] < after.epochs[broker]:
            yield ClusterEvent(kind=EventKind.BROKER_RESTARTED, at_ms=at_ms, what=f"Broker {broker} was started again", broker=broker)
    if 0 <= before.controller != after.controller >= 0:
        what = f"Node {after.controller} is the active controller; it was node {before.controller}"
        yield ClusterEvent(kind=EventKind.CONTROLLER_CHANGED, at_ms=at_ms, what=what)


def _of_agents(before: ClusterMoment, after: ClusterMoment) -> Iterator[ClusterEvent]:
    """Agents that are another process than before: one that is killed and started again in seconds is no problem that a poll sees."""
    for name, started_ms in sorted(after.agents.items()):
        if 0 <= before.agents.get(name, -1) != started_ms >= 0:
            at_ms = started_ms if before.at_ms <= started_ms <= after.at_ms else after.at_ms
            what = f"segtail's agent {format_name(name)} was started again"
            yield ClusterEvent(kind=EventKind.AGENT_RESTARTED, at_ms=at_ms, what=what, agent=name)


def _of_leaders(before: ClusterMoment, after: ClusterMoment) -> Iterator[ClusterEvent]:
    """One event for all elections between two moments: a broker that stops hands over thousands of partitions."""
    changed = [(key, before.leaders[key], now) for key, now in after.leaders.items() if before.leaders.get(key, now) != now]
    if not changed:
        return
    ways = Counter((old, new) for _, old, new in changed).most_common()
    way = [f"{count:,} from broker {old} to {new}" for (old, new), count in ways]
    topics = sorted({topic for (topic, _, _), _, _ in changed})
    (topic, _, partition), *others = (key for key, _, _ in changed)
    yield ClusterEvent(
        kind=EventKind.LEADERS_CHANGED,
        at_ms=after.at_ms,
        what=f"{format_count(len(changed), 'partition')} of {format_list(list(map(format_name, topics)), _MOST_NAMED)} "
        f"got another leader: {format_list(way, _MOST_NAMED)}",
        topic=topic if len(topics) == 1 else "",
        partition=-1 if others else partition,
    )


def _of_problems(before: ClusterMoment, after: ClusterMoment) -> Iterator[ClusterEvent]:
    """Those that began, got worse or ended. One that becomes a root, or comes to follow from another, goes on."""
    there = list(after.problems.values())
    began = [each for each in there if key_of(each.problem) not in before.problems]
    worse = [each for each in there if _is_worse(before.problems.get(key_of(each.problem)), each)]
    over = [each for key, each in before.problems.items() if key not in after.problems and _is_over(each, after)]
    topics = {(each.problem.kind, each.problem.topic) for each in after.problems.values()}
    gone = [each for each in over if not any((kind, each.problem.topic) in topics for kind in _TURNS_INTO.get(each.problem.kind, ()))]
    yield from _together(EventKind.PROBLEM_BEGAN, began, before, after)
    yield from _together(EventKind.PROBLEM_WORSENED, worse, before, after)
    yield from _together(EventKind.PROBLEM_ENDED, gone, before, after)


def _is_worse(before: Sighting | None, now: Sighting) -> bool:
    return before is not None and SEVERITIES.index(now.problem.gravity) < SEVERITIES.index(before.problem.gravity)


def _is_over(sighting: Sighting, after: ClusterMoment) -> bool:
    """Whether a problem that is not seen now has ended."""
    return 0 <= sighting.missing_ms <= after.at_ms - SURE_MS and not sighting.is_hidden(after.blind)


def _together(kind: EventKind, sightings: Sequence[Sighting], before: ClusterMoment, after: ClusterMoment) -> Iterator[ClusterEvent]:
    """An event for each, but one for many of one kind of problem."""
    by_kind = defaultdict(list)
    for each in sightings:
        by_kind[each.problem.kind, each.problem.gravity].append(each)
    for those in by_kind.values():
        if len(those) < _MANY:
            yield from (_of_problem(kind, each, before, after) for each in those)
        else:
            first = _of_problem(kind, those[0], before, after)
            yield replace(first, what=f"{first.what}; and {len(those) - 1:,} more of this kind")


def _of_problem(kind: EventKind, sighting: Sighting, before: ClusterMoment, after: ClusterMoment) -> ClusterEvent:
    problem, ended = sighting.problem, kind is EventKind.PROBLEM_ENDED
    began_here = kind is EventKind.PROBLEM_BEGAN and before.at_ms <= problem.since_ms <= after.at_ms
    named = f", partition {problem.partition}" if problem.kind in BY_PARTITION and problem.partition >= 0 else ""
    at_ms = sighting.missing_ms if ended else problem.since_ms if began_here else after.at_ms
    return ClusterEvent(
        kind=kind,
        at_ms=at_ms,
        what=f"{problem.summary or problem.what}{named}" if ended else f"{problem.what}{_cause(problem, after)}",
        severity=problem.gravity,
        lasted_ms=at_ms - sighting.first_ms if ended else -1,
        broker=problem.broker,
        topic=problem.topic,
        partition=problem.partition,
        group=problem.group,
        log_dir=problem.log_dir,
        agent=problem.agent,
        problem=problem.id,
        because=problem.because,
        runbook=problem.runbook,
    )


def _cause(problem: Problem, after: ClusterMoment) -> str:
    """What a problem follows from, as the end of its sentence; "" of a root."""
    roots = (each.problem for each in after.problems.values() if problem.because and each.problem.id == problem.because)
    return next((f", which follows from: {each.summary or each.what}" for each in roots), "")


def _carried(before: ClusterMoment, after: ClusterMoment) -> ClusterMoment:
    """The later moment, with what it cannot know as the earlier one had it."""
    unseen = {
        key: _missing(each, after) for key, each in before.problems.items() if key not in after.problems and not _is_over(each, after)
    }
    known = {key: _known_longer(before.problems.get(key), each) for key, each in after.problems.items()}
    leaders = {**before.leaders, **after.leaders} if after.blind else after.leaders
    return replace(
        after,
        problems={**known, **dict(islice(unseen.items(), MOST_PROBLEMS))},
        epochs={
            broker: epoch if epoch >= 0 else before.epochs.get(broker, -1) for broker, epoch in (after.epochs or before.epochs).items()
        },
        agents={name: started if started >= 0 else before.agents.get(name, -1) for name, started in after.agents.items()},
        controller=after.controller if after.controller >= 0 else before.controller,
        leaders=leaders if len(leaders) <= _MOST_LEADERS else after.leaders,
    )


def _missing(sighting: Sighting, after: ClusterMoment) -> Sighting:
    return sighting if sighting.missing_ms >= 0 else replace(sighting, missing_ms=after.at_ms)


def _known_longer(before: Sighting | None, now: Sighting) -> Sighting:
    return now if before is None else replace(now, first_ms=min(before.first_ms, now.first_ms))
