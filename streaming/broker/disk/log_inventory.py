"""The inventory of a log: its segments with size and time, its start and end, the progress of the cleaner, and files to be unlinked.

If nothing has happened in a log, a repeated inventory costs two or three reads of file times. A directory is listed only if its own time
has changed. A closed segment is read once. The scan of the active segment continues where the last one ended.
"""

from __future__ import annotations

import logging
import os
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streaming.broker.disk.contents import bytes_taken
from streaming.broker.disk.logdirs import NOTHING_WRITTEN, LogDir, Partition, load_offset_checkpoint
from streaming.broker.disk.opening import Calling
from streaming.broker.disk.scanning import kept_window
from streaming.broker.disk.segment_files import (
    FileIdentity,
    Segment,
    SegmentKey,
    SegmentListing,
    another_file,
    directory_stamp,
    has_later_checkpoint,
    list_segments,
    log_start_offset,
    read_leader_epochs,
)
from streaming.broker.disk.segment_times import (
    ActiveRead,
    Oldest,
    covers,
    indexed_largest,
    is_there,
    largest_of,
    oldest_record,
    read_on,
    scanned_largest,
)
from streaming.common.rows import SEGMENTS, TIME_UNKNOWN
from streaming.errors import FormatError
from streaming.kafka.formats import names
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

_KEY = struct.Struct("<5q")

READ_BYTES = 64 << 10
"""How much of an active segment is scanned in one call, unless it is thorough. The rest is left to `Inventory.scan`."""

# Hundreds of thousands of segments are kept, some bytes each. The first five fields distinguish a file from every other one, because
# compaction puts another file under the same name. `indexed_at` is the offset at which the time index has the largest timestamp while the
# index is not checked yet, else -1.
_ROW = np.dtype(
    [(name, "<i8") for name in ("base_offset", "size", "modified_ms", "device", "inode", "largest_timestamp", "indexed_at")],
)
_IDENTIFYING = 5

_NONE = np.empty(0, _ROW)


