"""Groups as `__consumer_offsets` stores them: classic, of the newer consumer protocol, share groups (`GroupCoordinatorRecordSerde`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from streaming.kafka.formats.wire import Int8, Int32, Int64, SchemaMessage, Uuid, tagged, versions

_T = TypeVar("_T")


class KeyType(IntEnum):
    """The types of keys in `__consumer_offsets` (`CoordinatorRecordType`).

    Groups of the newer consumer protocol as `__consumer_offsets` stores them (`GroupCoordinatorRecordSerde`, `ConsumerGroup*Value`).
    A key is `type i16` and then plain. A value is `version i16 (0)` and a flexible message. Timeouts are milliseconds, times Unix
    milliseconds.
    """

    LEGACY_OFFSET_COMMIT = 0
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2
    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    SHARE_GROUP_MEMBER_METADATA = 10
    SHARE_GROUP_METADATA = 11
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = 12
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = 13
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = 14
    SHARE_GROUP_STATE_PARTITION_METADATA = 15
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16
    STREAMS_GROUP_METADATA = 17
    STREAMS_GROUP_MEMBER_METADATA = 19
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = 20
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = 21
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = 22
    STREAMS_GROUP_TOPOLOGY = 23


@dataclass(frozen=True, slots=True)
class ConsumerGroupKey:
    """The key of a record about a group; the type shows what the record contains."""

    key_type: KeyType
    group: str


def read_group_metadata(value: bytes) -> GroupMetadata:
    """Parse the value of a group's record that is no tombstone.

    Raises:
        FormatError: it is damaged, or of a version that is not known.
    """
    return _VALUE.read(value, "group metadata")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member. `subscription` and `assignment` are bytes of its own protocol, which brokers do not parse.

    A group of the classic protocol as `__consumer_offsets` stores it (`GroupMetadataValue`). The value is `version i16` and
    `GroupMetadata`. Times are Unix milliseconds, timeouts milliseconds.
    """

    member_id: str
    group_instance_id: str | None = versions("3+", None)
    client_id: str
    client_host: str
    rebalance_timeout_ms: Int32 = versions("1+", -1)
    session_timeout_ms: Int32
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadata:
    """A generation of a group; -1 is used for a time that the version does not have."""

    protocol_type: str
    generation: Int32
    protocol: str | None
    leader: str | None
    current_state_timestamp: Int64 = versions("2+", -1)
    members: tuple[GroupMember, ...]


_VALUE = SchemaMessage(GroupMetadata, "0-4", flexible="4+")


@dataclass(frozen=True, slots=True)
class ConsumerGroupMemberKey:
    """The key of a record about a member."""

    key_type: KeyType
    group: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ConsumerGroupRegexKey:
    """The key of a regular expression that members subscribe to."""

    key_type: KeyType
    group: str
    regular_expression: str


AnyConsumerGroupKey = ConsumerGroupKey | ConsumerGroupMemberKey | ConsumerGroupRegexKey


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """A group: its epoch, and the hash of its topics' metadata, 0 before Kafka 4.1."""

    epoch: Int32
    metadata_hash: Int64 = tagged(0, "0+", 0)


@dataclass(frozen=True, slots=True)
class PartitionRacks:
    """The racks of a partition's replicas."""

    partition: Int32
    racks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribedTopic:
    """A topic that members subscribe to, with the number of its partitions."""

    topic_id: Uuid
    topic: str
    partitions: Int32
    partition_racks: tuple[PartitionRacks, ...]


@dataclass(frozen=True, slots=True)
class SubscribedTopics:
    """The topics of a group as it knew them, before Kafka 4.1."""

    topics: tuple[SubscribedTopic, ...]


@dataclass(frozen=True, slots=True)
class ClassicProtocol:
    """A protocol that a member of the classic kind offers. Of `metadata`, brokers only read its subscription."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """The stored facts about a member that uses the classic protocol."""

    session_timeout_ms: Int32
    protocols: tuple[ClassicProtocol, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMember:
    """A member as it has described itself."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    topic_regex: str | None
    rebalance_timeout_ms: Int32
    server_assignor: str | None
    classic: ClassicMember | None = tagged(0, "0+", None)


@dataclass(frozen=True, slots=True)
class TargetAssignment:
    """The epoch of a group's target assignment, and when it was made (-1 before Kafka 4.3)."""

    epoch: Int32
    timestamp: Int64 = tagged(0, "0+", -1)


@dataclass(frozen=True, slots=True)
class AssignedPartitions:
    """Partitions of one topic. `epochs` are the epochs in which they were assigned, one for each partition, None before Kafka 4.3."""

    topic_id: Uuid
    partitions: tuple[Int32, ...]
    epochs: tuple[Int32, ...] | None = tagged(0, "0+", None)


