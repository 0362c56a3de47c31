"""Problems of one cause are an incident: its root with its consequences.

A consequence has no command of its own unless it mends what its root's
command does not: who mends an effect has mended nothing.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from streaming.broker.protocol.status_json import SEVERITIES, Consequence, Problem
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.cases import Cases, all_cases
from streaming.cluster.verdicts.circumstances import NO_PRODUCER, Circumstances, LinkedProblem, TopicPartition
from streaming.cluster.verdicts.cluster_problems import cluster_problems
from streaming.cluster.verdicts.group_problems import group_problems
from streaming.cluster.verdicts.kinds import ORDER, ProblemKind
from streaming.cluster.verdicts.log_problems import log_problems
from streaming.cluster.verdicts.observer_problems import FULL, log_dir_problems, observer_problems
from streaming.cluster.verdicts.transaction_problems import transaction_problems
from streaming.common.units import format_age, format_name, format_time

TRANSACTIONS = (kinds.OVERDUE, kinds.HANGING, kinds.STUCK)

_PARTS = (kinds.GROUP_HELD, kinds.GROUP_PENDING, kinds.GROUP_STOPPED, kinds.GROUP_WILL_LOSE, kinds.GROUP_LOST)
"""What one group suffers in one topic, the cause before the effect."""

_OPEN_TOO = frozenset({kinds.OVERDUE.name, kinds.HANGING.name, kinds.STUCK.name})

_AWAY = frozenset(kind.name for kind in kinds.AWAY)

_DONE = {
    kinds.GROUP_HELD.name: "held up",
    kinds.GROUP_PENDING.name: "its commits wait",
    kinds.GROUP_STOPPED.name: "has stopped",
    kinds.GROUP_OFFSET_INVALID.name: "has an offset that is not valid",
    kinds.GROUP_LOST.name: "has lost records",
    kinds.GROUP_SKIPPED.name: "has skipped records",
    kinds.GROUP_OFFSETS_EXPIRE.name: "has offsets that expire",
}

MOST_CONSEQUENCES = 100
"""So many are listed with a root."""

_OWN_REMEDY = frozenset({kinds.HANGING.name})
"""A hanging transaction has to be ended in each of its partitions."""

_MENDS_WHAT_COMES = frozenset({kinds.ARRIVES_EXPIRED.name})
"""Their commands change nothing for the records that are there."""

_FAR = float("inf")

MOST_PROBLEMS = 10_000
"""The most problems that are told apart: the most severe ones."""


def incidents(problems: Iterable[LinkedProblem], circumstances: Circumstances) -> Iterator[Problem]:
    """All problems, each root before its consequences: by severity, then by what is lost first, then by kind, the oldest first."""
    every = sorted(problems, key=lambda each: _place(each.problem))
    roots = roots_of(every, circumstances)
    ids = _ids(every)
    following: dict[int, list[int]] = defaultdict(list)
    for number, root in enumerate(roots):
        if root != number:
            following[root].append(number)
    made = []
    for number, root in enumerate(roots):
        if root == number:
            those = sorted((_message_of(every, of, root, ids) for of in following[root]), key=_place)
            made.append((_root(every[root].problem, ids[root], those, circumstances), those))
    for head, those in sorted(made, key=lambda each: _place(each[0])):
        yield head
        yield from those


def problems(circumstances: Circumstances, cases: Sequence[Cases] | None = None) -> tuple[Problem, ...]:
    """All problems: by the severity of their incident, then by what is lost first, a root before its consequences.

    Args:
        cases: what is wrong with replicas, by `streaming.cluster.verdicts.cases.all_cases`, if that has been decided already.
    """
    decided = all_cases(circumstances) if cases is None else cases
    every = (
        *cluster_problems(circumstances),
        *log_dir_problems(circumstances),
        *observer_problems(circumstances),
        *transaction_problems(circumstances, decided),
        *log_problems(circumstances, decided),
        *group_problems(circumstances),
    )
    return tuple(islice(incidents(every, circumstances), MOST_PROBLEMS))


def _place(problem: Problem) -> tuple[object, ...]:
    age = problem.since_ms if problem.since_ms >= 0 else _FAR
    deadline = problem.deadline_ms if problem.deadline_ms >= 0 else _FAR
    where = problem.topic, problem.partition, problem.broker, problem.group, problem.log_dir, problem.agent
    return SEVERITIES.index(problem.gravity), deadline, ORDER[problem.kind], age, where, problem.what


def roots(problems: Sequence[Problem]) -> list[Problem]:
    """One problem for each incident."""
    return [each for each in problems if not each.because]


def roots_of(every: Sequence[LinkedProblem], circumstances: Circumstances) -> list[int]:
    """The place of each problem's root among all: its own if it has none. The root of a root is the root of both.

    Which problem is the root of which: decided here alone, for every face. Links are facts: partitions, producers of transactions,
    brokers. What only some partitions share is linked for those alone, so that no danger with another cause is hidden behind one that
    is known.
    """
    return _Roots(every, circumstances).of_all()


class _Roots:
    """Finds the root of each problem, by its place among all."""

    def __init__(self, every: Sequence[LinkedProblem], circumstances: Circumstances) -> None:
        self._every, self._circumstances = every, circumstances
        self._of_kind: dict[str, list[int]] = defaultdict(list)
        self._of_topic: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._of_broker: dict[tuple[str, int], list[int]] = defaultdict(list)
        self._parts: dict[object, int] = {}
        self._chiefs: dict[int, int] = {}
        for number, each in enumerate(every):
            of = each.problem
            self._of_kind[of.kind].append(number)
            self._of_topic[of.kind, of.topic].append(number)
            self._of_broker[of.kind, of.broker].append(number)
        for kind in _PARTS:
            for number in self._of_kind[kind.name]:
                self._parts.setdefault(self._part(every[number]), number)
        for kind in TRANSACTIONS:
            for number in sorted(self._of_kind[kind.name], key=lambda each: -every[each].links.weight):
                if every[number].links.producer != NO_PRODUCER:
                    self._chiefs.setdefault(every[number].links.producer, number)

    def of_all(self) -> list[int]:
        """As `roots_of`."""
        direct = [self._cause(number) for number in range(len(self._every))]
        return [self._last(direct, number) for number in range(len(direct))]

    @staticmethod
    def _last(direct: Sequence[int], number: int) -> int:
        for _ in range(len(ORDER)):  # a chain of causes is not longer than there are kinds
            if direct[number] == number:
                break
            number = direct[number]
        return number

    def _cause(self, number: int) -> int:
        each = self._every[number]
        find = _CAUSES.get(each.problem.kind)
        found = None if find is None else find(self, number)
        return number if found is None else found

    def _of_transaction(self, number: int) -> int | None:
        return self._chiefs.get(self._every[number].links.producer)

    def _of_group(self, number: int) -> int | None:
        """The transaction that it waits for, or that its records came too late, or the broker whose start lets them be lost; else what the
        same group suffers in the same topic, and is the cause of the rest.
        """
        each = self._every[number]
        if each.links.awaited >= 0 and (away := self._away(each.links.awaited)) is not None:
            return away
        if each.links.came_late and (late := self._covering(kinds.ARRIVES_EXPIRED, each)) is not None:
            return late
        if each.links.waits:
            chief = self._chiefs.get(each.links.producer)
            unlisted = (kinds.HANGING, kinds.STUCK, kinds.STALLED) if chief is None else ()
            holds = next((of for kind in unlisted if (of := self._covering(kind, each)) is not None), chief)
            if holds is not None:
                return holds
        return self._parts[self._part(each)]

    @staticmethod
    def _part(each: LinkedProblem) -> object:
        return each.problem.group, each.problem.topic, each.links.waits, each.links.producer

    def _covering(self, kind: ProblemKind, each: LinkedProblem, broker: int | None = None) -> int | None:
        """The problem of a kind that is about all partitions of another one, and of no transaction that is known by its producer."""
        for number in self._of_topic[kind.name, each.problem.topic]:
            other = self._every[number]
            here = broker is None or other.problem.broker == broker
            if here and each.links.partitions and each.links.partitions <= other.links.partitions:
                return number
        return None

    def _of_blocked(self, number: int) -> int | None:
        each = self._every[number]
        return self._covering(kinds.IN_FUTURE, each) if each.links.reason == "future_timestamp" else None

    def _of_overdue(self, number: int) -> int | None:
        each = self._every[number]
        blocked = self._covering(kinds.RETENTION_BLOCKED, each, each.problem.broker)
        return None if blocked is None else self._of_blocked(blocked)

    def _of_broker_away(self, number: int) -> int | None:
        return self._away(self._every[number].problem.broker)

    def _of_broker_down(self, number: int) -> int | None:
        """A broker that has no log dir with room left stops, and does not start again before one has."""
        broker = self._every[number].problem.broker
        full = [self._full(broker, each.log_dir) for each in self._circumstances.log_dirs if each.broker == broker]
        return full[0] if full and None not in full else None

    def _of_log_dir(self, number: int) -> int | None:
        """That it is full, which is the I/O error after which its broker gave it up."""
        problem = self._every[number].problem
        away = self._away(problem.broker)
        return self._full(problem.broker, problem.log_dir) if away is None else away

    def _full(self, broker: int, log_dir: str) -> int | None:
        numbers = (each for each in self._of_broker[kinds.LOG_DIR_FULL.name, broker] if self._every[each].problem.log_dir == log_dir)
        return next((each for each in numbers if self._every[each].links.reason == FULL), None)

    def _of_agent(self, number: int) -> int | None:
        """An agent is away with its host if all of its brokers are."""
        away = [self._away(broker) for broker in self._every[number].links.brokers]
        return away[0] if away and None not in away else None

    def _away(self, broker: int) -> int | None:
        found = (self._of_broker[kind.name, broker] for kind in kinds.AWAY)
        return next((numbers[0] for numbers in found if numbers), None)

    def _of_replicas(self, number: int) -> int | None:
        """A broker that alone is missing in all of these partitions, or the log dir of it that has all of their replicas."""
        links = self._every[number].links
        if links.lacks < 0:
            return None
        away = self._away(links.lacks)
        return self._given_up(links.lacks, links.partitions) if away is None else away

    def _given_up(self, broker: int, partitions: frozenset[TopicPartition]) -> int | None:
        numbers = self._of_broker[kinds.LOG_DIR_OFFLINE.name, broker]
        if not numbers:
            return None
        observed = self._circumstances.view.observed
        hosted = {
            (observed.names[item], int(observed.columns["partition"][item])): observed.log_dirs[int(observed.columns["log_dir"][item])][1]
            for item in (observed.columns["broker"] == broker).nonzero()[0].tolist()
        }
        dirs = {hosted.get(partition) for partition in partitions}
        return next((each for each in numbers if dirs == {self._every[each].problem.log_dir}), None)

    def _of_blind(self, number: int) -> int | None:
        """What keeps segtail from a broker's metadata or logs, or, if it is one thing alone, from coordinators."""
        each = self._every[number]
        unread = [*self._of_kind[kinds.AGENT_DOWN.name], *self._of_kind[kinds.LOG_DIR_UNREADABLE.name]]
        if each.links.reason == "metadata_unreadable" and self._of_kind[kinds.METADATA_UNREADABLE.name]:
            return self._of_kind[kinds.METADATA_UNREADABLE.name][0]
        if each.links.reason in ("metadata_unreadable", "snapshot_unreadable", "broker_unwatched"):
            return next((other for other in unread if each.problem.broker in self._brokers(other)), None)
        return unread[0] if each.links.reason == "coordinators_unreadable" and len(unread) == 1 else None

    def _brokers(self, number: int) -> tuple[int, ...]:
        each = self._every[number]
        return each.links.brokers or (each.problem.broker,)


