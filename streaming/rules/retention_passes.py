"""What one check of retention deletes (`UnifiedLog.deleteOldSegments`): now, and of logs that go on to grow, at times to come.

There are three passes, each over what the one before has left: segments wholly below the log start, segments that ``retention.bytes`` does
not need, and segments with a largest timestamp more than ``retention.ms`` ago. A pass goes from the first segment to the first that may not
be deleted. What one of the first two may take is always at the beginning of a log. So together they delete the first segments of which each
may go by any of them. The active segment is treated like any other, unless it is empty: Kafka rolls it first.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.rules.config_values import UNLIMITED
from streaming.rules.segment_columns import ABSENT, SegmentColumns

FAR = 1 << 60  # beyond any clock: times and limits above it are cut to it, so that a sum of a few fits into 64 bits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Growth:
    """How logs grow, one item for each.

    ``rate``: bytes a second; 0 for a log to which nothing is appended. ``active_first_ms``: the timestamp of the first record of the active
    segment, -1 if there is none yet, or if it is not known.
    """

    rate: NDArray[np.float64]
    active_first_ms: Longs


def not_growing(logs: SegmentColumns) -> Growth:
    """Nothing is appended to any of some logs."""
    return Growth(rate=np.zeros(len(logs.first)), active_first_ms=np.full(len(logs.first), ABSENT))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moments:
    """From when on each segment may be deleted, Unix milliseconds, `FAR` for never: by ``retention.bytes``, and by ``retention.ms``.

    ``by_time`` is the earliest: nothing more comes to an active segment. ``by_time_if_it_grows``: its log goes on to grow until it is
    rolled. ``rolled``: when the active segment of each log gets no more records then, one item for each log.
    """

    by_size: Longs
    by_time: Longs
    by_time_if_it_grows: Longs
    rolled: Longs


class RetentionPasses:
    """The passes over some logs. What they depend on is computed once, without a clock."""

    def __init__(self, logs: SegmentColumns) -> None:
        self._logs = logs
        deletes = logs.limit("deletes") > 0
        self.limit = np.where(deletes, np.minimum(logs.limit("retention_ms"), FAR), UNLIMITED)
        self.bytes_limit = np.where(deletes, np.minimum(logs.limit("retention_bytes"), FAR), UNLIMITED)
        self.timed = self.limit >= 0
        self.unknown: Flags = logs.unknown & self.timed[logs.owner]  # whether it cannot be said from when on the time deletes a segment
        self.full: Flags = ~(logs.active & (logs.size == 0))
        self.below_start: Flags = ~logs.active & (logs.following <= logs.log_start[logs.owner])
        self.replicated: Flags = logs.high_watermark[logs.owner] >= logs.following
        self._largest = np.minimum(logs.largest, FAR)
        # a segment stays at its limit, and goes a millisecond later
        self.expires = np.where(self.timed[logs.owner], self._largest + self.limit[logs.owner] + 1, FAR)
        after = logs.before[logs.last + 1][logs.owner] - logs.before[1:]
        self._sized = ((self.bytes_limit >= 0) & (self.bytes_limit < FAR))[logs.owner]
        self.missing = np.where(self._sized, self.bytes_limit[logs.owner] - after, FAR)
        """The bytes that have to come after each segment until it is not needed."""

    def expired(self, now_ms: int) -> Flags:
        """Which segments are past their limit in time, as far as that is known."""
        flags: Flags = self.timed[self._logs.owner] & self.full & ~self.unknown & (self.expires <= now_ms)
        return flags

    def deleted(self, expired: Flags) -> Longs:
        """The first segment of each log that a check leaves if these are `expired`."""
        due = self.below_start | (self.missing <= 0) | expired
        return self._logs.run(self._logs.first, self.full & self.replicated & due)

    def moments(self, growth: Growth, now_ms: int) -> Moments:
        """From when on each segment may be deleted: as early as it may be, whether or not logs go on to grow like this.

        By size that is if they do, and by time if nobody appends to the active segment any more: no deletion is put off by supposing that a
        producer goes on. What is appended is stamped as the newest record of its log: as far behind the clock, but not ahead of it. While
        it stays behind by more than the limit, the active segment is past its limit, too. Else that gets newer records until it is rolled.
        """
        logs, last = self._logs, self._logs.last
        late_ms = np.maximum(now_ms - self._largest[last], 0)
        rolled = self._rolled_ms(growth, late_ms, now_ms)
        if_it_grows = self.expires.copy()
        newest = np.maximum(self._largest[last], np.where(growth.rate > 0, rolled - late_ms, 0))
        later = self.timed & (self.expires[last] > now_ms)
        if_it_grows[last] = np.where(later, newest + self.limit + 1, self.expires[last])
        since = np.minimum(self.unneeded_since(), now_ms)
        # what is appended to the active segment comes after it only when it is rolled
        begins = np.where(logs.active, rolled[logs.owner], now_ms)
        comes = begins + _milliseconds_for(np.maximum(self.missing, 0), growth.rate[logs.owner])
        by_size = np.where(self.missing <= 0, since, np.where(self._sized, np.minimum(comes, FAR), FAR))
        by_time, if_it_grows = np.minimum(self.expires, FAR), np.minimum(if_it_grows, FAR)
        return Moments(by_size=by_size, by_time=by_time, by_time_if_it_grows=if_it_grows, rolled=rolled)

    def unneeded_since(self) -> Longs:
        """Since when ``retention.bytes`` has not needed each segment, at the latest; of no meaning for one that is needed.

        It is the last write to the segment whose bytes made it so.
        """
        logs = self._logs
        made_so = np.searchsorted(logs.before, logs.before[1:] + np.maximum(self.bytes_limit, 0)[logs.owner], side="left") - 1
        return logs.modified[np.clip(made_so, logs.first[logs.owner], logs.last[logs.owner])]

    def _rolled_ms(self, growth: Growth, late_ms: Longs, now_ms: int) -> Longs:
        """When the active segment of each log gets no more records: at once if nothing is appended, else when it is rolled.

        Its age is the difference of its records' times. If its first one is not known, it was perhaps rolled just now.
        """
        logs = self._logs
        left = np.maximum(logs.limit("segment_bytes") - logs.size[logs.last], 0)
        by_size = now_ms + _milliseconds_for(left, growth.rate)
        first = growth.active_first_ms
        begun = np.where((first >= 0) & self.full[logs.last], np.minimum(first, FAR) + late_ms, now_ms)
        by_age = np.maximum(begun + np.minimum(logs.limit("roll_ms"), FAR), now_ms)
        return np.where(growth.rate > 0, np.minimum(by_size, by_age), now_ms)


def _milliseconds_for(count: Longs, rate: NDArray[np.float64]) -> Longs:
    """The time in which so many bytes come; `FAR` if they never do."""
    comes = np.full(len(count), FAR, np.int64)
    grows = rate > 0
    comes[grows] = np.minimum(np.ceil(count[grows] * 1000.0 / rate[grows]), FAR).astype(np.int64)
    return comes


# --- deletions that wait until a broker is started: one without a process deletes nothing, and nobody knows when it will be started. Such a
# deletion has no time. Its limit may pass meanwhile: then the broker's first check takes it, which comes 30 seconds after the start
# (``log.initial.task.delay.ms``, `kafka.log.LogManager.startup`).


def away_of(broker: Longs, away: Collection[int]) -> Longs:
    """The broker of each log where it surely has no process, `ABSENT` elsewhere.

    Args:
        away: the brokers without a process.
    """
    return np.where(np.isin(broker, list(away)), broker, ABSENT)


def after_start(at_ms: Longs, away: Longs) -> tuple[Longs, Longs]:
    """The times of deletions without those that wait for a start, and of each of these the broker that has to be started.

    Args:
        at_ms: when each would be if its broker ran, `ABSENT` for none.
        away: as `away_of` has it, one item for each.
    """
    waits: Flags = (at_ms != ABSENT) & (away != ABSENT)
    return np.where(waits, ABSENT, at_ms), np.where(waits, away, ABSENT)
