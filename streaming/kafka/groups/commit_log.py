"""Replays one partition of `__consumer_offsets` as its coordinator does (`OffsetMetadataManager`), in versions.

A commit in a transaction waits for the marker of its producer in the same partition. It then counts if its own record is later than that of
the commit that counts so far: the order is that of the commits, not of the markers. A tombstone also deletes what waits.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streaming.common.log_key import LogKey
from streaming.kafka.groups.commit_table import NumberedNames, named
from streaming.kafka.groups.group_rows import (
    COMMITS,
    NOT_UNDERSTOOD,
    PENDING,
    REMOVED,
    PendingCommit,
    batch_of,
    batch_of_rows,
)
from streaming.kafka.groups.log_replay import FORGET_AT_LEAST, GroupLimit, LogReplay
from streaming.kafka.groups.membership import HAS_MEMBERS, NO_RECORD, Membership
from streaming.kafka.groups.offset_moves import MOST_BY_HAND, GroupPresence, MovedOffsets, OffsetMove
from streaming.kafka.scan.group_records import Commit, EndMarker, GroupRecord, GroupRecords, NotUnderstood, group_records
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.walk import Bytes

_FREE = -1
_FIRST_SLOTS = 16

_PRESENCES: Mapping[int, GroupPresence] = {NO_RECORD: GroupPresence.NEVER, HAS_MEMBERS: GroupPresence.THERE}


class CommitLog(LogReplay[Commit | GroupRecord | EndMarker]):
    """The commits and groups of one log of `__consumer_offsets`."""

    def __init__(self, log: LogKey, edition: str, limit: GroupLimit) -> None:
        super().__init__(log, edition, limit)
        self._topics, self._topic_ids = NumberedNames(), NumberedNames()
        self._rows = HeldCommits()
        self._open = OpenCommits()
        self.members = Membership(self._groups)
        self.moves = MovedOffsets()
        self._present = 0  # rows with a commit

    def committed(self, group: str, topic: str, partition: int) -> int:
        """What counts of a partition now, `REMOVED` if nothing does."""
        row = self._row_of(group, topic, partition)
        return self._rows.offset[row] if row >= 0 else REMOVED

    def _row_of(self, group: str, topic: str, partition: int) -> int:
        group_number, topic_number = self._groups.find(group), self._topics.find(topic)
        return self._rows.find(group_number, topic_number, partition) if group_number >= 0 and topic_number >= 0 else -1

    def _parse(self, batches: Batches, buffer: Bytes) -> GroupRecords:
        return group_records(batches, buffer)

    def _apply(self, record: Commit | GroupRecord | EndMarker, stamp: int) -> bool:
        if isinstance(record, Commit):
            return self._commit(record, stamp)
        if isinstance(record, EndMarker):
            ended = self._open.end(record.producer_id)
            for row, held in ended.items():
                if record.committed and held.record_offset > self._rows.record_offset[row]:
                    emptied = self.members.emptied(self._groups.names[self._rows.group[row]])
                    by_producer = min(emptied, HAS_MEMBERS)  # an admin client uses no transaction
                    self._put(row, held, record.record_offset, stamp, by_producer)
                elif self._rows.record_offset[row] < 0:
                    self._deleted += 1
                self._groups.let_go(self._rows.group[row])
            return bool(ended)
        return self.members.replay(record, stamp)

    def _tables(self, after: int) -> tuple[pa.RecordBatch, pa.RecordBatch, pa.RecordBatch]:
        return self._commit_batch(after), self._pending_batch(), self.members.batch(after, self.log.partition, self.moves)

    def _commit(self, record: Commit, stamp: int) -> bool:
        if record.value is None:
            return self._tombstone(record, stamp)
        group = self._groups.follow(record.group)
        if group < 0:
            return False
        emptied = self.members.committed(record.group, record.record_offset, stamp)
        row = self._rows.find_or_add(group, self._topics.number(record.topic), record.partition)
        held = self._held(record)
        if record.producer_id < 0:
            self._put(row, held, record.record_offset, stamp, emptied)
        elif self._open.put(record.producer_id, row, held):
            self._groups.hold(group)
        return True

    def _held(self, record: Commit) -> Held:
        value = record.value
        assert value is not None
        if isinstance(value, NotUnderstood):
            return Held(NOT_UNDERSTOOD, self._topic_ids.number(""), -1, -1, record.record_offset)
        topic_id = self._topic_ids.number(value.topic_id or "")
        times = value.commit_timestamp, value.expire_timestamp
        return Held(max(value.offset, -1), topic_id, *times, record.record_offset, value.leader_epoch)

    def _put(self, row: int, held: Held, effective_offset: int, stamp: int, emptied: int) -> None:
        rows = self._rows
        if rows.record_offset[row] < 0:
            self._groups.hold(rows.group[row])
            self._present += 1
            rows.begin(row, held.offset)
            if emptied >= 0:
                self.moves.committed(row, emptied)
        elif emptied >= 0 or held.offset < rows.offset[row] or held.topic_id != rows.topic_id[row]:
            self._compare(row, held, effective_offset, stamp, emptied)
        elif held.offset > rows.offset[row]:
            self._step(row, held.offset)
        if held.commit_ms >= 0:
            self.members.moved(self._groups.names[rows.group[row]], rows.commit_ms[row], held.commit_ms, stamp)
        rows.put(row, held, effective_offset, stamp)
        rows.presence[row] = _presence(emptied)

    def _step(self, row: int, offset: int) -> None:
        """A reader has gone on to an offset. From what was not understood on, it is not known how far."""
        rows = self._rows
        if rows.offset[row] >= 0:
            rows.step[row] = max(offset - rows.offset[row], rows.step[row] - (rows.step[row] >> 3))

    def _compare(self, row: int, held: Held, effective_offset: int, stamp: int, emptied: int) -> None:
        """Compare a commit with the one before of its partition, and note it if it is no step of a reader."""
        rows = self._rows
        before, group = rows.offset[row], self._groups.names[rows.group[row]]
        commits, changes = self.moves.committed(row, emptied) if emptied >= 0 else (0, False)
        both = before >= 0 and held.offset >= 0
        if self._is_of_another_topic(row, held):
            changes |= self._end_moves(row)
            rows.step[row] = 0
            rows.forget(row)
            rows.begin(row, held.offset)
        elif both and (held.offset < before or (held.offset > before and 0 < commits <= MOST_BY_HAND)):
            self.moves.add(group, row, self._move(row, held, effective_offset, emptied, commits))
            changes = True
        elif held.offset > before:
            self._step(row, held.offset)
        if changes:
            self.members.touch(group, effective_offset, stamp)

    def _is_of_another_topic(self, row: int, held: Held) -> bool:
        one, other = self._rows.topic_id[row], held.topic_id
        return one != other and bool(self._topic_ids.names[one] and self._topic_ids.names[other])

    def _end_moves(self, row: int) -> bool:
        rows = self._rows
        return self.moves.end(self._groups.names[rows.group[row]], self._topics.names[rows.topic[row]], rows.partition[row])

    def _move(self, row: int, held: Held, effective_offset: int, emptied: int, commits: int) -> OffsetMove:
        rows = self._rows
        return OffsetMove(
            topic=self._topics.names[rows.topic[row]],
            topic_id=self._topic_ids.names[held.topic_id],
            partition=rows.partition[row],
            before=rows.offset[row],
            offset=held.offset,
            before_ms=rows.commit_ms[row],
            at_ms=held.commit_ms,
            record_offset=held.record_offset,
            effective_offset=effective_offset,
            presence=_presence(emptied),
            commits=commits,
            step=rows.step[row],
        )

    def _tombstone(self, record: Commit, stamp: int) -> bool:
        group, row = self._groups.find(record.group), self._row_of(record.group, record.topic, record.partition)
        if row < 0:
            return False
        dropped = self._open.drop_row(row)
        present = self._rows.record_offset[row] >= 0
        if present:
            if self._end_moves(row):
                self.members.touch(record.group, record.record_offset, stamp)
            self._rows.remove(row, record.record_offset, stamp)
            self._present, self._deleted = self._present - 1, self._deleted + 1
        for _ in range(dropped + present):
            self._groups.let_go(group)
        return present or dropped > 0

    def _forget_deleted(self) -> None:
        if self._deleted + self.members.deleted < FORGET_AT_LEAST + self._present:
            return
        waiting = {row for _, row, _ in self._open}
        rows = [row for row in range(len(self._rows)) if self._rows.record_offset[row] >= 0 or row in waiting]
        self._rows = self._rows.copy(rows, self._groups.compact())
        numbers = dict(zip(rows, range(len(rows)), strict=True))
        self._open.move(numbers)
        self.members.forget_deleted()
        self.moves.keep({*self._groups.names}, numbers)
        self._deleted, self._forgotten = 0, self.version

    def _commit_batch(self, after: int) -> pa.RecordBatch:
        """The commits that changed after a version, deleted ones among them."""
        rows = self._rows
        if not len(rows):
            return batch_of(COMMITS)
        chosen = np.flatnonzero(np.frombuffer(rows.version, np.int64) > after)
        few = {
            name: [known.get(row, -1) for row in chosen.tolist()] if known else np.full(len(chosen), -1)
            for name, known in (("expire_ms", rows.expire_ms), ("former_ms", rows.former_ms), ("resumed", rows.resumed))
        }
        named_by = "group", "topic", "topic_id", "partition", "leader_epoch", "presence"
        numbers = {name: np.frombuffer(getattr(rows, name), np.int32)[chosen] for name in named_by}
        longs = ("offset", "commit_ms", "record_offset", "effective_offset", "moved_ms")
        return batch_of(
            COMMITS,
            group=named(self._groups.names, numbers["group"]),
            topic=named(self._topics.names, numbers["topic"]),
            topic_id=named(self._topic_ids.names, numbers["topic_id"]),
            partition=numbers["partition"],
            coordinator=np.full(len(chosen), self.log.partition),
            leader_epoch=numbers["leader_epoch"],
            presence=numbers["presence"],
            share=np.zeros(len(chosen), np.bool_),
            delivered=np.zeros(len(chosen), np.int64),
            done=[None] * len(chosen),
            **few,
            **{name: np.frombuffer(getattr(rows, name), np.int64)[chosen] for name in longs},
        )

    def _pending_batch(self) -> pa.RecordBatch:
        rows = self._rows
        pending = [
            PendingCommit(
                group=self._groups.names[rows.group[row]],
                topic=self._topics.names[rows.topic[row]],
                topic_id=self._topic_ids.names[held.topic_id],
                partition=rows.partition[row],
                coordinator=self.log.partition,
                producer_id=producer_id,
                offset=held.offset,
                record_offset=held.record_offset,
                commit_ms=held.commit_ms,
            )
            for producer_id, row, held in self._open
        ]
        return batch_of_rows(PENDING, pending)


class HeldCommits:
    """Columns of equal length. A row whose ``record_offset`` is -1 has no commit: it was deleted, or is only pending.

    The committed offsets of one coordinator's log, in columns: a million of them take some 70 MB; and those of open transactions. A
    row is found by the numbers of its group and topic and its partition, through a hash table of row numbers.

    ``step``: the largest of its last steps forwards from one commit to the next, fading; 0 not known. ``presence``: a `GroupPresence`, of
    each commit. Of those that had a commit that was deleted, or was of another topic of that name: ``former_ms``, when that was made;
    ``former``, its offset, until there is another commit; ``resumed``, the offset of both, if they have the same.
    """

    def __init__(self) -> None:
        self.group, self.topic, self.partition, self.topic_id, self.leader_epoch, self.presence = (array("i") for _ in range(6))
        self.offset, self.commit_ms, self.record_offset, self.effective_offset, self.version, self.step = (array("q") for _ in range(6))
        self.moved_ms = array("q")
        self.expire_ms: dict[int, int] = {}  # few have one
        self.former_ms: dict[int, int] = {}
        self.former: dict[int, int] = {}
        self.resumed: dict[int, int] = {}
        self._slots = array("i", [_FREE]) * _FIRST_SLOTS

    def __len__(self) -> int:
        return len(self.group)

    def find(self, group: int, topic: int, partition: int) -> int:
        """The row of a key, -1 if it has none."""
        return self._slots[self._slot(group, topic, partition)]

    def find_or_add(self, group: int, topic: int, partition: int) -> int:
        """The row of a key; a new one has no commit."""
        slot = self._slot(group, topic, partition)
        row = self._slots[slot]
        if row != _FREE:
            return row
        row = self._slots[slot] = len(self.group)
        self.group.append(group)
        self.topic.append(topic)
        self.partition.append(partition)
        self.topic_id.append(0)
        self.leader_epoch.append(-1)
        self.presence.append(0)
        self.offset.append(REMOVED)
        for column in (self.commit_ms, self.record_offset, self.effective_offset, self.moved_ms):
            column.append(-1)
        self.version.append(0)
        self.step.append(0)
        if 3 * len(self.group) > 2 * len(self._slots):
            self._grow()
        return row

    def put(self, row: int, held: Held, effective_offset: int, version: int) -> None:
        """Give a row its commit."""
        if held.offset != self.offset[row]:
            self.moved_ms[row] = held.commit_ms
        self.offset[row], self.topic_id[row], self.commit_ms[row], expire_ms, self.record_offset[row], self.leader_epoch[row] = held
        self.effective_offset[row], self.version[row] = effective_offset, version
        if expire_ms >= 0:
            self.expire_ms[row] = expire_ms
        elif self.expire_ms:
            self.expire_ms.pop(row, None)

    def remove(self, row: int, effective_offset: int, version: int) -> None:
        """Take a row's commit away."""
        self.forget(row)
        self.put(row, Held(REMOVED, self.topic_id[row], -1, -1, -1), effective_offset, version)
        self.step[row] = 0

    def forget(self, row: int) -> None:
        """The commit of a row does not count any more, and the next one is the first of another topic, or after it was deleted."""
        self.former_ms[row], self.former[row] = self.commit_ms[row], self.offset[row]
        self.resumed.pop(row, None)

    def begin(self, row: int, offset: int) -> None:
        """The first commit of a row after another one that does not count any more."""
        if row in self.former and self.former.pop(row) == offset:
            self.resumed[row] = offset

    def copy(self, rows: Sequence[int], groups: Mapping[int, int]) -> HeldCommits:
        """Some of the rows, in order, with other numbers of their groups."""
        copied = HeldCommits()
        for number, row in enumerate(rows):
            copied.find_or_add(groups[self.group[row]], self.topic[row], self.partition[row])
            times = self.commit_ms[row], self.expire_ms.get(row, -1)
            held = Held(self.offset[row], self.topic_id[row], *times, self.record_offset[row], self.leader_epoch[row])
            copied.put(number, held, self.effective_offset[row], self.version[row])
            copied.step[number], copied.presence[number], copied.moved_ms[number] = self.step[row], self.presence[row], self.moved_ms[row]
            for known, more in ((self.former_ms, copied.former_ms), (self.former, copied.former), (self.resumed, copied.resumed)):
                if row in known:
                    more[number] = known[row]
        return copied

    def _slot(self, group: int, topic: int, partition: int) -> int:
        """The slot of a key, or the free one where it belongs."""
        slots, groups, topics, partitions = self._slots, self.group, self.topic, self.partition
        mask = len(slots) - 1
        slot = hash((group, topic, partition)) & mask
        while (row := slots[slot]) != _FREE:
            if partitions[row] == partition and topics[row] == topic and groups[row] == group:
                return slot
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        self._slots = array("i", [_FREE]) * (2 * len(self._slots))
        for row, key in enumerate(zip(self.group, self.topic, self.partition, strict=True)):
            self._slots[self._slot(*key)] = row


