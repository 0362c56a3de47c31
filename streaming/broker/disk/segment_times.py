"""The times of segments: from their time indexes if those are credible, else from their batches, all of them or those at an end.

A closed file does not change any more, and the scan of an active one goes on where it ended. For very many logs at once (`SegmentTimes`) a
closed segment is scanned only while a budget lasts; then the time of the file counts, as it does for Kafka if no record has a time.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streaming.broker.disk.index_file import opened_index
from streaming.broker.disk.locate import start_near
from streaming.broker.disk.opening import bytes_read
from streaming.broker.disk.scanning import scan_on, window
from streaming.broker.disk.segment_files import FileIdentity, OpenSegment, Segment
from streaming.common.rows import TIME_UNKNOWN
from streaming.errors import FormatError
from streaming.kafka.formats.layout import HEADER_BYTES, PREFIX_BYTES, EntryHead, read_entry_head
from streaming.kafka.formats.names import FileKind, segment_file_name
from streaming.kafka.formats.segment_indexes import TIME_ENTRY_BYTES, unpack_time_entries
from streaming.kafka.scan.walk import Bytes, Stop

log = logging.getLogger(__name__)

_MOST_BATCHES = 10_000
"""The most batches without a time of their own that are skipped, so that one call does not read a whole compacted log."""

_MOST_AT_END = 20_000
"""The most batches of an active segment that are read one by one, where it has no index."""

_TAIL_BYTES = 16 << 10
_SCAN_BYTES = 1 << 30

_MOST_OFFSETS = 1 << 31
"""An index holds offsets as 32-bit numbers from the segment's base offset on."""


class SegmentTimes:
    """Reads times. ``undated``: how many segments were not scanned, because the budget was used up. Only one thread uses it."""

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
            found = indexed_largest(directory, base, following) if sizes[item] else (-1, -1)
            largest[item] = self._scanned(directory, segments[item]) if found is None else found[0]
        with _opened(directory, bases[-1]) as file:
            head = _head_at(file, 0)
            largest[-1], end_offset, active_bytes = (-1, bases[-1], 0) if head is None else _end_of(file, sizes[-1])
            active_first = first = -1 if head is None else head.max_timestamp
        filled = next((item for item, size in enumerate(sizes[:-1]) if size), None)  # compaction leaves empty segments
        if filled is not None:
            with _opened(directory, bases[filled]) as file:
                head = _head_at(file, 0)
            first = -1 if head is None else head.max_timestamp
        return LogTimes(largest, first, active_first, end_offset, active_bytes)

    def _scanned(self, directory: str, row: np.void) -> int:
        size = int(row["size"])
        if size > self._budget:
            self.undated += 1
            return TIME_UNKNOWN
        self._budget -= size
        with _opened(directory, int(row["base_offset"])) as file:
            segment = Segment(file.base_offset, Path(directory), False, size, int(row["modified_ms"]), file.identity)
        return scanned_largest(segment, window())


@dataclass(frozen=True, slots=True, eq=False)
class LogTimes:
    """``largest``: of each segment, Unix milliseconds, -1 if no record has a time, `TIME_UNKNOWN` if that is not known.

    Of very many logs.

    ``first_ms``: the largest time of the first batch on the disk; ``active_first_ms`` the same of the active segment; -1 none.
    ``end_offset``: after the last batch, -1 if that is not known. ``active_bytes``: of the active segment, up to the end of its last batch.
    """

    largest: NDArray[np.int64]
    first_ms: int
    active_first_ms: int
    end_offset: int
    active_bytes: int


def indexed_largest(directory: Path | str, base_offset: int, next_base: int) -> tuple[int, int] | None:
    """The last entry of a closed segment's time index as (largest timestamp, offset); None if there is none, or if it cannot be right.

    By the time index.

    Kafka writes the entry when it closes the segment, and uses it from then on (`LogSegment.onBecomeInactiveSegment`).
    """
    with opened_index(f"{directory}/{segment_file_name(base_offset, FileKind.TIMEINDEX)}") as fd:
        if fd is None:
            return None
        size = os.fstat(fd).st_size
        data = os.pread(fd, 2 * TIME_ENTRY_BYTES, max(0, size - 2 * TIME_ENTRY_BYTES))
    if not data or size % TIME_ENTRY_BYTES or len(data) % TIME_ENTRY_BYTES:
        return None
    entries = unpack_time_entries(data)
    timestamp, offset = entries[-1]
    grows = len(entries) == 1 or (timestamp > entries[0][0] and offset >= entries[0][1])
    if not grows or timestamp < 0 or not 0 <= offset < next_base - base_offset:
        return None
    return timestamp, base_offset + offset


def _opened(directory: str, base_offset: int) -> OpenSegment:
    return OpenSegment(f"{directory}/{segment_file_name(base_offset, FileKind.LOG)}", base_offset)


