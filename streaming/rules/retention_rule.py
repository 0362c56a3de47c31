"""Computes what Kafka is about to delete, what stays although its time has come, and why.

What a check deletes is in `streaming.rules.retention_passes`: only the first segments of a log, and nothing that reaches beyond the high
watermark.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.rules.retention_passes import FAR, Growth, Moments, RetentionPasses, after_start, not_growing
from streaming.rules.segment_columns import ABSENT, SegmentColumns

BLOCKED = ("moving", "future_timestamp", "high_watermark", "remote_copy", "head_of_line", "active_segment")
"""The reasons why data past its limit stays, in the order in which they are checked."""

Bound = Callable[[Flags, Flags, Longs, Longs], Longs]
"""A limit for how long the first segment of each log has been deletable.

The arguments have one item for each log: whether it is known if its first segment can be deleted, whether it can, for how long by its
times, and the check interval. The result is at most the time in the arguments.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Retention:
    """The state of retention at a point in time, one item for each log; times in milliseconds, sizes in bytes.

    A field is `ABSENT` if it has no value, or if it depends on the time of a segment that is not known yet.

    ``deletable`` is the number of segments that a check would delete now, and ``due_upto`` the offset before which they end. ``blocked``
    is an index in `BLOCKED`. ``next_by_size``: ``retention.bytes`` makes the next deletion, and not ``retention.ms``. ``next_start_of``:
    the broker that has to be started before that, `ABSENT` if none has; then ``next_deletion`` has no value, and nothing is overdue.
    ``next_deletion_if_it_grows``: the next deletion is put off until then if the log grows on. The other fields have the names and meaning
    of the metrics.
    """

    deletable: Longs
    due_upto: Longs
    retention_lag: Longs
    overdue: Longs
    reclaimable: Longs
    next_deletion: Longs
    next_deletion_if_it_grows: Longs
    next_start_of: Longs
    next_by_size: Flags
    blocked: NDArray[np.int8]
    ahead: Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SegmentDeletions:
    """When retention deletes each segment, one item for each segment.

    ``deletable``: a check would delete it now. ``goes``: when the limit that lets it go first does, Unix milliseconds, `ABSENT` for never
    or not known; what is before it has to go first. ``by_size``: that is ``retention.bytes``, and not ``retention.ms``.
    """

    deletable: Flags
    goes: Longs
    by_size: Flags