class Inventory:
    """Takes inventories of logs, and keeps what does not have to be read again. Only one thread uses it at a time.

    Args:
        thorough: compare every time index with its segment at once. Otherwise it is believed at first, and each call of `look` checks one
            closed segment of a log, because a broker may have a thousand gigabytes of them. Also, each call then only scans what was
            appended lately.
        clock_ms: the clock, Unix milliseconds.
        scanned: the results of earlier scans of closed segments.
    """

    def __init__(
        self,
        *,
        thorough: bool = False,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        scanned: ScannedTimes | None = None,
    ) -> None:
        self.scanned = ScannedTimes() if scanned is None else scanned
        self._thorough = thorough
        self._clock_ms = clock_ms
        self._logs: dict[Path, _InventoriedLog] = {}
        self._checkpoints: dict[tuple[Path, str], _Checkpoint] = {}
        self._buffer = kept_window()
        self._wrong = 0

    @property
    def wrong_time_indexes(self) -> int:
        """The number of time indexes of closed segments so far that disagreed with their segment. Any thread may ask."""
        return self._wrong

    def look(self, partition: Partition, listing: SegmentListing | None = None) -> LogInventory | None:
        """The inventory of a log now, the same object as before if nothing has changed. None while its directory is half created.

        Args:
            listing: a listing from elsewhere, used if the directory has not changed since.

        Raises:
            OSError: the directory is gone or cannot be read.
        """
        log = self._known(partition)
        wrong = log.closed.wrong
        try:
            return self._look(log, partition, listing)
        finally:
            self._wrong += log.closed.wrong - wrong

    def _look(self, log: _InventoriedLog, partition: Partition, listing: SegmentListing | None) -> LogInventory | None:
        starts = self._checkpoint(partition.log_dir, names.LOG_START_OFFSET_CHECKPOINT)
        cleaned = self._checkpoint(partition.log_dir, names.CLEANER_CHECKPOINT)
        try:
            return log.look(starts, cleaned, listing, self._clock_ms(), self._buffer)
        except FileNotFoundError:  # rolled, deleted or compacted after it was listed; or the directory is gone
            log.listed = None
        return log.look(starts, cleaned, None, self._clock_ms(), self._buffer)

    def note_active(self, partition: Partition, read: ActiveRead) -> None:
        """Use a scan of the active segment from elsewhere, so that the same bytes are not scanned again."""
        log = self._known(partition)
        if log.read is None or log.read.identity != read.identity or log.read.position < read.position:
            log.read, log.read_whole = read, True

    def unfinished(self, partition: Partition) -> bool:
        """Whether a part of a log has to be scanned before its times are known."""
        log = self._logs.get(partition.path)
        return log is not None and (log.closed.unknown or not log.read_whole)

    def scan(self, partition: Partition, budget: int) -> None:
        """Scan about ``budget`` bytes of a log where needed.

        Raises:
            OSError: a segment is gone or cannot be read.
        """
        self._known(partition).scan(self._buffer, budget)

    def files(self) -> set[SegmentKey]:
        """The keys of all known closed segments."""
        return {key for log in self._logs.values() for key in log.closed.files()}

    def forget(self, partition: Partition) -> None:
        """Forget a log that has left."""
        log = self._logs.pop(partition.path, None)
        if log is not None:
            self.scanned.drop(log.closed.files())

    def _known(self, partition: Partition) -> _InventoriedLog:
        log = self._logs.get(partition.path)
        if log is None or log.partition != partition:
            self.forget(partition)
            closed = ClosedSegments(partition.path, thorough=self._thorough, scanned=self.scanned)
            log = self._logs[partition.path] = _InventoriedLog(partition, closed, self._thorough)
        return log

    def _checkpoint(self, log_dir: LogDir, name: str) -> _Checkpoint:
        key = log_dir.path, name
        if key not in self._checkpoints:
            self._checkpoints[key] = _Checkpoint(log_dir, name)
        return self._checkpoints[key]


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
        self._scan, whole = read_on(segment, self._scan, buffer, budget, closed=True)
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
        return indexed_largest(segment.directory, segment.base_offset, next_base) or (self._scan_now(segment, buffer), -1)

    def _scan_now(self, segment: Segment, buffer: Bytes) -> int:
        return scanned_largest(segment, buffer) if self._thorough else TIME_UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogInventory:
    """One log on disk; offsets and times (Unix milliseconds) are -1 where there is none.

    ``segments`` is an array of `SEGMENTS`, not to be written to; `TIME_UNKNOWN` marks segments that still have to be scanned.
    ``own_start_offset`` is the first offset according to the log's directory, ``start_checkpoint`` the one in the log dir's checkpoint.
    ``end_offset`` is the offset after the scanned part. ``active_first_ms`` is the largest timestamp of the first batch of the active
    segment. ``active_created_ms`` is when that segment was created: at its roll, or with the log if it is the first one. ``deleted_bytes``
    are those of segments that are deleted but not unlinked yet, ``index_bytes`` those of all other files besides the segments.
    """

    partition: Partition
    segments: NDArray[np.void]
    own_start_offset: int
    start_checkpoint: int
    end_offset: int
    active_first_ms: int
    active_created_ms: int
    oldest_record_ms: int
    cleaner_checkpoint: int
    deleted_bytes: int
    index_bytes: int

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return int(self.segments["size"].sum())

    @property
    def start_after_crash(self) -> int:
        """Where the log begins again if its broker is killed now: before its log start, which no checkpoint has yet; -1 where it begins."""
        lasts = max(self.start_checkpoint, int(self.segments["base_offset"][0]))
        return lasts if lasts < self.own_start_offset else -1

    def log_start_offset(self, *, remote_storage: bool = False) -> int:
        """The first offset that the log serves. With remote storage it may be far before the first offset on this disk."""
        if remote_storage and self.start_checkpoint >= 0:
            return self.start_checkpoint
        return max(self.own_start_offset, self.start_checkpoint)


