"""The segments of many logs as columns, so that a rule is computed for all of them at once."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.common.rows import SEGMENTS, TIME_UNKNOWN
from streaming.rules.limits import Limits

ABSENT = -1
"""Stands for a number that has no value. No real value is negative."""


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


class SegmentColumns:
    """Several logs, one after the other. Arrays have one item for each segment, or one for each log, in the order of the given logs."""

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

    def take(self, chosen: Longs) -> "SegmentColumns":
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
