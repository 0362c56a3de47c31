"""The coordinators of transactions and of groups, with the records of their logs."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from uuid import UUID

from streaming.kafka.formats.wire import uvarint
from streaming.simulator.batch_writer import Batch, Record, end_transaction
from streaming.simulator.log import PartitionLog, clean
from streaming.simulator.metadata_writer import string, tagged

_LAST_EPOCH = 32_766

SESSION_TIMEOUT_MS = 300_000
"""Longer than the default: a broker that starts on these logs removes no member while a test looks on."""

_HOST = "/127.0.0.1"
_REBALANCE_TIMEOUT_MS = 300_000
_NULL = struct.pack(">h", -1)
_NO_TAGS = b"\x00"
_STABLE = 0


class GroupCoordinator:
    """Writes what happens to groups.

    Args:
        logs: the partitions of ``__consumer_offsets``.
    """

    def __init__(self, logs: Sequence[PartitionLog]) -> None:
        self._logs = logs

    def log_of(self, group: str) -> PartitionLog:
        """The log that holds a group."""
        return self._logs[partition_for(group, len(self._logs))]

    def join(self, group: Group, sources: Sequence[PartitionLog], now: int) -> None:
        """Let the members come, one after the other, and share the partitions of their topic."""
        log, topic_id = self.log_of(group.name), sources[0].topic_id
        for count in range(1, group.members + 1):
            members = _members(group, count, len(sources))
            if group.classic or topic_id is None:
                log.append(Batch(records=(classic_group_record(group.name, count, group.topic, members, now),)))
            else:
                log.append(Batch(records=tuple(consumer_group_records(group.name, count, group.topic, topic_id, members, now))))

    def commit(self, group: str, sources: Sequence[PartitionLog], offsets: Sequence[int], now: int) -> None:
        """Commit an offset for each partition of a topic."""
        records = tuple(
            offset_commit_record(group, log.topic, log.partition, offset, now, topic_id=log.topic_id, leader_epoch=0)
            for log, offset in zip(sources, offsets, strict=True)
        )
        self.log_of(group).append(Batch(records=records))

    def commit_in(
        self, transaction: StoredTransaction, group: str, sources: Sequence[PartitionLog], offsets: Sequence[int], now: int
    ) -> None:
        """The same in a transaction that has the group's log in it: the offsets count from its COMMIT marker on."""
        records = tuple(
            offset_commit_record(group, log.topic, log.partition, offset, now) for log, offset in zip(sources, offsets, strict=True)
        )
        self.log_of(group).append(
            Batch(
                records=records,
                producer_id=transaction.producer_id,
                producer_epoch=transaction.epoch,
                base_sequence=0,
                transactional=True,
            )
        )


def partition_for(identity: str, partitions: int) -> int:
    """The partition of a coordinator's topic that a transactional id or a group belongs to: Java's `String.hashCode`, made positive."""
    units = identity.encode("utf-16-be")
    code = 0
    for (unit,) in struct.iter_unpack(">H", units):
        code = (31 * code + unit) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >= 1 << 31 else code
    return 0 if signed == -(1 << 31) else abs(signed) % partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Who reads a topic together: so many members, by the classic protocol or the newer one."""

    name: str
    topic: str
    members: int = 1
    classic: bool = False


def _members(group: Group, count: int, partitions: int) -> list[SimulatedMember]:
    """The first members of a group, with neighboring partitions each."""
    shares = [tuple(number for number in range(partitions) if number * count // partitions == place) for place in range(count)]
    return [SimulatedMember(f"{group.name}-{place}", f"{group.name}-client", share) for place, share in enumerate(shares)]


@dataclass(frozen=True, slots=True)
class SimulatedMember:
    """A member of a group with the partitions of the group's topic that it is assigned."""

    member_id: str
    client_id: str
    partitions: tuple[int, ...]


def classic_group_record(group: str, generation: int, topic: str, members: Sequence[SimulatedMember], now: int) -> Record:
    """A generation of a group of the classic protocol; the first member leads. Without members the group is empty."""
    protocol, leader = (plain_string("range"), plain_string(members[0].member_id)) if members else (_NULL, _NULL)
    head = struct.pack(">h", 3) + plain_string("consumer") + struct.pack(">i", generation) + protocol + leader
    body = struct.pack(">qi", now, len(members)) + b"".join(_classic_member(member, topic) for member in members)
    return Record(struct.pack(">h", 2) + plain_string(group), head + body, now)


def plain_string(text: str) -> bytes:
    """A string of a message that is not flexible."""
    return struct.pack(">h", len(text.encode())) + text.encode()


def _classic_member(member: SimulatedMember, topic: str) -> bytes:
    subscription = struct.pack(">hi", 3, 1) + plain_string(topic) + struct.pack(">iii", -1, 0, -1) + _NULL
    partitions = struct.pack(f">i{len(member.partitions)}i", len(member.partitions), *member.partitions)
    assignment = struct.pack(">hi", 3, 1) + plain_string(topic) + partitions + struct.pack(">i", -1)
    return (
        plain_string(member.member_id)
        + _NULL  # no static member
        + plain_string(member.client_id)
        + plain_string(_HOST)
        + struct.pack(">ii", _REBALANCE_TIMEOUT_MS, SESSION_TIMEOUT_MS)
        + _sized(subscription)
        + _sized(assignment)
    )