def _head_at(file: OpenSegment, position: int) -> EntryHead | None:
    """The head of the batch at a position, None also for bytes that are no batch."""
    with suppress(FormatError):
        return read_entry_head(file.read(position, HEADER_BYTES))
    return None


def _end_of(file: OpenSegment, size: int) -> tuple[int, int, int]:
    """The largest time in an active segment of this size, the offset after its last batch, and where that ends.

    By its indexes to near the end, then batch by batch. An entry of an index is used only if a batch is at its position, which ends at its
    offset.
    """
    end, largest = _near_end(file)
    offset = file.base_offset
    with suppress(FormatError):  # bytes that are no batch end what is known
        for count, (position, head) in enumerate(_heads(file, end, _TAIL_BYTES)):
            if count == _MOST_AT_END:
                return TIME_UNKNOWN, -1, size
            if position + head.size > size:
                break
            largest, offset, end = max(largest, head.max_timestamp), head.last_offset + 1, position + head.size
    return largest, offset, end


def _near_end(file: OpenSegment) -> tuple[int, int]:
    """Where to begin, and the largest time before that; the beginning of the segment if the indexes are not to be believed."""
    timed = _last_time(file.beside(FileKind.TIMEINDEX))
    found = None if timed is None else file.indexed(file.base_offset + timed[1] + 1)
    head = None if found is None else _head_at(file, found[1])
    if timed is None or found is None or head is None or head.last_offset > found[0] or head.max_timestamp > timed[0]:
        return 0, -1
    return found[1], timed[0]


def _last_time(path: str) -> tuple[int, int] | None:
    """The last plausible entry of a preallocated time index, None if there is none: times and offsets only grow up to the zeros."""
    with opened_index(path) as fd:
        if fd is None:
            return None
        low, high = 0, os.fstat(fd).st_size // TIME_ENTRY_BYTES
        before = (0, 0)
        while low < high:
            middle = (low + high) // 2
            data = os.pread(fd, TIME_ENTRY_BYTES, middle * TIME_ENTRY_BYTES)
            entry = unpack_time_entries(data)[0] if len(data) == TIME_ENTRY_BYTES else (0, 0)
            if entry[0] > before[0] and entry[1] >= before[1]:
                low, before = middle + 1, entry
            else:
                high = middle
    return before if low else None


def _heads(file: OpenSegment, position: int, at_once: int = HEADER_BYTES) -> Iterator[tuple[int, EntryHead]]:
    """The heads of the batches from a position on, each with its position, until none is there.

    Args:
        at_once: how many bytes to read in a call.

    Raises:
        OSError: the segment cannot be read.
        FormatError: there is no batch at a position; with the file.
    """
    data, begin = b"", position
    while True:
        if not begin <= position <= begin + len(data) - HEADER_BYTES:
            data, begin = file.read(position, at_once), position
        try:
            head = read_entry_head(data[position - begin : position - begin + HEADER_BYTES])
        except FormatError as error:
            raise FormatError(f"{file.path}: {error.what}", position) from error
        if head is None:
            return
        yield position, head
        position += head.size


def scanned_largest(segment: Segment, buffer: Bytes) -> int:
    """The same of one that is scanned now, whole. Raises as `read_on` does.

    By all batches.
    """
    read, _ = read_on(segment, None, buffer, closed=True)
    return largest_of(segment, read)


def read_on(
    segment: Segment, read: ActiveRead | None, buffer: Bytes, budget: int | None = None, *, closed: bool = False
) -> tuple[ActiveRead, bool]:
    """Continue the scan of a segment until about ``budget`` bytes are read. For another segment than before, begin at its start.

    Args:
        closed: no other process is likely to read the segment.

    Returns:
        The new state of the scan, and whether everything there is has been read.

    Raises:
        OSError: the segment cannot be read; FileNotFoundError if another file has its name by now.
    """
    with segment.open() as file:
        if read is None or not _goes_on(file, segment, read):
            read = ActiveRead(identity=segment.identity, base_offset=segment.base_offset, next_offset=segment.base_offset)
        began = bytes_read()
        while not read.flawed:
            further = _window(file, read, buffer, spare_cache=closed or read.position == 0)
            if further.position == read.position:
                return further, True
            read = further
            if budget is not None and bytes_read() - began >= budget and read.position < file.size():
                return read, False
        return read, True


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveRead:
    """The result of a scan of a segment from its beginning up to ``position``, where a batch begins.

    ``first_timestamp`` is the largest of its first batch, ``largest_timestamp`` that of all batches, -1 none. ``anchor`` is the header of
    the last batch, which begins at ``anchor_position``: if it is not there any more, the segment was truncated and written again.
    ``zero_tail``: zeros were found, so the file is preallocated. ``flawed``: the bytes at the position are no batch.
    """

    identity: FileIdentity
    base_offset: int
    position: int = 0
    next_offset: int
    first_timestamp: int = -1
    largest_timestamp: int = -1
    anchor: bytes = b""
    anchor_position: int = 0
    zero_tail: bool = False
    flawed: bool = False

    def size_in(self, size: int) -> int:
        """The size of the segment in a file of that size, without the zero tail of a preallocated file."""
        return self.position if self.zero_tail else size


