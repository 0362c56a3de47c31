"""One segment of a log: ``.log`` with its ``.index``, ``.timeindex`` and ``.txnindex`` (`LogSegment`, `OffsetIndex`, `TimeIndex`)."""

import os
import struct
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from streaming.simulator.batch_writer import BatchEntry
from streaming.simulator.file_writer import Handle
from streaming.simulator.producer_writer import ClosedTransaction, Producer, encode_aborted

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_EXTENSIONS = ("log", "index", "timeindex", "txnindex")
_SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The configs of a topic that decide about its segments; defaults are Kafka's."""

    segment_bytes: int = 1 << 30
    roll_ms: int = 7 * 24 * 3_600_000
    retention_ms: int = 7 * 24 * 3_600_000
    retention_bytes: int = -1
    compacted: bool = False
    preallocate: bool = False
    index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    file_delete_delay_ms: int = 60_000


class _Index:
    """A sparse index: preallocated and sparse while its segment is active, trimmed to its entries at the end.

    The number of entries is known to the writer alone; what ``cut`` gives up stays in the file until it is written over.
    """

    def __init__(self, entry: struct.Struct, preallocated: int) -> None:
        self.entries: list[tuple[int, int]] = []
        self._entry = entry
        self._preallocated = preallocated // entry.size * entry.size
        self._file: Handle | None = None

    def enlarge(self, path: Path) -> None:
        """Make it as large as an active index is, creating it on first use."""
        self._file = self._file or Handle(path)
        os.ftruncate(self._file.fd, self._preallocated)

    def append(self, first: int, second: int) -> None:
        assert self._file is not None
        self.entries.append((first, second))
        os.pwrite(self._file.fd, self._entry.pack(first, second), (len(self.entries) - 1) * self._entry.size)

    def cut(self, count: int) -> None:
        """Keep the first ``count`` entries."""
        del self.entries[count:]

    def trim(self) -> None:
        if self._file is not None:
            os.ftruncate(self._file.fd, len(self.entries) * self._entry.size)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class WrittenSegment:
    """A segment being written, or one that no longer is.

    ``producers`` is the state before its first offset: what its ``.snapshot`` holds.
    """

    def __init__(
        self, directory: Path, base_offset: int, config: LogConfig, producers: tuple[Producer, ...] = (), suffix: str = ""
    ) -> None:
        self.base_offset = base_offset
        self.producers = producers
        self.entries: list[BatchEntry] = []
        self.positions: list[int] = []
        self.size = 0
        self.max_timestamp = -1
        self._aborted: list[ClosedTransaction] = []
        self._offset_of_max_timestamp = -1
        self._bytes_since_index_entry = 0
        self._config = config
        self._directory = directory
        self._suffix = suffix
        self._log = Handle(self.path("log"))
        if config.preallocate:
            os.ftruncate(self._log.fd, config.segment_bytes)
        self._offsets = _Index(_OFFSET_ENTRY, config.index_bytes)
        self._times = _Index(_TIME_ENTRY, config.index_bytes)

    def path(self, extension: str) -> Path:
        """Where one of its files is now."""
        return self._directory / f"{self.base_offset:020d}.{extension}{self._suffix}"

    def largest_timestamp(self) -> int:
        """The time that retention goes by: the largest timestamp, or when the file was last written where no batch has one."""
        return self.max_timestamp if self.max_timestamp >= 0 else int(self.path("log").stat().st_mtime * 1000)

    def is_older(self, timestamp: int) -> bool:
        """Whether a record of that time is too far from the first one for the same segment (`LogSegment.shouldRoll`).

        Messages of magic 0 have no time, so nothing is far from them.
        """
        first = self.entries[0].max_timestamp if self.entries else -1
        return first >= 0 and timestamp - first > self._config.roll_ms

    def date(self, now: int) -> None:
        """Set the times of its files to that of its last append: what is written later than it happened would look too new.

        Args:
            now: Unix milliseconds; no append was later, whatever timestamp its records claim.
        """
        written = min(self.entries[-1].max_timestamp, now) if self.entries else now
        for extension in (*_EXTENSIONS, _SNAPSHOT):
            if (path := self.path(extension)).exists():
                os.utime(path, ns=(written * 1_000_000, written * 1_000_000))

    def open_indexes(self) -> None:
        """Create both indexes at once, as a broker does when it loads a log; after a roll they come with the first append."""
        self._offsets.enlarge(self.path("index"))
        self._times.enlarge(self.path("timeindex"))

    def append(self, entries: Sequence[BatchEntry], data: bytes) -> None:
        """One append: one write of whole batches, then the index entries."""
        if not self.entries:
            self._offsets.enlarge(self.path("index"))
        self.write(data)
        if not self.entries:
            self._times.enlarge(self.path("timeindex"))
        for entry in entries:
            self._add(entry)

    def write(self, data: bytes) -> None:
        """Put bytes at the end without taking them for batches: the next append writes over them."""
        os.pwrite(self._log.fd, data, self.size)

    def _add(self, entry: BatchEntry) -> None:
        if entry.max_timestamp > self.max_timestamp:
            self.max_timestamp, self._offset_of_max_timestamp = entry.max_timestamp, entry.last_offset
        if self._bytes_since_index_entry > self._config.index_interval_bytes:
            self._offsets.append(entry.last_offset - self.base_offset, self.size)
            self._append_time()
            self._bytes_since_index_entry = 0
        self.entries.append(entry)
        self.positions.append(self.size)
        self.size += entry.size
        self._bytes_since_index_entry += entry.size

    def _append_time(self) -> None:
        last = self._times.entries[-1][0] if self._times.entries else -1
        if self.max_timestamp > last:
            self._times.append(self.max_timestamp, self._offset_of_max_timestamp - self.base_offset)

    def append_aborted(self, ended: ClosedTransaction) -> None:
        """An entry of the ``.txnindex``, which exists from the first one on."""
        self._aborted.append(ended)
        with self.path("txnindex").open("ab") as file:
            file.write(encode_aborted(ended))

    def finish(self) -> None:
        """Leave it as an inactive one: the last time entry, nothing preallocated."""
        if self.entries:
            self._append_time()
        for index in (self._times, self._offsets):
            index.trim()
            index.close()
        if self._config.preallocate:
            os.ftruncate(self._log.fd, self.size)

    def truncate(self, offset: int) -> int:
        """Cut at the start of the batch that holds ``offset``; the indexes are as large as an active one's again.

        Returns:
            The bytes cut off.
        """
        keep = bisect_left([entry.last_offset for entry in self.entries], offset)
        cut = self.size - (self.positions[keep] if keep < len(self.entries) else self.size)
        del self.entries[keep:], self.positions[keep:]
        self._offsets.cut(bisect_left(self._offsets.entries, (offset - self.base_offset, 0)))
        self._times.cut(bisect_left([relative for _, relative in self._times.entries], offset - self.base_offset))
        self.open_indexes()
        self.size -= cut
        os.ftruncate(self._log.fd, self.size)
        self._bytes_since_index_entry = 0
        self._find_max_timestamp()
        self._cut_aborted(offset)
        return cut

    def _find_max_timestamp(self) -> None:
        self.max_timestamp, self._offset_of_max_timestamp = -1, -1
        for entry in self.entries:
            if entry.max_timestamp > self.max_timestamp:
                self.max_timestamp, self._offset_of_max_timestamp = entry.max_timestamp, entry.last_offset

    def _cut_aborted(self, offset: int) -> None:
        if self._aborted:
            self._aborted = [ended for ended in self._aborted if ended.marker_offset < offset]
            self.path("txnindex").write_bytes(b"".join(map(encode_aborted, self._aborted)))

    def rename(self, suffix: str, *, snapshot: bool = True) -> None:
        """Give its files another suffix ("" or ".deleted", ".cleaned", ".swap").

        The ``.snapshot`` goes with them, but not when another file takes the place of this segment.
        """
        for extension in (*_EXTENSIONS, *((_SNAPSHOT,) if snapshot else ())):
            source = self.path(extension)
            if source.exists():
                source.rename(source.with_name(f"{self.base_offset:020d}.{extension}{suffix}"))
        self._suffix = suffix

    def unlink(self) -> None:
        """Remove its files and let go of them."""
        for extension in (*_EXTENSIONS, _SNAPSHOT):
            self.path(extension).unlink(missing_ok=True)
        self.close()

    def moved(self, directory: Path) -> None:
        """Its directory has another name now."""
        self._directory = directory

    def close(self) -> None:
        """Let go of its files."""
        self._log.close()
        self._offsets.close()
        self._times.close()