def _sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def consumer_group_records(
    group: str, epoch: int, topic: str, topic_id: UUID, members: Sequence[SimulatedMember], now: int
) -> list[Record]:
    """The records of one rebalance of a group of the newer protocol, the last member having joined.

    The group coordinator: groups and their committed offsets in ``__consumer_offsets`` (`GroupCoordinatorShard`), with records of
    both protocols as Kafka 4.3 writes them (`GroupCoordinatorRecordHelpers`).

    Members give back what they lose at once, so all of them are stable in the new epoch.
    """
    joined = members[-1]
    return [
        _record(5, group, joined.member_id, _described(joined, topic), now),
        _record(3, group, None, struct.pack(">i", epoch) + tagged([(0, topic_id.bytes[:8])]), now),
        *(_record(7, group, member.member_id, _target(topic_id, member), now) for member in members),
        _record(6, group, None, struct.pack(">i", epoch) + tagged([(0, struct.pack(">q", now))]), now),
        *(_record(8, group, member.member_id, _current(topic_id, member, epoch, member is joined), now) for member in members),
    ]


def _record(key_type: int, group: str, member_id: str | None, message: bytes, now: int) -> Record:
    key = struct.pack(">h", key_type) + plain_string(group) + (b"" if member_id is None else plain_string(member_id))
    return Record(key, struct.pack(">h", 0) + message, now)


def _described(member: SimulatedMember, topic: str) -> bytes:
    return (
        string(None)  # no static member
        + string(None)  # no rack
        + string(member.client_id)
        + string(_HOST)
        + uvarint(2)
        + string(topic)
        + string("")  # no regular expression
        + struct.pack(">i", _REBALANCE_TIMEOUT_MS)
        + string(None)  # the broker's assignor
        + _NO_TAGS
    )


def _target(topic_id: UUID, member: SimulatedMember) -> bytes:
    return uvarint(2) + topic_id.bytes + _compact_ints(member.partitions) + _NO_TAGS + _NO_TAGS


def _compact_ints(values: Sequence[int]) -> bytes:
    return uvarint(len(values) + 1) + struct.pack(f">{len(values)}i", *values)


def _current(topic_id: UUID, member: SimulatedMember, epoch: int, is_new: bool) -> bytes:
    epochs = tagged([(0, _compact_ints([epoch] * len(member.partitions)))])
    assigned = uvarint(2) + topic_id.bytes + _compact_ints(member.partitions) + epochs
    head = struct.pack(">iib", epoch, 0 if is_new else epoch - 1, _STABLE)
    return head + assigned + uvarint(1) + _NO_TAGS


def offset_commit_record(
    group: str,
    topic: str,
    partition: int,
    offset: int,
    timestamp: int,
    *,
    topic_id: UUID | None = None,
    leader_epoch: int = -1,
    version: int = 4,
) -> Record:
    """A committed offset: the next one that the group reads. Version 3 before Kafka 4.1, flexible and with the topic's id since.

    Clients do not send the id and the epoch with offsets that they commit in a transaction.
    """
    key = struct.pack(">h", 1) + plain_string(group) + plain_string(topic) + struct.pack(">i", partition)
    head, committed = struct.pack(">hqi", version, offset, leader_epoch), struct.pack(">q", timestamp)
    if version < 4:
        return Record(key, head + plain_string("") + committed, timestamp)
    tags = tagged([(0, topic_id.bytes)] if topic_id else [])
    return Record(key, head + string("") + committed + tags, timestamp)


