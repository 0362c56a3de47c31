"""Finds the position in a segment from which to read, by its indexes. An entry is used only if the log proves it."""

from streaming.broker.disk.kafka_files import read_file
from streaming.broker.excerpts.segment_walk import SegmentReader
from streaming.errors import FormatError
from streaming.kafka.formats.names import FileKind
from streaming.kafka.formats.time_index import read_time_entries
from streaming.terminal.dump.request import Filters


def start_position(reader: SegmentReader, filters: Filters) -> int:
    """The position of a batch such that no batch before it is wanted."""
    offset = filters.from_offset
    if filters.from_time is not None:
        later = _offset_of(reader, filters.from_time)
        offset = later if offset is None else max(offset, later)
    return 0 if offset is None else reader.proven_start(offset)


def _offset_of(reader: SegmentReader, time: int) -> int:
    """An offset such that no batch below it has a timestamp of ``time`` or later; at least the segment's base offset.

    An entry (t, o) of the time index means: no batch up to the one with offset o has a timestamp after t, and that batch has exactly t. If
    it really has, the entry is not from a log that was truncated since.
    """
    base_offset = reader.file.base_offset
    try:
        entries = read_time_entries(read_file(reader.file, FileKind.TIMEINDEX))
    except (FormatError, OSError):  # a new segment has none: everything works without it, but slower
        return base_offset
    before = int(entries.timestamps.searchsorted(time)) - 1
    if before < 0:
        return base_offset
    offset, timestamp = base_offset + int(entries.offsets[before]), int(entries.timestamps[before])
    for window in reader.windows(reader.proven_start(offset)):
        item = int(window.batches.last_offset.searchsorted(offset))
        if item < len(window.batches):
            holds = window.batches.base_offset[item] <= offset and window.batches.max_timestamp[item] == timestamp
            return int(window.batches.last_offset[item]) + 1 if holds else base_offset
    return base_offset
