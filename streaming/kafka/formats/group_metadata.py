"""A group of the classic protocol as `__consumer_offsets` stores it (`GroupMetadataValue`).

The value is `version i16` and `GroupMetadata`. Times are Unix milliseconds, timeouts milliseconds.
"""

from dataclasses import dataclass

from streaming.kafka.formats.message_schema import Int32, Int64, SchemaMessage, versions


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member. `subscription` and `assignment` are bytes of its own protocol, which brokers do not parse."""

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


def read_group_metadata(value: bytes) -> GroupMetadata:
    """Parse the value of a group's record that is no tombstone.

    Raises:
        FormatError: it is damaged, or of a version that is not known.
    """
    return _VALUE.read(value, "group metadata")
