"""One partition on disk (`UnifiedLog`, `LocalLog`), and the log dir of a broker that it lies in."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import UUID

from streaming.errors import LogDirError
from streaming.kafka.formats import names
from streaming.simulator.batch_writer import Batch, BatchEntry
from streaming.simulator.segment_writer import (
    Handle,
    LogConfig,
    ProducerTable,
    WrittenSegment,
    encode_checkpoint,
    encode_leader_epochs,
    encode_meta_properties,
    encode_partition_metadata,
    encode_snapshot,
    replace_file,
)

_WHOLE_FILE = struct.pack("@hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)  # struct flock


class LogDir:
    """A formatted log dir and the partitions in it.

    One log dir of a broker: its identity and its checkpoints.

    Args:
        path: is created with its parents.
        written: the date in the comment of ``meta.properties``.

    Raises:
        LogDirError: the path exists and is not empty.
    """

    def __init__(
        self, path: Path, node_id: int, cluster_id: str, directory_id: UUID, written: str = "Thu Jan 01 00:00:00 UTC 1970"
    ) -> None:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise LogDirError(f"{path} is not empty: remove it, or name another directory for the simulated log dir")
        self.path = path
        self.directory_id = directory_id
        self.partitions: list[PartitionLog] = []
        replace_file(path / "meta.properties", encode_meta_properties(node_id, cluster_id, directory_id, written))
        for name in names.OFFSET_CHECKPOINTS:
            (path / name).touch()
        # A running broker holds its lock; the file itself is empty. It is a lock of this descriptor: one of the process would end as soon
        # as a reader in the same process closes the file.
        self._lock = _held(path)

    def create(
        self,
        topic: str,
        partition: int,
        topic_id: UUID | None,
        config: LogConfig | None = None,
        *,
        base_offset: int = 0,
        name: str | None = None,
    ) -> PartitionLog:
        """A new partition; ``name`` where its directory is not called after it (a ``-future`` one)."""
        log = PartitionLog(self.path / (name or f"{topic}-{partition}"), topic, partition, topic_id, config, base_offset=base_offset)
        self.partitions.append(log)
        return log

    def forget(self, log: PartitionLog) -> None:
        """The partition is no longer one of this log dir."""
        self.partitions.remove(log)

    def write_checkpoint(self, name: str, entries: Iterable[tuple[str, int, int]]) -> None:
        """Replace one of `streaming.kafka.formats.names.OFFSET_CHECKPOINTS`: (topic, partition, offset)."""
        replace_file(self.path / name, encode_checkpoint(entries))

    def write_high_watermarks(self) -> None:
        """Replace ``replication-offset-checkpoint``; with one replica the end of a log is its high watermark."""
        entries = [(log.topic, log.partition, log.log_end_offset) for log in self.partitions]
        self.write_checkpoint(names.HIGH_WATERMARK_CHECKPOINT, entries)

    def write_log_starts(self) -> None:
        """Replace ``log-start-offset-checkpoint``: only logs that start inside a segment are in it."""
        logs = [log for log in self.partitions if log.log_start_offset > log.segments[0].base_offset]
        self.write_checkpoint(names.LOG_START_OFFSET_CHECKPOINT, [(log.topic, log.partition, log.log_start_offset) for log in logs])

    def write_recovery_points(self, *, clean: bool = False) -> None:
        """Replace ``recovery-point-offset-checkpoint``: what lies before the active segment is flushed, after a clean end all of it."""
        entries = [(log.topic, log.partition, log.log_end_offset if clean else log.active.base_offset) for log in self.partitions]
        self.write_checkpoint(names.RECOVERY_POINT_CHECKPOINT, entries)

    def write_cleaner_offsets(self) -> None:
        """Replace ``cleaner-offset-checkpoint``: how far compacted logs have been cleaned."""
        entries = [(log.topic, log.partition, log.first_dirty_offset) for log in self.partitions if log.config.compacted]
        self.write_checkpoint(names.CLEANER_CHECKPOINT, entries)

    def release(self) -> None:
        """Let go of the lock, as a broker that ends does."""
        self._lock.close()

    def hold(self) -> None:
        """Lock it again, as the next process of its broker does."""
        self._lock = _held(self.path)


class PartitionLog:
    """The only writer of one partition directory.

    Args:
        directory: is created; its name need not be the partition's own (a ``-future`` one is another).
        topic_id: None for a log from before topics had ids.
        base_offset: where the log starts.
    """

    def __init__(
        self,
        directory: Path,
        topic: str,
        partition: int,
        topic_id: UUID | None,
        config: LogConfig | None = None,
        *,
        base_offset: int = 0,
    ) -> None:
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config or LogConfig()
        self.log_start_offset = base_offset
        self.log_end_offset = base_offset
        self.first_dirty_offset = base_offset
        self.leader_epochs: list[tuple[int, int]] = []
        self.segments: list[WrittenSegment] = []
        self._producers = ProducerTable()
        self._appended = FactTotals()
        self._committed = self._aborted = self._empty_markers = 0
        self._deleted: list[tuple[int, WrittenSegment]] = []
        self._snapshot_offset = base_offset
        directory.mkdir()
        (directory / names.LEADER_EPOCH_CHECKPOINT).touch()
        self._add_segment(base_offset).open_indexes()
        if topic_id is not None:
            replace_file(directory / names.PARTITION_METADATA, encode_partition_metadata(topic_id))

    @property
    def active(self) -> WrittenSegment:
        """The segment that appends go to."""
        return self.segments[-1]

    @property
    def name(self) -> str:
        """The partition's own directory name."""
        return f"{self.topic}-{self.partition}"

    def last_stable_offset(self) -> int:
        """LSO, with the end of the log as high watermark."""
        unstable = self._producers.first_unstable_offset()
        return self.log_end_offset if unstable is None else max(self.log_start_offset, unstable)

    def leader_epoch_at(self, offset: int) -> int:
        """The leader epoch in which this offset was appended, -1 for old messages."""
        return max((epoch for epoch, start in self.leader_epochs if start <= offset), default=-1)

    def append(self, *batches: Appendable, leader_epoch: int = 0, base_offset: int | None = None) -> int:
        """Append batches in one write, rolling before it where they do not fit (one check for all of them).

        Args:
            leader_epoch: of the leader that appends; a new one is noted before the data is written.
            base_offset: of the first batch, beyond the end for a follower whose leader has compacted.

        Returns:
            The base offset of the first batch.
        """
        first_offset = self.log_end_offset if base_offset is None else base_offset
        entries, data = _encode(batches, first_offset, leader_epoch)
        if entries[0].magic == 2 and (not self.leader_epochs or self.leader_epochs[-1][0] < leader_epoch):
            self._write_leader_epochs([*self.leader_epochs, (leader_epoch, first_offset)])
        if self.active.size + len(data) > self.config.segment_bytes or self.active.is_older(entries[-1].max_timestamp):
            self.roll()
        self.active.append(entries, data)
        for entry in entries:
            self._account(entry)
        return first_offset

    def _account(self, entry: BatchEntry) -> None:
        self.log_end_offset = entry.last_offset + 1
        self._appended += totals_of(entry)
        ended = self._producers.append(entry)
        if ended is not None:
            if ended.committed:
                self._committed += 1
            else:
                self._aborted += 1
                self.active.append_aborted(ended)
        elif entry.marker is not None:
            self._empty_markers += 1

    def date_files(self, now: int) -> None:
        """Let the files look as old as what was appended to them up to ``now``; see `WrittenSegment.date`."""
        for segment in self.segments:
            segment.date(now)
        path, first = self.directory / names.PARTITION_METADATA, self.segments[0].entries
        if path.exists() and first:  # it was made when the log was
            made = min(first[0].max_timestamp, now)
            os.utime(path, ns=(made * 1_000_000, made * 1_000_000))

    def roll(self) -> None:
        """Close the active segment and begin the next at the end of the log; an empty one stays."""
        if not self.active.entries:
            return
        self.active.finish()
        self._add_segment(self.log_end_offset)
        self._write_snapshot()

    def delete_records(self, offset: int) -> None:
        """Move the log start offset forward, as a client's DeleteRecords does; segments go at the next check."""
        self.log_start_offset = offset
        before = [item for item in self.leader_epochs if item[1] <= offset]
        if before:
            self._write_leader_epochs([(before[-1][0], offset), *self.leader_epochs[len(before) :]])

    def delete_old_segments(self, now: int) -> int:
        """One retention check.

        The files are renamed to ``.deleted``; `unlink_deleted` removes them after ``file_delete_delay_ms``.

        Returns:
            How many segments went.
        """
        count = count_deletable(self.segments, self.config, self.log_start_offset, now)
        if count:
            self._delete_segments(count, now)
        return count

    def _delete_segments(self, count: int, now: int) -> None:
        if count == len(self.segments):
            self.roll()
        gone, self.segments = self.segments[:count], self.segments[count:]
        self.delete_records(max(self.log_start_offset, self.segments[0].base_offset))
        self._set_aside(gone, now)

    def unlink_deleted(self, now: int) -> int:
        """Remove the ``.deleted`` files whose delay is over.

        Returns:
            How many segments they were.
        """
        due = [segment for since, segment in self._deleted if now - since >= self.config.file_delete_delay_ms]
        self._deleted = [item for item in self._deleted if item[1] not in due]
        for segment in due:
            segment.unlink()
        return len(due)

    def replace_segment(self, index: int, cleaned: WrittenSegment, now: int) -> None:
        """Put a complete ``.swap`` segment instead of an inactive one."""
        gone, self.segments[index] = self.segments[index], cleaned
        gone.rename(".deleted", snapshot=False)
        self._deleted.append((now, gone))
        cleaned.rename("")

    def truncate(self, offset: int, now: int = 0) -> int:
        """Cut the log at the start of the batch that holds ``offset``, as a follower does that was ahead of its leader.

        Returns:
            The bytes cut off.
        """
        keep = max(1, sum(segment.base_offset <= offset for segment in self.segments))
        gone, self.segments = self.segments[keep:], self.segments[:keep]
        cut = sum(segment.size for segment in gone) + self.active.truncate(offset)
        self.log_end_offset = self.active.entries[-1].last_offset + 1 if self.active.entries else self.active.base_offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self._snapshot_offset = self.segments[0].base_offset
        for path in self.directory.glob("*.snapshot"):
            if int(path.stem) > self.log_end_offset:
                path.unlink()
            else:
                self._snapshot_offset = max(self._snapshot_offset, int(path.stem))
        self._set_aside(reversed(gone), now)
        self._write_leader_epochs([item for item in self.leader_epochs if item[1] < offset])
        self._producers = ProducerTable(self.active.producers)
        for entry in self.active.entries:
            self._producers.append(entry)
        self._write_snapshot()
        return cut

    def _set_aside(self, segments: Iterable[WrittenSegment], now: int) -> None:
        for segment in segments:
            segment.rename(".deleted")
            self._deleted.append((now, segment))

    def rename(self, name: str) -> None:
        """Rename the directory: to ``<name>.<32 hex>-delete`` when the topic is deleted, from ``-future`` to its own name after a move."""
        self.directory = self.directory.rename(self.directory.with_name(name))
        for segment in (*self.segments, *(segment for _, segment in self._deleted)):
            segment.moved(self.directory)

    def remove(self) -> None:
        """Remove the directory and all in it, as a broker does with a ``-delete`` one after the delay."""
        self.close()
        shutil.rmtree(self.directory)

    def shut_down(self) -> None:
        """A clean close: indexes trimmed, a snapshot at the end of the log."""
        self.active.finish()
        self._write_snapshot()
        self.close()

    def close(self) -> None:
        """Let go of the files as they are, as a killed broker does."""
        for segment in (*self.segments, *(segment for _, segment in self._deleted)):
            segment.close()

    def _add_segment(self, base_offset: int) -> WrittenSegment:
        self.segments.append(WrittenSegment(self.directory, base_offset, self.config, self._producers.values()))
        return self.active

    def _write_snapshot(self) -> None:
        if self.log_end_offset <= self._snapshot_offset:
            return  # there is one already, or nothing to remember
        self._snapshot_offset = self.log_end_offset
        path = self.directory / f"{self.log_end_offset:020d}.snapshot"
        path.write_bytes(encode_snapshot(self._producers.values()))

    def _write_leader_epochs(self, epochs: Sequence[tuple[int, int]]) -> None:
        self.leader_epochs = list(epochs)
        replace_file(self.directory / names.LEADER_EPOCH_CHECKPOINT, encode_leader_epochs(epochs))


