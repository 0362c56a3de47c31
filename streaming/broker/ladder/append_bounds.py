"""Between which times a record was appended whose append no agent has seen: from what a log's files show.

A segment's file was last written when its last batch was appended, and the one before it was not written any more when its first was.
Markers carry their broker's clock. A record's own timestamp comes from its producer: it counts only where everything near it agrees, and
the newest record of the segment was stamped when the file was last written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streaming.broker.disk.segment_files import Segment
from streaming.broker.ladder.counts import Aborted
from streaming.broker.ladder.log_ladder import LadderView
from streaming.broker.ladder.segment_ladder import SegmentLadder
from streaming.broker.ladder.stretch import Stretch
from streaming.errors import FormatError
from streaming.kafka.formats.names import PARTITION_METADATA, FileKind, segment_file_name
from streaming.kafka.scan.transaction_steps import AppendTimes

AGREES_MS = 60_000
"""A producer's clock that differs from the broker's by no more than that, with the time that a batch takes, is right."""


def append_bounds(segments: Sequence[Segment], ladder: LadderView, offset: int, timestamp: int, now_ms: int) -> AppendBounds:
    """The bounds of the record at ``offset``.

    Args:
        segments, timestamp, now_ms: as for `RecordTimes`.

    Raises:
        FormatError, OSError: its segment cannot be read again.
    """
    counted = ladder.segments[ladder.number_of(offset)]
    segment = segments[bisect_left(segments, counted.base_offset, key=lambda one: one.base_offset)]
    stretch = Stretch.read(segment, counted, counted.stretch_of(offset), Aborted.none())
    return RecordTimes(segments, now_ms).bounds(counted, stretch, stretch.batch_of(offset), timestamp)


@dataclass(frozen=True, slots=True)
class AppendBounds:
    """A record was appended between these times, Unix milliseconds; 0 where nothing shows the first of them.

    They are the same where its own timestamp is believed.
    """

    earliest_ms: int
    latest_ms: int


class RecordTimes:
    """Looks up when records of one log were appended, as of ``now_ms``. What a segment shows of its timestamps is looked up once.

    Args:
        segments: the listing that the ladder was counted from, and that is older than the count.
    """

    def __init__(self, segments: Sequence[Segment], now_ms: int) -> None:
        self._segments, self._now_ms = segments, now_ms
        self._agrees: dict[int, bool] = {}

    def bounds(self, counted: SegmentLadder, stretch: Stretch, item: int, timestamp: int) -> AppendBounds:
        """The bounds of a record of a batch; nothing where the files cannot be read any more.

        Args:
            counted: the ladder of its segment.
            stretch: the batches around it, of which ``item`` is its own.
            timestamp: the record's own.
        """
        try:
            return self._bounds(counted, stretch, item, timestamp)
        except (FormatError, OSError):
            return AppendBounds(0, self._now_ms)

    def _bounds(self, counted: SegmentLadder, stretch: Stretch, item: int, timestamp: int) -> AppendBounds:
        now_ms, number = self._now_ms, bisect_left(self._segments, counted.base_offset, key=lambda one: one.base_offset)
        segment = self._segments[number]
        if (
            segment.modified_ms > now_ms + AGREES_MS
        ):  # a copy without its times, or judged as of a time before: the files show nothing of then
            return AppendBounds(timestamp, timestamp) if 0 <= timestamp <= now_ms else AppendBounds(0, now_ms)
        of_files = _of_files(self._segments, number, now_ms)
        times = _between_markers(stretch, item, _between_seen(counted, int(stretch.base_offset[item]), of_files))
        near = timestamp >= 0 and times.earliest_ms - AGREES_MS <= timestamp <= times.latest_ms + AGREES_MS
        if near and _in_order(stretch, item, timestamp) and self._believes(segment, counted):
            own = times.clamp_one(timestamp)
            return AppendBounds(own, own)
        return AppendBounds(times.earliest_ms, times.latest_ms)

    def _believes(self, segment: Segment, counted: SegmentLadder) -> bool:
        if segment.base_offset not in self._agrees:
            self._agrees[segment.base_offset] = _agrees(segment, counted)
        return self._agrees[segment.base_offset]


def _of_files(segments: Sequence[Segment], number: int, now_ms: int) -> AppendTimes:
    """What the times of the files show of a segment's records."""
    segment = segments[number]
    before_ms = segments[number - 1].modified_ms if number else _begun_ms(segment)
    times = AppendTimes.recorded(before_ms, max(segment.modified_ms, _modified_ms(segment.path)))
    latest_ms = min(times.latest_ms, now_ms)
    return AppendTimes(times.source, before_ms if before_ms <= latest_ms else 0, latest_ms)  # else they are of a copy, not of its appends


