"""Computes what Kafka is about to delete, what stays although its time has come, and why: the rule of `UnifiedLog.deleteOldSegments`.

There are three passes, each over what the one before has left: segments wholly below the log start, segments that ``retention.bytes`` does
not need, and segments with a largest timestamp more than ``retention.ms`` ago. A pass goes from the first segment to the first that may not
be deleted. So only the first segments of a log are ever deleted, and nothing that reaches beyond the high watermark. The active segment is
treated like any other, unless it is empty.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.rules.config_values import UNLIMITED
from streaming.rules.segment_columns import ABSENT, SegmentColumns

BLOCKED = ("future_timestamp", "high_watermark", "remote_copy", "head_of_line", "active_segment")
"""The reasons why data past its limit stays, in the order in which they are checked."""

Bound = Callable[[Flags, Flags, Longs, Longs], Longs]
"""A limit for how long the first segment of each log has been deletable.

The arguments have one item for each log: whether it is known if its first segment can be deleted, whether it can, for how long by its
times, and the check interval. The result is at most the time in the arguments.
"""

_FAR = 1 << 61  # beyond any clock: times and limits above it are cut to it, so that a sum of two fits into 64 bits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Retention:
    """The state of retention at a point in time, one item for each log; times in milliseconds, sizes in bytes.

    A field is `ABSENT` if it has no value, or if it depends on the time of a segment that is not known yet.

    ``deletable`` is the number of segments that a check would delete now. ``blocked`` is an index in `BLOCKED`. The other fields have the
    names and meaning of the metrics.
    """

    deletable: Longs
    retention_lag: Longs
    overdue: Longs
    reclaimable: Longs
    next_deletion: Longs
    blocked: NDArray[np.int8]
    ahead: Longs


class RetentionRule:
    """The rule for some logs. Everything that does not depend on the clock is computed once."""

    def __init__(self, logs: SegmentColumns) -> None:
        self._logs = logs
        self._deletes = logs.limit("deletes") > 0
        self._remote = logs.limit("remote_copy") > 0
        self._check_interval = logs.limit("check_interval_ms")
        self._limit = np.where(self._deletes, np.minimum(logs.limit("retention_ms"), _FAR), UNLIMITED)
        self._bytes_limit = np.where(self._deletes, logs.limit("retention_bytes"), UNLIMITED)
        self._timed = self._limit >= 0
        self._largest = np.minimum(logs.largest, _FAR)
        self._newest = np.where(logs.any_of(logs.unknown), ABSENT, logs.largest_of(logs.recorded))
        self._unknown = logs.unknown & self._timed[logs.owner]
        self._all_known = ~logs.any_of(self._unknown)

        first = logs.first
        self._full = ~(logs.active & (logs.size == 0))
        self._replication_known = logs.high_watermark >= 0
        self._replicated = logs.high_watermark[logs.owner] >= logs.following
        may_go = self._full & self._replicated
        below_start = ~logs.active & (logs.following <= logs.log_start[logs.owner])
        started = logs.run(first, may_go & below_start)

        over = logs.bytes_between(started, logs.last + 1) - self._bytes_limit
        over = np.where((self._bytes_limit >= 0) & (over >= 0), over, ABSENT)
        over_limit = (over >= 0)[logs.owner] & (logs.before[1:] <= (logs.before[started] + over)[logs.owner])
        self._sized = logs.run(started, may_go & over_limit)  # the first segment that only its age can delete

        self._may_go = may_go
        self._not_by_age = (below_start | over_limit)[first] & self._full[first]
        self._first_expiry = np.where(self._timed, self._largest[first] + self._limit, _FAR)
        self._first_surplus = self._surplus_since()

    def _surplus_since(self) -> Longs:
        """Since when ``retention.bytes`` has not needed the first segment, at the latest; `_FAR` if it is needed.

        It is the last write to the segment whose bytes made the first segment unnecessary.
        """
        logs = self._logs
        surplus = logs.total - self._bytes_limit - logs.size[logs.first]
        made_so = np.searchsorted(logs.before, logs.before[logs.last + 1] - np.maximum(surplus, 0), side="left") - 1
        since = logs.modified[np.clip(made_so, logs.first, logs.last)]
        return np.where((self._bytes_limit >= 0) & (surplus >= 0), since, _FAR)

    def at(self, now_ms: int, bound: Bound | None = None) -> Retention:
        """Compute the state of retention at a point in time.

        Args:
            bound: an additional limit for how long the first segments have been deletable.
        """
        logs, first = self._logs, self._logs.first
        old = now_ms - self._largest > self._limit[logs.owner]
        expired = self._timed[logs.owner] & self._full & ~self._unknown & old
        gone = logs.run(self._sized, self._may_go & expired)
        deletable = gone > first
        stop = np.minimum(gone, logs.last)
        open_end = ~self._replication_known | ((gone <= logs.last) & (self._unknown & self._may_go)[stop])  # the rest is not known
        first_known = ~self._unknown[first] & self._replication_known

        aged = self._timed & (logs.oldest_record >= 0)
        lag = np.where(aged, np.maximum(now_ms - np.minimum(logs.oldest_record, _FAR) - self._limit, 0), ABSENT)

        since = np.minimum(self._first_expiry, self._first_surplus)
        limited = self._timed | (self._bytes_limit >= 0)
        overdue = np.where(deletable, np.maximum(now_ms - since, 0), 0)
        if bound is not None:
            overdue = bound(first_known, deletable, overdue, self._check_interval)
        next_deletion = np.where((since < _FAR) & self._full[first] & ~(deletable & (since > now_ms)), since, ABSENT)
        known = self._all_known & self._replication_known
        return Retention(
            deletable=np.where(open_end, ABSENT, gone - first),
            retention_lag=lag,
            overdue=np.where(limited & first_known, overdue, ABSENT),
            reclaimable=np.where(self._deletes & ~self._remote & ~open_end, logs.bytes_between(first, gone), ABSENT),
            next_deletion=np.where(~self._unknown[first], next_deletion, ABSENT),
            blocked=np.where(known, self._blocked(now_ms, expired, deletable, lag > 0, overdue), np.int8(ABSENT)),
            ahead=np.where(self._newest >= 0, np.maximum(self._newest - now_ms, 0), ABSENT),
        )

    def _blocked(self, now_ms: int, expired: Flags, deletable: Flags, lags: Flags, overdue: Longs) -> NDArray[np.int8]:
        """The first reason that holds, or none for a segment that the next check deletes.

        If that segment should have been deleted long ago, the reason is its missing copy in remote storage, which cannot be seen on this
        disk.
        """
        logs, first = self._logs, self._logs.first
        expired_first = expired[first]
        after_first = ~logs.active.copy()
        after_first[first] = False
        holds = (
            ~deletable & (logs.recorded[first] > now_ms) & (lags | logs.any_of(expired)),
            ~deletable & ~self._replicated[first] & (expired_first | self._not_by_age),
            deletable & self._remote & (overdue > self._check_interval),
            ~deletable & ~expired_first & logs.any_of(expired & after_first),
            ~deletable & ~expired_first & (first == logs.last) & lags,
        )
        blocked = np.select(holds, range(len(BLOCKED)), ABSENT).astype(np.int8)
        return np.where(self._deletes, blocked, np.int8(ABSENT))
