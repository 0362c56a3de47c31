"""Groups of the newer consumer protocol as `__consumer_offsets` stores them (`GroupCoordinatorRecordSerde`, `ConsumerGroup*Value`).

Key: `type i16`, plain, then `group string`; types 5, 7 and 8 go on with `member_id string`, type 16 with `regular_expression string`.
Value, flexible: `version i16 (0)`, then::

    3   epoch i32, tagged field 0 metadata_hash i64
    4   topics: array of (topic_id uuid, name string, partitions i32, racks: array of (partition i32, racks array of string))
    5   instance_id, rack_id: string or null | client_id, client_host string | topics array of string | topic_regex string or null
        rebalance_timeout i32 | server_assignor string or null, tagged field 0 classic: 0 where there is none, else 1 and
        (session_timeout i32, protocols: array of (name string, metadata bytes))
    6   epoch i32, tagged field 0 timestamp i64
    7   partitions: array of (topic_id uuid, array of i32)
    8   epoch, previous_epoch i32 | state i8
        assigned, revoked: arrays of (topic_id uuid, array of i32, tagged field 0 epochs array of i32)
    16  topics array of string | version i64 | timestamp i64

Timeouts are milliseconds, times Unix milliseconds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from streaming.errors import FormatError
from streaming.kafka.wire import Reader


class KeyType(IntEnum):
    """The types of keys in `__consumer_offsets` (`CoordinatorRecordType`)."""

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

    epoch: int
    metadata_hash: int


@dataclass(frozen=True, slots=True)
class PartitionRacks:
    """The racks of a partition's replicas."""

    partition: int
    racks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribedTopic:
    """A topic that members subscribe to, with the number of its partitions."""

    topic_id: str
    topic: str
    partitions: int
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

    session_timeout_ms: int
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
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic: ClassicMember | None


@dataclass(frozen=True, slots=True)
class TargetAssignment:
    """The epoch of a group's target assignment, and when it was made (-1 before Kafka 4.3)."""

    epoch: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class AssignedPartitions:
    """Partitions of one topic. `epochs` are the epochs in which they were assigned, one for each partition, None before Kafka 4.3."""

    topic_id: str
    partitions: tuple[int, ...]
    epochs: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class TargetMember:
    """The partitions that a member is to be assigned."""

    partitions: tuple[AssignedPartitions, ...]


@dataclass(frozen=True, slots=True)
class CurrentMember:
    """The partitions that a member is assigned, and those that it still has to give back; `state` as in `MemberState`, a number."""

    epoch: int
    previous_epoch: int
    state: int
    assigned: tuple[AssignedPartitions, ...]
    revoked: tuple[AssignedPartitions, ...]


@dataclass(frozen=True, slots=True)
class RegexTopics:
    """The topics that a regular expression matched, with the version of the metadata that was used."""

    topics: tuple[str, ...]
    version: int
    timestamp: int


ConsumerGroupValue = ConsumerGroup | SubscribedTopics | ConsumerGroupMember | TargetAssignment | TargetMember | CurrentMember | RegexTopics


def read_consumer_group_key(key_type: int, reader: Reader) -> AnyConsumerGroupKey | None:
    """Parse the part of a key after its type, or return None if the type is not one of these. Raises FormatError for a damaged one."""
    if key_type not in _VALUES:
        return None
    known, group = KeyType(key_type), reader.string()
    if known in _OF_MEMBERS:
        return ConsumerGroupMemberKey(known, group, reader.string())
    if known is KeyType.CONSUMER_GROUP_REGULAR_EXPRESSION:
        return ConsumerGroupRegexKey(known, group, reader.string())
    return ConsumerGroupKey(known, group)


def read_consumer_group_value(key: AnyConsumerGroupKey, value: bytes) -> ConsumerGroupValue:
    """Parse the value of a record that is no tombstone.

    Raises:
        FormatError: it is damaged, or of a version that is not known.
    """
    reader = Reader(value)
    version = reader.int16()
    if version != 0:
        raise FormatError(f"{key.key_type.name} of version {version} is not known")
    found = _VALUES[key.key_type](reader)
    reader.end()
    return found


