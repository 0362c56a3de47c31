"""The records of the metadata log: bytes in, values out; and what they make of the registration of a broker."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import Annotated

from streaming.errors import FormatError
from streaming.kafka.formats.metadata_partitions import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
)
from streaming.kafka.formats.properties import READABLE_KEYS
from streaming.kafka.formats.wire import Int16, Int32, Int64, Reader, SchemaMessage, Uint16, Uuid, tagged, versions

_INTERNAL = re.compile("(?i)controller|replication|inter.?broker|internal")
"""Names of listeners that are mostly not for clients. No registration contains which listener brokers use among themselves."""

_FRAME_VERSION = 1


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


def _read_fencing(reader: Reader) -> bool | None:
    """Read a `BrokerRegistrationFencingChange`: -1 unfenced, 0 no change, 1 fenced."""
    change = reader.int8()
    return None if change == 0 else change > 0


def _read_shutdown(reader: Reader) -> bool:
    """Read a `BrokerRegistrationInControlledShutdownChange`: 0 no change, 1 begun."""
    return reader.int8() > 0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address at which a broker listens; `security_protocol` is its number (`SecurityProtocol`)."""

    name: str
    host: str
    port: Uint16
    security_protocol: Int16


@dataclass(frozen=True, slots=True)
class BrokerFeature:
    """A feature with the levels that a broker supports."""

    name: str
    min_supported_version: Int16
    max_supported_version: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord:
    """A broker has registered. `log_dirs` are the directory ids of its log dirs, empty before Kafka 3.7."""

    broker_id: Int32
    is_migrating_zk_broker: bool = versions("2+", False)
    incarnation_id: Uuid
    broker_epoch: Int64
    endpoints: tuple[Endpoint, ...]
    features: tuple[BrokerFeature, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool = versions("1+", False)
    log_dirs: tuple[Uuid, ...] = tagged(0, "3+", ())
    cordoned_log_dirs: tuple[Uuid, ...] = tagged(1, "4+", ())

    @property
    def metadata_version(self) -> int:
        """The highest `metadata.version` that its binaries support, -1 if it names none."""
        supported = {feature.name: feature.max_supported_version for feature in self.features}
        return supported.get("metadata.version", -1)


@dataclass(frozen=True, slots=True)
class UnregisterBrokerRecord:
    """A broker has left for good."""

    broker_id: Int32
    broker_epoch: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerChangeRecord:
    """A broker has changed; None means "as before". Controlled shutdown can only begin: it ends with the next registration."""

    broker_id: Int32
    broker_epoch: Int64
    fenced: Annotated[bool | None, _read_fencing] = tagged(0, "0+", None)
    in_controlled_shutdown: Annotated[bool, _read_shutdown] = tagged(1, "1+", False)
    log_dirs: tuple[Uuid, ...] | None = tagged(2, "2+", None)
    cordoned_log_dirs: tuple[Uuid, ...] | None = tagged(3, "3+", None)


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

    `hidden` is set if the key is not one that may be read. Then a `value` that was set is "", whatever the log contains.
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


def _frame(reader: Reader) -> MetadataFrame:
    version = reader.uvarint()
    if version != _FRAME_VERSION:
        raise FormatError(f"metadata frame version {version} is not known")
    return MetadataFrame(reader.uvarint(), reader.uvarint())


@dataclass(frozen=True, slots=True)
class MetadataFrame:
    """The part before the message of a record: its kind, a `MetadataKind` unless it is newer, and the message's version."""

    kind: int
    version: int


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


def _read_config(reader: Reader) -> ConfigRecord:
    """Read a ConfigRecord. It has a reader of its own, so that a value that may be a secret is skipped and never read."""
    resource_type, resource, name = reader.int8(), reader.string(), reader.string()
    if name not in READABLE_KEYS:
        value, hidden = ("" if reader.skip_string() else None), True
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


def registered(record: RegisterBrokerRecord, at_ms: int, before: BrokerState | None = None) -> BrokerState:
    """The state of a broker that has just registered. If it registers repeatedly without serving, it is starting since the first time."""
    goes_on = before is not None and before.phase is Phase.STARTING and record.fenced
    return BrokerState(
        broker_id=record.broker_id,
        broker_epoch=record.broker_epoch,
        rack=record.rack,
        endpoints=record.endpoints,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=record.log_dirs,
        cordoned_log_dirs=record.cordoned_log_dirs,
        metadata_version=record.metadata_version,
        served=not record.fenced,
        since_ms=before.since_ms if goes_on and before is not None else at_ms,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerState:
    """A registered broker. A fenced one serves nothing; one in controlled shutdown is moving its leaderships to others.

    The registration of a broker, and the records of the metadata log that create and change it (`BrokerRegistration`).

    `log_dirs` are directory ids, as in `meta.properties`, empty before Kafka 3.7; `cordoned_log_dirs` take no new replicas (4.3).
    `metadata_version` as in `RegisterBrokerRecord`.
    `broker_epoch` changes with each registration. `served`: it has been unfenced since it registered; None for a fenced broker from a
    snapshot, which does not contain this. `since_ms`: the latest possible time of the last change of fencing or shutdown, Unix milliseconds
    by the controller's clock.
    """

    broker_id: int
    rack: str | None
    endpoints: tuple[Endpoint, ...]
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[str, ...]
    cordoned_log_dirs: tuple[str, ...]
    metadata_version: int = -1
    broker_epoch: int = field(default=-1, compare=False)
    served: bool | None = field(default=None, compare=False)  # a snapshot does not fully contain this field and the next
    since_ms: int = field(default=-1, compare=False)

    @property
    def phase(self) -> Phase | None:
        """The phase of the broker; None if it is fenced and known from a snapshot only: then it may be starting or down."""
        if self.in_controlled_shutdown:
            return Phase.STOPPING
        if not self.fenced:
            return Phase.RUNNING
        if self.served is None:
            return None
        return Phase.DOWN if self.served else Phase.STARTING


class Phase(StrEnum):
    """The phase of a registered broker. After a clean stop, a broker stays ``STOPPING`` until it registers again."""

    RUNNING = "running"
    STARTING = "starting"  # registered again, and not unfenced since
    STOPPING = "stopping"  # in controlled shutdown, or ended by one
    DOWN = "down"  # fenced after it had served: no heartbeats, or it was stopped while it led nothing, which looks the same


def of_snapshot(broker: BrokerState) -> BrokerState:
    """The state of a broker from a snapshot: its registration there contains all changes since it registered."""
    return replace(broker, served=None if broker.fenced else True)


def changed(broker: BrokerState, change: BrokerChangeRecord, at_ms: int) -> BrokerState:
    """The state after a change."""
    fenced = broker.fenced if change.fenced is None else change.fenced
    moved = fenced != broker.fenced or (change.in_controlled_shutdown and not broker.in_controlled_shutdown)
    return replace(
        broker,
        fenced=fenced,
        served=broker.served if fenced else True,
        since_ms=at_ms if moved else broker.since_ms,
        in_controlled_shutdown=broker.in_controlled_shutdown or change.in_controlled_shutdown,
        log_dirs=broker.log_dirs if change.log_dirs is None else change.log_dirs,
        cordoned_log_dirs=broker.cordoned_log_dirs if change.cordoned_log_dirs is None else change.cordoned_log_dirs,
    )


def server_of_any(brokers: Iterable[BrokerState | None]) -> str:
    """The server of the first broker of which one is known, "" if none is."""
    return next(filter(None, map(server_of, brokers)), "")


def server_of(broker: BrokerState | None) -> str:
    """``HOST:PORT`` of a listener that is probably for clients, "" if none is known."""
    endpoints = () if broker is None else broker.endpoints
    chosen = min(endpoints, key=lambda each: _INTERNAL.search(each.name) is not None, default=None)
    return "" if chosen is None else f"{chosen.host}:{chosen.port}"


def read_metadata_frame(value: bytes) -> MetadataFrame:
    """Parse kind and version of the record in a value, without its message. Raises FormatError if it is no metadata record."""
    return _frame(Reader(value))
