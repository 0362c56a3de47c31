"""Finds the first record of a time or later in a log, as a broker answers consumers (`UnifiedLog.fetchOffsetByTimestamp`)."""

from collections.abc import Sequence

import numpy as np

from streaming.broker.disk.segment_files import Segment
from streaming.broker.excerpts.segment_walk import SegmentReader, Window
from streaming.broker.excerpts.time_search import is_older
from streaming.errors import FormatError
from streaming.kafka.formats.entries import read_entry_times
from streaming.kafka.formats.records import MAX_RECORDS_BYTES
from streaming.kafka.scan.walk import Bytes


def first_offset_at(segments: Sequence[Segment], timestamp: int, start: int, buffer: Bytes) -> int | None:
    """The offset of the first record at ``start`` or after it whose timestamp is ``timestamp`` or later; None if there is none.

    The time index of a closed segment says that it can be passed over, if the log proves what the index says. Everything else is read.

    Raises:
        OSError: a segment is gone or cannot be read.
    """
    for number, segment in enumerate(segments):
        following = segments[number + 1] if number + 1 < len(segments) else None
        if following is not None and (following.base_offset <= start or is_older(segment, following.base_offset, timestamp)):
            continue
        found = _first_in(segment, timestamp, start, buffer, growing=following is None)
        if found is not None:
            return found
    return None


def _first_in(segment: Segment, timestamp: int, start: int, buffer: Bytes, *, growing: bool) -> int | None:
    with SegmentReader.of(segment, lambda _flaw: None, buffer, growing=growing, crcs=False) as reader:
        for window in reader.windows(reader.proven_start(start)):
            batches = window.batches
            for item in np.flatnonzero((batches.max_timestamp >= timestamp) & (batches.last_offset >= start)).tolist():
                found = _first_of(window, item, timestamp, start)
                if found is not None:
                    return found
    return None


def _first_of(window: Window, item: int, timestamp: int, start: int) -> int | None:
    at, size = int(window.batches.positions[item]), int(window.batches.size[item])
    try:
        for offset, time in read_entry_times(window.buffer[at : at + size].data, MAX_RECORDS_BYTES):
            if time >= timestamp and offset >= start:
                return offset
    except FormatError:  # damage is said when records are read: here the batch counts from its beginning
        return max(start, int(window.batches.base_offset[item]))
    return None
