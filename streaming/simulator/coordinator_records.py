"""Records of ``__transaction_state``, and committed offsets (`TransactionLog`, `GroupCoordinatorRecordHelpers`)."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID

from streaming.simulator.batch_writer import Record, uvarint
from streaming.simulator.metadata_writer import string, tagged


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


def transaction_record(state: StoredTransaction, version: int = 1) -> Record:
    """A record of ``__transaction_state``; version 0 before transaction.version 1, flexible since."""
    topics: dict[str, list[int]] = {}
    for topic, partition in state.partitions:
        topics.setdefault(topic, []).append(partition)
    head = struct.pack(">hqhib", version, state.producer_id, state.epoch, state.timeout_ms, state.state)
    times = struct.pack(">qq", state.updated, state.started)
    key = struct.pack(">h", 0) + plain_string(state.transactional_id)
    if version == 0:
        return Record(key, head + _partitions_v0(state.state, topics) + times, state.updated)
    return Record(key, head + _partitions_v1(state.state, topics) + times + _transaction_tags(state), state.updated)


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


def partition_for(identity: str, partitions: int) -> int:
    """The partition of a coordinator's topic that a transactional id or a group belongs to: Java's `String.hashCode`, made positive."""
    units = identity.encode("utf-16-be")
    code = 0
    for (unit,) in struct.iter_unpack(">H", units):
        code = (31 * code + unit) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >= 1 << 31 else code
    return 0 if signed == -(1 << 31) else abs(signed) % partitions


def _partitions_v0(state: IdState, topics: dict[str, list[int]]) -> bytes:
    if state is IdState.EMPTY:
        return struct.pack(">i", -1)
    return struct.pack(">i", len(topics)) + b"".join(plain_string(topic) + _ints(numbers) for topic, numbers in topics.items())


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


def plain_string(text: str) -> bytes:
    """A string of a message that is not flexible."""
    return struct.pack(">h", len(text.encode())) + text.encode()


def _ints(values: Iterable[int]) -> bytes:
    packed = [struct.pack(">i", value) for value in values]
    return struct.pack(">i", len(packed)) + b"".join(packed)
