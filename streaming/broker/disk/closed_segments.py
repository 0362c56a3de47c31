"""The largest timestamps of a log's closed segments. Each one is found once, because a closed file does not change any more.

If the time index cannot be used, all batches have to be scanned: at once for a single use, in pieces for repeated use.
"""

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from streaming.broker.disk.active_segment import ActiveRead, covers, read_on
from streaming.broker.disk.calls import Calling
from streaming.broker.disk.oldest_record import MOST_BATCHES
from streaming.broker.disk.opening import open_file
from streaming.broker.disk.segment_files import FileIdentity, Segment
from streaming.common.rows import TIME_UNKNOWN
from streaming.errors import FormatError
from streaming.kafka.formats.entry_head import read_entry_head
from streaming.kafka.formats.layout import HEADER_BYTES
from streaming.kafka.formats.names import FileKind, segment_file_name
from streaming.kafka.formats.time_index import ENTRY_BYTES, unpack_time_entries
from streaming.kafka.scan.walk import Bytes

# --- finds the largest timestamp of a segment: from its ``.timeindex`` if that is credible, else from all of its batches.


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


class SegmentKey(NamedTuple):
    """Distinguishes a closed segment from every other one: compaction puts another file under the same name."""

    base_offset: int
    size: int
    modified_ms: int
    device: int
    inode: int

    @classmethod
    def of(cls, segment: Segment) -> "SegmentKey":
        """The key of a segment from a listing."""
        return cls(segment.base_offset, segment.size, segment.modified_ms, segment.identity.device, segment.identity.inode)


class ScannedTimes:
    """The timestamps by segment (Unix milliseconds, -1 none), and the changes since they were last stored."""

    def __init__(self, times: Mapping[SegmentKey, int] | None = None) -> None:
        self._times = dict(times or {})
        self._changed: set[SegmentKey] = set()

    def get(self, key: SegmentKey) -> int | None:
        """The result for a segment, None if it was not scanned."""
        return self._times.get(key)

    def put(self, key: SegmentKey, largest_timestamp: int) -> None:
        """Note the result of a scan."""
        self._times[key] = largest_timestamp
        self._changed.add(key)

    def drop(self, keys: Iterable[SegmentKey]) -> None:
        """Remove these segments, because they no longer exist."""
        for key in keys:
            if self._times.pop(key, None) is not None:
                self._changed.add(key)

    def keep_only(self, keys: set[SegmentKey]) -> None:
        """Remove all other segments, because they no longer exist."""
        self.drop([key for key in self._times if key not in keys])

    def changes(self) -> tuple[list[tuple[SegmentKey, int]], list[SegmentKey]]:
        """The added and the removed entries since the last call."""
        found = [(key, self._times[key]) for key in self._changed if key in self._times]
        gone = [key for key in self._changed if key not in self._times]
        self._changed.clear()
        return found, gone


log = logging.getLogger(__name__)

# Hundreds of thousands of segments are kept, some bytes each. The first five fields distinguish a file from every other one, because
# compaction puts another file under the same name. `indexed_at` is the offset at which the time index has the largest timestamp while the
# index is not checked yet, else -1.
_ROW = np.dtype(
    [(name, "<i8") for name in ("base_offset", "size", "modified_ms", "device", "inode", "largest_timestamp", "indexed_at")],
)
_IDENTIFYING = 5

_NONE = np.empty(0, _ROW)