_CAUSES: dict[str, Callable[[_Roots, int], int | None]] = {
    **dict.fromkeys((kind.name for kind in TRANSACTIONS), _Roots._of_transaction),
    **dict.fromkeys((kind.name for kind in _PARTS), _Roots._of_group),
    kinds.RETENTION_BLOCKED.name: _Roots._of_blocked,
    kinds.RETENTION_OVERDUE.name: _Roots._of_overdue,
    kinds.AGENT_DOWN.name: _Roots._of_agent,
    kinds.BROKER_DOWN.name: _Roots._of_broker_down,
    kinds.LOG_DIR_OFFLINE.name: _Roots._of_log_dir,
    kinds.BROKER_METADATA_STALLED.name: _Roots._of_broker_away,
    kinds.OFFLINE.name: _Roots._of_replicas,
    kinds.UNDER_MIN_ISR.name: _Roots._of_replicas,
    kinds.UNDER_REPLICATED.name: _Roots._of_replicas,
    kinds.BLIND.name: _Roots._of_blind,
}
"""By the kind of a problem how its root is found."""


def _ids(every: Sequence[LinkedProblem]) -> list[str]:
    """Names of the problems that stay as long as they are about the same."""
    seen: dict[str, int] = defaultdict(int)
    ids = []
    for each in every:
        of, links = each.problem, each.links
        about = (of.kind, of.broker, of.topic, of.partition, of.group, of.log_dir, of.agent, links.producer, links.waits, links.reason)
        name = hashlib.sha256(repr(about).encode()).hexdigest()[:12]
        seen[name] += 1
        ids.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return ids


