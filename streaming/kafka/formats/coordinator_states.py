"""The records of `__transaction_state` and `__share_group_state`: the entries of the coordinators of transactions and of share groups."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

from streaming.errors import FormatError
from streaming.kafka.formats.wire import Int8, Int16, Int32, Int64, PlainReader, Reader, SchemaMessage, Uuid, structure, tagged

_KEY_TYPE = 0

DONE = frozenset({2, 4})
"""The states in which a group is done with records: acknowledged, archived. Neither is ever left."""


class TransactionState(IntEnum):
    """The state of a transaction; the last two exist only in a coordinator's memory (`TransactionState`)."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def kafka_name(self) -> str:
        """Its name in Kafka's tools, such as `PrepareCommit`."""
        return "".join(word.capitalize() for word in self.name.split("_"))


def read_transaction_key(key: bytes) -> str | None:
    """The transactional id in a key, or None if the type of the key is newer than this reader. Such a record is ignored.

    Raises FormatError for a damaged key.
    """
    reader = PlainReader(key)
    if reader.int16() != _KEY_TYPE:
        return None
    transactional_id = reader.string()
    reader.end()
    return transactional_id


def read_transaction_value(value: bytes) -> TransactionMetadata:
    """Parse the value of a record that is no tombstone.

    Raises:
        FormatError: it is damaged, or of a version or state that is not known.
    """
    return _VALUE.read(value, "transaction state")


def _read_state(reader: Reader) -> TransactionState:
    """Read the code of a state, an int8. Raises FormatError if it is not known."""
    code = reader.int8()
    try:
        return TransactionState(code)
    except ValueError:
        raise FormatError(f"transaction state {code} is not known") from None


@dataclass(frozen=True, slots=True)
class TopicPartitions:
    """Some partitions of one topic."""

    topic: str
    partitions: tuple[Int32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    """A coordinator's entry about one transactional id (`TransactionLogValue`); -1 means "none".

    The records of `__transaction_state`: the coordinators' entries about transactional ids (`TransactionLog`, `TransactionLogValue`).
    Key: `type i16 (0), transactional_id string`, plain. Value: `version i16`, then `TransactionMetadata`. Version 1 comes with
    transaction.version 1. A null value means that the id has expired. Times are the coordinator's clock in Unix milliseconds.

    `partitions` are all that the transaction has touched, including those whose markers are already written while it is being completed.
    """

    producer_id: Int64
    previous_producer_id: Int64 = tagged(0, "1+", -1)
    next_producer_id: Int64 = tagged(1, "1+", -1)
    producer_epoch: Int16
    next_producer_epoch: Int16 = tagged(3, "1+", -1)
    timeout_ms: Int32
    state: Annotated[TransactionState, _read_state]
    partitions: tuple[TopicPartitions, ...]
    last_update_timestamp: Int64
    start_timestamp: Int64
    client_transaction_version: Int16 = tagged(2, "1+", 0)


_VALUE = SchemaMessage(TransactionMetadata, "0-1", flexible="1+")


def read_share_key(key: bytes) -> ShareKey | None:
    """Parse the key of a record; None for a type that is not known. Raises FormatError for a damaged one."""
    reader = PlainReader(key)
    key_type = reader.int16()
    if key_type not in _KEY:
        return None
    found = _KEY[ShareKeyType(key_type)](reader)
    reader.end()
    return found


@dataclass(frozen=True, slots=True)
class ShareKey:
    """The key of a record about a partition of a share group."""

    key_type: int
    group: str
    topic_id: Uuid
    partition: Int32


class ShareKeyType(IntEnum):
    """The types of keys in `__share_group_state`."""

    SHARE_SNAPSHOT = 0
    SHARE_UPDATE = 1


_KEY = {kind: structure(ShareKey, key_type=kind) for kind in ShareKeyType}


def read_share_value(key: ShareKey, value: bytes) -> ShareSnapshot | ShareUpdate:
    """Parse the value of a record that is no tombstone.

    Raises:
        FormatError: it is damaged, or of a version that is not known.
    """
    if key.key_type == ShareKeyType.SHARE_SNAPSHOT:
        return _SNAPSHOT.read(value, "share snapshot")
    return _UPDATE.read(value, "share update")


@dataclass(frozen=True, slots=True)
class StateBatch:
    """Records from the first to the last offset; `delivery_state`: 0 available, 3 archiving, or one of `DONE`: 2 acknowledged, 4 archived.

    The records of `__share_group_state`: how far share groups are (`ShareCoordinatorRecordSerde`, `ShareSnapshotValue`,
    `ShareUpdateValue`). A snapshot replaces what was known of a partition, and an update adds to it; a null value of a snapshot
    deletes it. The key is `type i16` and then plain, the value `version i16 (0)` and a flexible message. Times are Unix milliseconds.

    What is being archived has been given up, and is being copied to the dead letter queue of its group (KIP-1191, `share.version` 2). It is
    not done with yet: `delivery_complete_count` leaves it out, and Kafka counts it in the lag.
    """

    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSnapshot:
    """All that is known: `delivery_complete_count` offsets from `start_offset` on are done with, -1 before Kafka 4.2."""

    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = tagged(0, "0+", -1)
    create_timestamp: Int64
    write_timestamp: Int64
    state_batches: tuple[StateBatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareUpdate:
    """What has changed; a `start_offset` of -1 is as before."""

    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = tagged(0, "0+", -1)
    state_batches: tuple[StateBatch, ...]


_SNAPSHOT = SchemaMessage(ShareSnapshot, "0")


_UPDATE = SchemaMessage(ShareUpdate, "0")
