"""Records of the metadata log: what a controller writes about its cluster (`MetadataRecordSerde`, metadata version 4.3-IV0).

Each function returns the value of one record; keys are null. The fields follow the order of Kafka's message schemas.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID

from streaming.kafka.formats.wire import uvarint
from streaming.simulator.batch_writer import Batch, MarkerKind, Record, control_key

_NO_TAGS = b"\x00"
_FRAME_VERSION = 1

UNASSIGNED_DIRECTORY = UUID(int=1)
METADATA_TOPIC_ID = UUID(int=1)


def metadata_batch(values: Sequence[bytes], timestamp: int) -> Batch:
    """A batch of metadata records."""
    return Batch(records=tuple(Record(None, value, timestamp) for value in values))


def topic_record(name: str, topic_id: UUID) -> bytes:
    """A topic comes into being."""
    return frame(2, 0) + string(name) + topic_id.bytes + _NO_TAGS


def frame(key: int, version: int) -> bytes:
    """The beginning of a record of metadata."""
    return uvarint(_FRAME_VERSION) + uvarint(key) + uvarint(version)


def string(text: str | None) -> bytes:
    """A compact string, nullable."""
    return uvarint(0) if text is None else uvarint(len(text.encode()) + 1) + text.encode()


def partition_record(partition: ReplicaSet, version: int = 2) -> bytes:
    """A partition of a topic: version 0 to 3.6, 1 from 3.7, 2 from 4.0."""
    fields = [
        struct.pack(">i", partition.partition),
        partition.topic_id.bytes,
        _ints(partition.replicas),
        _ints(partition.isr),
        _ints(()),  # being removed
        _ints(()),  # being added
        struct.pack(">iii", partition.leader, partition.leader_epoch, partition.partition_epoch),
    ]
    if version >= 1:
        fields.append(_uuids(partition.directories))
    return frame(3, version) + b"".join(fields) + _NO_TAGS


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSet:
    """A partition's registration."""

    partition: int
    topic_id: UUID
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    directories: tuple[UUID, ...] = ()


def _ints(values: Sequence[int]) -> bytes:
    return _array([struct.pack(">i", value) for value in values])


def _array(items: Sequence[bytes]) -> bytes:
    return uvarint(len(items) + 1) + b"".join(items)


def _uuids(values: Sequence[UUID]) -> bytes:
    return _array([value.bytes for value in values])


def partition_change_record(
    partition: int,
    topic_id: UUID,
    *,
    isr: Sequence[int] | None = None,
    leader: int | None = None,
    replicas: Sequence[int] | None = None,
    removing: Sequence[int] | None = None,
    adding: Sequence[int] | None = None,
    recovering: bool | None = None,
    eligible: Sequence[int] | None = None,
    last_eligible: Sequence[int] | None = None,
    directories: Sequence[UUID] | None = None,
    version: int = 2,
) -> bytes:
    """The changes of a partition; a leader, even the same one, means a new leader epoch. ``eligible``: the eligible leader replicas."""
    brokers = {0: isr, 2: replicas, 3: removing, 4: adding, 6: eligible, 7: last_eligible}
    tags = [(tag, _ints(some)) for tag, some in brokers.items() if some is not None]
    if leader is not None:
        tags.append((1, struct.pack(">i", leader)))
    if recovering is not None:
        tags.append((5, struct.pack(">b", recovering)))
    if directories is not None:
        tags.append((8, _uuids(directories)))
    tags.sort()
    return frame(5, version) + struct.pack(">i", partition) + topic_id.bytes + tagged(tags)


def tagged(fields: Sequence[tuple[int, bytes]]) -> bytes:
    """The tagged fields that end a structure."""
    return uvarint(len(fields)) + b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in fields)


def config_record(resource: ConfigResource, resource_name: str, name: str, value: str | None) -> bytes:
    """A config is set, or removed with None. The empty resource name of a broker is the cluster's default."""
    return frame(4, 0) + struct.pack(">b", resource) + string(resource_name) + string(name) + string(value) + _NO_TAGS


