"""The records of the metadata log: bytes in, values out (`MetadataRecordSerde`, `common/metadata/*.json`).

The value of a record is `frame_version uvarint (1), kind uvarint, version uvarint` and a flexible message; the key is null. Kinds that are
not needed are skipped without being parsed. So credentials and tokens are never read, nor the values of configurations that may contain
one. Ids of topics and directories are texts of 22 characters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from streaming.errors import FormatError
from streaming.kafka.configs import READABLE_KEYS
from streaming.kafka.metadata_brokers import (
    BrokerChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    fencing_reader,
    read_broker_change,
    read_register_broker,
    read_unregister_broker,
)
from streaming.kafka.metadata_partitions import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    read_clear_elr,
    read_partition,
    read_partition_change,
)
from streaming.kafka.wire import Reader

_FRAME_VERSION = 1


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A topic was created."""

    name: str
    topic_id: str


@dataclass(frozen=True, slots=True)
class RemoveTopicRecord:
    """A topic was deleted, with its partitions and configurations."""

    topic_id: str


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """A configuration was set, or removed (`value` None); `resource_type` and `resource` as in `Config`.

    `hidden` is set if the key is not one that may be read. Then `value` is None, whatever the log contains.
    """

    resource_type: int
    resource: str
    name: str
    value: str | None
    hidden: bool


@dataclass(frozen=True, slots=True)
class FeatureLevelRecord:
    """A feature was set; level 0 means "removed"."""

    name: str
    level: int


@dataclass(frozen=True, slots=True)
class ProducerIdsRecord:
    """A broker got a block of producer ids; all ids below `next_producer_id` may be in use."""

    broker_id: int
    next_producer_id: int


class Boundary(StrEnum):
    """The beginning or the end of a metadata transaction: the records between are valid all together or not at all."""

    BEGIN = "begin"
    END = "end"
    ABORT = "abort"


MetadataRecord = (
    TopicRecord
    | RemoveTopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | ClearElrRecord
    | ConfigRecord
    | RegisterBrokerRecord
    | UnregisterBrokerRecord
    | BrokerChangeRecord
    | FeatureLevelRecord
    | ProducerIdsRecord
    | Boundary
)


class MetadataKind(IntEnum):
    """The kinds of records that exist (`MetadataRecordType`)."""

    REGISTER_BROKER = 0
    UNREGISTER_BROKER = 1
    TOPIC = 2
    PARTITION = 3
    CONFIG = 4
    PARTITION_CHANGE = 5
    FENCE_BROKER = 7
    UNFENCE_BROKER = 8
    REMOVE_TOPIC = 9
    DELEGATION_TOKEN = 10
    USER_SCRAM_CREDENTIAL = 11
    FEATURE_LEVEL = 12
    CLIENT_QUOTA = 14
    PRODUCER_IDS = 15
    BROKER_REGISTRATION_CHANGE = 17
    ACCESS_CONTROL_ENTRY = 18
    REMOVE_ACCESS_CONTROL_ENTRY = 19
    NO_OP = 20
    ZK_MIGRATION_STATE = 21
    REMOVE_USER_SCRAM_CREDENTIAL = 22
    BEGIN_TRANSACTION = 23
    END_TRANSACTION = 24
    ABORT_TRANSACTION = 25
    REMOVE_DELEGATION_TOKEN = 26
    REGISTER_CONTROLLER = 27
    CLEAR_ELR = 28


@dataclass(frozen=True, slots=True)
class MetadataFrame:
    """The part before the message of a record: its kind, a `MetadataKind` unless it is newer, and the message's version."""

    kind: int
    version: int


def read_metadata_frame(value: bytes) -> MetadataFrame:
    """Parse kind and version of the record in a value, without its message. Raises FormatError if it is no metadata record."""
    return _frame(Reader(value))


def read_metadata_record(value: bytes) -> MetadataRecord | None:
    """Parse the value of a metadata log's record; None for a kind that is not needed.

    Raises:
        FormatError: it is damaged, or its kind is needed and this reader does not know its version.
    """
    reader = Reader(value)
    frame = _frame(reader)
    if frame.kind not in _PARSERS:
        return None
    parse, newest = _PARSERS[frame.kind]
    if frame.version > newest:
        raise FormatError(f"version {frame.version} of metadata record {frame.kind} is not known")
    record = parse(reader, frame.version)
    reader.end()
    return record


def _frame(reader: Reader) -> MetadataFrame:
    version = reader.uvarint()
    if version != _FRAME_VERSION:
        raise FormatError(f"metadata frame version {version} is not known")
    return MetadataFrame(reader.uvarint(), reader.uvarint())


def _topic(reader: Reader, _version: int) -> TopicRecord:
    record = TopicRecord(reader.string(), reader.uuid())
    reader.skip_tagged_fields()
    return record


def _remove_topic(reader: Reader, _version: int) -> RemoveTopicRecord:
    record = RemoveTopicRecord(reader.uuid())
    reader.skip_tagged_fields()
    return record


def _config(reader: Reader, _version: int) -> ConfigRecord:
    resource_type, resource, name = reader.int8(), reader.string(), reader.string()
    if name not in READABLE_KEYS:
        reader.skip_string()
        value, hidden = None, True
    else:
        value, hidden = reader.nullable_string(), False
    reader.skip_tagged_fields()
    return ConfigRecord(resource_type, resource, name, value, hidden)


def _feature_level(reader: Reader, _version: int) -> FeatureLevelRecord:
    record = FeatureLevelRecord(reader.string(), reader.int16())
    reader.skip_tagged_fields()
    return record


def _producer_ids(reader: Reader, _version: int) -> ProducerIdsRecord:
    broker_id = reader.int32()
    reader.int64()  # broker epoch
    record = ProducerIdsRecord(broker_id, reader.int64())
    reader.skip_tagged_fields()
    return record


def _boundary(kind: Boundary) -> Callable[[Reader, int], Boundary]:
    def parse(reader: Reader, _version: int) -> Boundary:
        reader.skip_tagged_fields()  # a name or a reason
        return kind

    return parse


_PARSERS: dict[int, tuple[Callable[[Reader, int], MetadataRecord], int]] = {
    MetadataKind.REGISTER_BROKER: (read_register_broker, 4),
    MetadataKind.UNREGISTER_BROKER: (read_unregister_broker, 0),
    MetadataKind.TOPIC: (_topic, 0),
    MetadataKind.PARTITION: (read_partition, 2),
    MetadataKind.CONFIG: (_config, 0),
    MetadataKind.PARTITION_CHANGE: (read_partition_change, 2),
    MetadataKind.FENCE_BROKER: (fencing_reader(True), 0),
    MetadataKind.UNFENCE_BROKER: (fencing_reader(False), 0),
    MetadataKind.REMOVE_TOPIC: (_remove_topic, 0),
    MetadataKind.FEATURE_LEVEL: (_feature_level, 0),
    MetadataKind.PRODUCER_IDS: (_producer_ids, 0),
    MetadataKind.BROKER_REGISTRATION_CHANGE: (read_broker_change, 3),
    MetadataKind.BEGIN_TRANSACTION: (_boundary(Boundary.BEGIN), 0),
    MetadataKind.END_TRANSACTION: (_boundary(Boundary.END), 0),
    MetadataKind.ABORT_TRANSACTION: (_boundary(Boundary.ABORT), 0),
    MetadataKind.CLEAR_ELR: (read_clear_elr, 0),
}
"""For each kind: the parser and the newest version that it knows."""
