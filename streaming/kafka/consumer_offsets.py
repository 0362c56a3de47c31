"""The records of `__consumer_offsets`: committed offsets and groups (`GroupCoordinatorRecordSerde`, `OffsetCommitValue`).

Key: `type i16`, then plain fields: 0 and 1 `group string, topic string, partition i32` (the same identity), 2 and above `group string`
and more. A null value deletes what the key names. Value of an offset commit: `version i16`, then::

    0, 2  offset i64 | metadata string | commit_timestamp i64
    1     offset i64 | metadata string | commit_timestamp i64 | expire_timestamp i64
    3     offset i64 | leader_epoch i32 | metadata string | commit_timestamp i64
    4     as 3, flexible, with the tagged field 0 topic_id uuid

A group of the newer protocol takes several records: `consumer_groups`. Commits in transactional batches count only from the COMMIT marker
of their producer in the same partition on. Times are Unix milliseconds.
"""

from dataclasses import dataclass

from streaming.errors import FormatError
from streaming.kafka.consumer_groups import (
    AnyConsumerGroupKey,
    ConsumerGroupValue,
    KeyType,
    read_consumer_group_key,
    read_consumer_group_value,
)
from streaming.kafka.group_metadata import GroupMetadata, read_group_metadata
from streaming.kafka.wire import PlainReader, Reader

_NEWEST_COMMIT, _FLEXIBLE_COMMIT = 4, 4


@dataclass(frozen=True, slots=True)
class OffsetCommitKey:
    """The key of an offset that a group committed for a partition."""

    group: str
    topic: str
    partition: int


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


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommit:
    """A committed offset: the next one that the group reads. -1 means "none", `topic_id` is None before version 4."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: str | None


OffsetsValue = OffsetCommit | GroupMetadata | ConsumerGroupValue | bytes


def read_offsets_key(key: bytes) -> OffsetsKey:
    """Parse the key of a record. Raises FormatError for a damaged one."""
    reader = PlainReader(key)
    key_type = reader.int16()
    found: OffsetsKey | None
    if key_type in (KeyType.LEGACY_OFFSET_COMMIT, KeyType.OFFSET_COMMIT):
        found = OffsetCommitKey(reader.string(), reader.string(), reader.int32())
    elif key_type == KeyType.GROUP_METADATA:
        found = GroupKey(reader.string())
    else:
        found = read_consumer_group_key(key_type, reader)
    if found is None:
        return OtherKey(key_type, key[2:])
    reader.end()
    return found


def read_offsets_value(key: OffsetsKey, value: bytes) -> OffsetsValue:
    """Parse the value of a record that is no tombstone. If the key is not parsed, return the value unchanged.

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
            return read_consumer_group_value(key, value)


def read_offset_commit(value: bytes) -> OffsetCommit:
    """Parse the value of an offset commit, versions 0 to 4. Raises FormatError as `read_offsets_value` does."""
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
