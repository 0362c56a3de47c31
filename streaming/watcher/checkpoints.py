"""The offset checkpoints at the root of the log dirs, read again when a broker has replaced one."""

from pathlib import Path

from streaming.disk.availability import LogDirs
from streaming.disk.calls import Calling
from streaming.disk.files import CLEANER_CHECKPOINT
from streaming.disk.logdirs import LogDir, Partition
from streaming.disk.offset_checkpoint import NOTHING_WRITTEN, load_offset_checkpoint
from streaming.kafka.names import HIGH_WATERMARK_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT

_NAMES = (HIGH_WATERMARK_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT, CLEANER_CHECKPOINT)


class Checkpoints:
    """What they say. Offsets are as `OffsetCheckpoint.of` tells them.

    Only the watcher's thread calls `refresh`.
    """

    def __init__(self, log_dirs: LogDirs) -> None:
        self._log_dirs = log_dirs
        self._files = [_File(log_dir, name) for log_dir in log_dirs for name in _NAMES]
        self._by_name = {(file.log_dir.path, file.name): file for file in self._files}

    def refresh(self) -> bool:
        """Read those that were replaced. Returns whether any was. What a log dir said that is unavailable now stays."""
        unavailable = self._log_dirs.unavailable
        replaced = [file.refresh() for file in self._files if file.log_dir.path not in unavailable]
        return any(replaced)

    @property
    def unreadable(self) -> int:
        """Files that could not be read or were not understood, so far; each once until another is put in its place."""
        return sum(file.failures for file in self._files)

    def high_watermark(self, partition: Partition) -> int:
        """Up to where the log was replicated when its broker wrote that down, which it does every 5 s."""
        return self._offset(partition, HIGH_WATERMARK_CHECKPOINT)

    def log_start(self, partition: Partition) -> int:
        """Where the log starts, told only where that is no beginning of a segment."""
        return self._offset(partition, LOG_START_OFFSET_CHECKPOINT)

    def cleaned(self, partition: Partition) -> int:
        """Up to where the log has been compacted."""
        return self._offset(partition, CLEANER_CHECKPOINT)

    def _offset(self, partition: Partition, name: str) -> int:
        return self._by_name[partition.log_dir.path, name].content.of(partition)


class _File:
    def __init__(self, log_dir: LogDir, name: str) -> None:
        self.log_dir = log_dir
        self.name = name
        self.content = NOTHING_WRITTEN
        self.failures = 0
        self._path: Path = log_dir.path / name
        self._identity = (0, 0)  # of the file that was read last: Kafka puts another in its place

    def refresh(self) -> bool:
        try:
            with Calling(self._path):
                stat = self._path.stat()
        except OSError:  # not written yet, or a log dir that cannot be read: what was known stays
            return False
        identity = (stat.st_ino, stat.st_mtime_ns)
        if identity == self._identity:
            return False
        self.content = load_offset_checkpoint(self.log_dir, self.name)
        self.failures += not self.content.readable
        self._identity = identity
        return True
