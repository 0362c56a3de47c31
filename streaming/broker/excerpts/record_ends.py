"""Up to where the records of logs can be read: where they are known to be replicated, and where it is decided which are committed."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from streaming.broker.disk.broker_processes import ask_lock
from streaming.broker.disk.logdirs import LogDir, OffsetCheckpoint, Partition, load_offset_checkpoint
from streaming.broker.disk.scanning import window
from streaming.broker.disk.segment_files import Segment
from streaming.broker.excerpts.excerpt_transactions import first_open
from streaming.broker.excerpts.position_plan import OpenLog
from streaming.common.log_positions import NOT_KNOWN, LogName, Position
from streaming.errors import LogDirError, UsageError
from streaming.kafka.formats.names import HIGH_WATERMARK_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT
from streaming.kafka.scan.walk import Bytes
from streaming.rules.broker_process import LockState
from streaming.rules.position_rule import epochs_below

log = logging.getLogger(__name__)

ENDLESS = 2**63 - 1
"""The end of a range that reaches to the last batch."""


class RecordEnds:
    """Up to where the records of logs can be read, for a caller that asks again and again. Only one thread uses it.

    Args:
        committed, to_end: as in `WantedRecords`.
    """

    def __init__(self, *, committed: bool, to_end: bool) -> None:
        self._committed, self._to_end = committed, to_end
        self._dirs: dict[Path, DirEnds] = {}
        self._decided: dict[LogName, Position] = {}
        self._buffer = window()

    def look(self, log_dirs: Iterable[LogDir]) -> None:
        """Read what log dirs say now. Raises UsageError: as `ends_of_dir`."""
        self._dirs = {each.path: ends_of_dir(each, to_end=self._to_end, logs=each.path not in self._dirs) for each in log_dirs}

    def start_of(self, partition: Partition) -> int:
        """The log start offset of a partition of these log dirs, by their checkpoints; below 0 if none is there."""
        return self._dirs[partition.log_dir.path].starts.of(partition)

    def __call__(self, opened: OpenLog) -> int:
        """The end of a log of one of these log dirs; 0 if it is not known. Raises OSError: a segment cannot be read."""
        partition = opened.partition
        stop = min(self._dirs[partition.log_dir.path].stop_of(partition), opened.end)
        if stop <= opened.start or not self._committed:
            return max(stop, 0)
        before = self._decided.get(opened.name)
        holds = before is not None and before.topic_id == partition.topic_id and not opened.resumed(before, 0).cut_off
        since = before.next_offset if holds and before is not None and before.next_offset <= stop else NOT_KNOWN
        end = decided_end(partition, opened.segments, stop, self._buffer, since)
        self._decided[opened.name] = Position(partition.topic_id, end, epochs_below(opened.epochs, end))
        return end


@dataclass(frozen=True, slots=True)
class DirEnds:
    """What a log dir says of its logs: their starts, and their high watermarks, None where they are to be read to their ends.

    ``rests``: no broker runs there, so nothing is written or deleted meanwhile.
    """

    starts: OffsetCheckpoint
    high_watermarks: OffsetCheckpoint | None
    rests: bool

    def stop_of(self, partition: Partition) -> int:
        """The offset at which what is known to be replicated ends, `ENDLESS` for the log's own end, below 0 if it is not known."""
        return ENDLESS if self.high_watermarks is None else self.high_watermarks.of(partition)


def ends_of_dir(log_dir: LogDir, *, to_end: bool, logs: bool = True) -> DirEnds:
    """What a log dir says of its logs.

    Args:
        to_end: beyond the high watermark where no broker runs.
        logs: whether the log says where that is not done.

    Raises:
        UsageError: that cannot be read, or is not there; names file and option.
    """
    try:
        lock = ask_lock(log_dir.path)
    except OSError as error:
        raise LogDirError(f"option log_dirs: {log_dir.path} cannot be read: {error.strerror or error}") from error
    starts = load_offset_checkpoint(log_dir, LOG_START_OFFSET_CHECKPOINT)
    if not starts.readable:
        raise LogDirError(f"option log_dirs: {log_dir.path / LOG_START_OFFSET_CHECKPOINT} cannot be read, so deleted records might come")
    rests = lock.state.is_held_by_nobody
    if to_end and rests:
        return DirEnds(starts, None, rests)
    if to_end and logs:
        why = "a broker runs there" if lock.state is LockState.LOCKED else f"it is not known whether a broker runs there ({lock.why})"
        log.warning("option until: of %s records are read up to the high watermark, because %s", log_dir.path, why)
    path = log_dir.path / HIGH_WATERMARK_CHECKPOINT
    high_watermarks = load_offset_checkpoint(log_dir, HIGH_WATERMARK_CHECKPOINT)
    if not high_watermarks.readable or not path.exists():
        what = "cannot be read" if path.exists() else "is not there"
        raise UsageError(
            f"option until: {path} {what}, so it is not known which records were replicated; of a broker that does not run, "
            "until=end reads each log to its end"
        )
    return DirEnds(starts, high_watermarks, rests)


def decided_end(partition: Partition, segments: Sequence[Segment], stop: int, buffer: Bytes, since: int = -1) -> int:
    """Up to where it is decided which records are committed: ``stop``, or before the first transaction that is open there.

    Args:
        since: an earlier such end, from which on it is enough to look; -1 none.

    Raises:
        OSError: a segment is gone or cannot be read.
    """
    opened = first_open(partition.path, segments, stop, buffer, since)
    if opened is None:
        return stop
    if since < 0:
        log.warning(
            "%s is read up to offset %d: a transaction of producer %d is open there; isolation=read_uncommitted reads on",
            *(partition.path, opened[1], opened[0]),
        )
    return min(stop, opened[1])