@dataclass(frozen=True, slots=True)
class FactTotals:
    """Bytes of all batches; batches and records of data alone."""

    bytes: int = 0
    batches: int = 0
    records: int = 0

    def __add__(self, other: FactTotals) -> FactTotals:
        return FactTotals(self.bytes + other.bytes, self.batches + other.batches, self.records + other.records)


class Appendable(Protocol):
    """Something that can be appended: a `Batch`, for example."""

    def entries(self, base_offset: int, leader_epoch: int) -> Iterator[tuple[BatchEntry, bytes]]:
        """The batches it makes at this position of a log, and their bytes."""
        ...


def _encode(batches: Sequence[Appendable], base_offset: int, leader_epoch: int) -> tuple[list[BatchEntry], bytes]:
    entries: list[BatchEntry] = []
    data = bytearray()
    for batch in batches:
        for entry, part in batch.entries(base_offset, leader_epoch):
            entries.append(entry)
            data += part
            base_offset = entry.last_offset + 1
    return entries, bytes(data)


def totals_of(entry: BatchEntry) -> FactTotals:
    """What a batch counts for."""
    return FactTotals(entry.size, 0 if entry.control else 1, entry.records)


def count_deletable(segments: Sequence[WrittenSegment], config: LogConfig, log_start_offset: int, now: int) -> int:
    """How many segments go, counted from the oldest: by log start offset, by size, by time, each on what the one before it left.

    The active segment may be among them, unless it is empty. A compacted log only loses what lies before its start.
    """
    count = sum(after.base_offset <= log_start_offset for after in segments[1:])
    if config.compacted:
        return count
    limit = len(segments) if segments[-1].size else len(segments) - 1
    if config.retention_bytes >= 0:
        count += _by_size(segments[count:], limit - count, config.retention_bytes)
    if config.retention_ms >= 0:
        count += _by_time(segments[count:limit], now - config.retention_ms)
    return count