def _message_of(every: Sequence[LinkedProblem], number: int, root: int, ids: Sequence[str]) -> Problem:
    problem, of = every[number].problem, every[root].problem
    mended = replace(problem, id=ids[number], because=ids[root], worst=problem.severity)
    part = problem.group and (problem.group, problem.topic) == (of.group, of.topic) and not every[number].links.waits
    before = every[number].links.awaited >= 0  # what its root asks for is what lets the records be lost
    own = part or before or problem.kind in _OWN_REMEDY or of.kind in _MENDS_WHAT_COMES
    return mended if own else replace(mended, command="", no_command="it ends with its cause")


def _root(problem: Problem, own_id: str, those: Sequence[Problem], circumstances: Circumstances) -> Problem:
    clauses = consequences(problem, those, circumstances.now_ms)
    dated = [each.deadline_ms for each in (problem, *those) if each.deadline_ms >= 0]
    return replace(
        problem,
        id=own_id,
        worst=min((problem.severity, *(each.severity for each in those)), key=SEVERITIES.index),
        deadline_ms=min(dated, default=-1),
        consequences=clauses[:MOST_CONSEQUENCES],
        more_consequences=max(0, len(clauses) - MOST_CONSEQUENCES),
    )


def consequences(root: Problem, those: Sequence[Problem], now_ms: int) -> list[Consequence]:
    """What follows from a root, in the order of ``those``; what one group suffers in one topic is one."""
    subjects: dict[tuple[str, str, str], list[Problem]] = {}
    for each in those:
        subjects.setdefault((each.group, each.topic, "" if each.group else each.id), []).append(each)
    return [_consequence(root, some, now_ms) for some in subjects.values()]


