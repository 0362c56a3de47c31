"""The records of `__consumer_offsets`: committed offsets and groups (`GroupCoordinatorRecordSerde`, `OffsetCommitValue`).

The key is `type i16` and then plain; types 0 and 1 are the same identity. A null value deletes what the key names. The value is `version
i16` and the message.
A group of a newer protocol takes several records: `consumer_groups`, `share_groups`, `streams_groups`. Commits in transactional batches
count only from the COMMIT marker of their producer in the same partition on. Times are Unix milliseconds.
"""

from collections.abc import Callable
from dataclasses import dataclass

from streaming.kafka.formats.consumer_groups import (
    CONSUMER_GROUP_RECORDS,
    AnyConsumerGroupKey,
    ConsumerGroupValue,
    GroupRecordKind,
    KeyType,
)
from streaming.kafka.formats.group_metadata import GroupMetadata, read_group_metadata
from streaming.kafka.formats.message_schema import Int32, Int64, SchemaMessage, Uuid, structure, tagged, versions
from streaming.kafka.formats.share_groups import SHARE_GROUP_RECORDS, ShareGroupValue
from streaming.kafka.formats.streams_groups import STREAMS_GROUP_RECORDS, StreamsGroupValue
from streaming.kafka.formats.wire import PlainReader, Reader


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


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommit:
    """A committed offset: the next one that the group reads. -1 means "none", `topic_id` is None before version 4."""

    offset: Int64
    leader_epoch: Int32 = versions("3+", -1)
    metadata: str
    commit_timestamp: Int64
    expire_timestamp: Int64 = versions("1", -1)
    topic_id: Uuid | None = tagged(0, "4+", None)


NewerGroupValue = ConsumerGroupValue | ShareGroupValue | StreamsGroupValue

OffsetsValue = OffsetCommit | GroupMetadata | NewerGroupValue | bytes


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
_OFFSET_COMMIT = SchemaMessage(OffsetCommit, "0-4", flexible="4+")


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
            return _NEWER_GROUPS[key.key_type][1].read(value, key.key_type.name)


def read_offset_commit(value: bytes) -> OffsetCommit:
    """Parse the value of an offset commit, versions 0 to 4. Raises FormatError as `read_offsets_value` does."""
    return _OFFSET_COMMIT.read(value, "offset commit")
