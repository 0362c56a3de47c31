"""Share groups as `__consumer_offsets` stores them (`ShareGroup*Value`, KIP-932): the group and its members, not what it has read.

Keys and values are encoded as those of `consumer_groups`. The offsets of a share group are in another topic: `share_group_state`.
"""

from dataclasses import dataclass

from streaming.kafka.formats.consumer_groups import (
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    GroupRecordKind,
    KeyType,
    TargetAssignment,
    TargetMember,
    TargetPartitions,
)
from streaming.kafka.formats.message_schema import Int8, Int32, Int64, SchemaMessage, Uuid


@dataclass(frozen=True, slots=True)
class ShareGroupMember:
    """A member as it has described itself."""

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
