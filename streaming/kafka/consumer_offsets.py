"""The records of `__consumer_offsets`: committed offsets and groups (`GroupCoordinatorRecordSerde`, `OffsetCommitValue`).

Key: `type i16`, then plain fields: 0 and 1 `group string, topic string, partition i32` (the same identity), 2 and above `group string`
and more. A null value deletes what the key names. Value of an offset commit: `version i16`, then::

    0, 2  offset i64 | metadata string | commit_timestamp i64
    1     offset i64 | metadata string | commit_timestamp i64 | expire_timestamp i64
    3     offset i64 | leader_epoch i32 | metadata string | commit_timestamp i64
    4     as 3, flexible, with the tagged field 0 topic_id uuid

Value of a group of the newer protocol (type 3), flexible: `version i16 (0), epoch i32`, tagged field 0 `metadata_hash i64`. Commits in
transactional batches count only from the COMMIT marker of their producer in the same partition on. Times are Unix milliseconds.
"""

from dataclasses import dataclass
from enum import IntEnum

from streaming.errors import FormatError
from streaming.kafka.group_metadata import GroupMetadata, read_group_metadata
from streaming.kafka.wire import PlainReader, Reader

_NEWEST_COMMIT, _FLEXIBLE_COMMIT = 4, 4


class KeyType(IntEnum):
    """The types of keys that exist (`CoordinatorRecordType`)."""

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
class OffsetCommitKey:
    """Names the offset that a group committed for a partition."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Names a group of the classic protocol."""

    group: str


@dataclass(frozen=True, slots=True)
class ConsumerGroupKey:
    """Names a group of the newer consumer protocol."""

    group: str


@dataclass(frozen=True, slots=True)
class OtherKey:
    """A key that is not opened: `key_type` tells its kind, by its name where it is a `KeyType`; `data` is what follows the type."""

    key_type: int
    data: bytes


OffsetsKey = OffsetCommitKey | GroupKey | ConsumerGroupKey | OtherKey


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommit:
    """A committed offset, the next one that the group reads; -1 stands for "none", `topic_id` is None before version 4."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: str | None


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """A group of the newer consumer protocol: its epoch, and the hash of its topics' metadata, 0 before Kafka 4.1."""

    epoch: int
    metadata_hash: int


OffsetsValue = OffsetCommit | GroupMetadata | ConsumerGroup | bytes


def read_offsets_key(key: bytes) -> OffsetsKey:
    """The key of a record. Raises FormatError for a damaged one."""
    reader = PlainReader(key)
    key_type = reader.int16()
    found: OffsetsKey
    if key_type in (KeyType.LEGACY_OFFSET_COMMIT, KeyType.OFFSET_COMMIT):
        found = OffsetCommitKey(reader.string(), reader.string(), reader.int32())
    elif key_type == KeyType.GROUP_METADATA:
        found = GroupKey(reader.string())
    elif key_type == KeyType.CONSUMER_GROUP_METADATA:
        found = ConsumerGroupKey(reader.string())
    else:
        return OtherKey(key_type, key[2:])
    reader.end()
    return found


def read_offsets_value(key: OffsetsKey, value: bytes) -> OffsetsValue:
    """The value of a record that is no tombstone; as it stands in the log where the key is not opened.

    Raises:
        FormatError: damaged, or of a version that is not known.
    """
    match key:
        case OffsetCommitKey():
            return read_offset_commit(value)
        case GroupKey():
            return read_group_metadata(value)
        case ConsumerGroupKey():
            return _consumer_group(value)
        case OtherKey():
            return value


def read_offset_commit(value: bytes) -> OffsetCommit:
    """The value of an offset commit, versions 0 to 4. Raises FormatError as `read_offsets_value`."""
    version = PlainReader(value).int16()
    if not 0 <= version <= _NEWEST_COMMIT:
        raise FormatError(f"offset commit of version {version} is not known")
    reader = Reader(value) if version >= _FLEXIBLE_COMMIT else PlainReader(value)
    reader.int16()  # the version
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else -1
    metadata, commit_timestamp = reader.string(), reader.int64()
    expire_timestamp = reader.int64() if version == 1 else -1
    topic_id = None
    for tag, content in reader.tagged_fields():
        if tag == 0:
            topic_id = content.uuid()
    reader.end()
    return OffsetCommit(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp=commit_timestamp,
        expire_timestamp=expire_timestamp,
        topic_id=topic_id,
    )


def _consumer_group(value: bytes) -> ConsumerGroup:
    reader = Reader(value)
    version = reader.int16()
    if version != 0:
        raise FormatError(f"consumer group of version {version} is not known")
    epoch, metadata_hash = reader.int32(), 0
    for tag, content in reader.tagged_fields():
        if tag == 0:
            metadata_hash = content.int64()
    reader.end()
    return ConsumerGroup(epoch, metadata_hash)
