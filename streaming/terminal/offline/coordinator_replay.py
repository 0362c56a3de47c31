"""Replays the logs of group coordinators from their first byte, once: commits, groups, and since when commits do not move.

Only what is below the high watermark counts. What is known of that first is a checkpoint, so what comes after it is kept apart until the
logs themselves are read.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from streaming.broker.disk.logdirs import LogDir, Partition, list_partitions, load_offset_checkpoint
from streaming.broker.disk.replay import batches_between
from streaming.broker.disk.scanning import window
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.watcher.cursors import log_id
from streaming.common.formatting import format_word
from streaming.errors import FormatError
from streaming.kafka.formats.names import HIGH_WATERMARK_CHECKPOINT, OFFSETS_TOPIC, DirState
from streaming.kafka.groups.assignments import of_record, packed
from streaming.kafka.groups.followed_groups import GroupLimit
from streaming.kafka.groups.group_rows import GroupChanges
from streaming.kafka.groups.replays import COORDINATED_TOPICS, Replay, new_replay
from streaming.kafka.groups.share_log import ShareLog
from streaming.kafka.scan.group_records import Commit, EndMarker, GroupRecord, GroupRecords, group_records
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.share_records import ShareRecord, ShareRecords, share_records
from streaming.kafka.scan.walk import Bytes
from streaming.terminal.offline.unmoved_offsets import CommitKey, UnmovedOffsets

log = logging.getLogger(__name__)

LARGEST_BATCH_BYTES = 256 << 20
_END = 2**63 - 1
_TRIES = 3


MOST_KEPT = 100_000
"""So many records that may be above the high watermark are kept apart; of more, the first count as if they were below it."""

Record = Commit | GroupRecord | EndMarker | ShareRecord

CommitPlace = tuple[str, str, int]
"""The topic or "", its id or "", and the partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """A coordinators' log as of a high watermark.

    ``changes``: what is below it, and then what is above it. ``since``: of what is below it, see `UnmovedOffsets.since`; none of share
    groups.
    """

    changes: tuple[GroupChanges, ...]
    since: dict[CommitKey, tuple[int, int]]


@dataclass(slots=True, kw_only=True, eq=False)
class Replayed:
    """One replica of a coordinators' log, replayed up to ``replicated``, which is the high watermark by the checkpoint.

    ``checkpoint_ms``: when that was written, Unix milliseconds, -1 if it is not known. ``upto``: the end of the log when it was read.
    """

    partition: Partition
    replicated: int
    checkpoint_ms: int
    upto: int = 0
    replay: Replay
    _unmoved: UnmovedOffsets = field(default_factory=UnmovedOffsets)
    _later: deque[Record] = field(default_factory=deque)

    def take(self, records: Sequence[Record], unreadable: int, upto: int) -> None:
        """The records of the next range, which ends before ``upto``."""
        below = [each for each in records if each.record_offset < self.replicated]
        self._later += [each for each in records if each.record_offset >= self.replicated]
        if len(self._later) > MOST_KEPT:
            below += [self._later.popleft() for _ in range(len(self._later) - MOST_KEPT)]
        self._apply(below, self._later[0].record_offset if self._later else min(upto, max(self.replicated, 0)), unreadable)
        self.upto = upto

    def places(self, changes: GroupChanges) -> Iterator[CommitPlace]:
        """What any commit is of, of all ``changes`` of the replay and of what may be above the high watermark."""
        for rows in (changes.commits, changes.pending):
            yield from zip(*(rows[name].to_pylist() for name in ("topic", "topic_id", "partition")), strict=True)
        for each in self._later:
            if isinstance(each, Commit):
                yield each.topic, "", each.partition
            elif isinstance(each, ShareRecord):
                yield "", each.key.topic_id, each.key.partition

    def assigned(self, changes: GroupChanges) -> set[str]:
        """The entries of what members are assigned, of all ``changes`` of the replay and of what may be above the high watermark."""
        entries = {entry for some in changes.groups["assigned"].to_pylist() for entry in some or ()}
        return entries.union(*(packed(of_record(each.value)) for each in self._later if isinstance(each, GroupRecord)))

    def as_of(self, high_watermark: int) -> AsOf:
        """The log as of a high watermark that is known by now. To be called once."""
        later = list(self._later)
        below = [each for each in later if each.record_offset < high_watermark]
        self._apply(below, min(self.upto, max(high_watermark, self.replicated)))
        first, since = self.replay.changes(0), self._unmoved.since()
        self._apply(later[len(below) :], self.upto)
        rest = self.replay.changes(first.version)
        return AsOf(changes=(first, replace(rest, whole=False)), since=since)  # what a whole answer leaves out was deleted later

    def _apply(self, records: Iterable[Record], upto: int, unreadable: int = 0) -> None:
        if isinstance(self.replay, ShareLog):
            self.replay.replay(ShareRecords(tuple(each for each in records if isinstance(each, ShareRecord)), unreadable), upto)
            return
        commits = tuple(each for each in records if not isinstance(each, ShareRecord))
        self._unmoved.note(commits)
        self.replay.replay(GroupRecords(commits, unreadable), upto)


def replay_coordinators(
    log_dirs: Iterable[LogDir],
    coordinators: Collection[int] | None,
    wanted: Callable[[str], bool],
    groups_limit: int,
    paced: Callable[[int], None],
) -> tuple[list[Replayed], list[str]]:
    """Replay every replica of the coordinators' logs; returns also what could not be read, in sentences.

    Args:
        coordinators: which partitions of `__consumer_offsets`; None for all.
        wanted: which groups.
        groups_limit: the most groups of each replica.
        paced: called with the number of bytes after each window that was read; it may wait.
    """
    found, doubts = [], []
    for partition in _logs(log_dirs, coordinators):
        for left in reversed(range(_TRIES)):
            try:
                found.append(_replay(partition, wanted, GroupLimit(groups_limit), paced))
                break
            except (FormatError, OSError) as error:  # compaction may have replaced a segment meanwhile: the next try lists it anew
                if not left:
                    log.warning("a group coordinator's log cannot be read", extra={"path": str(partition.path), "error": str(error)})
                    doubts.append(f"groups of {format_word(str(partition.path))} are not known: {error}")
    return found, doubts


def _logs(log_dirs: Iterable[LogDir], coordinators: Collection[int] | None) -> Iterator[Partition]:
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


def _replay(partition: Partition, wanted: Callable[[str], bool], limit: GroupLimit, paced: Callable[[int], None]) -> Replayed:
    replicated, checkpoint_ms = _checkpoint(partition)
    replayed = Replayed(
        partition=partition,
        replicated=replicated,
        checkpoint_ms=checkpoint_ms,
        replay=new_replay(log_id(partition), str(partition.path), limit),
    )
    for batches, buffer in _whole_batches(partition.path):
        upto = int(batches.last_offset[-1]) + 1
        if isinstance(replayed.replay, ShareLog):
            shared = share_records(batches, buffer)
            replayed.take([each for each in shared.records if wanted(each.key.group)], shared.unreadable, upto)
        else:
            records = group_records(batches, buffer)
            some = [each for each in records.records if isinstance(each, EndMarker) or wanted(_group_of(each))]
            replayed.take(some, records.unreadable, upto)
        paced(int(batches.size.sum()))
    return replayed


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


def _whole_batches(directory: Path) -> Iterator[tuple[Batches, Bytes]]:
    """The batches of a log, some at a time, with the buffer that they are in."""
    segments, buffer, begin = list_segments(directory), window(), 0
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