def _begun_ms(segment: Segment) -> int:
    """When the first segment of a log was begun; 0 if nothing shows that."""
    name = segment_file_name(segment.base_offset, FileKind.SNAPSHOT) if segment.base_offset else PARTITION_METADATA
    with suppress(FileNotFoundError):
        return _modified_ms(segment.directory / name)
    return 0


def _modified_ms(path: Path) -> int:
    return path.stat().st_mtime_ns // 1_000_000


def _between_markers(stretch: Stretch, item: int, times: AppendTimes) -> AppendTimes:
    """The bounds, narrowed by the markers around a batch."""
    before, after = np.flatnonzero(stretch.control[:item]), np.flatnonzero(stretch.control[item + 1 :])
    earliest_ms = max(times.earliest_ms, int(stretch.max_timestamp[before[-1]])) if len(before) else times.earliest_ms
    latest_ms = min(times.latest_ms, int(stretch.max_timestamp[item + 1 + after[0]])) if len(after) else times.latest_ms
    return AppendTimes(times.source, earliest_ms, latest_ms) if earliest_ms <= latest_ms else times


def _between_seen(counted: SegmentLadder, offset: int, times: AppendTimes) -> AppendTimes:
    """The bounds, narrowed by what was seen appended to the segment before an offset and after it."""
    seen, at = counted.rungs["seen_ms"], counted.stretch_of(offset)
    before, after = np.flatnonzero(seen[:at] >= 0), np.flatnonzero(seen[at:] >= 0)
    earliest_ms = max(times.earliest_ms, int(seen[before[-1]])) if len(before) else times.earliest_ms
    latest_ms = min(times.latest_ms, int(seen[at + after[0]])) if len(after) else times.latest_ms
    return AppendTimes(times.source, earliest_ms, latest_ms) if earliest_ms <= latest_ms else times


def _in_order(stretch: Stretch, item: int, timestamp: int) -> bool:
    """Whether no batch near it is stamped so that one of the two stamps is wrong."""
    before = stretch.max_timestamp[:item][~stretch.control[:item]]
    after = stretch.max_timestamp[item + 1 :][~stretch.control[item + 1 :]]
    return bool(np.all(before <= timestamp + AGREES_MS) and np.all(after >= timestamp - AGREES_MS))


def _agrees(segment: Segment, counted: SegmentLadder) -> bool:
    """Whether the newest data of a segment is stamped when it was written: as the marker after it, when it was seen, or as the file."""
    last = Stretch.read(segment, counted, len(counted.rungs) - 1, Aborted.none())
    data = np.flatnonzero(~last.control)
    if not len(data):
        return False
    at = int(data[-1])
    newest, following = int(last.max_timestamp[at]), last.max_timestamp[at + 1 :]
    if len(following):
        return abs(int(following[0]) - newest) <= AGREES_MS
    if (seen_ms := int(counted.rungs["seen_ms"][-1])) >= 0:
        return abs(seen_ms - newest) <= AGREES_MS
    return segment.modified_ms - AGREES_MS <= newest <= _modified_ms(segment.path) + AGREES_MS