@dataclass(slots=True, eq=False)
class _InventoriedLog:
    """The state that is kept for one log."""

    partition: Partition
    closed: ClosedSegments
    _thorough: bool
    listed: tuple[int, int] | None = None  # inode and time of the directory when it was listed; None: list it again
    read: ActiveRead | None = None
    read_whole: bool = True  # whether this covers the whole active segment as it was then
    _scanned: bool = False  # a scan has found something since the last inventory
    _active: Segment | None = None  # as it was at the last inventory
    _own_start: int = -1
    _refuted_start: int = -1  # of the leader epochs: a checkpoint has shown that the broker does not know of it
    _active_created_ms: int = -1
    _leftovers: tuple[int, int] = (0, 0)
    _checkpoints: tuple[int, int] = (-1, -1)
    _oldest: Oldest | None = None
    _oldest_in: bytes = b""  # its segment as it was then: one that grew may have been truncated and written again
    _inventory: LogInventory | None = None

    def look(
        self, starts: _Checkpoint, cleaned: _Checkpoint, listing: SegmentListing | None, now_ms: int, buffer: Bytes
    ) -> LogInventory | None:
        changed = self._list(listing, now_ms, buffer)
        if self._active is None:
            return None
        changed = self._ask_young_start(self._active) or changed
        changed = self._read_active(self._active, buffer, listed=changed) or changed
        changed = self.closed.check_one(buffer) or self._scanned or changed
        self._scanned = False
        checkpoints = (starts.offset(self.partition), cleaned.offset(self.partition))
        if changed or checkpoints != self._checkpoints or self._inventory is None:
            self._checkpoints = checkpoints
            self._find_oldest()
            self._inventory = self._as_found()
        return self._inventory

    def _ask_young_start(self, active: Segment) -> bool:
        """Ask whether a checkpoint has taken a young log start back; returns whether it is another one."""
        last = self._inventory
        if last is None or last.start_after_crash < 0:
            return False
        path, before = self.partition.path, last.own_start_offset
        epochs = read_leader_epochs(path)
        self._own_start = log_start_offset(path, (*self.closed.segments(), active), epochs)
        still_there = epochs and epochs[0].start_offset == before  # else the log was truncated
        if self._own_start < before and still_there and has_later_checkpoint(path):  # or else it was compacted
            self._refuted_start = before
        return self._own_start != before

    def scan(self, buffer: Bytes, budget: int) -> None:
        self._scanned = True
        if self.read_whole or self._active is None:
            self.closed.scan(buffer, budget)
        else:
            assert self.read is not None
            self.read, self.read_whole = read_on(self._active, self.read, buffer, budget)

    def _list(self, listing: SegmentListing | None, now_ms: int, buffer: Bytes) -> bool:
        """List the directory if needed; returns whether it was listed."""
        stamp = directory_stamp(self.partition.path, now_ms)
        if stamp is not None and stamp == self.listed:
            return False
        known = listing if listing is not None and listing.stamp == stamp else None
        segments = list_segments(self.partition.path) if known is None else known.segments
        self._active = segments[-1] if segments else None
        if segments:
            found = log_start_offset(self.partition.path, segments) if known is None else known.log_start
            self._own_start = segments[0].base_offset if found == self._refuted_start else found
            self._leftovers = _leftovers(self.partition.path)
            self._active_created_ms = _created_ms(self.partition.path, segments[-1].base_offset)
            self.closed.take(segments, self.read, buffer)
        self.listed = stamp if known is None else known.stamp  # one object for both
        return True

    def _read_active(self, last: Segment, buffer: Bytes, *, listed: bool) -> bool:
        """Scan the appended bytes of the active segment; returns whether the segment has changed.

        If a segment is truncated and written again within a tick of the clock, it may have the same size and time. But only a new leader
        epoch truncates segments, and that changes the directory.
        """
        path = last.path
        with Calling(path):
            stat = path.stat()
        if (stat.st_dev, stat.st_ino) != (last.identity.device, last.identity.inode):
            raise another_file(path)
        size, modified_ms = stat.st_size, stat.st_mtime_ns // 1_000_000
        now = last if (size, modified_ms) == (last.size, last.modified_ms) else replace(last, size=size, modified_ms=modified_ms)
        before = self.read
        if before is None or listed or now != last or before.zero_tail:
            window, budget = (buffer, None) if self._thorough else (buffer[:READ_BYTES], READ_BYTES)
            self.read, self.read_whole = read_on(now, before, window, budget)
            self._active = now
        return now != last or self.read != before

    def _find_oldest(self) -> None:
        log_start = max(self._own_start, self._checkpoints[0])
        assert self._active is not None
        segments = (*self.closed.segments(), self._active)
        if self._oldest is not None and self._oldest.next_offset > log_start and self._oldest_in == _as_it_is(self._oldest, segments):
            return
        try:
            self._oldest = oldest_record(segments, log_start)
        except FormatError as error:
            self._oldest = None
            log.warning("the oldest record cannot be found", extra={"path": str(self.partition.path), "error": str(error)})
        if self._oldest is not None:
            self._oldest_in = _as_it_is(self._oldest, segments)

    def _as_found(self) -> LogInventory:
        read, active = self.read, self._active
        assert read is not None
        assert active is not None
        rows = self.closed.rows()
        largest = read.largest_timestamp if self.read_whole else TIME_UNKNOWN
        rows.append((active.base_offset, read.size_in(active.size), largest, active.modified_ms))
        return LogInventory(
            partition=self.partition,
            segments=np.array(rows, SEGMENTS),
            own_start_offset=self._own_start,
            start_checkpoint=self._checkpoints[0],
            end_offset=read.next_offset,
            active_first_ms=read.first_timestamp,
            active_created_ms=self._active_created_ms,
            oldest_record_ms=-1 if self._oldest is None else self._oldest.timestamp,
            cleaner_checkpoint=self._checkpoints[1],
            deleted_bytes=self._leftovers[0],
            index_bytes=self._leftovers[1],
        )