class RetentionRule:
    """The rule for some logs. Everything that does not depend on the clock is computed once."""

    def __init__(self, logs: SegmentColumns) -> None:
        self._logs, self._passes = logs, RetentionPasses(logs)
        self._deletes = logs.limit("deletes") > 0
        self._remote = logs.limit("remote_copy") > 0
        self._check_interval = logs.limit("check_interval_ms")
        self._oldest = _oldest_record(logs, self._passes)
        self._newest = np.where(logs.any_of(logs.unknown), ABSENT, logs.largest_of(logs.recorded))
        self._all_known = ~logs.any_of(self._passes.unknown)
        self._replication_known = logs.high_watermark >= 0

        first, passes = logs.first, self._passes
        unneeded = passes.missing[first] <= 0
        self._not_by_age = (passes.below_start[first] | unneeded) & passes.full[first]
        self._first_expiry = np.where(passes.timed, np.minimum(logs.largest[first], FAR) + passes.limit, FAR)
        self._first_surplus = np.where(unneeded, passes.unneeded_since()[first], FAR)

    def at(self, now_ms: int, bound: Bound | None = None, growth: Growth | None = None, away: Longs | None = None) -> Retention:
        """Compute the state of retention at a point in time.

        Args:
            bound: an additional limit for how long the first segments have been deletable.
            growth: how the logs grow from now on, None if they do not: the next deletion depends on it.
            away: the broker of each log that has no process, as `streaming.rules.retention_passes.away_of` has it; None if all of them run.
        """
        away = np.full(len(self._logs.first), ABSENT) if away is None else away
        checked = away == ABSENT
        logs, first, passes = self._logs, self._logs.first, self._passes
        expired = passes.expired(now_ms)
        due_upto = passes.deleted(expired)
        rests = logs.moving & (due_upto > first)
        gone = np.where(logs.moving, first, due_upto)
        deletable = gone > first
        stop = np.minimum(gone, logs.last)
        hides = (gone <= logs.last) & (passes.unknown & passes.full & passes.replicated)[stop]
        open_end = ~logs.moving & (~self._replication_known | hides)  # the rest is not known
        first_known = ~passes.unknown[first] & self._replication_known

        aged = passes.timed & (self._oldest >= 0)
        lag = np.where(aged, np.maximum(now_ms - self._oldest - passes.limit, 0), ABSENT)

        since = np.minimum(self._first_expiry, self._first_surplus)
        limited = passes.timed | (passes.bytes_limit >= 0)
        due = np.maximum(now_ms - np.maximum(since, self._written(now_ms)), 0)
        due = np.where(checked, due, 0)
        overdue = np.where(deletable, due, 0)
        if bound is not None:
            overdue = bound(first_known, deletable & checked, overdue, self._check_interval)
        moments = passes.moments(growth or not_growing(logs), now_ms)
        goes, goes_late = (
            np.where(((due_upto > first) & (each > now_ms)) | (logs.moving & (each <= now_ms)), ABSENT, each)
            for each in (self._goes(moments.by_time, moments, first), self._goes(moments.by_time_if_it_grows, moments, first))
        )
        next_deletion, next_start_of = after_start(goes, away)
        known = self._all_known & self._replication_known
        return Retention(
            deletable=np.where(open_end, ABSENT, gone - first),
            due_upto=np.where(open_end | ~deletable, ABSENT, logs.following[np.maximum(gone - 1, first)]),
            retention_lag=lag,
            overdue=np.where(limited & first_known, overdue, ABSENT),
            reclaimable=np.where(self._deletes & ~self._remote & ~open_end, logs.bytes_between(first, gone), ABSENT),
            next_deletion=next_deletion,
            next_deletion_if_it_grows=after_start(goes_late, away)[0],
            next_start_of=next_start_of,
            next_by_size=(goes != ABSENT) & (moments.by_size < moments.by_time)[first],
            blocked=np.where(known, self._blocked(now_ms, rests, expired, deletable, lag > 0, due, overdue), np.int8(ABSENT)),
            ahead=np.where(self._newest >= 0, np.maximum(self._newest - now_ms, 0), ABSENT),
        )

    def segments_at(self, now_ms: int, growth: Growth) -> SegmentDeletions:
        """The same for each segment: the first of a log goes at its next deletion. Whether a broker has no process is not asked."""
        logs, moments, every = self._logs, self._passes.moments(growth, now_ms), np.arange(len(self._logs.base))
        goes = self._goes(moments.by_time, moments, every)
        deletable = every - logs.first[logs.owner] < self.at(now_ms).deletable[logs.owner]
        return SegmentDeletions(deletable=deletable, goes=goes, by_size=(goes != ABSENT) & (moments.by_size < moments.by_time))

    def _goes(self, by_time: Longs, moments: Moments, segments: Longs) -> Longs:
        """When the limit that lets a segment go first does so, `ABSENT` for never or not known."""
        goes = np.minimum(by_time, moments.by_size)[segments]
        return np.where((goes < FAR) & self._passes.full[segments] & ~self._passes.unknown[segments], goes, ABSENT)

    def _written(self, now_ms: int) -> Longs:
        """When the first segment of each log was written last; 0 if its file says a time to come.

        Records of a backfill are past their limit when they are appended. No check has passed them over before.
        """
        modified = self._logs.modified[self._logs.first]
        return np.where(modified <= now_ms, modified, 0)

    def _blocked(
        self, now_ms: int, rests: Flags, expired: Flags, deletable: Flags, lags: Flags, due: Longs, overdue: Longs
    ) -> NDArray[np.int8]:
        """The first reason that holds, or none for a segment that the next check deletes. ``rests``: it would, but for a move.

        The high watermark is always a little behind what is appended. It holds up a segment only if that has been ``due`` for more than
        two checks. If a segment that can go is still there then, the reason is its missing copy in remote storage, which cannot be seen on
        this disk.
        """
        logs, first, two_checks = self._logs, self._logs.first, 2 * self._check_interval
        expired_first = expired[first]
        after_first = ~logs.active.copy()
        after_first[first] = False
        holds = (
            rests,
            ~deletable & (logs.recorded[first] > now_ms) & (lags | logs.any_of(expired)),
            ~deletable & ~self._passes.replicated[first] & (expired_first | self._not_by_age) & (due > two_checks),
            deletable & self._remote & (overdue > two_checks),
            ~deletable & ~expired_first & logs.any_of(expired & after_first),
            ~deletable & ~expired_first & (first == logs.last) & lags,
        )
        blocked = np.select(holds, range(len(BLOCKED)), ABSENT).astype(np.int8)
        return np.where(self._deletes, blocked, np.int8(ABSENT))


def _oldest_record(logs: SegmentColumns, passes: RetentionPasses) -> Longs:
    """The time of the oldest record that each log serves, at the latest, cut to `FAR`; `ABSENT` if nothing shows it.

    The first batch need not hold it: producers choose timestamps. But no segment's oldest record is younger than its newest, by which Kafka
    judges the segment. So whatever is expired makes its log late.
    """
    served = passes.full & ~passes.below_start & ~logs.unknown & (logs.largest >= 0)
    by_segment = -logs.largest_of(np.where(served, -np.minimum(logs.largest, FAR), -FAR))
    by_batch = np.where(logs.oldest_record >= 0, np.minimum(logs.oldest_record, FAR), FAR)
    return np.where((logs.oldest_record >= 0) | logs.any_of(served), np.minimum(by_segment, by_batch), ABSENT)
