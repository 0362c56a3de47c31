"""One log dir of a broker: its identity and its checkpoints."""

import fcntl
import os
import struct
from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

from streaming.errors import LogDirError
from streaming.kafka.formats import names
from streaming.simulator.file_writer import Handle, encode_checkpoint, encode_meta_properties, replace_file
from streaming.simulator.log import PartitionLog
from streaming.simulator.segment_writer import LogConfig

_WHOLE_FILE = struct.pack("@hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)  # struct flock


class LogDir:
    """A formatted log dir and the partitions in it.

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


def _held(path: Path) -> Handle:
    lock = Handle(path / names.BROKER_LOCK)
    fcntl.fcntl(lock.fd, fcntl.F_OFD_SETLK, _WHOLE_FILE)
    return lock
