"""One replica of a group coordinator's log, replayed once: commits, groups, and since when commits do not move.

Only what is below the high watermark counts. What is known of that first is a checkpoint, so what comes after it is kept apart until the
logs themselves are read.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from streaming.broker.disk.logdirs import Partition
from streaming.kafka.formats.consumer_offsets import OffsetCommit
from streaming.kafka.groups.group_rows import GroupChanges
from streaming.kafka.groups.number_ranges import of_record, packed
from streaming.kafka.groups.replays import Replay, ShareLog
from streaming.kafka.scan.group_records import Commit, EndMarker, GroupRecord, GroupRecords, ShareRecord, ShareRecords

CommitKey = tuple[str, str, int]
"""Group, topic, partition."""


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
                self._end(each)

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

    def _end(self, marker: EndMarker) -> None:
        for key, held in self._open.pop(marker.producer_id, {}).items():
            before = self._held.get(key)
            if marker.committed and (before is None or before.record_offset < held.record_offset):  # as in Kafka, a later commit wins
                self._put(key, held._replace(since_ms=max(held.since_ms, marker.at_ms)))

    def _put(self, key: CommitKey, held: _Held) -> None:
        before = self._held.get(key)
        unmoved = before is not None and before.offset == held.offset
        self._held[key] = held._replace(since_ms=before.since_ms) if before is not None and unmoved else held


MOST_KEPT = 100_000
"""So many records that may be above the high watermark are kept apart; of more, the first count as if they were below it."""

Record = Commit | GroupRecord | EndMarker | ShareRecord

CommitPlace = tuple[str, str, int]
"""The topic or "", its id or "", and the partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """A coordinators' log as of a high watermark.

    ``changes``: what is below it, and then what is above it. What came first of the latter is apart: it shows how old that is.
    ``since``: of what is below it, see `UnmovedOffsets.since`; none of share groups.
    """

    changes: tuple[GroupChanges, ...]
    since: dict[CommitKey, tuple[int, int]]


@dataclass(slots=True, kw_only=True, eq=False)
class Replayed:
    """One replica of a coordinators' log, replayed up to ``replicated``, which is the high watermark by the checkpoint.

    That is the one from before anything was read, also when the log is read on: the high watermark that counts in the end is never lower.

    ``checkpoint_ms``: when that was written, Unix milliseconds, -1 if it is not known. ``upto``: the end of the log when it was read last;
    ``anchor``: the header of the batch before it. ``end``: at least its end, where what was last was removed. ``begun_ms``, ``read_ms``:
    when that reading began and ended.
    """

    partition: Partition
    replicated: int
    checkpoint_ms: int
    begun_ms: int
    upto: int = 0
    end: int = 0
    anchor: bytes = b""
    read_ms: int = -1
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

    @property
    def is_cut(self) -> bool:
        """Whether the log has lost its end: it did not reach the high watermark that its broker had noted before it was read."""
        return max(self.upto, self.end) < self.replicated

    def as_of_ms(self, high_watermark: int) -> int:
        """The moment of which the commits below a high watermark are at least."""
        return self.checkpoint_ms if high_watermark < self.upto and 0 <= self.checkpoint_ms < self.begun_ms else self.begun_ms

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
