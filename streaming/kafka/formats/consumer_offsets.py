"""The records of `__consumer_offsets`: committed offsets and groups (`GroupCoordinatorRecordSerde`, `OffsetCommitValue`).

The key is `type i16` and then plain; types 0 and 1 are the same identity. A null value deletes what the key names. The value is `version
i16` and the message.
A group of a newer protocol takes several records: `consumer_groups`, `share_groups`, `streams_groups`. Commits in transactional batches
count only from the COMMIT marker of their producer in the same partition on. Times are Unix milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streaming.kafka.formats.stored_groups import (
    CONSUMER_GROUP_RECORDS,
    SHARE_GROUP_RECORDS,
    AnyConsumerGroupKey,
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    ConsumerGroupValue,
    GroupMetadata,
    GroupRecordKind,
    KeyType,
    ShareGroupValue,
    TargetAssignment,
    read_group_metadata,
)
from streaming.kafka.formats.wire import (
    Int8,
    Int16,
    Int32,
    Int64,
    PlainReader,
    Reader,
    SchemaMessage,
    Uint16,
    Uuid,
    structure,
    tagged,
    versions,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommit:
    """A committed offset: the next one that the group reads. -1 means "none", `topic_id` is None before version 4."""

    offset: Int64
    leader_epoch: Int32 = versions("3+", -1)
    metadata: str
    commit_timestamp: Int64
    expire_timestamp: Int64 = versions("1", -1)
    topic_id: Uuid | None = tagged(0, "4+", None)


def read_key_type(key: bytes) -> int:
    """The type of a record by its key, one of `KeyType` or a newer one. Raises FormatError for a damaged key."""
    return PlainReader(key).int16()


def read_offsets_key(key: bytes) -> OffsetsKey:
    """Parse the key of a record. Raises FormatError for a damaged one."""
    reader = PlainReader(key)
    key_type = reader.int16()
    if key_type not in _KEYS:
        return OtherKey(key_type, key[2:])
    found = _KEYS[key_type](reader)
    reader.end()
    return found


@dataclass(frozen=True, slots=True)
class OffsetCommitKey:
    """The key of an offset that a group committed for a partition."""

    group: str
    topic: str
    partition: Int32


@dataclass(frozen=True, slots=True)
class GroupKey:
    """The key of a group of the classic protocol."""

    group: str


@dataclass(frozen=True, slots=True)
class OtherKey:
    """A key that is not parsed: `key_type` is its type, a `KeyType` if it is known; `data` is the part after the type."""

    key_type: int
    data: bytes


OffsetsKey = OffsetCommitKey | GroupKey | AnyConsumerGroupKey | OtherKey


@dataclass(frozen=True, slots=True)
class KeyValue:
    """A setting or a tag."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class StreamsGroup:
    """A group: its epoch, the hash of its topics' metadata, and the epoch of the topology whose topics were found to exist.

    From Kafka 4.4 on (KIP-1331): the topology epochs whose description a broker's plugin has stored (-2: it is not certain), or refused.
    """

    epoch: Int32
    metadata_hash: Int64
    validated_topology_epoch: Int32 = tagged(0, "0+", -1)
    last_assignment_configs: tuple[KeyValue, ...] | None = tagged(1, "0+", None)
    stored_description_topology_epoch: Int32 = tagged(2, "0+", -1)
    failed_description_topology_epoch: Int32 = tagged(3, "0+", -1)


@dataclass(frozen=True, slots=True)
class StreamsEndpoint:
    """The address at which an instance answers interactive queries."""

    host: str
    port: Uint16


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupMember:
    """A member as it has described itself; several members may belong to one process."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: Int32
    topology_epoch: Int32
    process_id: str
    user_endpoint: StreamsEndpoint | None
    client_tags: tuple[KeyValue, ...]


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks of one subtopology; `epochs` one for each partition, for active tasks that are assigned."""

    subtopology_id: str
    partitions: tuple[Int32, ...]
    epochs: tuple[Int32, ...] | None = tagged(0, "0+", None)


@dataclass(frozen=True, slots=True)
class TargetStreamsMember:
    """The tasks that a member is to be assigned."""

    active_tasks: tuple[Tasks, ...]
    standby_tasks: tuple[Tasks, ...]
    warmup_tasks: tuple[Tasks, ...]