def _group(reader: Reader) -> ConsumerGroup:
    epoch, metadata_hash = reader.int32(), 0
    for tag, content in reader.tagged_fields():
        if tag == 0:
            metadata_hash = content.int64()
    return ConsumerGroup(epoch, metadata_hash)


def _subscribed(reader: Reader) -> SubscribedTopics:
    found = SubscribedTopics(tuple(_subscribed_topic(reader) for _ in range(reader.count())))
    reader.skip_tagged_fields()
    return found


def _subscribed_topic(reader: Reader) -> SubscribedTopic:
    head = reader.uuid(), reader.string(), reader.int32()
    found = SubscribedTopic(*head, tuple(_partition_racks(reader) for _ in range(reader.count())))
    reader.skip_tagged_fields()
    return found


def _partition_racks(reader: Reader) -> PartitionRacks:
    found = PartitionRacks(reader.int32(), _strings(reader))
    reader.skip_tagged_fields()
    return found


def _member(reader: Reader) -> ConsumerGroupMember:
    instance_id, rack_id = reader.nullable_string(), reader.nullable_string()
    client_id, client_host = reader.string(), reader.string()
    topics, topic_regex = _strings(reader), reader.nullable_string()
    rebalance_timeout_ms, server_assignor = reader.int32(), reader.nullable_string()
    classic = None
    for tag, content in reader.tagged_fields():
        if tag == 0 and content.uvarint():
            classic = _classic(content)
    return ConsumerGroupMember(
        instance_id=instance_id,
        rack_id=rack_id,
        client_id=client_id,
        client_host=client_host,
        topics=topics,
        topic_regex=topic_regex,
        rebalance_timeout_ms=rebalance_timeout_ms,
        server_assignor=server_assignor,
        classic=classic,
    )


def _classic(reader: Reader) -> ClassicMember:
    found = ClassicMember(reader.int32(), tuple(_protocol(reader) for _ in range(reader.count())))
    reader.skip_tagged_fields()
    return found


def _protocol(reader: Reader) -> ClassicProtocol:
    found = ClassicProtocol(reader.string(), reader.data())
    reader.skip_tagged_fields()
    return found


def _target(reader: Reader) -> TargetAssignment:
    epoch, timestamp = reader.int32(), -1
    for tag, content in reader.tagged_fields():
        if tag == 0:
            timestamp = content.int64()
    return TargetAssignment(epoch, timestamp)


def _target_member(reader: Reader) -> TargetMember:
    found = TargetMember(_assigned(reader))
    reader.skip_tagged_fields()
    return found


def _current(reader: Reader) -> CurrentMember:
    found = CurrentMember(reader.int32(), reader.int32(), reader.int8(), _assigned(reader), _assigned(reader))
    reader.skip_tagged_fields()
    return found


def _assigned(reader: Reader) -> tuple[AssignedPartitions, ...]:
    return tuple(_assigned_topic(reader) for _ in range(reader.count()))


def _assigned_topic(reader: Reader) -> AssignedPartitions:
    topic_id, partitions, epochs = reader.uuid(), reader.int32s(), None
    for tag, content in reader.tagged_fields():
        if tag == 0:
            epochs = content.int32s()
    return AssignedPartitions(topic_id, partitions, epochs)


def _regex(reader: Reader) -> RegexTopics:
    found = RegexTopics(_strings(reader), reader.int64(), reader.int64())
    reader.skip_tagged_fields()
    return found


def _strings(reader: Reader) -> tuple[str, ...]:
    return tuple(reader.string() for _ in range(reader.count()))


_VALUES: dict[int, Callable[[Reader], ConsumerGroupValue]] = {
    KeyType.CONSUMER_GROUP_METADATA: _group,
    KeyType.CONSUMER_GROUP_PARTITION_METADATA: _subscribed,
    KeyType.CONSUMER_GROUP_MEMBER_METADATA: _member,
    KeyType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: _target,
    KeyType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: _target_member,
    KeyType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: _current,
    KeyType.CONSUMER_GROUP_REGULAR_EXPRESSION: _regex,
}
_OF_MEMBERS = {
    KeyType.CONSUMER_GROUP_MEMBER_METADATA,
    KeyType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
    KeyType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
}