class IdState(IntEnum):
    """The state of a transactional id in its coordinator's records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTransaction:
    """One transactional id, as its coordinator sees it; times in Unix milliseconds, ``started`` -1 before the first transaction.

    ``client_version``: the transaction version that its client speaks. Only with 2 each transaction has an epoch of its own (KIP-890).
    """

    transactional_id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    state: IdState
    partitions: tuple[tuple[str, int], ...] = ()
    updated: int
    started: int = -1
    previous_producer_id: int = -1
    client_version: int = 2


class Coordinator:
    """Writes every step of every transaction.

    The transaction coordinator: its log ``__transaction_state`` and the markers (`TransactionCoordinator`, transaction.version 2).

    Args:
        logs: the partitions of ``__transaction_state``.
        partitions: all logs of the broker by topic and partition: where markers go.
        new_producer_id: allocates a producer id at a time.
    """

    def __init__(
        self,
        logs: Sequence[PartitionLog],
        partitions: Mapping[tuple[str, int], PartitionLog],
        new_producer_id: Callable[[int], int],
    ) -> None:
        self._logs = logs
        self._partitions = partitions
        self._new_producer_id = new_producer_id
        self._latest: dict[str, int] = {}

    def init(self, transactional_id: str, timeout_ms: int, now: int, *, client_version: int = 2) -> StoredTransaction:
        """A producer starts with a transactional id that no producer used before."""
        producer_id = self._new_producer_id(now)
        return self._write(
            StoredTransaction(
                transactional_id=transactional_id,
                producer_id=producer_id,
                epoch=0,
                timeout_ms=timeout_ms,
                state=IdState.EMPTY,
                updated=now,
                previous_producer_id=producer_id,
                client_version=client_version,
            )
        )

    def add(self, transaction: StoredTransaction, topic: str, partition: int, now: int) -> StoredTransaction:
        """Before the first batch for a partition; the first partition opens the transaction."""
        if transaction.state is not IdState.ONGOING:
            transaction = replace(transaction, state=IdState.ONGOING, partitions=(), started=now)
        elif (topic, partition) in transaction.partitions:
            return transaction
        return self._write(replace(transaction, partitions=(*transaction.partitions, (topic, partition)), updated=now))

    def end(self, transaction: StoredTransaction, *, committed: bool, now: int) -> StoredTransaction:
        """Decide, write the markers, and say that it is done. The producer goes on with the next epoch; before version 2 with the same."""
        prepared, done = (IdState.PREPARE_COMMIT, IdState.COMPLETE_COMMIT) if committed else (IdState.PREPARE_ABORT, IdState.COMPLETE_ABORT)
        epoch = transaction.epoch + (transaction.client_version >= 2)
        transaction = self._write(replace(transaction, state=prepared, epoch=epoch, updated=now))
        marker = end_transaction(
            committed=committed, producer_id=transaction.producer_id, producer_epoch=transaction.epoch, coordinator_epoch=0, timestamp=now
        )
        for written_to in transaction.partitions:
            self._partitions[written_to].append(marker)
        complete = self._write(replace(transaction, state=done, partitions=()))
        return self._rotated(complete, now) if complete.epoch >= _LAST_EPOCH else complete

    def _rotated(self, transaction: StoredTransaction, now: int) -> StoredTransaction:
        # The client asks for a new producer id when its epochs are used up.
        new = self._new_producer_id(now)
        previous = transaction.producer_id
        return self._write(replace(transaction, state=IdState.EMPTY, producer_id=new, previous_producer_id=previous, epoch=0, started=-1))

    def _write(self, transaction: StoredTransaction) -> StoredTransaction:
        log = self._log(transaction.transactional_id)
        self._latest[transaction.transactional_id] = log.append(Batch(records=(transaction_record(transaction),)))
        return transaction

    def compact(self, now: int) -> None:
        """Let the cleaner drop all but the latest record of every transactional id."""
        for log in self._logs:
            clean(log, {offset for name, offset in self._latest.items() if self._log(name) is log}, now)

    def _log(self, transactional_id: str) -> PartitionLog:
        return self._logs[partition_for(transactional_id, len(self._logs))]


def transaction_record(state: StoredTransaction, version: int = 1) -> Record:
    """A record of ``__transaction_state``; version 0 before transaction.version 1, flexible since.

    Records of ``__transaction_state``, and committed offsets (`TransactionLog`, `GroupCoordinatorRecordHelpers`).
    """
    topics: dict[str, list[int]] = {}
    for topic, partition in state.partitions:
        topics.setdefault(topic, []).append(partition)
    head = struct.pack(">hqhib", version, state.producer_id, state.epoch, state.timeout_ms, state.state)
    times = struct.pack(">qq", state.updated, state.started)
    key = struct.pack(">h", 0) + plain_string(state.transactional_id)
    if version == 0:
        return Record(key, head + _partitions_v0(state.state, topics) + times, state.updated)
    return Record(key, head + _partitions_v1(state.state, topics) + times + _transaction_tags(state), state.updated)


def _partitions_v0(state: IdState, topics: dict[str, list[int]]) -> bytes:
    if state is IdState.EMPTY:
        return struct.pack(">i", -1)
    return struct.pack(">i", len(topics)) + b"".join(plain_string(topic) + _ints(numbers) for topic, numbers in topics.items())


def _ints(values: Iterable[int]) -> bytes:
    packed = [struct.pack(">i", value) for value in values]
    return struct.pack(">i", len(packed)) + b"".join(packed)


def _partitions_v1(state: IdState, topics: dict[str, list[int]]) -> bytes:
    if state is IdState.EMPTY:
        return uvarint(0)
    items = [string(topic) + uvarint(len(numbers) + 1) + _ints(numbers)[4:] + b"\x00" for topic, numbers in topics.items()]
    return uvarint(len(topics) + 1) + b"".join(items)


def _transaction_tags(state: StoredTransaction) -> bytes:
    fields = []
    if state.previous_producer_id >= 0:
        fields.append((0, struct.pack(">q", state.previous_producer_id)))
    if state.state is not IdState.EMPTY and state.client_version:
        fields.append((2, struct.pack(">h", state.client_version)))
    return tagged(fields)
