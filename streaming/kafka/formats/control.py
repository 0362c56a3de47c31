"""Control records: the ends of transactions, and the metadata quorum's records about itself (`ControlRecordType`).

Key: `version i16, type i16`. Values, by type::

    0 ABORT, 1 COMMIT   version i16, coordinator_epoch i32 (`EndTransactionMarker`)
    2 and above         version i16, and a flexible message

Types 2 and above occur only in `__cluster_metadata`. A marker does not contain its producer, which is in the header
of its batch. Larger versions of keys and markers are read as version 0, as Kafka does.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from streaming.errors import FormatError
from streaming.kafka.formats.records import Record
from streaming.kafka.formats.wire import Int16, Int32, Int64, Reader, SchemaMessage, Uint16, Uuid, versions

_KEY = struct.Struct(">hh")
_MARKER = struct.Struct(">hi")


def read_control(record: Record) -> ControlRecord:
    """Parse a record of a control batch.

    Raises:
        FormatError: the key does not belong to a control record, or the value is damaged.
    """
    control_type = read_control_type(record.key or b"")
    if control_type in (ControlType.ABORT, ControlType.COMMIT):
        return _marker(control_type == ControlType.COMMIT, record.value)
    if control_type not in _MESSAGES:
        return UnknownControl(control_type, record.value)
    if record.value is None:
        raise FormatError("control record without a value")
    reader = Reader(record.value)
    layout = _MESSAGES[control_type].layout(reader.int16())
    if layout is None:
        return UnknownControl(control_type, record.value)
    found = layout(reader)
    reader.end()
    return found


@dataclass(frozen=True, slots=True)
class EndTxnMarker:
    """The end of a producer's transaction; `coordinator_epoch` is the leader epoch of its `__transaction_state` partition."""

    committed: bool
    coordinator_epoch: int


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter of the quorum; without a directory id while the set of voters is a static one."""

    voter_id: Int32
    directory_id: Uuid | None = versions("1+", None)


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """The first record of a new leader of the quorum."""

    leader_id: Int32
    voters: tuple[Voter, ...]
    granting_voters: tuple[Voter, ...]


@dataclass(frozen=True, slots=True)
class SnapshotHeader:
    """The first record of a metadata snapshot: the time of the last batch of the log that it covers, in Unix milliseconds."""

    last_contained_log_timestamp: Int64


@dataclass(frozen=True, slots=True)
class SnapshotFooter:
    """The last record of a metadata snapshot. A snapshot without it is not complete."""


@dataclass(frozen=True, slots=True)
class KRaftVersion:
    """The version of the quorum's protocol: 0 for a static set of voters, 1 for one that may change."""

    kraft_version: Int16


@dataclass(frozen=True, slots=True)
class VoterEndpoint:
    """The address at which a voter listens."""

    name: str
    host: str
    port: Uint16


@dataclass(frozen=True, slots=True)
class KRaftVersionRange:
    """The kraft versions that a voter supports."""

    min_supported_version: Int16
    max_supported_version: Int16


@dataclass(frozen=True, slots=True)
class VoterNode:
    """A voter as the quorum knows it."""

    voter_id: Int32
    directory_id: Uuid
    endpoints: tuple[VoterEndpoint, ...]
    kraft_version: KRaftVersionRange


@dataclass(frozen=True, slots=True)
class KRaftVoters:
    """The set of voters."""

    voters: tuple[VoterNode, ...]


@dataclass(frozen=True, slots=True)
class UnknownControl:
    """A type, or a version of one, that is newer than this reader; `value` is unchanged."""

    control_type: int
    value: bytes | None


ControlRecord = EndTxnMarker | LeaderChange | SnapshotHeader | SnapshotFooter | KRaftVersion | KRaftVoters | UnknownControl


def read_control_type(key: bytes) -> int:
    """The type of a control record. Raises FormatError if the key does not belong to one."""
    if len(key) < _KEY.size:
        raise FormatError("key of a control record is too short")
    version, control_type = _KEY.unpack_from(key)
    if version < 0 or control_type < 0:
        raise FormatError(f"control record of version {version} and type {control_type}")
    return int(control_type)


class ControlType(IntEnum):
    """The types that exist."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def _marker(committed: bool, value: bytes | None) -> EndTxnMarker:
    if value is None or len(value) < _MARKER.size:
        raise FormatError("marker of a transaction is cut short")
    version, coordinator_epoch = _MARKER.unpack_from(value)
    if version < 0:
        raise FormatError(f"marker of a transaction of version {version}")
    return EndTxnMarker(committed, coordinator_epoch)


_MESSAGES: dict[int, SchemaMessage[ControlRecord]] = {
    ControlType.LEADER_CHANGE: SchemaMessage(LeaderChange, "0-1"),
    ControlType.SNAPSHOT_HEADER: SchemaMessage(SnapshotHeader, "0"),
    ControlType.SNAPSHOT_FOOTER: SchemaMessage(SnapshotFooter, "0"),
    ControlType.KRAFT_VERSION: SchemaMessage(KRaftVersion, "0"),
    ControlType.KRAFT_VOTERS: SchemaMessage(KRaftVoters, "0"),
}
