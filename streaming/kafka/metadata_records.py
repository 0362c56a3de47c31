"""The records of the metadata log that say who leads what: bytes in, values out (`MetadataRecordSerde`, `common/metadata/*.json`).

Every other kind of record is skipped by its key without being opened: credentials, tokens and configurations are never read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from streaming.errors import FormatError
from streaming.kafka.wire import Reader

_FRAME_VERSION = 1
_NO_LEADER_CHANGE = -2


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A topic was created."""

    name: str
    topic_id: str


@dataclass(frozen=True, slots=True)
class RemoveTopicRecord:
    """A topic was deleted, and its partitions with it."""

    topic_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    """A partition was created. `leader` is -1 where there is none."""

    topic_id: str
    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChangeRecord:
    """A partition changed; None is "as before". A leader that is given raises the leader epoch, even the same one."""

    topic_id: str
    partition: int
    replicas: tuple[int, ...] | None
    isr: tuple[int, ...] | None
    leader: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord:
    """A broker joined; `log_dirs` are the directory ids of its log dirs, empty before Kafka 3.7."""

    broker_id: int
    fenced: bool
    log_dirs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnregisterBrokerRecord:
    """A broker left for good."""

    broker_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerChangeRecord:
    """A broker changed; None is "as before"."""

    broker_id: int
    fenced: bool | None
    log_dirs: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class FeatureLevelRecord:
    """A feature was set; level 0 is "removed"."""

    name: str
    level: int


class Boundary(StrEnum):
    """Where a metadata transaction begins and how it ends: what lies between is valid as a whole or not at all."""

    BEGIN = "begin"
    END = "end"
    ABORT = "abort"


MetadataRecord = (
    TopicRecord
    | RemoveTopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | RegisterBrokerRecord
    | UnregisterBrokerRecord
    | BrokerChangeRecord
    | FeatureLevelRecord
    | Boundary
)


def read_metadata_record(value: bytes) -> MetadataRecord | None:
    """The record in the value of a metadata log's record, or None for a kind that is not needed.

    Raises:
        FormatError: damaged, or a kind that is needed in a version that this reader does not know.
    """
    reader = Reader(value)
    frame = reader.uvarint()
    if frame != _FRAME_VERSION:
        raise FormatError(f"metadata frame version {frame} is not known")
    key, version = reader.uvarint(), reader.uvarint()
    if key not in _PARSERS:
        return None
    parse, newest = _PARSERS[key]
    if version > newest:
        raise FormatError(f"version {version} of metadata record {key} is not known")
    record = parse(reader, version)
    reader.end()
    return record


def _topic(reader: Reader, _version: int) -> TopicRecord:
    record = TopicRecord(reader.string(), reader.uuid())
    reader.skip_tagged_fields()
    return record


def _remove_topic(reader: Reader, _version: int) -> RemoveTopicRecord:
    record = RemoveTopicRecord(reader.uuid())
    reader.skip_tagged_fields()
    return record


def _partition(reader: Reader, version: int) -> PartitionRecord:
    partition, topic_id, replicas, isr = reader.int32(), reader.uuid(), reader.int32s(), reader.int32s()
    reader.int32s()  # removing replicas
    reader.int32s()  # adding replicas
    leader, leader_epoch = reader.int32(), reader.int32()
    reader.int32()  # partition epoch
    if version >= 1:
        reader.uuids()  # directories
    reader.skip_tagged_fields()
    return PartitionRecord(topic_id=topic_id, partition=partition, replicas=replicas, isr=isr, leader=leader, leader_epoch=leader_epoch)


def _partition_change(reader: Reader, _version: int) -> PartitionChangeRecord:
    partition, topic_id = reader.int32(), reader.uuid()
    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    leader: int | None = None
    for tag, content in reader.tagged_fields():
        if tag == 0:
            isr = content.int32s()
        elif tag == 1:
            leader = content.int32()
        elif tag == 2:
            replicas = content.int32s()
    leader = None if leader == _NO_LEADER_CHANGE else leader
    return PartitionChangeRecord(topic_id=topic_id, partition=partition, replicas=replicas, isr=isr, leader=leader)


