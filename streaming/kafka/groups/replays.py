"""The replay of any log of a group coordinator, by its topic; and of `__share_group_state` as its coordinator does it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from streaming.common.log_key import LogKey
from streaming.kafka.formats.coordinator_states import DONE, ShareKeyType, ShareSnapshot, ShareUpdate
from streaming.kafka.formats.names import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from streaming.kafka.groups.commit_log import CommitLog
from streaming.kafka.groups.group_rows import (
    COMMITS,
    GROUPS,
    NOT_UNDERSTOOD,
    PENDING,
    REMOVED,
    CommittedOffset,
    batch_of,
    batch_of_rows,
)
from streaming.kafka.groups.log_replay import FORGET_AT_LEAST, GroupLimit, LogReplay
from streaming.kafka.groups.number_ranges import Ranges, joined, pairs
from streaming.kafka.scan.group_records import NotUnderstood, ShareRecord, ShareRecords, share_records
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.walk import Bytes

COORDINATED_TOPICS = frozenset({OFFSETS_TOPIC, SHARE_STATE_TOPIC})
"""The topics whose logs contain how far groups are."""


def new_replay(log: LogKey, edition: str, limit: GroupLimit) -> Replay:
    """An empty replay of a log of one of these topics."""
    return ShareLog(log, edition, limit) if log.topic == SHARE_STATE_TOPIC else CommitLog(log, edition, limit)


@dataclass(frozen=True, slots=True)
class _Progress:
    """``done``: the offsets after the first that the group is done with; ``delivered``: how many. Brokers bound the number of ranges."""

    offset: int
    delivered: int
    commit_ms: int
    record_offset: int
    version: int
    done: Ranges = ()


class ShareLog(LogReplay[ShareRecord]):
    """How far share groups are, by one log of `__share_group_state`: commits alone.

    Replays one partition of `__share_group_state` as its coordinator does (`ShareCoordinatorShard`), in versions. A snapshot replaces
    what was known of a group's partition, an update changes it. What is sent is the start offset, before which the group is done with
    everything, and which offsets after it it is done with too. What consumers hold at the moment is not stored.
    """

    def __init__(self, log: LogKey, edition: str, limit: GroupLimit) -> None:
        super().__init__(log, edition, limit)
        self._offsets: dict[tuple[str, str, int], _Progress] = {}

    def _parse(self, batches: Batches, buffer: Bytes) -> ShareRecords:
        return share_records(batches, buffer)

    def _tables(self, after: int) -> tuple[pa.RecordBatch, pa.RecordBatch, pa.RecordBatch]:
        return self._commit_batch(after), batch_of(PENDING), batch_of(GROUPS)

    def _commit_batch(self, after: int) -> pa.RecordBatch:
        rows = [
            CommittedOffset(
                group=group,
                topic="",
                topic_id=topic_id,
                partition=partition,
                coordinator=self.log.partition,
                offset=one.offset,
                commit_ms=one.commit_ms,
                record_offset=one.record_offset,
                effective_offset=one.record_offset,
                share=True,
                delivered=one.delivered,
                done=one.done,
            )
            for (group, topic_id, partition), one in self._offsets.items()
            if one.version > after
        ]
        return batch_of_rows(COMMITS, rows)

    def _apply(self, record: ShareRecord, stamp: int) -> bool:
        key = (record.key.group, record.key.topic_id, record.key.partition)
        before = self._offsets.get(key)
        present = before is not None and before.offset != REMOVED
        if record.value is None and (not present or record.key.key_type != ShareKeyType.SHARE_SNAPSHOT):
            return False
        progress = self._progress(record, before, stamp)
        if progress.offset == REMOVED:
            if not present:
                return False
            self._groups.let_go(self._groups.find(key[0]))
            self._deleted += 1
        elif not present:
            number = self._groups.follow(key[0])
            if number < 0:
                return False
            self._groups.hold(number)
        self._offsets[key] = progress
        return True

    def _progress(self, record: ShareRecord, before: _Progress | None, stamp: int) -> _Progress:
        value, at = record.value, record.record_offset
        if value is None:
            return _Progress(REMOVED, 0, -1, at, stamp)
        if isinstance(value, NotUnderstood):
            return _Progress(NOT_UNDERSTOOD, 0, -1, at, stamp)
        offset = value.start_offset
        earlier = before if isinstance(value, ShareUpdate) else None
        if earlier is not None and offset < 0:
            offset = earlier.offset
        offset = max(offset, REMOVED) if offset != NOT_UNDERSTOOD else offset
        done = _done(value, earlier.done if earlier is not None else (), offset)
        count = value.delivery_complete_count  # brokers before 4.2 did not count
        delivered = count if count >= 0 else sum(last - first + 1 for first, last in pairs(done))
        return _Progress(offset, delivered, record.timestamp_ms, at, stamp, done)

    def _forget_deleted(self) -> None:
        if self._deleted < FORGET_AT_LEAST + len(self._offsets) - self._deleted:
            return
        self._offsets = {key: one for key, one in self._offsets.items() if one.offset != REMOVED}
        self._groups.compact()
        self._deleted, self._forgotten = 0, self.version


def _done(value: ShareSnapshot | ShareUpdate, before: Ranges, start: int) -> Ranges:
    """The offsets from ``start`` on that the group is done with; an update has only those that have come."""
    new = [(each.first_offset, each.last_offset) for each in value.state_batches if each.delivery_state in DONE]
    return joined((max(first, start), last) for first, last in [*pairs(before), *new] if last >= max(first, start))


Replay = CommitLog | ShareLog
