"""Reads the logs of group coordinators from their first byte, and once more what was appended meanwhile, in milliseconds.

All of them take long, where brokers have many groups. So they are read on right before the ends of what the groups read are looked up.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from streaming.broker.disk.availability import LogDir
from streaming.broker.disk.locate import LARGEST_BATCH_BYTES, batches_between, find_offset
from streaming.broker.disk.logdirs import Partition, list_partitions, load_offset_checkpoint
from streaming.broker.disk.scanning import window
from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.broker.watcher.cursors import log_id
from streaming.common.units import format_word
from streaming.errors import FormatError
from streaming.kafka.formats.consumer_offsets import OffsetCommit
from streaming.kafka.formats.names import HIGH_WATERMARK_CHECKPOINT, OFFSETS_TOPIC, DirState
from streaming.kafka.groups.group_rows import GroupChanges
from streaming.kafka.groups.log_replay import GroupLimit
from streaming.kafka.groups.number_ranges import of_record, packed
from streaming.kafka.groups.replays import COORDINATED_TOPICS, Replay, ShareLog, new_replay
from streaming.kafka.scan.group_records import (
    Commit,
    EndMarker,
    GroupRecord,
    GroupRecords,
    ShareRecord,
    ShareRecords,
    group_records,
    share_records,
)
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

CommitKey = tuple[str, str, int]
"""Group, topic, partition."""

MOST_KEPT = 100_000
"""So many records that may be above the high watermark are kept apart; of more, the first count as if they were below it."""

Record = Commit | GroupRecord | EndMarker | ShareRecord

CommitPlace = tuple[str, str, int]
"""The topic or "", its id or "", and the partition."""

_END = 2**63 - 1
_TRIES = 3


class _Held(NamedTuple):
    offset: int
    since_ms: int
    record_offset: int  # of the last commit of it


@dataclass(slots=True)
class UnmovedOffsets:
    """Takes the records of a log in the order of their offsets."""

    _held: dict[CommitKey, _Held] = field(default_factory=dict)
    _open: dict[int, dict[CommitKey, _Held]] = field(default_factory=dict)

    def note(self, records: Iterable[Commit | GroupRecord | EndMarker]) -> None:
        """Take the next records."""
        for each in records:
            if isinstance(each, Commit):
                self._note_commit(each)
            elif isinstance(each, EndMarker):
                for key, held in self._open.pop(each.producer_id, {}).items():
                    before = self._held.get(key)
                    if each.committed and (before is None or before.record_offset < held.record_offset):  # as in Kafka, a later commit wins
                        self._put(key, held._replace(since_ms=max(held.since_ms, each.at_ms)))

    def since(self) -> dict[CommitKey, tuple[int, int]]:
        """The offset that counts, and since when, Unix milliseconds: the first commit of it in a row, or the end of its transaction."""
        return {key: (held.offset, held.since_ms) for key, held in self._held.items()}

    def _note_commit(self, commit: Commit) -> None:
        key, value = (commit.group, commit.topic, commit.partition), commit.value
        if not isinstance(value, OffsetCommit):  # a tombstone also deletes what waits; a damaged value shows nothing
            for waiting in (self._held, *self._open.values()):
                waiting.pop(key, None)
            return
        held = _Held(value.offset, value.commit_timestamp, commit.record_offset)
        if commit.producer_id < 0:
            self._put(key, held)
        else:
            self._open.setdefault(commit.producer_id, {})[key] = held

    def _put(self, key: CommitKey, held: _Held) -> None:
        before = self._held.get(key)
        unmoved = before is not None and before.offset == held.offset
        self._held[key] = held._replace(since_ms=before.since_ms) if before is not None and unmoved else held


@dataclass(slots=True)
class NotedCommits:
    """When groups last committed in each topic, also those whose commits were deleted since. From `since_ms` on none is missing here.

    A log without a hole from its first offset on has them all, and ``since_ms`` is 0. Compaction leaves holes: between batches, or within.
    """

    last_ms: dict[str, int] = field(default_factory=dict)
    since_ms: int = 0  # Unix milliseconds, -1 if nothing after the last hole shows a time
    _next: int = 0

    def note(self, batches: Batches, records: Iterable[Commit | GroupRecord | EndMarker]) -> None:
        """Take the next batches, in the order of their offsets."""
        expected = np.concatenate([[self._next], batches.last_offset[:-1] + 1])
        thinned = batches.records != batches.last_offset + 1 - batches.base_offset
        broken = np.flatnonzero(thinned | (batches.base_offset != expected))
        whole_from = int(broken[-1]) + int(thinned[broken[-1]]) if len(broken) else 0
        if len(broken) or self.since_ms < 0:
            self.since_ms = int(batches.max_timestamp[whole_from]) if whole_from < len(batches) else -1
        self._next = int(batches.last_offset[-1]) + 1
        for each in records:
            if isinstance(each, Commit) and isinstance(each.value, OffsetCommit):
                self.last_ms[each.topic] = max(self.last_ms.get(each.topic, -1), each.value.commit_timestamp)


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """A coordinators' log as of a high watermark.

    ``changes``: those below it, and then those above it. The first of the latter is apart: it shows how old they are.
    """

    changes: tuple[GroupChanges, ...]
    since: dict[CommitKey, tuple[int, int]]  # of what is below it, see `UnmovedOffsets.since`; none of share groups


@dataclass(slots=True, kw_only=True, eq=False)
class Replayed:
    """One replica of a coordinators' log, replayed up to ``replicated``, which is the high watermark by the checkpoint.

    One replica of a group coordinator's log, replayed once: commits, groups, and since when commits do not move. Only what is below
    the high watermark counts. What is known of that first is a checkpoint, so what comes after it is kept apart until the logs
    themselves are read.

    That is the one from before anything was read, also when the log is read on: the high watermark that counts in the end is never lower.

    ``begun_ms``, ``read_ms``: when that reading began and ended.
    """

    partition: Partition
    replicated: int
    checkpoint_ms: int  # when that was written, Unix milliseconds, -1 if it is not known
    begun_ms: int
    upto: int = 0  # the end of the log when it was read last
    end: int = 0  # at least its end, where what was last was removed
    anchor: bytes = b""  # the header of the batch before it
    read_ms: int = -1
    replay: Replay
    noted: NotedCommits = field(default_factory=NotedCommits)
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

    @property
    def is_cut(self) -> bool:
        """Whether the log has lost its end: it did not reach the high watermark that its broker had noted before it was read."""
        return max(self.upto, self.end) < self.replicated

    def as_of_ms(self, high_watermark: int) -> int:
        """The moment of which the commits below a high watermark are at least."""
        return self.checkpoint_ms if high_watermark < self.upto and 0 <= self.checkpoint_ms < self.begun_ms else self.begun_ms

    def places(self, changes: GroupChanges) -> Iterator[CommitPlace]:
        """The partitions of all commits: of all ``changes`` of the replay, and of records that may be above the high watermark."""
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

    def subscribed(self, changes: GroupChanges) -> set[str]:
        """The topics of members, and of the last ones of groups that have none, of all ``changes`` of the replay."""
        return {name for column in ("topics", "last_topics") for some in changes.groups[column].to_pylist() for name in some or ()}

    def as_of(self, high_watermark: int) -> AsOf:
        """The log as of a high watermark that is known by now. To be called once."""
        later = list(self._later)
        below = [each for each in later if each.record_offset < high_watermark]
        self._apply(below, min(self.upto, max(high_watermark, self.replicated)))
        first, since = self.replay.changes(0), self._unmoved.since()
        above, changes = later[len(below) :], [first]
        dated = next((item + 1 for item, each in enumerate(above) if _is_dated(each)), len(above))
        for some in (above[:dated], above[dated:]):
            self._apply(some, some[-1].record_offset + 1 if some else 0)
            rest = self.replay.changes(changes[-1].version)
            changes.append(replace(rest, upto=self.upto, whole=False))  # what a whole answer leaves out was deleted later
        return AsOf(changes=tuple(changes), since=since)

    def _apply(self, records: Iterable[Record], upto: int, unreadable: int = 0) -> None:
        if isinstance(self.replay, ShareLog):
            self.replay.replay(ShareRecords(tuple(each for each in records if isinstance(each, ShareRecord)), unreadable), upto)
            return
        commits = tuple(each for each in records if not isinstance(each, ShareRecord))
        self._unmoved.note(commits)
        self.replay.replay(GroupRecords(commits, unreadable), upto)


def _is_dated(record: Record) -> bool:
    """Whether a record shows when it was appended: one in a transaction counts later."""
    return isinstance(record, ShareRecord) or (isinstance(record, Commit) and record.producer_id < 0 and record.value is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorReading:
    """How the logs are read."""

    wanted: Callable[[str], bool]  # which groups
    groups_limit: int  # the most groups of each replica
    paced: Callable[[int], None]  # called with the number of bytes after each window that was read; it may wait
    clock_ms: Callable[[], int]  # Unix milliseconds


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
                except (FormatError, OSError) as error:  # compaction may have replaced a segment meanwhile: the next try lists it again
                    if not left:
                        log.warning("a group coordinator's log cannot be read", extra={"path": str(partition.path), "error": str(error)})
                        self.doubts.append(f"groups of {format_word(str(partition.path))} are not known: {error}")

    def read_on(self) -> int:
        """Read what was appended since; returns how many bytes that was. A log that did not just grow is read from its first byte again.

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


def _checkpoint(partition: Partition) -> tuple[int, int]:
    """The high watermark of a log by the checkpoint, and when that was written: its time first, as it may be replaced at any time."""
    path = partition.log_dir.path / HIGH_WATERMARK_CHECKPOINT
    try:
        written_ms = path.stat().st_mtime_ns // 1_000_000
    except OSError:
        written_ms = -1
    return load_offset_checkpoint(partition.log_dir, HIGH_WATERMARK_CHECKPOINT).of(partition), written_ms


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
            replayed.noted.note(batches, records.records)
            some = [each for each in records.records if isinstance(each, EndMarker) or reading.wanted(_group_of(each))]
            replayed.take(some, records.unreadable, upto)
        replayed.anchor, read = batches.anchor(-1), read + size
        replayed.read_ms = reading.clock_ms()
        reading.paced(size)
    replayed.end, replayed.read_ms = max((each.base_offset for each in segments), default=0), reading.clock_ms()
    return read


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


def _group_of(record: Commit | GroupRecord) -> str:
    return record.group if isinstance(record, Commit) else getattr(record.key, "group", "")


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