def _by_size(segments: Sequence[WrittenSegment], limit: int, retention_bytes: int) -> int:
    excess = sum(segment.size for segment in segments) - retention_bytes
    count = 0
    while count < limit and excess >= segments[count].size:
        excess -= segments[count].size
        count += 1
    return count


def _by_time(segments: Sequence[WrittenSegment], oldest: int) -> int:
    count = 0
    while count < len(segments) and segments[count].largest_timestamp() < oldest:
        count += 1
    return count


def _held(path: Path) -> Handle:
    lock = Handle(path / names.BROKER_LOCK)
    fcntl.fcntl(lock.fd, fcntl.F_OFD_SETLK, _WHOLE_FILE)
    return lock


def clean(log: PartitionLog, keep: Container[int], now: int) -> int:
    """Clean every inactive segment that has something to lose, and note how far this came; see `compact`.

    Returns:
        The bytes that went.
    """
    freed = 0
    for segment in log.segments[:-1]:
        if any(entry.records and entry.base_offset not in keep for entry in segment.entries):
            freed += compact(log, segment.base_offset, keep, now)
    log.first_dirty_offset = log.active.base_offset
    return freed


def compact(log: PartitionLog, base_offset: int, keep: Container[int], now: int = 0) -> int:
    """Rewrite one inactive segment with those of its batches whose base offsets are in ``keep``; their bytes stay as they are.

    The last batch stays as an empty one, because the end of a cleaning round is marked so.

    Returns:
        The bytes that went.
    """
    index = next(n for n, segment in enumerate(log.segments[:-1]) if segment.base_offset == base_offset)
    old = log.segments[index]
    content = old.path("log").read_bytes()
    cleaned = WrittenSegment(log.directory, base_offset, log.config, old.producers, suffix=".cleaned")
    for entry, position in zip(old.entries, old.positions, strict=True):
        if entry.base_offset in keep:
            cleaned.append([entry], content[position : position + entry.size])
        elif entry is old.entries[-1]:
            for empty, data in _emptied(entry).entries(entry.base_offset, log.leader_epoch_at(entry.base_offset)):
                cleaned.append([empty], data)
    cleaned.finish()
    # The cleaner sets the time of the last source segment.
    modified = old.path("log").stat().st_mtime_ns
    os.utime(cleaned.path("log"), ns=(modified, modified))
    cleaned.rename(".swap")
    log.replace_segment(index, cleaned, now)
    return old.size - cleaned.size


def _emptied(entry: BatchEntry) -> Batch:
    last_delta = entry.last_offset - entry.base_offset
    return Batch(
        records=(),
        last_offset_delta=last_delta,
        max_timestamp=entry.max_timestamp,
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        base_sequence=(entry.last_sequence - last_delta) & 0x7FFFFFFF if entry.last_sequence >= 0 else -1,
        transactional=entry.transactional,
        control=entry.control,
    )
