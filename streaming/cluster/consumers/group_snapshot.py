"""What a round has found out about all consumer groups: pages and answers show the last one, and nothing changes it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Condition

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.group_json import READ_UNCOMMITTED
from streaming.broker.protocol.history_json import DeletedTopic, KeptCommit
from streaming.cluster.consumers.group_counting import Counters
from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.cluster.consumers.group_memory import GroupProgress
from streaming.cluster.consumers.group_moves import NOTHING_MOVED, Moved
from streaming.cluster.consumers.group_rebalances import GroupRebalances
from streaming.cluster.consumers.group_sums import CommitFacts, PairLabels, PairSums
from streaming.cluster.consumers.group_uncommitted import Uncommitted
from streaming.cluster.consumers.query_groups import QueryFacts
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.kafka.groups.commit_table import CommitRows, CoordinatorLog
from streaming.kafka.groups.group_rows import GroupFacts, PendingCommit
from streaming.kafka.groups.replays import COORDINATED_TOPICS

_NONE = re.compile("")

_KEPT_TIMES = ("unmoved_ms", "stopped_since_ms", "held_since_ms", "lost_ms", "losing_since_ms")

OLD_MS = 90_000
"""A snapshot that is older is shown no more: rounds come every half a minute, whatever happens."""


class RowsOfGroups:
    """The indexes of commits by the names of their groups. Any thread may ask."""

    def __init__(self, rows: CommitRows) -> None:
        self._rows = rows

    def __call__(self, group: str) -> list[int]:
        """The indexes of a group's commits, ascending; none of a group that is not known."""
        number = self._numbers.get(group)
        if number is None:
            return []
        order, first = self._order
        found: list[int] = order[first[number] : first[number + 1]].tolist()
        return found

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self._rows.group_names)}

    @cached_property
    def _order(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The commits in the order of their groups, and where each group's begin there."""
        order = np.argsort(self._rows.group, kind="stable")
        return order, np.searchsorted(self._rows.group[order], np.arange(len(self._rows.group_names) + 1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupSnapshot:
    """What a poll has found of all groups.

    ``throwaway``: groups whose whole names match it have new names at each start, besides those that are known to have; "" for none.
    ``deleted``: what is deleted after commits and perhaps not lost, by their keys, as `KeptCommit.deleted`.
    """

    at_ms: int  # when it was made, Unix milliseconds
    rows: CommitRows
    logs: GroupLogs
    found: CommitFacts
    progress: GroupProgress
    pairs: PairSums
    coordinators: tuple[CoordinatorLog, ...]  # the logs that the commits are of
    labels: PairLabels
    counters: Counters
    groups: Mapping[str, GroupFacts]
    pending: tuple[PendingCommit, ...]
    uncommitted: Mapping[str, Sequence[Uncommitted]]  # of each group that has some
    unread: Mapping[str, int]  # by topic of the coordinators, how many of its partitions are not read from a current replica
    not_understood: Mapping[str, int]  # by the same, records that say nothing
    omitted: int  # groups that are not followed
    appended_rate: NDArray[np.float64]  # records a second that have lately been appended to each log, `ABSENT` where that is not known
    throwaway: re.Pattern[str] = _NONE
    moved: Moved = NOTHING_MOVED  # the offsets that were moved, and not by reading
    queries: Mapping[str, QueryFacts] = field(default_factory=dict)  # what is known of groups that are streaming queries, by their names
    deleted: Mapping[int, list[int]] = field(default_factory=dict)
    rebalances: GroupRebalances = field(default_factory=GroupRebalances)
    deleted_topics: tuple[DeletedTopic, ...] = ()  # those that were deleted within a day, with what groups had left of them
    _rows_of: RowsOfGroups = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rows_of", RowsOfGroups(self.rows))

    @property
    def coordinators_read(self) -> int:
        """How many logs of coordinators are read from a current replica."""
        return sum(log.observed for log in self.coordinators if log.topic in COORDINATED_TOPICS)

    @property
    def coordinators_not_current(self) -> set[int]:
        """The partitions of `__consumer_offsets` of which only what was known earlier is known: no agent has read them to their ends."""
        return {log.partition for log in self.coordinators if log.topic == OFFSETS_TOPIC and not log.is_current}

    @property
    def checkpoints_unread(self) -> int:
        """How many streaming queries are not known, because their checkpoints cannot be read."""
        return sum(facts.unread for facts in self.queries.values())

    def isolation(self, group: str, *, reads_uncommitted: bool) -> str:
        """The isolation that a group is known to have, "" if it is not: an offset proves that it ``reads_uncommitted``, or it was given."""
        facts = self.queries.get(group)
        return READ_UNCOMMITTED if reads_uncommitted else str((facts and facts.isolation) or "")

    def rows_of(self, group: str) -> list[int]:
        """The indexes of a group's commits."""
        return self._rows_of(group)

    def kept(self) -> list[KeptCommit]:
        """The commits of which something is known that the rounds of another job cannot see."""
        rows, progress, lately = self.rows, self.progress, self.progress.lost_lately
        columns = {name: getattr(progress, name) for name in _KEPT_TIMES}
        known = np.any([columns[name] != ABSENT for name in _KEPT_TIMES[1:]], axis=0) & ~rows.share
        some = np.flatnonzero(known | np.isin(rows.key, [*self.deleted]))
        return [
            KeptCommit(
                group=rows.group_names[rows.group[row]],
                topic=rows.topic_names[rows.topic[row]],
                partition=int(rows.partition[row]),
                offset=int(rows.offset[row]),
                stopped_earlier=bool(progress.stopped_earlier[row]),
                held_next=int(self.found.lags.next_offset[row]),
                lost_records=int(lately.records[row]),
                lost_offsets=int(lately.offsets[row]),
                deleted=self.deleted.get(int(rows.key[row]), []),
                **{name: int(column[row]) for name, column in columns.items()},
            )
            for row in some.tolist()
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionListing:
    """Which partitions a page lists one by one: all, or those that are later than ``late_after_ms``, the ``late_limit`` latest at most."""

    partitions: bool = False
    late_after_ms: int = 300_000
    late_limit: int = 1000


LATE_ONES = PartitionListing()


class GroupBoard:
    """The last snapshot. One thread makes them, any may look.

    Args:
        listing: which partitions a page lists.
        monotonic: seconds of a monotonic clock; None if that of the snapshots is such a clock.
    """

    def __init__(self, listing: PartitionListing = LATE_ONES, monotonic: Callable[[], float] | None = None) -> None:
        self.listing = listing
        self._monotonic = monotonic
        self._published_ms = 0
        self._changed = Condition()
        self._last: GroupSnapshot | None = None
        self._announced = self._ended = 0

    def announce(self) -> None:
        """A newer snapshot will be there soon: who looks waits for it."""
        with self._changed:
            self._announced += 1

    def begin(self) -> int:
        """A round begins; returns the number of the last announcement that it fulfils."""
        with self._changed:
            return self._announced

    def publish(self, snapshot: GroupSnapshot, number: int = 0) -> None:
        """Show this one from now on; ``number`` is that of its `begin`."""
        with self._changed:
            self._last, self._published_ms = snapshot, self._steady_ms(snapshot.at_ms)
        self.end(number)

    def end(self, number: int) -> None:
        """The round of this `begin` is over, whether it has a result or not."""
        with self._changed:
            self._ended = max(self._ended, number)
            self._changed.notify_all()

    @property
    def is_empty(self) -> bool:
        """Whether the last round has found no group and no commit; False as long as there was none."""
        last = self.last
        return last is not None and not (len(last.rows) or last.groups or last.pending)

    @property
    def last(self) -> GroupSnapshot | None:
        """The last snapshot, however old it is."""
        with self._changed:
            return self._last

    def latest(self, now_ms: int, wait_seconds: float = 0.0) -> GroupSnapshot | None:
        """The last snapshot; if a newer one is announced, this waits for it. None if there is none, or if it is old."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended >= self._announced, wait_seconds)
            last = self._last
            age_ms = self._steady_ms(now_ms) - self._published_ms
        return None if last is None or age_ms > OLD_MS else last

    def _steady_ms(self, now_ms: int) -> int:
        return now_ms if self._monotonic is None else round(self._monotonic() * 1000)