def _goes_on(file: OpenSegment, segment: Segment, read: ActiveRead) -> bool:
    same = read.identity == file.identity and read.base_offset == segment.base_offset and file.size() >= read.position
    return same and file.read(read.anchor_position, len(read.anchor)) == read.anchor


def _window(file: OpenSegment, read: ActiveRead, buffer: Bytes, *, spare_cache: bool) -> ActiveRead:
    if file.size() == read.position or (read.zero_tail and not any(file.read(read.position, PREFIX_BYTES))):
        return read
    scanned = scan_on(file, read.position, read.next_offset, buffer, spare_cache=spare_cache)
    if scanned.flaw is not None:
        extra = {"path": str(file.path), "position": read.position + scanned.end, "error": scanned.flaw}
        log.warning("segment is not understood: its timestamps are not known from here on", extra=extra)
    after = replace(read, zero_tail=read.zero_tail or scanned.stop is Stop.ZEROS, flawed=scanned.flaw is not None)
    if scanned.sums is None:
        return after
    first = int(scanned.batches.max_timestamp[0]) if read.position == 0 else read.first_timestamp
    return replace(
        after,
        position=read.position + scanned.end,
        next_offset=scanned.sums.next_offset,
        first_timestamp=max(first, -1),
        largest_timestamp=max(read.largest_timestamp, scanned.sums.max_timestamp),
        anchor=scanned.anchor,
        anchor_position=read.position + scanned.anchor_position,
    )


def largest_of(segment: Segment, read: ActiveRead) -> int:
    """The largest timestamp of a closed segment that was scanned, -1 if none of its batches has one.

    Of a segment that is damaged it is that of the time index if that is later: a broker goes by the index, and does not read the segment.
    """
    base_offset = segment.base_offset
    indexed = indexed_largest(segment.directory, base_offset, base_offset + _MOST_OFFSETS) if read.flawed else None
    return read.largest_timestamp if indexed is None else max(read.largest_timestamp, indexed[0])


def is_there(segment: Segment, timestamp: int, offset: int) -> bool:
    """Whether the batch with ``offset`` has no record after ``timestamp``, and may have one of exactly that time.

    Before Kafka 3.7 an entry of the index may name the record itself, which may be before the end of its batch.

    Raises:
        OSError: the segment cannot be read.
    """
    with suppress(FormatError), segment.open() as file:  # a wrong position: a scan will find the timestamp
        indexed = file.indexed(offset + 1)
        for _, head in islice(_heads(file, 0 if indexed is None else indexed[1]), _MOST_BATCHES):
            if head.last_offset >= offset:
                return head.max_timestamp == timestamp
    return False


def oldest_record(segments: Sequence[Segment], log_start: int) -> Oldest | None:
    """The first batch that ends at or after ``log_start`` and has a time of its own; None if there is none, or none near enough.

    By the heads of batches.

    Raises:
        OSError: a segment cannot be read.
        FormatError: a batch before it does not have Kafka's format; with the position.
    """
    for segment, head in islice(_heads_from(segments, log_start), _MOST_BATCHES):
        if head.last_offset >= log_start and head.timestamp >= 0:
            return Oldest(segment.base_offset, head.last_offset + 1, head.timestamp)
    return None


@dataclass(frozen=True, slots=True)
class Oldest:
    """The batch with the oldest record: its segment (base offset), the offset after it, and the record's time in Unix milliseconds."""

    segment: int
    next_offset: int
    timestamp: int


def _heads_from(segments: Sequence[Segment], log_start: int) -> Iterator[tuple[Segment, EntryHead]]:
    for segment, following in zip(segments, (*segments[1:], None), strict=True):
        if segment.size == 0 or (following is not None and following.base_offset <= log_start):
            continue
        with segment.open() as file:
            position, _ = start_near(file, log_start) if log_start > file.base_offset else (0, 0)
            for _, head in _heads(file, position):
                yield segment, head


def covers(read: ActiveRead, segment: Segment) -> bool:
    """Whether a segment that is now closed was read to its end, and not truncated and written again since.

    Raises:
        OSError: the segment cannot be read.
    """
    if read.identity != segment.identity or read.position != segment.size:
        return False
    with segment.open() as file:
        return _goes_on(file, segment, read)
