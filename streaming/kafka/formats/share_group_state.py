"""The records of `__share_group_state`: how far share groups are (`ShareCoordinatorRecordSerde`, `ShareSnapshotValue`, `ShareUpdateValue`).

A snapshot replaces what was known of a partition, and an update adds to it; a null value of a snapshot deletes it. The key is `type i16`
and then plain, the value `version i16 (0)` and a flexible message. Times are Unix milliseconds.
"""

from dataclasses import dataclass
from enum import IntEnum

from streaming.kafka.formats.message_schema import Int8, Int16, Int32, Int64, SchemaMessage, Uuid, structure, tagged
from streaming.kafka.formats.wire import PlainReader


class ShareKeyType(IntEnum):
    """The types of keys in `__share_group_state`."""

    SHARE_SNAPSHOT = 0
    SHARE_UPDATE = 1


@dataclass(frozen=True, slots=True)
class ShareKey:
    """The key of a record about a partition of a share group."""

    key_type: int
    group: str
    topic_id: Uuid
    partition: Int32


DONE = frozenset({2, 4})
"""The states in which a group is done with records: acknowledged, archived. Neither is ever left."""


@dataclass(frozen=True, slots=True)
class StateBatch:
    """Records from the first to the last offset; `delivery_state`: 0 available, 3 archiving, or one of `DONE`: 2 acknowledged, 4 archived.

    What is being archived has been given up, and is being copied to the dead letter queue of its group (KIP-1191, `share.version` 2). It is
    not done with yet: `delivery_complete_count` leaves it out, and Kafka counts it in the lag.
    """

    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSnapshot:
    """All that is known: `delivery_complete_count` offsets from `start_offset` on are done with, -1 before Kafka 4.2."""

    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = tagged(0, "0+", -1)
    create_timestamp: Int64
    write_timestamp: Int64
    state_batches: tuple[StateBatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareUpdate:
    """What has changed; a `start_offset` of -1 is as before."""

    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = tagged(0, "0+", -1)
    state_batches: tuple[StateBatch, ...]


_KEY = {kind: structure(ShareKey, key_type=kind) for kind in ShareKeyType}
_SNAPSHOT = SchemaMessage(ShareSnapshot, "0")
_UPDATE = SchemaMessage(ShareUpdate, "0")


def read_share_key(key: bytes) -> ShareKey | None:
    """Parse the key of a record; None for a type that is not known. Raises FormatError for a damaged one."""
    reader = PlainReader(key)
    key_type = reader.int16()
    if key_type not in _KEY:
        return None
    found = _KEY[ShareKeyType(key_type)](reader)
    reader.end()
    return found


def read_share_value(key: ShareKey, value: bytes) -> ShareSnapshot | ShareUpdate:
    """Parse the value of a record that is no tombstone.

    Raises:
        FormatError: it is damaged, or of a version that is not known.
    """
    if key.key_type == ShareKeyType.SHARE_SNAPSHOT:
        return _SNAPSHOT.read(value, "share snapshot")
    return _UPDATE.read(value, "share update")
