"""Computes what Kafka is about to delete, what stays although its time has come, and why.

A check deletes only the first segments of a log, and nothing that reaches beyond the high watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.common.rows import SEGMENTS, TIME_UNKNOWN
from streaming.rules.config_values import UNLIMITED
from streaming.rules.limits import Limits

ABSENT = -1
"""Stands for a number that has no value. No real value is negative."""

_OFTEN = 10  # records that are on average a tenth of a time apart come within it

FAR = 1 << 60  # beyond any clock: times and limits above it are cut to it, so that a sum of a few fits into 64 bits

BLOCKED = ("moving", "future_timestamp", "high_watermark", "remote_copy", "head_of_line", "active_segment")
"""The reasons why data past its limit stays, in the order in which they are checked."""

Bound = Callable[[Flags, Flags, Longs, Longs], Longs]
"""A limit for how long the first segment of each log has been deletable.

The arguments have one item for each log: whether it is known if its first segment can be deleted, whether it can, for how long by its
times, and the check interval. The result is at most the time in the arguments.
"""


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
            away: the broker of each log that has no process, as `streaming.rules.retention_rule.away_of` has it; None if all of them run.
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
        # a size that is above its limit lets a segment go only if what comes after it is enough: never the only one
        too_large = (self._passes.bytes_limit >= 0) & (logs.total > self._passes.bytes_limit)
        after_first = ~logs.active.copy()
        after_first[first] = False
        holds = (
            rests,
            ~deletable & (logs.recorded[first] > now_ms) & (lags | logs.any_of(expired)),
            ~deletable & ~self._passes.replicated[first] & (expired_first | self._not_by_age) & (due > two_checks),
            deletable & self._remote & (overdue > two_checks),
            ~deletable & ~expired_first & logs.any_of(expired & after_first),
            ~deletable & ~expired_first & (first == logs.last) & (lags | too_large),
        )
        blocked = np.select(holds, range(len(BLOCKED)), ABSENT).astype(np.int8)
        return np.where(self._deletes, blocked, np.int8(ABSENT))


class SegmentColumns:
    """Several logs, one after the other. Arrays have one item for each segment, or one for each log, in the order of the given logs.

    The segments of many logs as columns, so that a rule is computed for all of them at once.
    """

    def __init__(self, logs: Sequence[LogFacts]) -> None:
        # Not `np.concatenate`: it computes the common type of every two structured arrays, which takes a second for 100,000 logs.
        segments = np.frombuffer(b"".join(log.segments.tobytes() for log in logs), SEGMENTS)
        self.count = np.fromiter((len(log.segments) for log in logs), np.int64, len(logs))  # segments of each log
        self.first: Longs = np.cumsum(self.count) - self.count  # the index of its first segment
        self.last: Longs = self.first + self.count - 1  # its active segment
        self.owner: Longs = np.repeat(np.arange(len(logs)), self.count)
        self.base: Longs = segments["base_offset"].astype(np.int64)
        self.size: Longs = segments["size"].astype(np.int64)
        self.recorded: Longs = segments["largest_timestamp"].astype(np.int64)
        self.modified: Longs = segments["modified_ms"].astype(np.int64)
        self.unknown: Flags = self.recorded == TIME_UNKNOWN  # its time is not known: no rule that needs it has a result
        # `LogSegment.largestTimestamp`: if no record has a time, the time of the file is used
        self.largest: Longs = np.where(self.recorded >= 0, self.recorded, self.modified)
        self.before: Longs = np.concatenate([[0], np.cumsum(self.size)])  # bytes before a segment, including all logs before it

        def column(name: str) -> Longs:
            return np.fromiter((getattr(log, name) for log in logs), np.int64, len(logs))

        self.log_start, self.log_end = column("log_start_offset"), column("log_end_offset")
        self.high_watermark = column("high_watermark")
        last_stable = column("last_stable_offset")
        self.last_stable: Longs = np.where(last_stable < 0, self.high_watermark, last_stable)
        self.cleaner_checkpoint, self.oldest_record = column("cleaner_checkpoint"), column("oldest_record_ms")
        self.moving: Flags = column("moving") > 0
        distinct = {id(log.limits): log.limits for log in logs}  # few: the logs of a topic share theirs
        places = {each: place for place, each in enumerate(distinct)}
        self._limits = list(distinct.values())
        self._limits_of = np.fromiter((places[id(log.limits)] for log in logs), np.int64, len(logs))

    def take(self, chosen: Longs) -> SegmentColumns:
        """Some of the logs, by their numbers, in order."""
        if len(chosen) == len(self.first):
            return self
        taken, wanted = copy(self), np.isin(self.owner, chosen)
        taken.count = self.count[chosen]
        taken.first = np.cumsum(taken.count) - taken.count
        taken.last = taken.first + taken.count - 1
        taken.owner = np.repeat(np.arange(len(chosen)), taken.count)
        for name in ("base", "size", "recorded", "modified", "unknown", "largest"):
            setattr(taken, name, getattr(self, name)[wanted])
        taken.before = np.concatenate([[0], np.cumsum(taken.size)])
        for name in (
            "log_start",
            "log_end",
            "high_watermark",
            "last_stable",
            "cleaner_checkpoint",
            "oldest_record",
            "moving",
            "_limits_of",
        ):
            setattr(taken, name, getattr(self, name)[chosen])
        for name in ("total", "active", "following"):  # computed once, for all of them
            taken.__dict__.pop(name, None)
        return taken

    def ratio_limit(self, name: str) -> NDArray[np.float64]:
        """A limit that is a ratio; otherwise like `limit`."""
        found: NDArray[np.float64] = np.array([getattr(limits, name) for limits in self._limits], np.float64)[self._limits_of]
        return found

    def limit(self, name: str) -> Longs:
        """A limit of every log, by its name in `Limits`."""
        found: Longs = np.array([getattr(limits, name) for limits in self._limits], np.int64)[self._limits_of]
        return found

    @cached_property
    def total(self) -> Longs:
        """Bytes of each log."""
        total: Longs = self.before[self.last + 1] - self.before[self.first]
        return total

    @cached_property
    def active(self) -> Flags:
        """Whether a segment is the active one of its log."""
        active = np.zeros(len(self.base), np.bool_)
        active[self.last] = True
        return active

    @cached_property
    def following(self) -> Longs:
        """The base offset after each segment: of the next segment, or the end of the log."""
        following = np.empty_like(self.base)
        following[:-1] = self.base[1:]
        following[self.last] = self.log_end
        return following

    def bytes_between(self, start: Longs, end: Longs) -> Longs:
        """The bytes of each log from one segment up to, but not including, another."""
        between: Longs = np.maximum(self.before[end] - self.before[start], 0)
        return between

    def run(self, start: Longs, flags: Flags, end: Longs | None = None) -> Longs:
        """The first segment of each log from ``start`` on without the flag; ``end`` (default: after the last one) if all have it."""
        stop = self.last + 1 if end is None else end
        unset = np.append(np.flatnonzero(~flags), len(flags))
        found: Longs = np.clip(unset[np.searchsorted(unset, start)], np.minimum(start, stop), stop)
        return found

    def holding(self, offset: Longs) -> Longs:
        """The segment of each log that holds an offset: the last one that does not begin after it, or else the first."""
        begun = self.base <= offset[self.owner]
        found: Longs = np.maximum(self.first + self._counted(begun) - 1, self.first)
        return found

    def below(self, offset: Longs) -> Longs:
        """The first segment of each log that does not begin before an offset."""
        return self.first + self._counted(self.base < offset[self.owner])

    def _counted(self, flags: Flags) -> Longs:
        return self._reduced(np.add, flags.astype(np.int64))

    def any_of(self, flags: Flags) -> Flags:
        """Whether a flag is set for any segment of each log."""
        found: Flags = self._counted(flags) > 0
        return found

    def largest_of(self, values: Longs) -> Longs:
        """The largest value over the segments of each log."""
        return self._reduced(np.maximum, values)

    def _reduced(self, function: np.ufunc, values: Longs) -> Longs:
        reduced: Longs = function.reduceat(values, self.first) if len(self.first) else np.empty(0, np.int64)
        return reduced


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogFacts:
    """The facts about one log that retention and compaction need; offsets are -1 if they are not known, times are Unix milliseconds.

    ``segments`` is an array of `SEGMENTS` with at least one item. Without a high watermark nothing can be deleted. Without an LSO, the high
    watermark is used. Without a cleaner checkpoint, everything is dirty. ``oldest_record_ms`` is -1 if there is no record. ``moving``:
    a copy of the log is being made in another log dir of its broker, and until that is over nothing of it is deleted or compacted
    (`LogManager.cleanupLogs` and `LogCleanerManager.grabFilthiestCompactedLog` leave out what `abortAndPauseCleaning` has paused).
    """

    segments: NDArray[np.void]
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    last_stable_offset: int
    cleaner_checkpoint: int
    oldest_record_ms: int
    limits: Limits
    moving: bool = False


class RetentionPasses:
    """The passes over some logs. The numbers that they depend on are computed once, without a clock.

    What one check of retention deletes (`UnifiedLog.deleteOldSegments`): now, and of logs that go on to grow, at times to come. There
    are three passes, each over what the one before has left: segments wholly below the log start, segments that ``retention.bytes``
    does not need, and segments with a largest timestamp more than ``retention.ms`` ago. A pass goes from the first segment to the
    first that may not be deleted. What one of the first two may take is always at the beginning of a log. So together they delete the
    first segments of which each may go by any of them. The active segment is treated like any other, unless it is empty: Kafka rolls
    it first.
    """

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

        By size that is if they do. By time Kafka compares the newest record of a segment (`UnifiedLog.deleteRetentionMsBreachedSegments`),
        and an active segment gets newer ones until it is rolled. So while its log is surely written to (`_is_written_to`), it is due only
        after it is rolled; else as if no producer appended to it any more: no deletion is put off by supposing that one goes on. What is
        appended is stamped as the newest record of its log: as far behind the clock, but not ahead of it. While it stays behind by more
        than the limit, the active segment is past its limit, too.
        """
        logs, last = self._logs, self._logs.last
        late_ms = np.maximum(now_ms - self._largest[last], 0)
        written_to = self._is_written_to(growth, now_ms)
        grows = (growth.rate > 0) | written_to
        rolled = np.where(grows, self._rolled_ms(growth, late_ms, now_ms), now_ms)
        if_it_grows = self.expires.copy()
        newest = np.maximum(self._largest[last], np.where(grows, rolled - late_ms, 0))
        later = self.timed & (self.expires[last] > now_ms)
        if_it_grows[last] = np.where(later, newest + self.limit + 1, self.expires[last])
        since = np.minimum(self.unneeded_since(), now_ms)
        # what is appended to the active segment comes after it only when it is rolled
        begins = np.where(logs.active, rolled[logs.owner], now_ms)
        comes = begins + _milliseconds_for(np.maximum(self.missing, 0), growth.rate[logs.owner])
        by_size = np.where(self.missing <= 0, since, np.where(self._sized, np.minimum(comes, FAR), FAR))
        if_silent, if_it_grows = np.minimum(self.expires, FAR), np.minimum(if_it_grows, FAR)
        by_time = if_silent.copy()
        by_time[last] = np.where(written_to, if_it_grows[last], if_silent[last])
        return Moments(by_size=by_size, by_time=by_time, by_time_if_silent=if_silent, by_time_if_it_grows=if_it_grows, rolled=rolled)

    def _is_written_to(self, growth: Growth, now_ms: int) -> Flags:
        """Whether something surely comes to each log before the newest record of its active segment is past ``retention.ms``.

        Its records so far were on average a tenth of the limit apart or less, and it has been silent for less than half of the limit and
        not longer than it was written. Records in bursts look the same on average; the silence between them tells these. The rate at which
        it was seen to grow does not decide: a command that looks once has none.
        """
        logs, last = self._logs, self._logs.last
        written = np.maximum(np.where(logs.modified[last] <= now_ms, logs.modified[last], 0), self._largest[last])
        silent_ms = np.maximum(now_ms - written, 0)
        began = np.where(growth.active_first_ms >= 0, np.minimum(growth.active_first_ms, FAR), self._largest[last])
        took_ms, apart = np.maximum(self._largest[last] - began, 0), np.maximum(logs.log_end - logs.base[last] - 1, 1)
        often = (took_ms > 0) & (took_ms / apart * _OFTEN <= self.limit)
        found: Flags = self.timed & often & (2 * silent_ms < self.limit) & (silent_ms <= took_ms)
        return found

    def unneeded_since(self) -> Longs:
        """Since when ``retention.bytes`` has not needed each segment, at the latest; of no meaning for one that is needed.

        It is the last write to the segment whose bytes made it so.
        """
        logs = self._logs
        made_so = np.searchsorted(logs.before, logs.before[1:] + np.maximum(self.bytes_limit, 0)[logs.owner], side="left") - 1
        return logs.modified[np.clip(made_so, logs.first[logs.owner], logs.last[logs.owner])]

    def _rolled_ms(self, growth: Growth, late_ms: Longs, now_ms: int) -> Longs:
        """When the active segment of each log is rolled if records go on to come.

        Its age is the difference of its records' times. If its first one is not known, it was perhaps rolled just now.
        """
        logs = self._logs
        left = np.maximum(logs.limit("segment_bytes") - logs.size[logs.last], 0)
        by_size = now_ms + _milliseconds_for(left, growth.rate)
        first = growth.active_first_ms
        begun = np.where((first >= 0) & self.full[logs.last], np.minimum(first, FAR) + late_ms, now_ms)
        by_age = np.maximum(begun + np.minimum(logs.limit("roll_ms"), FAR), now_ms)
        found: Longs = np.minimum(by_size, by_age)
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Growth:
    """How logs grow, one item for each.

    ``rate``: bytes a second; 0 for a log to which nothing is appended. ``active_first_ms``: the timestamp of the first record of the active
    segment, -1 if there is none yet, or if it is not known.
    """

    rate: NDArray[np.float64]
    active_first_ms: Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moments:
    """From when on each segment may be deleted, Unix milliseconds, `FAR` for never: by ``retention.bytes``, and by ``retention.ms``.

    ``by_time`` is the earliest that is to be expected, and ``by_time_if_silent`` that if nothing more came to an active segment.
    ``by_time_if_it_grows``: its log goes on to grow until it is rolled. ``rolled``: when the active segment of each log gets no more
    records then, one item for each log.
    """

    by_size: Longs
    by_time: Longs
    by_time_if_silent: Longs
    by_time_if_it_grows: Longs
    rolled: Longs


