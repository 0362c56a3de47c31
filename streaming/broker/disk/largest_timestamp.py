"""Finds the largest timestamp of a segment: from its ``.timeindex`` if that is credible, else from all of its batches."""

import os
from contextlib import suppress

from streaming.broker.disk.active_segment import ActiveRead, read_on
from streaming.broker.disk.calls import Calling
from streaming.broker.disk.oldest_record import MOST_BATCHES
from streaming.broker.disk.opening import open_file
from streaming.broker.disk.segment_files import Segment
from streaming.errors import FormatError
from streaming.kafka.formats.entry_head import read_entry_head
from streaming.kafka.formats.layout import HEADER_BYTES
from streaming.kafka.formats.names import FileKind, segment_file_name
from streaming.kafka.formats.time_index import ENTRY_BYTES, unpack_time_entries
from streaming.kafka.scan.walk import Bytes

_MOST_OFFSETS = 1 << 31
"""An index holds offsets as 32-bit numbers from the segment's base offset on."""


def indexed_largest(segment: Segment, next_base: int) -> tuple[int, int] | None:
    """The last entry of a closed segment's time index as (largest timestamp, offset); None if there is none, or if it cannot be right.

    Kafka writes the entry when it closes the segment, and uses it from then on (`LogSegment.onBecomeInactiveSegment`).
    """
    return last_indexed(
        str(segment.path.with_name(segment_file_name(segment.base_offset, FileKind.TIMEINDEX))), segment.base_offset, next_base
    )


def last_indexed(path: str, base_offset: int, next_base: int) -> tuple[int, int] | None:
    """The same as `indexed_largest`, from the time index at a path."""
    with Calling(path):
        return _last_of(path, base_offset, next_base)


def _last_of(path: str, base_offset: int, next_base: int) -> tuple[int, int] | None:
    try:
        fd = open_file(path)
    except OSError:  # absent, or renamed with its segment
        return None
    try:
        size = os.fstat(fd).st_size
        data = os.pread(fd, 2 * ENTRY_BYTES, max(0, size - 2 * ENTRY_BYTES))
    finally:
        os.close(fd)
    if not data or size % ENTRY_BYTES or len(data) % ENTRY_BYTES:
        return None
    entries = unpack_time_entries(data)
    timestamp, offset = entries[-1]
    grows = len(entries) == 1 or (timestamp > entries[0][0] and offset >= entries[0][1])
    if not grows or timestamp < 0 or not 0 <= offset < next_base - base_offset:
        return None
    return timestamp, base_offset + offset


def is_there(segment: Segment, timestamp: int, offset: int) -> bool:
    """Whether the batch with ``offset`` has no record after ``timestamp``, and may have one of exactly that time.

    Before Kafka 3.7 an entry of the index may name the record itself, which may be before the end of its batch.

    Raises:
        OSError: the segment cannot be read.
    """
    with suppress(FormatError), segment.open() as file:  # a wrong position: a scan will find the timestamp
        indexed = file.indexed(offset + 1)
        position = 0 if indexed is None else indexed[1]
        for _ in range(MOST_BATCHES):
            entry = read_entry_head(file.read(position, HEADER_BYTES))
            if entry is None or entry.last_offset >= offset:
                return entry is not None and entry.max_timestamp == timestamp
            position += entry.size
    return False


def largest_of(segment: Segment, read: ActiveRead) -> int:
    """The largest timestamp of a closed segment that was scanned, -1 if none of its batches has one.

    Of a segment that is damaged it is that of the time index if that is later: a broker goes by the index, and does not read the segment.
    """
    indexed = indexed_largest(segment, segment.base_offset + _MOST_OFFSETS) if read.flawed else None
    return read.largest_timestamp if indexed is None else max(read.largest_timestamp, indexed[0])


def scanned_largest(segment: Segment, buffer: Bytes) -> int:
    """The same of one that is scanned now, whole. Raises as `read_on` does."""
    read, _ = read_on(segment, ActiveRead.none_of(segment), buffer, closed=True)
    return largest_of(segment, read)
