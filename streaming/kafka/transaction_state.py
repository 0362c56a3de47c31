"""The records of `__transaction_state`: the coordinators' entries about transactional ids (`TransactionLog`, `TransactionLogValue`).

Key: `type i16 (0), transactional_id string`, plain. Value: `version i16`, then in this order::

    producer_id i64 | producer_epoch i16 | timeout_ms i32 | state i8 | partitions: array of (topic string, array of i32), may be null
    last_update_timestamp i64 | start_timestamp i64

Version 0 is plain. Version 1 (transaction.version 1 and above) is flexible and has the tagged fields 0 previous_producer_id i64, 1
next_producer_id i64, 2 client_transaction_version i16, 3 next_producer_epoch i16. A null value means that the id has expired. Times are the
coordinator's clock in Unix milliseconds.
"""

from dataclasses import dataclass
from enum import IntEnum

from streaming.errors import FormatError
from streaming.kafka.wire import PlainReader, Reader

_KEY_TYPE = 0
_FLEXIBLE_FROM, _NEWEST = 1, 1


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


@dataclass(frozen=True, slots=True)
class TopicPartitions:
    """Some partitions of one topic."""

    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    """A coordinator's entry about one transactional id; -1 means "none".

    `partitions` are all that the transaction has touched, including those whose markers are already written while it is being completed.
    """

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: tuple[TopicPartitions, ...]
    last_update_timestamp: int
    start_timestamp: int
    previous_producer_id: int = -1
    next_producer_id: int = -1
    client_transaction_version: int = 0
    next_producer_epoch: int = -1


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
    version = PlainReader(value).int16()
    if not 0 <= version <= _NEWEST:
        raise FormatError(f"transaction state of version {version} is not known")
    reader = Reader(value) if version >= _FLEXIBLE_FROM else PlainReader(value)
    reader.int16()  # the version
    head = (reader.int64(), reader.int16(), reader.int32(), _state(reader.int8()))
    partitions = tuple(_topic_partitions(reader) for _ in range(reader.count()))
    times = (reader.int64(), reader.int64())
    previous_producer_id, next_producer_id, client_version, next_epoch = -1, -1, 0, -1
    for tag, content in reader.tagged_fields():
        if tag == 0:
            previous_producer_id = content.int64()
        elif tag == 1:
            next_producer_id = content.int64()
        elif tag == 2:
            client_version = content.int16()
        elif tag == 3:
            next_epoch = content.int16()
    reader.end()
    return TransactionMetadata(
        producer_id=head[0],
        producer_epoch=head[1],
        timeout_ms=head[2],
        state=head[3],
        partitions=partitions,
        last_update_timestamp=times[0],
        start_timestamp=times[1],
        previous_producer_id=previous_producer_id,
        next_producer_id=next_producer_id,
        client_transaction_version=client_version,
        next_producer_epoch=next_epoch,
    )


def _state(code: int) -> TransactionState:
    try:
        return TransactionState(code)
    except ValueError:
        raise FormatError(f"transaction state {code} is not known") from None


def _topic_partitions(reader: Reader) -> TopicPartitions:
    found = TopicPartitions(reader.string(), reader.int32s())
    reader.skip_tagged_fields()
    return found