@dataclass(frozen=True, slots=True)
class CurrentStreamsMember:
    """The tasks that a member is assigned, and those that it still has to give back; `state` as in streams' `MemberState`, a number."""

    epoch: Int32
    previous_epoch: Int32
    state: Int8
    active_tasks: tuple[Tasks, ...]
    standby_tasks: tuple[Tasks, ...]
    warmup_tasks: tuple[Tasks, ...]
    active_tasks_pending_revocation: tuple[Tasks, ...]
    standby_tasks_pending_revocation: tuple[Tasks, ...]
    warmup_tasks_pending_revocation: tuple[Tasks, ...]


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic that the application makes for itself; 0 partitions or replicas: not prescribed."""

    name: str
    partitions: Int32
    replication_factor: Int16
    topic_configs: tuple[KeyValue, ...]


@dataclass(frozen=True, slots=True)
class CopartitionGroup:
    """Topics of a subtopology that must have as many partitions, by their indexes in it."""

    source_topics: tuple[Int16, ...]
    source_topic_regex: tuple[Int16, ...]
    repartition_source_topics: tuple[Int16, ...]


@dataclass(frozen=True, slots=True)
class Subtopology:
    """A part of a topology: what it reads and writes."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    source_topic_regex: tuple[str, ...]
    state_changelog_topics: tuple[InternalTopic, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[InternalTopic, ...]
    copartition_groups: tuple[CopartitionGroup, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """The topology of an application."""

    epoch: Int32
    subtopologies: tuple[Subtopology, ...]


StreamsGroupValue = StreamsGroup | StreamsGroupMember | TargetAssignment | TargetStreamsMember | CurrentStreamsMember | Topology


STREAMS_GROUP_RECORDS: dict[KeyType, GroupRecordKind[StreamsGroupValue]] = {
    KeyType.STREAMS_GROUP_METADATA: (ConsumerGroupKey, SchemaMessage(StreamsGroup, "0")),
    KeyType.STREAMS_GROUP_MEMBER_METADATA: (ConsumerGroupMemberKey, SchemaMessage(StreamsGroupMember, "0")),
    KeyType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: (ConsumerGroupKey, SchemaMessage(TargetAssignment, "0")),
    KeyType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: (ConsumerGroupMemberKey, SchemaMessage(TargetStreamsMember, "0")),
    KeyType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: (ConsumerGroupMemberKey, SchemaMessage(CurrentStreamsMember, "0")),
    KeyType.STREAMS_GROUP_TOPOLOGY: (ConsumerGroupKey, SchemaMessage(Topology, "0")),
}
"""The records by the types of their keys."""


NewerGroupValue = ConsumerGroupValue | ShareGroupValue | StreamsGroupValue


_NEWER_GROUPS: dict[KeyType, GroupRecordKind[NewerGroupValue]] = {
    **CONSUMER_GROUP_RECORDS,
    **SHARE_GROUP_RECORDS,
    **STREAMS_GROUP_RECORDS,
}


_KEYS: dict[int, Callable[[Reader], OffsetsKey]] = {
    KeyType.LEGACY_OFFSET_COMMIT: structure(OffsetCommitKey),
    KeyType.OFFSET_COMMIT: structure(OffsetCommitKey),
    KeyType.GROUP_METADATA: structure(GroupKey),
    **{key_type: structure(kind, key_type=key_type) for key_type, (kind, _) in _NEWER_GROUPS.items()},
}


def read_offsets_value(key: OffsetsKey, value: bytes) -> OffsetsValue:
    """Parse the value of a record that is no tombstone. If the key is not parsed, return the value unchanged.

    Streams groups as `__consumer_offsets` stores them (`StreamsGroup*Value`, KIP-1071): the group, its members, and its topology.
    Keys and values are encoded as those of `consumer_groups`. Streams groups commit offsets as consumer groups do.

    Raises:
        FormatError: it is damaged, or of a version that is not known.
    """
    match key:
        case OffsetCommitKey():
            return read_offset_commit(value)
        case GroupKey():
            return read_group_metadata(value)
        case OtherKey():
            return value
        case _:
            return _NEWER_GROUPS[key.key_type][1].read(value, key.key_type.name)


OffsetsValue = OffsetCommit | GroupMetadata | NewerGroupValue | bytes


def read_offset_commit(value: bytes) -> OffsetCommit:
    """Parse the value of an offset commit, versions 0 to 4. Raises FormatError as `read_offsets_value` does."""
    return _OFFSET_COMMIT.read(value, "offset commit")


_OFFSET_COMMIT = SchemaMessage(OffsetCommit, "0-4", flexible="4+")