def _consequence(root: Problem, some: Sequence[Problem], now_ms: int) -> Consequence:
    first, dated = some[0], [each.deadline_ms for each in some if each.deadline_ms >= 0]
    partitions = {each.partition for each in some}
    return Consequence(
        text=_of_group(root, some, now_ms) if first.group else _of_other(first),
        severity=min((each.severity for each in some), key=SEVERITIES.index),
        broker=first.broker if len({each.broker for each in some}) == 1 else -1,
        topic=first.topic,
        partition=first.partition if len(partitions) == 1 else -1,
        group=first.group,
        deadline_ms=min(dated, default=-1),
        problems=[each.id for each in some],
    )


def _of_group(root: Problem, some: Sequence[Problem], now_ms: int) -> str:
    ordered = sorted(some, key=lambda each: (each.kind not in _DONE, [*_DONE].index(each.kind) if each.kind in _DONE else 0))
    suffers = ", ".join(dict.fromkeys(_suffers(root, each, now_ms) for each in ordered))
    first = some[0]
    topic = "" if (first.group, first.topic) == (root.group, root.topic) else f" in {_where(some)}"
    return f"group {format_name(first.group)}{topic}: {suffers}"


def _suffers(root: Problem, problem: Problem, now_ms: int) -> str:
    if problem.kind in _DONE:
        return _DONE[problem.kind]
    if problem.deadline_ms < 0:
        return f"loses records after the start of broker {root.broker}" if root.kind in _AWAY else "will lose records"
    if problem.deadline_ms <= now_ms:
        return "loses records with the next check"
    return f"loses records from {format_time(problem.deadline_ms)} on ({format_age((now_ms - problem.deadline_ms) / 1000)})"


def _where(some: Sequence[Problem]) -> str:
    first, partitions = some[0], {each.partition for each in some}
    one = len(partitions) == 1 and first.partition >= 0
    return format_name(f"{first.topic}-{first.partition}") if one else f"topic {format_name(first.topic)}"


def _of_other(problem: Problem) -> str:
    if problem.kind in _OPEN_TOO:
        costs = f": {problem.holds_back.rstrip('.')}" if problem.holds_back else ""
        return f"it is open in {_where([problem])}, too{costs}"
    return problem.summary or problem.what


def count(problems: Sequence[Problem]) -> dict[str, int]:
    """How many incidents there are of each severity.

    What follows from a problem, in a clause for each group and topic, or for another thing.
    """
    return {severity: sum(each.gravity == severity for each in roots(problems)) for severity in SEVERITIES}
