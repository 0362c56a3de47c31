"""The records of `__transaction_state`: the coordinators' entries about transactional ids (`TransactionLog`, `TransactionLogValue`).

Key: `type i16 (0), transactional_id string`, plain. Value: `version i16`, then `TransactionMetadata`. Version 1 comes with
transaction.version 1. A null value means that the id has expired. Times are the coordinator's clock in Unix milliseconds.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

from streaming.errors import FormatError
from streaming.kafka.formats.message_schema import Int16, Int32, Int64, SchemaMessage, tagged
from streaming.kafka.formats.wire import PlainReader, Reader

_KEY_TYPE = 0


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