@dataclass(frozen=True, slots=True)
class TargetPartitions:
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: tuple[Int32, ...]


@dataclass(frozen=True, slots=True)
class TargetMember:
    """The partitions that a member is to be assigned."""

    partitions: tuple[TargetPartitions, ...]


@dataclass(frozen=True, slots=True)
class CurrentMember:
    """The partitions that a member is assigned, and those that it still has to give back; `state` as in `MemberState`, a number."""

    epoch: Int32
    previous_epoch: Int32
    state: Int8
    assigned: tuple[AssignedPartitions, ...]
    revoked: tuple[AssignedPartitions, ...]


@dataclass(frozen=True, slots=True)
class RegexTopics:
    """The topics that a regular expression matched, with the version of the metadata that was used."""

    topics: tuple[str, ...]
    version: Int64
    timestamp: Int64


GroupRecordKind = tuple[type[AnyConsumerGroupKey], SchemaMessage[_T]]
"""How a record is read: the class of its key, and its value."""


ConsumerGroupValue = ConsumerGroup | SubscribedTopics | ConsumerGroupMember | TargetAssignment | TargetMember | CurrentMember | RegexTopics


CONSUMER_GROUP_RECORDS: dict[KeyType, GroupRecordKind[ConsumerGroupValue]] = {
    KeyType.CONSUMER_GROUP_METADATA: (ConsumerGroupKey, SchemaMessage(ConsumerGroup, "0")),
    KeyType.CONSUMER_GROUP_PARTITION_METADATA: (ConsumerGroupKey, SchemaMessage(SubscribedTopics, "0")),
    KeyType.CONSUMER_GROUP_MEMBER_METADATA: (ConsumerGroupMemberKey, SchemaMessage(ConsumerGroupMember, "0")),
    KeyType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: (ConsumerGroupKey, SchemaMessage(TargetAssignment, "0")),
    KeyType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: (ConsumerGroupMemberKey, SchemaMessage(TargetMember, "0")),
    KeyType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: (ConsumerGroupMemberKey, SchemaMessage(CurrentMember, "0")),
    KeyType.CONSUMER_GROUP_REGULAR_EXPRESSION: (ConsumerGroupRegexKey, SchemaMessage(RegexTopics, "0")),
}
"""The records by the types of their keys."""


@dataclass(frozen=True, slots=True)
class ShareGroupMember:
    """A member as it has described itself.

    Share groups as `__consumer_offsets` stores them (`ShareGroup*Value`, KIP-932): the group and its members, not what it has read.
    Keys and values are encoded as those of `consumer_groups`. The offsets of a share group are in another topic: `share_group_state`.
    """

    rack_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShareGroup:
    """A group: its epoch, and the hash of its topics' metadata."""

    epoch: Int32
    metadata_hash: Int64


@dataclass(frozen=True, slots=True)
class CurrentShareMember:
    """The partitions that a member is assigned; `state` as in `MemberState`, a number."""

    epoch: Int32
    previous_epoch: Int32
    state: Int8
    assigned: tuple[TargetPartitions, ...]


@dataclass(frozen=True, slots=True)
class SharePartitions:
    """Partitions of one topic."""

    topic_id: Uuid
    topic: str
    partitions: tuple[Int32, ...]


@dataclass(frozen=True, slots=True)
class ShareTopic:
    """One topic."""

    topic_id: Uuid
    topic: str


@dataclass(frozen=True, slots=True)
class SharedPartitions:
    """The partitions whose state in `__share_group_state` is being made, exists, or is being deleted."""

    initializing_topics: tuple[SharePartitions, ...]
    initialized_topics: tuple[SharePartitions, ...]
    deleting_topics: tuple[ShareTopic, ...]


ShareGroupValue = ShareGroupMember | ShareGroup | TargetAssignment | TargetMember | CurrentShareMember | SharedPartitions


SHARE_GROUP_RECORDS: dict[KeyType, GroupRecordKind[ShareGroupValue]] = {
    KeyType.SHARE_GROUP_MEMBER_METADATA: (ConsumerGroupMemberKey, SchemaMessage(ShareGroupMember, "0")),
    KeyType.SHARE_GROUP_METADATA: (ConsumerGroupKey, SchemaMessage(ShareGroup, "0")),
    KeyType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: (ConsumerGroupKey, SchemaMessage(TargetAssignment, "0")),
    KeyType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: (ConsumerGroupMemberKey, SchemaMessage(TargetMember, "0")),
    KeyType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: (ConsumerGroupMemberKey, SchemaMessage(CurrentShareMember, "0")),
    KeyType.SHARE_GROUP_STATE_PARTITION_METADATA: (ConsumerGroupKey, SchemaMessage(SharedPartitions, "0")),
}
"""The records by the types of their keys."""
