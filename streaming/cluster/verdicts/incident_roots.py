"""Which problem is the root of which: decided here alone, for every face.

Links are facts: partitions, producers of transactions, brokers. What only some partitions share is linked for those alone, so that
no danger with another cause is hidden behind one that is known.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.kinds import ORDER, ProblemKind
from streaming.cluster.verdicts.links import NO_PRODUCER, LinkedProblem, TopicPartition

TRANSACTIONS = (kinds.OVERDUE, kinds.HANGING, kinds.STUCK)

_PARTS = (kinds.GROUP_HELD, kinds.GROUP_PENDING, kinds.GROUP_STOPPED, kinds.GROUP_WILL_LOSE, kinds.GROUP_LOST)
"""What one group suffers in one topic, the cause before the effect."""


def roots_of(every: Sequence[LinkedProblem], circumstances: Circumstances) -> list[int]:
    """The place of each problem's root among all: its own if it has none. What is the root of a root is the root of both."""
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
    kinds.LOG_DIR_OFFLINE.name: _Roots._of_broker_away,
    kinds.BROKER_METADATA_STALLED.name: _Roots._of_broker_away,
    kinds.OFFLINE.name: _Roots._of_replicas,
    kinds.UNDER_MIN_ISR.name: _Roots._of_replicas,
    kinds.UNDER_REPLICATED.name: _Roots._of_replicas,
    kinds.BLIND.name: _Roots._of_blind,
}
"""By the kind of a problem how its root is found."""