def _milliseconds_for(count: Longs, rate: NDArray[np.float64]) -> Longs:
    """The time in which so many bytes come; `FAR` if they never do."""
    comes = np.full(len(count), FAR, np.int64)
    grows = rate > 0
    comes[grows] = np.minimum(np.ceil(count[grows] * 1000.0 / rate[grows]), FAR).astype(np.int64)
    return comes


def _oldest_record(logs: SegmentColumns, passes: RetentionPasses) -> Longs:
    """The time of the oldest record that each log serves, at the latest, cut to `FAR`; `ABSENT` if nothing shows it.

    The first batch need not hold it: producers choose timestamps. But no segment's oldest record is younger than its newest, by which Kafka
    judges the segment. So whatever is expired makes its log late.
    """
    served = passes.full & ~passes.below_start & ~logs.unknown & (logs.largest >= 0)
    by_segment = -logs.largest_of(np.where(served, -np.minimum(logs.largest, FAR), -FAR))
    by_batch = np.where(logs.oldest_record >= 0, np.minimum(logs.oldest_record, FAR), FAR)
    return np.where((logs.oldest_record >= 0) | logs.any_of(served), np.minimum(by_segment, by_batch), ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Retention:
    """The state of retention at a point in time, one item for each log; times in milliseconds, sizes in bytes.

    Deletions that wait until a broker is started: one without a process deletes nothing, and nobody knows when it will be started.
    Such a deletion has no time. Its limit may pass meanwhile: then the broker's first check takes it, which comes 30 seconds after
    the start (``log.initial.task.delay.ms``, `kafka.log.LogManager.startup`).

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


def not_growing(logs: SegmentColumns) -> Growth:
    """Nothing is appended to any of some logs."""
    return Growth(rate=np.zeros(len(logs.first)), active_first_ms=np.full(len(logs.first), ABSENT))


def after_start(at_ms: Longs, away: Longs) -> tuple[Longs, Longs]:
    """The times of deletions without those that wait for a start, and of each of these the broker that has to be started.

    Args:
        at_ms: when each would be if its broker ran, `ABSENT` for none.
        away: as `away_of` has it, one item for each.
    """
    waits: Flags = (at_ms != ABSENT) & (away != ABSENT)
    return np.where(waits, ABSENT, at_ms), np.where(waits, away, ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SegmentDeletions:
    """When retention deletes each segment, one item for each segment.

    ``deletable``: a check would delete it now. ``goes``: when the limit that lets it go first does, Unix milliseconds, `ABSENT` for never
    or not known; what is before it has to go first. ``by_size``: that is ``retention.bytes``, and not ``retention.ms``.
    """

    deletable: Flags
    goes: Longs
    by_size: Flags


def away_of(broker: Longs, away: Collection[int]) -> Longs:
    """The broker of each log where it surely has no process, `ABSENT` elsewhere.

    Args:
        away: the brokers without a process.
    """
    return np.where(np.isin(broker, list(away)), broker, ABSENT)