def _leftovers(directory: Path) -> tuple[int, int]:
    """The bytes that deleted files of a directory still take, and those of all other files that are no live segment."""
    deleted = others = 0
    with Calling(directory), os.scandir(directory) as entries:
        for entry in entries:
            try:
                if entry.name.endswith(".deleted"):
                    deleted += bytes_taken(entry.stat())
                elif not entry.name.endswith((".log", ".log.swap")):
                    others += bytes_taken(entry.stat())
            except FileNotFoundError:  # unlinked after the listing
                continue
    return deleted, others


class _Checkpoint:
    """An offset checkpoint of a log dir; it is read again after it was replaced."""

    def __init__(self, log_dir: LogDir, name: str) -> None:
        self._log_dir = log_dir
        self._name = name
        self._path = log_dir.path / name
        self._stamp: tuple[int, int] | None = None
        self._content = NOTHING_WRITTEN

    def offset(self, partition: Partition) -> int:
        """The offset of a partition, as in `OffsetCheckpoint.of`."""
        try:
            with Calling(self._path):
                stat = self._path.stat()
            stamp = (stat.st_ino, stat.st_mtime_ns)
        except OSError:
            stamp = (0, 0)
        if stamp != self._stamp:
            self._stamp = stamp
            self._content = load_offset_checkpoint(self._log_dir, self._name, self._content)
        return self._content.of(partition)


def _created_ms(directory: Path, base_offset: int) -> int:
    """When a segment was created, -1 if that is not known.

    A roll writes a producer snapshot with the same name, which is not written again while the log grows (`UnifiedLog.roll`). The first
    segment is as old as the log. A start after a kill removes the snapshot of an empty log, whose segment no broker has written to since.
    """
    beside = directory / (names.PARTITION_METADATA if base_offset == 0 else f"{base_offset:020d}.snapshot")
    try:
        return beside.stat().st_mtime_ns // 1_000_000
    except OSError:  # before Kafka 2.8 there is none for the first segment
        pass
    try:
        segment = (directory / f"{base_offset:020d}.log").stat()
    except OSError:  # it was deleted meanwhile
        return -1
    return -1 if segment.st_size else segment.st_mtime_ns // 1_000_000


def _as_it_is(oldest: Oldest, segments: tuple[Segment, ...]) -> bytes:
    """The segment that a record is in, packed: there is one for each log. Nothing if it is gone."""
    return next((_KEY.pack(*SegmentKey.of(segment)) for segment in segments if segment.base_offset == oldest.segment), b"")