class ConfigResource(IntEnum):
    """The owner of a config."""

    TOPIC = 2
    BROKER = 4


def feature_level_record(name: str, level: int) -> bytes:
    """A feature is set to a level."""
    return frame(12, 0) + string(name) + struct.pack(">h", level) + _NO_TAGS


def no_op_record() -> bytes:
    """The controller's heartbeat."""
    return frame(20, 0) + _NO_TAGS


def begin_transaction_record(name: str) -> bytes:
    """The records up to the end of the transaction apply together."""
    return frame(23, 0) + tagged([(0, string(name))])


def end_transaction_record() -> bytes:
    """They apply now."""
    return frame(24, 0) + _NO_TAGS


def producer_ids_record(broker_id: int, broker_epoch: int, next_producer_id: int) -> bytes:
    """A broker was given the producer ids below this one."""
    return frame(15, 0) + struct.pack(">iqq", broker_id, broker_epoch, next_producer_id) + _NO_TAGS


def register_controller_record(controller_id: int, incarnation_id: UUID, endpoint: Listener, features: Sequence[Feature]) -> bytes:
    """A controller has started."""
    return (
        frame(27, 0)
        + struct.pack(">i", controller_id)
        + incarnation_id.bytes
        + b"\x00"  # not ready for a migration from ZooKeeper
        + _array([_endpoint(endpoint)])
        + _array([_feature(feature) for feature in features])
        + _NO_TAGS
    )


@dataclass(frozen=True, slots=True)
class Listener:
    """A plaintext listener."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature that a node supports, with its range of levels."""

    name: str
    min_level: int
    max_level: int


def _endpoint(endpoint: Listener) -> bytes:
    return string(endpoint.name) + string(endpoint.host) + struct.pack(">Hh", endpoint.port, 0) + _NO_TAGS


def _feature(feature: Feature) -> bytes:
    return string(feature.name) + struct.pack(">hh", feature.min_level, feature.max_level) + _NO_TAGS


def register_broker_record(
    broker_id: int, incarnation_id: UUID, broker_epoch: int, endpoint: Listener, features: Sequence[Feature], log_dirs: Sequence[UUID]
) -> bytes:
    """A broker has registered, still fenced."""
    return (
        frame(0, 4)
        + struct.pack(">i?", broker_id, False)
        + incarnation_id.bytes
        + struct.pack(">q", broker_epoch)
        + _array([_endpoint(endpoint)])
        + _array([_feature(feature) for feature in features])
        + string(None)  # rack
        + struct.pack(">??", True, False)
        + tagged([(0, _uuids(log_dirs))])
    )


def unfence_record(broker_id: int, broker_epoch: int) -> bytes:
    """A fenced broker serves again (a BrokerRegistrationChangeRecord)."""
    return frame(17, 0) + struct.pack(">iq", broker_id, broker_epoch) + tagged([(0, struct.pack(">b", -1))])


def leader_change_batch(leader: int, timestamp: int) -> Batch:
    """The first batch of a quorum of one: its only voter leads."""
    voters = _array([struct.pack(">i", leader) + _NO_TAGS])
    return _control_batch(MarkerKind.LEADER_CHANGE, struct.pack(">hi", 0, leader) + voters + voters + _NO_TAGS, timestamp)


def _control_batch(kind: MarkerKind, value: bytes, timestamp: int) -> Batch:
    return Batch(records=(Record(control_key(kind), value, timestamp),), control=True)


def snapshot_header_batch(timestamp: int) -> Batch:
    """Opens a snapshot of the metadata."""
    return _control_batch(MarkerKind.SNAPSHOT_HEADER, struct.pack(">hq", 0, 0) + _NO_TAGS, timestamp)


def snapshot_footer_batch(timestamp: int) -> Batch:
    """Closes it; without a footer a snapshot is not complete."""
    return _control_batch(MarkerKind.SNAPSHOT_FOOTER, struct.pack(">h", 0) + _NO_TAGS, timestamp)