class Held(NamedTuple):
    """What is known of a commit: ``topic_id`` by its number; times in Unix milliseconds; ``leader_epoch``: -1 for none."""

    offset: int
    topic_id: int
    commit_ms: int
    expire_ms: int
    record_offset: int
    leader_epoch: int = -1


class OpenCommits:
    """The pending commits of one coordinator's log, by producer and row: they wait for the marker of their producer."""

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[int, Held]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_producer.values()))

    def __iter__(self) -> Iterator[tuple[int, int, Held]]:
        """Producer, row and commit, in the order of the transactions."""
        for producer_id, commits in self._by_producer.items():
            for row, held in commits.items():
                yield producer_id, row, held

    def put(self, producer_id: int, row: int, held: Held) -> bool:
        """Whether the producer had no commit for the row yet."""
        commits = self._by_producer.setdefault(producer_id, {})
        new = row not in commits
        commits[row] = held
        return new

    def drop_row(self, row: int) -> int:
        """A tombstone also deletes what is pending, for all producers; returns for how many."""
        return sum(commits.pop(row, None) is not None for commits in self._by_producer.values())

    def end(self, producer_id: int) -> dict[int, Held]:
        """The transaction of a producer ends: its commits no longer wait."""
        return self._by_producer.pop(producer_id, {})

    def move(self, rows: Mapping[int, int]) -> None:
        """The rows have got other numbers."""
        self._by_producer = {
            producer_id: {rows[row]: held for row, held in commits.items()} for producer_id, commits in self._by_producer.items()
        }


def _presence(emptied: int) -> GroupPresence:
    """Who is in a group, by what `Membership.emptied` says of it."""
    return GroupPresence.LEFT if emptied >= 0 else _PRESENCES[emptied]