class ClosedSegments:
    """The known facts about the closed segments of a log.

    Args:
        directory: the directory of the log.
        thorough: check every time index at once, and scan where needed; otherwise only on request.
        scanned: the results of scans, also of other logs.
    """

    __slots__ = ("_directory", "_rows", "_scan", "_scanned", "_thorough", "_unchecked", "wrong")  # there is one for each log

    def __init__(self, directory: Path, *, thorough: bool, scanned: ScannedTimes) -> None:
        self.wrong = 0
        """The number of time indexes so far that disagreed with their segment."""
        self._directory = directory
        self._thorough = thorough
        self._scanned = scanned
        self._scan: ActiveRead | None = None
        self._rows = _NONE
        self._unchecked = 0

    def take(self, segments: Sequence[Segment], active: ActiveRead | None, buffer: Bytes) -> None:
        """Use a new listing; its last segment is the active one. ``active`` is the scan of the segment that was active before.

        Raises:
            OSError: a segment cannot be read.
        """
        if len(segments) == 1 and not len(self._rows):  # as in most logs
            return
        before = {row[:_IDENTIFYING]: row[_IDENTIFYING:] for row in self._rows.tolist()}
        rows = []
        for segment, following in pairwise(segments):
            key = (segment.base_offset, segment.size, segment.modified_ms, segment.identity.device, segment.identity.inode)
            found = before.get(key)
            rows.append((*key, *(self._find(segment, following.base_offset, active, buffer) if found is None else found)))
        self._scanned.drop(SegmentKey(*key) for key in before.keys() - {row[:_IDENTIFYING] for row in rows})
        self._rows = np.array(rows, _ROW)
        self._unchecked = int(np.count_nonzero(self._rows["indexed_at"] >= 0))
        while self._thorough and self._unchecked:
            self.check_one(buffer)

    def rows(self) -> list[tuple[int, int, int, int]]:
        """For each segment: base offset, size, largest timestamp (Unix milliseconds, -1 none, `TIME_UNKNOWN`) and the time of the file."""
        known = self._rows
        columns = (known[name].tolist() for name in ("base_offset", "size", "largest_timestamp", "modified_ms"))
        return list(zip(*columns, strict=True))

    def segments(self) -> list[Segment]:
        """The segments from the listing."""
        return [self._segment(row) for row in self._rows]

    def files(self) -> list[SegmentKey]:
        """The keys of the segments."""
        return [SegmentKey(*row[:_IDENTIFYING]) for row in self._rows.tolist()]

    @property
    def unknown(self) -> bool:
        """Whether a segment has to be scanned."""
        return bool((self._rows["largest_timestamp"] == TIME_UNKNOWN).any())

    def scan(self, buffer: Bytes, budget: int) -> None:
        """Continue the scan of the first segment that has to be scanned, for about ``budget`` bytes.

        Raises:
            OSError: it cannot be read.
        """
        undated = np.flatnonzero(self._rows["largest_timestamp"] == TIME_UNKNOWN)
        if not len(undated):
            return
        row = self._rows[int(undated[0]) :][0]
        segment = self._segment(row)
        self._scan, whole = read_on(segment, self._scan or ActiveRead.none_of(segment), buffer, budget, closed=True)
        if whole:
            row["largest_timestamp"] = largest = largest_of(segment, self._scan)
            self._scanned.put(SegmentKey.of(segment), largest)
            self._scan = None

    def check_one(self, buffer: Bytes) -> bool:
        """Compare one unchecked time index with its segment; returns whether that changed anything.

        Raises:
            OSError: the segment cannot be read.
        """
        if not self._unchecked:
            return False
        row = self._rows[int(np.flatnonzero(self._rows["indexed_at"] >= 0)[-1]) :][0]
        segment, believed = self._segment(row), int(row["largest_timestamp"])
        right = is_there(segment, believed, int(row["indexed_at"]))
        found = believed if right else self._scan_now(segment, buffer)
        row["largest_timestamp"], row["indexed_at"] = found, -1
        self._unchecked -= 1
        if not right:
            self.wrong += 1
            log.warning(
                "time index disagrees with its segment, which is scanned",
                extra={"path": str(segment.path), "time_index_ms": believed},
            )
        return found != believed

    def _segment(self, row: np.void) -> Segment:
        base_offset, size, modified_ms, device, inode = (int(row[name]) for name in _ROW.names[:_IDENTIFYING])  # type: ignore[index]
        return Segment(base_offset, self._directory, False, size, modified_ms, FileIdentity(device, inode))

    def _find(self, segment: Segment, next_base: int, active: ActiveRead | None, buffer: Bytes) -> tuple[int, int]:
        """The largest timestamp of a segment, and the offset at which its unchecked time index has it, else -1."""
        if segment.size == 0:
            return -1, -1
        if active is not None and covers(active, segment):
            return active.largest_timestamp, -1
        scanned = self._scanned.get(SegmentKey.of(segment))
        if scanned is not None:
            return scanned, -1
        return indexed_largest(segment, next_base) or (self._scan_now(segment, buffer), -1)

    def _scan_now(self, segment: Segment, buffer: Bytes) -> int:
        return scanned_largest(segment, buffer) if self._thorough else TIME_UNKNOWN
