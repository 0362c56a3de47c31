"""Finds where a time begins in a log: the first batch that holds a record of that time or a later one.

The rule is that of `UnifiedLog.fetchOffsetByTimestamp`. Time indexes only say where to begin to look, so the result is the same without.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from streaming.broker.disk.locate import BatchBoundary, start_near, walk_on
from streaming.broker.disk.opening import INDEX_BYTES, read_small
from streaming.broker.disk.segment_files import Segment
from streaming.broker.disk.segment_times import indexed_largest, is_there
from streaming.errors import FormatError
from streaming.kafka.formats.names import FileKind, segment_file_name
from streaming.kafka.formats.time_index import read_time_entries
from streaming.kafka.scan.walk import Bytes


def find_time(begin: BatchBoundary, segments: Sequence[Segment], timestamp: int, buffer: Bytes) -> BatchBoundary | None:
    """The boundary before the first batch whose largest timestamp is at least ``timestamp`` (Unix milliseconds); None if there is none.

    Args:
        begin: batches before it are deleted records.
        segments: from that of ``begin`` on.

    Raises:
        OSError: a segment is gone or cannot be read.
    """
    for segment, following in pairwise([*segments, None]):
        assert segment is not None
        if following is not None and is_older(segment, following.base_offset, timestamp):
            continue
        from_there = (begin.position, begin.next_offset) if segment is begin.segment else (0, segment.base_offset)
        found = _in_segment(segment, from_there, timestamp, buffer)
        if found is not None:
            return found
    return None


def is_older(segment: Segment, next_base: int, timestamp: int) -> bool:
    """Whether the time index of a closed segment says that all its records are older."""
    largest = indexed_largest(segment.directory, segment.base_offset, next_base)
    return largest is not None and largest[0] < timestamp and is_there(segment, *largest)


def _in_segment(segment: Segment, begin: tuple[int, int], timestamp: int, buffer: Bytes) -> BatchBoundary | None:
    with segment.open() as file:
        position, next_offset = max(begin, start_near(file, _older_upto(segment, timestamp) + 1))
        for at, scanned in walk_on(file, position, next_offset, buffer, spare_cache=True):
            items = np.flatnonzero(scanned.batches.max_timestamp >= timestamp)
            if len(items):
                batches, item = scanned.batches, int(items[0])
                return BatchBoundary(segment, at + int(batches.positions[item]), int(batches.base_offset[item]), -1, b"", 0)
    return None


def _older_upto(segment: Segment, timestamp: int) -> int:
    """The offset up to which the time index says that no record has the time; below the segment's own if it says nothing."""
    before = segment.base_offset - 1
    try:
        data = read_small(segment.path.with_name(segment_file_name(segment.base_offset, FileKind.TIMEINDEX)), INDEX_BYTES)
    except (FormatError, OSError):  # a new segment has none, and that of a deleted one is renamed
        return before
    entries = read_time_entries(data)
    count = int(np.searchsorted(entries.timestamps, timestamp))
    if not count:
        return before
    largest, offset = int(entries.timestamps[count - 1]), segment.base_offset + int(entries.offsets[count - 1])
    return offset if is_there(segment, largest, offset) else before
