"""A group of the classic protocol as `__consumer_offsets` stores it (`GroupMetadataValue`).

Value: `version i16`, then `protocol_type string, generation i32, protocol string or null, leader string or null`, from version 2
`current_state_timestamp i64`, and an array of members: `member_id string`, from version 3 `group_instance_id string or null`,
`client_id string, client_host string`, from version 1 `rebalance_timeout i32`, `session_timeout i32, subscription bytes,
assignment bytes`. Version 4 is flexible. Times are Unix milliseconds, timeouts milliseconds.
"""

from dataclasses import dataclass

from streaming.errors import FormatError
from streaming.kafka.wire import PlainReader, Reader

_NEWEST, _FLEXIBLE_FROM = 4, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member. `subscription` and `assignment` are bytes of its own protocol, which brokers do not parse."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadata:
    """A generation of a group; -1 is used for a time that the version does not have."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int
    members: tuple[GroupMember, ...]


def read_group_metadata(value: bytes) -> GroupMetadata:
    """Parse the value of a group's record that is no tombstone, versions 0 to 4.

    Raises:
        FormatError: it is damaged, or of a version that is not known.
    """
    version = PlainReader(value).int16()
    if not 0 <= version <= _NEWEST:
        raise FormatError(f"group metadata of version {version} is not known")
    reader = Reader(value) if version >= _FLEXIBLE_FROM else PlainReader(value)
    reader.int16()  # the version
    protocol_type, generation = reader.string(), reader.int32()
    protocol, leader = reader.nullable_string(), reader.nullable_string()
    timestamp = reader.int64() if version >= 2 else -1
    members = tuple(_member(reader, version) for _ in range(reader.count()))
    reader.skip_tagged_fields()
    reader.end()
    return GroupMetadata(
        protocol_type=protocol_type,
        generation=generation,
        protocol=protocol,
        leader=leader,
        current_state_timestamp=timestamp,
        members=members,
    )


def _member(reader: Reader, version: int) -> GroupMember:
    member_id = reader.string()
    group_instance_id = reader.nullable_string() if version >= 3 else None
    client_id, client_host = reader.string(), reader.string()
    rebalance_timeout_ms = reader.int32() if version >= 1 else -1
    session_timeout_ms = reader.int32()
    subscription, assignment = reader.data(), reader.data()
    reader.skip_tagged_fields()
    return GroupMember(
        member_id=member_id,
        group_instance_id=group_instance_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=rebalance_timeout_ms,
        session_timeout_ms=session_timeout_ms,
        subscription=subscription,
        assignment=assignment,
    )
