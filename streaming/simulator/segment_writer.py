"""One segment of a log: its files, how they are written, and the ``.snapshot`` of what the log remembers of its producers."""

from __future__ import annotations

import base64
import os
import struct
import weakref
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import google_crc32c

from streaming.simulator.batch_writer import BatchEntry

_HEADER = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_ABORTED = struct.Struct(">hqqqq")

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_EXTENSIONS = ("log", "index", "timeindex", "txnindex")
_SNAPSHOT = "snapshot"


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
        if self._aborted:
            self._aborted = [ended for ended in self._aborted if ended.marker_offset < offset]
            self.path("txnindex").write_bytes(b"".join(map(encode_aborted, self._aborted)))
        return cut

    def _find_max_timestamp(self) -> None:
        self.max_timestamp, self._offset_of_max_timestamp = -1, -1
        for entry in self.entries:
            if entry.max_timestamp > self.max_timestamp:
                self.max_timestamp, self._offset_of_max_timestamp = entry.max_timestamp, entry.last_offset

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """One producer of one log; -1 stands for "none"."""

    producer_id: int
    epoch: int = -1
    last_sequence: int = -1
    last_offset: int = -1
    offset_delta: int = 0
    timestamp: int = -1
    coordinator_epoch: int = -1
    first_offset: int = -1  # of its open transaction


@dataclass(frozen=True, slots=True)
class ClosedTransaction:
    """A transaction with data that a marker closed; ``last_stable_offset`` as of that moment."""

    producer_id: int
    first_offset: int
    marker_offset: int
    last_stable_offset: int
    committed: bool


class Handle:
    """A file held open for writing, created where there is none; let go by ``close()``, or when no caller holds the handle any more."""

    def __init__(self, path: Path) -> None:
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self.close = weakref.finalize(self, os.close, self.fd)


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


def encode_aborted(ended: ClosedTransaction) -> bytes:
    """One entry of a ``.txnindex`` (`AbortedTxn`)."""
    return _ABORTED.pack(0, ended.producer_id, ended.first_offset, ended.marker_offset, ended.last_stable_offset)


def replace_file(path: Path, content: bytes) -> None:
    """Write ``<name>.tmp`` and rename it, as Kafka does; without its fsync, because nothing here has to survive a power loss."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(content)
    temporary.rename(path)


def encode_checkpoint(entries: Iterable[tuple[str, int, int]]) -> bytes:
    """An offset checkpoint: (topic, partition, offset) a line."""
    lines = [f"{topic} {partition} {offset}\n" for topic, partition, offset in entries]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()


def encode_leader_epochs(epochs: Iterable[tuple[int, int]]) -> bytes:
    """A ``leader-epoch-checkpoint``: (epoch, start offset) a line, ascending."""
    lines = [f"{epoch} {start}\n" for epoch, start in epochs]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()


def encode_partition_metadata(topic_id: UUID) -> bytes:
    """A ``partition.metadata``; it has no newline at its end."""
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def uuid_text(value: UUID) -> str:
    """An id as Kafka writes it: URL-safe base64 without padding, 22 characters."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def encode_meta_properties(node_id: int, cluster_id: str, directory_id: UUID, written: str) -> bytes:
    """A ``meta.properties`` of a KRaft node; ``written`` is the date that Java puts in its comment."""
    lines = (
        "#",
        f"#{written}",
        f"cluster.id={cluster_id}",
        f"directory.id={uuid_text(directory_id)}",
        f"node.id={node_id}",
        "version=1",
    )
    return "".join(f"{line}\n" for line in lines).encode()


class ProducerTable:
    """The producers of one log, brought forward batch by batch.

    What a log remembers of its producers, and the ``.snapshot`` that holds it (`ProducerStateManager`).
    """

    def __init__(self, producers: Iterable[Producer] = ()) -> None:
        self._producers = {producer.producer_id: producer for producer in producers}

    def values(self) -> tuple[Producer, ...]:
        """All of them, as a ``.snapshot`` holds them."""
        return tuple(self._producers.values())

    def first_unstable_offset(self) -> int | None:
        """First offset of the oldest open transaction."""
        return min((p.first_offset for p in self._producers.values() if p.first_offset >= 0), default=None)

    def open_transactions(self) -> tuple[tuple[int, int], ...]:
        """(producer id, first offset) of every open transaction, oldest first."""
        opened = [(p.producer_id, p.first_offset) for p in self._producers.values() if p.first_offset >= 0]
        return tuple(sorted(opened, key=lambda item: item[1]))

    def append(self, entry: BatchEntry) -> ClosedTransaction | None:
        """Take one batch into account; a marker ends a transaction."""
        if entry.producer_id < 0:
            return None
        producer = self._producers.get(entry.producer_id, Producer(producer_id=entry.producer_id))
        if entry.producer_epoch != producer.epoch:
            # A new epoch forgets the batches of the one before, also when it arrives with a marker.
            producer = replace(producer, epoch=entry.producer_epoch, last_sequence=-1, last_offset=-1, offset_delta=0)
        if entry.control:
            return self._end(producer, entry)
        first_offset = entry.base_offset if entry.transactional and producer.first_offset < 0 else producer.first_offset
        self._producers[entry.producer_id] = replace(
            producer,
            last_sequence=entry.last_sequence,
            last_offset=entry.last_offset,
            offset_delta=entry.last_offset - entry.base_offset,
            timestamp=entry.max_timestamp,
            first_offset=first_offset,
        )
        return None

    def _end(self, producer: Producer, entry: BatchEntry) -> ClosedTransaction | None:
        if entry.marker is None:
            return None
        self._producers[producer.producer_id] = replace(
            producer, timestamp=entry.max_timestamp, coordinator_epoch=entry.marker.coordinator_epoch, first_offset=-1
        )
        if producer.first_offset < 0:
            return None
        stable = self.first_unstable_offset()
        return ClosedTransaction(
            producer.producer_id,
            producer.first_offset,
            entry.base_offset,
            entry.last_offset + 1 if stable is None else stable,
            entry.marker.committed,
        )


def encode_snapshot(producers: Iterable[Producer]) -> bytes:
    """The content of a ``.snapshot``, version 1."""
    entries = [
        _ENTRY.pack(
            p.producer_id, p.epoch, p.last_sequence, p.last_offset, p.offset_delta, p.timestamp, p.coordinator_epoch, p.first_offset
        )
        for p in producers
    ]
    checked = _COUNT.pack(len(entries)) + b"".join(entries)
    return _HEADER.pack(1, google_crc32c.value(checked)) + checked
