"""Reads the logs of group coordinators from their first byte, and once more what was appended meanwhile, in milliseconds.

All of them take long, where brokers have many groups. So they are read on right before the ends of what the groups read are looked up.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from streaming.broker.disk.locate import LARGEST_BATCH_BYTES, batches_between, find_offset
from streaming.broker.disk.logdirs import LogDir, Partition, list_partitions, load_offset_checkpoint
from streaming.broker.disk.scanning import window
from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.broker.watcher.cursors import log_id
from streaming.common.formatting import format_word
from streaming.errors import FormatError
from streaming.kafka.formats.names import HIGH_WATERMARK_CHECKPOINT, OFFSETS_TOPIC, DirState
from streaming.kafka.groups.log_replay import GroupLimit
from streaming.kafka.groups.replays import COORDINATED_TOPICS, ShareLog, new_replay
from streaming.kafka.scan.group_records import Commit, EndMarker, GroupRecord, group_records, share_records
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.walk import Bytes
from streaming.terminal.offline.coordinator_replay import Replayed

log = logging.getLogger(__name__)

_END = 2**63 - 1
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorReading:
    """How the logs are read.

    ``wanted``: which groups. ``groups_limit``: the most groups of each replica. ``paced``: called with the number of bytes after each
    window that was read; it may wait. ``clock_ms``: Unix milliseconds.
    """

    wanted: Callable[[str], bool]
    groups_limit: int
    paced: Callable[[int], None]
    clock_ms: Callable[[], int]


@dataclass(slots=True, eq=False)
class CoordinatorLogs:
    """Every replica of the coordinators' logs. ``doubts``: what could not be read, in sentences."""

    reading: CoordinatorReading
    replayed: list[Replayed] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    def read(self, log_dirs: Iterable[LogDir], coordinators: Collection[int] | None) -> None:
        """Read them whole. ``coordinators``: which partitions of `__consumer_offsets`; None for all."""
        for partition in coordinators_logs(log_dirs, coordinators):
            for left in reversed(range(_TRIES)):
                try:
                    self.replayed.append(_replay(partition, self.reading))
                    break
                except (FormatError, OSError) as error:  # compaction may have replaced a segment meanwhile: the next try lists it anew
                    if not left:
                        log.warning("a group coordinator's log cannot be read", extra={"path": str(partition.path), "error": str(error)})
                        self.doubts.append(f"groups of {format_word(str(partition.path))} are not known: {error}")

    def read_on(self) -> int:
        """Read what was appended since; returns how many bytes that was. A log that did not simply grow is read from its first byte again.

        One that cannot be read now is left as it was.
        """
        read = 0
        for item, replayed in enumerate(self.replayed):
            try:
                more = _read_on(replayed, self.reading)
                if more is None:
                    self.replayed[item] = _replay(replayed.partition, self.reading, (replayed.replicated, replayed.checkpoint_ms))
                read += more or 0
            except (FormatError, OSError) as error:
                log.info("a group coordinator's log is not read on", extra={"path": str(replayed.partition.path), "error": str(error)})
        return read


def coordinators_logs(log_dirs: Iterable[LogDir], coordinators: Collection[int] | None) -> Iterator[Partition]:
    """The logs of coordinators in some log dirs; those of consumer groups only of these partitions, None for all."""
    for log_dir in log_dirs:
        try:
            partitions = list_partitions(log_dir)
        except OSError as error:  # the reading of the log dirs reports it
            log.warning("log dir cannot be read", extra={"path": str(log_dir.path), "error": str(error)})
            continue
        for each in partitions:
            other = each.topic == OFFSETS_TOPIC and coordinators is not None and each.partition not in coordinators
            if each.topic in COORDINATED_TOPICS and each.state is DirState.LIVE and not other:
                yield each


def _replay(partition: Partition, reading: CoordinatorReading, checkpoint: tuple[int, int] | None = None) -> Replayed:
    begun_ms = reading.clock_ms()
    replicated, checkpoint_ms = checkpoint or _checkpoint(partition)
    replayed = Replayed(
        partition=partition,
        replicated=replicated,
        checkpoint_ms=checkpoint_ms,
        begun_ms=begun_ms,
        replay=new_replay(log_id(partition), str(partition.path), GroupLimit(reading.groups_limit)),
    )
    _take(replayed, list_segments(partition.path), 0, reading)
    return replayed


def _read_on(replayed: Replayed, reading: CoordinatorReading) -> int | None:
    """Read on where a replay has ended; None if what was read is not there any more, as after a truncation, so that nothing was taken."""
    begun_ms = reading.clock_ms()
    segments = list_segments(replayed.partition.path)
    boundary = find_offset(segments, replayed.upto, window())
    if replayed.upto and (boundary.next_offset != replayed.upto or boundary.anchor not in (replayed.anchor, b"")):
        return None
    read = _take(replayed, segments, replayed.upto, reading)
    replayed.begun_ms = begun_ms
    return read


def _take(replayed: Replayed, segments: Sequence[Segment], begin: int, reading: CoordinatorReading) -> int:
    """Replay a log from an offset to its end; returns how many bytes were read."""
    read = 0
    for batches, buffer in whole_batches(segments, begin):
        upto, size = int(batches.last_offset[-1]) + 1, int(batches.size.sum())
        if isinstance(replayed.replay, ShareLog):
            shared = share_records(batches, buffer)
            replayed.take([each for each in shared.records if reading.wanted(each.key.group)], shared.unreadable, upto)
        else:
            records = group_records(batches, buffer)
            some = [each for each in records.records if isinstance(each, EndMarker) or reading.wanted(_group_of(each))]
            replayed.take(some, records.unreadable, upto)
        replayed.anchor, read = batches.anchor(-1), read + size
        replayed.read_ms = reading.clock_ms()
        reading.paced(size)
    replayed.end, replayed.read_ms = max((each.base_offset for each in segments), default=0), reading.clock_ms()
    return read


def _checkpoint(partition: Partition) -> tuple[int, int]:
    """The high watermark of a log by the checkpoint, and when that was written: its time first, it may be written anew at any time."""
    path = partition.log_dir.path / HIGH_WATERMARK_CHECKPOINT
    try:
        written_ms = path.stat().st_mtime_ns // 1_000_000
    except OSError:
        written_ms = -1
    return load_offset_checkpoint(partition.log_dir, HIGH_WATERMARK_CHECKPOINT).of(partition), written_ms


def _group_of(record: Commit | GroupRecord) -> str:
    return record.group if isinstance(record, Commit) else getattr(record.key, "group", "")


def whole_batches(segments: Sequence[Segment], begin: int) -> Iterator[tuple[Batches, Bytes]]:
    """The batches of a log from an offset on, some at a time, with the buffer that they are in."""
    buffer = window()
    while True:
        for batches, _ in batches_between(segments, begin, _END, buffer):
            needed = int(batches.positions[-1] + batches.size[-1])
            if needed > len(buffer):  # of a batch that is larger than the buffer only the header was read
                break
            yield batches, buffer
            begin = int(batches.last_offset[-1]) + 1
        else:
            return
        if needed > LARGEST_BATCH_BYTES:
            raise FormatError(f"a batch of {needed} bytes at offset {begin}")
        buffer = np.empty(needed, np.uint8)
