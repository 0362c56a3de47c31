"""The times of very many segments, cheaply: of closed ones by their time indexes, of active ones by their last batches.

A closed segment is scanned only if its time index is not credible, and only while a budget lasts; then the time of the file counts, as it
does for Kafka if no record has a time.
"""

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streaming.broker.disk.calls import Calling
from streaming.broker.disk.closed_segments import last_indexed, scanned_largest
from streaming.broker.disk.index_file import last_entry_below
from streaming.broker.disk.opening import open_file
from streaming.broker.disk.scanning import window
from streaming.broker.disk.segment_files import FileIdentity, Segment
from streaming.common.rows import TIME_UNKNOWN
from streaming.errors import FormatError
from streaming.kafka.formats.entry_head import EntryHead, read_entry_head
from streaming.kafka.formats.layout import HEADER_BYTES
from streaming.kafka.formats.names import FileKind, segment_file_name
from streaming.kafka.formats.time_index import ENTRY_BYTES, unpack_time_entries

_SCAN_BYTES = 1 << 30
_TAIL_BYTES = 16 << 10
_MOST_BATCHES = 20_000
"""The most batches of an active segment that are read one by one, where it has no index."""


@dataclass(frozen=True, slots=True, eq=False)
class LogTimes:
    """``largest``: of each segment, Unix milliseconds, -1 if no record has a time, `TIME_UNKNOWN` if that is not known.

    ``first_ms``: the largest time of the first batch on the disk; ``active_first_ms`` the same of the active segment; -1 none.
    ``end_offset``: after the last batch, -1 if that is not known. ``active_bytes``: of the active segment, up to the end of its last batch.
    """

    largest: NDArray[np.int64]
    first_ms: int
    active_first_ms: int
    end_offset: int
    active_bytes: int


class SegmentTimes:
    """Reads times. For one thread. ``undated``: how many segments were not scanned, because the budget was used up."""

    def __init__(self) -> None:
        self.undated = 0
        self._budget = _SCAN_BYTES

    def of_log(self, directory: str, segments: NDArray[np.void]) -> LogTimes:
        """The times of one log; its segments are of `streaming.broker.disk.dir_usage.SEGMENT_FILES`, in order, at least one.

        Raises:
            OSError: a segment cannot be read.
        """
        bases, sizes = segments["base_offset"].tolist(), segments["size"].tolist()
        largest = np.empty(len(bases), np.int64)
        for item, (base, following) in enumerate(pairwise(bases)):
            found = last_indexed(_path(directory, base, FileKind.TIMEINDEX), base, following) if sizes[item] else (-1, -1)
            largest[item] = self._scanned(directory, segments[item]) if found is None else found[0]
        with Calling(directory):
            end = _active_end(directory, bases[-1], sizes[-1])
            filled = next((item for item, size in enumerate(sizes[:-1]) if size), None)  # compaction leaves empty segments
            first = end.first_ms if filled is None else _first_time(directory, bases[filled])
        largest[-1] = end.largest
        return LogTimes(largest, first, end.first_ms, end.offset, end.position)

    def _scanned(self, directory: str, row: np.void) -> int:
        size = int(row["size"])
        if size > self._budget:
            self.undated += 1
            return TIME_UNKNOWN
        self._budget -= size
        path = _path(directory, int(row["base_offset"]), FileKind.LOG)
        with Calling(path):
            stat = Path(path).stat()
        identity = FileIdentity(stat.st_dev, stat.st_ino)
        return scanned_largest(Segment(int(row["base_offset"]), Path(directory), False, size, int(row["modified_ms"]), identity), window())


@dataclass(frozen=True, slots=True)
class _End:
    """The end of an active segment; ``position`` after its last batch."""

    largest: int
    offset: int
    position: int
    first_ms: int


def _path(directory: str, base_offset: int, kind: FileKind) -> str:
    return f"{directory}/{segment_file_name(base_offset, kind)}"


def _first_time(directory: str, base_offset: int) -> int:
    fd = open_file(_path(directory, base_offset, FileKind.LOG))
    try:
        head = _head(os.pread(fd, HEADER_BYTES, 0))
    finally:
        os.close(fd)
    return -1 if head is None else head.max_timestamp


def _active_end(directory: str, base_offset: int, size: int) -> _End:
    """The end of an active segment: by its indexes to near the end, then batch by batch.

    An entry of an index is used only if a batch is at its position, which ends at its offset.
    """
    if not size:
        return _End(-1, base_offset, 0, -1)
    fd = open_file(_path(directory, base_offset, FileKind.LOG))
    try:
        first = _head(os.pread(fd, HEADER_BYTES, 0))
        if first is None:
            return _End(-1, base_offset, 0, -1)
        position, largest = _indexed(fd, directory, base_offset)
        offset, data, begin = base_offset, b"", 0
        for _ in range(_MOST_BATCHES):
            if not begin <= position <= begin + len(data) - HEADER_BYTES:
                data, begin = os.pread(fd, _TAIL_BYTES, position), position
            head = _head(data[position - begin : position - begin + HEADER_BYTES])
            if head is None or position + head.size > size:
                return _End(largest, offset, position, first.max_timestamp)
            largest, offset, position = max(largest, head.max_timestamp), head.last_offset + 1, position + head.size
        return _End(TIME_UNKNOWN, -1, size, first.max_timestamp)
    finally:
        os.close(fd)


def _indexed(fd: int, directory: str, base_offset: int) -> tuple[int, int]:
    """Where to begin, and the largest time before that; the beginning of the segment if the indexes are not to be believed."""
    timed = _last_time(_path(directory, base_offset, FileKind.TIMEINDEX))
    index = Path(_path(directory, base_offset, FileKind.INDEX))
    found = None if timed is None else last_entry_below(index, timed[1] + 1)
    if timed is None or found is None:
        return 0, -1
    relative, position = found
    head = _head(os.pread(fd, HEADER_BYTES, position))
    believed = head is not None and head.last_offset <= base_offset + relative and head.max_timestamp <= timed[0]
    return (position, timed[0]) if believed else (0, -1)


def _last_time(path: str) -> tuple[int, int] | None:
    """The last plausible entry of a preallocated time index, None if there is none: times and offsets only grow up to the zeros."""
    try:
        fd = open_file(path)
    except OSError:  # absent for a new segment
        return None
    try:
        low, high = 0, os.fstat(fd).st_size // ENTRY_BYTES
        before = (0, 0)
        while low < high:
            middle = (low + high) // 2
            data = os.pread(fd, ENTRY_BYTES, middle * ENTRY_BYTES)
            entry = unpack_time_entries(data)[0] if len(data) == ENTRY_BYTES else (0, 0)
            if entry[0] > before[0] and entry[1] >= before[1]:
                low, before = middle + 1, entry
            else:
                high = middle
    finally:
        os.close(fd)
    return before if low else None


def _head(data: bytes) -> EntryHead | None:
    try:
        return read_entry_head(data)
    except FormatError:  # bytes that are no batch end what is known
        return None
