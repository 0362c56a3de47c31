"""The records of the metadata log: bytes in, values out (`MetadataRecordSerde`, `common/metadata/*.json`).

The value of a record is `frame_version uvarint (1), kind uvarint, version uvarint` and a flexible message; the key is null. Kinds that are
not needed are skipped without being parsed. So credentials and tokens are never read, nor the values of configurations that may contain
one. Ids of topics and directories are texts of 22 characters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from streaming.errors import FormatError
from streaming.kafka.formats.configs import READABLE_KEYS
from streaming.kafka.formats.message_schema import Int16, Int32, Int64, SchemaMessage, Uuid
from streaming.kafka.formats.metadata_brokers import (
    BrokerChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from streaming.kafka.formats.metadata_partitions import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
)
from streaming.kafka.formats.wire import Reader

_FRAME_VERSION = 1


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A topic was created."""

    name: str
    topic_id: Uuid


@dataclass(frozen=True, slots=True)
class RemoveTopicRecord:
    """A topic was deleted, with its partitions and configurations."""

    topic_id: Uuid


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
    level: Int16


@dataclass(frozen=True, slots=True)
class ProducerIdsRecord:
    """A broker got a block of producer ids; all ids below `next_producer_id` may be in use."""

    broker_id: Int32
    broker_epoch: Int64
    next_producer_id: Int64


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
    UNREGISTER_CONTROLLER = 29  # from metadata.version 4.4 on


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
    message = _MESSAGES.get(frame.kind)
    if message is None:
        return None
    layout = message.layout(frame.version)
    if layout is None:
        raise FormatError(f"version {frame.version} of metadata record {frame.kind} is not known")
    record = layout(reader)
    reader.end()
    return record


def _frame(reader: Reader) -> MetadataFrame:
    version = reader.uvarint()
    if version != _FRAME_VERSION:
        raise FormatError(f"metadata frame version {version} is not known")
    return MetadataFrame(reader.uvarint(), reader.uvarint())


def _read_config(reader: Reader) -> ConfigRecord:
    """Read a ConfigRecord. It has a reader of its own, so that a value that may be a secret is skipped and never read."""
    resource_type, resource, name = reader.int8(), reader.string(), reader.string()
    if name not in READABLE_KEYS:
        reader.skip_string()
        value, hidden = None, True
    else:
        value, hidden = reader.nullable_string(), False
    reader.skip_tagged_fields()
    return ConfigRecord(resource_type, resource, name, value, hidden)


def _boundary(boundary: Boundary) -> Callable[[Reader], Boundary]:
    def read(reader: Reader) -> Boundary:
        reader.skip_tagged_fields()  # a name or a reason
        return boundary

    return read


_MESSAGES: dict[int, SchemaMessage[MetadataRecord]] = {
    MetadataKind.REGISTER_BROKER: SchemaMessage(RegisterBrokerRecord, "0-4"),
    MetadataKind.UNREGISTER_BROKER: SchemaMessage(UnregisterBrokerRecord, "0"),
    MetadataKind.TOPIC: SchemaMessage(TopicRecord, "0"),
    MetadataKind.PARTITION: SchemaMessage(PartitionRecord, "0-2"),
    MetadataKind.CONFIG: SchemaMessage(_read_config, "0"),
    MetadataKind.PARTITION_CHANGE: SchemaMessage(PartitionChangeRecord, "0-2"),
    MetadataKind.FENCE_BROKER: SchemaMessage(BrokerChangeRecord, "0", fenced=True),
    MetadataKind.UNFENCE_BROKER: SchemaMessage(BrokerChangeRecord, "0", fenced=False),
    MetadataKind.REMOVE_TOPIC: SchemaMessage(RemoveTopicRecord, "0"),
    MetadataKind.FEATURE_LEVEL: SchemaMessage(FeatureLevelRecord, "0"),
    MetadataKind.PRODUCER_IDS: SchemaMessage(ProducerIdsRecord, "0"),
    MetadataKind.BROKER_REGISTRATION_CHANGE: SchemaMessage(BrokerChangeRecord, "0-3"),
    MetadataKind.BEGIN_TRANSACTION: SchemaMessage(_boundary(Boundary.BEGIN), "0"),
    MetadataKind.END_TRANSACTION: SchemaMessage(_boundary(Boundary.END), "0"),
    MetadataKind.ABORT_TRANSACTION: SchemaMessage(_boundary(Boundary.ABORT), "0"),
    MetadataKind.CLEAR_ELR: SchemaMessage(ClearElrRecord, "0"),
}
"""The kinds that are needed."""