def _register_broker(reader: Reader, version: int) -> RegisterBrokerRecord:
    broker_id = reader.int32()
    if version >= 2:
        reader.boolean()  # is migrating from ZooKeeper
    reader.uuid()  # incarnation
    reader.int64()  # broker epoch
    _skip_endpoints(reader)
    _skip_features(reader)
    reader.nullable_string()  # rack
    fenced = reader.boolean()
    if version >= 1:
        reader.boolean()  # in controlled shutdown
    log_dirs: tuple[str, ...] = ()
    for tag, content in reader.tagged_fields():
        if tag == 0:
            log_dirs = content.uuids()
    return RegisterBrokerRecord(broker_id=broker_id, fenced=fenced, log_dirs=log_dirs)


def _skip_endpoints(reader: Reader) -> None:
    for _ in range(reader.count()):
        reader.string()  # name
        reader.string()  # host
        reader.int16()  # port
        reader.int16()  # security protocol
        reader.skip_tagged_fields()


def _skip_features(reader: Reader) -> None:
    for _ in range(reader.count()):
        reader.string()  # name
        reader.int16()  # lowest level
        reader.int16()  # highest level
        reader.skip_tagged_fields()


def _unregister_broker(reader: Reader, _version: int) -> UnregisterBrokerRecord:
    record = UnregisterBrokerRecord(reader.int32())
    reader.int64()  # broker epoch
    reader.skip_tagged_fields()
    return record


def _fence_broker(reader: Reader, _version: int) -> BrokerChangeRecord:
    return _fenced(reader, True)


def _unfence_broker(reader: Reader, _version: int) -> BrokerChangeRecord:
    return _fenced(reader, False)


def _fenced(reader: Reader, fenced: bool) -> BrokerChangeRecord:
    record = BrokerChangeRecord(broker_id=reader.int32(), fenced=fenced, log_dirs=None)
    reader.int64()  # broker epoch
    reader.skip_tagged_fields()
    return record


def _broker_change(reader: Reader, _version: int) -> BrokerChangeRecord:
    broker_id = reader.int32()
    reader.int64()  # broker epoch
    fenced: bool | None = None
    log_dirs: tuple[str, ...] | None = None
    for tag, content in reader.tagged_fields():
        if tag == 0:
            change = content.int8()  # -1 unfenced, 0 no change, 1 fenced (BrokerRegistrationFencingChange)
            fenced = None if change == 0 else change > 0
        elif tag == 2:
            log_dirs = content.uuids()
    return BrokerChangeRecord(broker_id=broker_id, fenced=fenced, log_dirs=log_dirs)


def _feature_level(reader: Reader, _version: int) -> FeatureLevelRecord:
    record = FeatureLevelRecord(reader.string(), reader.int16())
    reader.skip_tagged_fields()
    return record


def _boundary(kind: Boundary) -> Callable[[Reader, int], Boundary]:
    def parse(reader: Reader, _version: int) -> Boundary:
        reader.skip_tagged_fields()  # a name or a reason
        return kind

    return parse


_PARSERS: dict[int, tuple[Callable[[Reader, int], MetadataRecord], int]] = {
    0: (_register_broker, 4),
    1: (_unregister_broker, 0),
    2: (_topic, 0),
    3: (_partition, 2),
    5: (_partition_change, 2),
    7: (_fence_broker, 0),
    8: (_unfence_broker, 0),
    9: (_remove_topic, 0),
    12: (_feature_level, 0),
    17: (_broker_change, 3),
    23: (_boundary(Boundary.BEGIN), 0),
    24: (_boundary(Boundary.END), 0),
    25: (_boundary(Boundary.ABORT), 0),
}
"""By record key: the parser and the newest version it knows."""
