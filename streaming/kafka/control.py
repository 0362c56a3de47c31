"""Control records: the ends of transactions, and the metadata quorum's records about itself (`ControlRecordType`).

Key: `version i16, type i16`. Values, by type::

    0 ABORT, 1 COMMIT   version i16, coordinator_epoch i32 (`EndTransactionMarker`)
    2 LEADER_CHANGE     version i16, leader_id i32, voters, granting voters: arrays of (id i32, from version 1 on directory id)
    3 SNAPSHOT_HEADER   version i16, last_contained_log_timestamp i64 (Unix milliseconds)
    4 SNAPSHOT_FOOTER   version i16
    5 KRAFT_VERSION     version i16, kraft_version i16
    6 KRAFT_VOTERS      version i16, voters: array of (id i32, directory id, endpoints: array of (name, host, port u16),
                        lowest_kraft_version i16, highest_kraft_version i16)

Types 2 to 6 are flexible messages, and occur only in `__cluster_metadata`. A marker does not contain its producer, which is in the header
of its batch. Larger versions of keys and markers are read as version 0, as Kafka does.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from streaming.errors import FormatError
from streaming.kafka.records import Record
from streaming.kafka.wire import Reader

_KEY = struct.Struct(">hh")
_MARKER = struct.Struct(">hi")


class ControlType(IntEnum):
    """The types that exist."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@dataclass(frozen=True, slots=True)
class EndTxnMarker:
    """The end of a producer's transaction; `coordinator_epoch` is the leader epoch of its `__transaction_state` partition."""

    committed: bool
    coordinator_epoch: int


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter of the quorum; without a directory id while the set of voters is a static one."""

    voter_id: int
    directory_id: str | None


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """The first record of a new leader of the quorum."""

    leader_id: int
    voters: tuple[Voter, ...]
    granting_voters: tuple[Voter, ...]


@dataclass(frozen=True, slots=True)
class SnapshotHeader:
    """The first record of a metadata snapshot: the time of the last batch of the log that it covers, in Unix milliseconds."""

    last_contained_log_timestamp: int


@dataclass(frozen=True, slots=True)
class SnapshotFooter:
    """The last record of a metadata snapshot. A snapshot without it is not complete."""


@dataclass(frozen=True, slots=True)
class KRaftVersion:
    """The version of the quorum's protocol: 0 for a static set of voters, 1 for one that may change."""

    kraft_version: int


@dataclass(frozen=True, slots=True)
class VoterEndpoint:
    """The address at which a voter listens."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class VoterNode:
    """A voter as the quorum knows it, with the kraft versions that it supports."""

    voter: Voter
    endpoints: tuple[VoterEndpoint, ...]
    lowest_kraft_version: int
    highest_kraft_version: int


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


def read_control(record: Record) -> ControlRecord:
    """Parse a record of a control batch.

    Raises:
        FormatError: the key does not belong to a control record, or the value is damaged.
    """
    if record.key is None or len(record.key) < _KEY.size:
        raise FormatError("key of a control record is too short")
    version, control_type = _KEY.unpack_from(record.key)
    if version < 0 or control_type < 0:
        raise FormatError(f"control record of version {version} and type {control_type}")
    if control_type in (ControlType.ABORT, ControlType.COMMIT):
        return _marker(control_type == ControlType.COMMIT, record.value)
    if control_type not in _MESSAGES:
        return UnknownControl(control_type, record.value)
    if record.value is None:
        raise FormatError("control record without a value")
    parse, newest = _MESSAGES[control_type]
    reader = Reader(record.value)
    message_version = reader.int16()
    if not 0 <= message_version <= newest:
        return UnknownControl(control_type, record.value)
    parsed = parse(reader, message_version)
    reader.skip_tagged_fields()
    reader.end()
    return parsed


def _marker(committed: bool, value: bytes | None) -> EndTxnMarker:
    if value is None or len(value) < _MARKER.size:
        raise FormatError("marker of a transaction is cut short")
    version, coordinator_epoch = _MARKER.unpack_from(value)
    if version < 0:
        raise FormatError(f"marker of a transaction of version {version}")
    return EndTxnMarker(committed, coordinator_epoch)


def _leader_change(reader: Reader, version: int) -> LeaderChange:
    return LeaderChange(reader.int32(), _voters(reader, version), _voters(reader, version))


def _voters(reader: Reader, version: int) -> tuple[Voter, ...]:
    voters = []
    for _ in range(reader.count()):
        voters.append(Voter(reader.int32(), reader.uuid() if version >= 1 else None))
        reader.skip_tagged_fields()
    return tuple(voters)


def _kraft_voters(reader: Reader, _version: int) -> KRaftVoters:
    voters = []
    for _ in range(reader.count()):
        voter = Voter(reader.int32(), reader.uuid())
        endpoints = []
        for _ in range(reader.count()):
            endpoints.append(VoterEndpoint(reader.string(), reader.string(), reader.uint16()))
            reader.skip_tagged_fields()
        voters.append(VoterNode(voter, tuple(endpoints), reader.int16(), reader.int16()))
        reader.skip_tagged_fields()  # of the versions
        reader.skip_tagged_fields()  # of the voter
    return KRaftVoters(tuple(voters))


_MESSAGES: dict[int, tuple[Callable[[Reader, int], ControlRecord], int]] = {
    ControlType.LEADER_CHANGE: (_leader_change, 1),
    ControlType.SNAPSHOT_HEADER: (lambda reader, _: SnapshotHeader(reader.int64()), 0),
    ControlType.SNAPSHOT_FOOTER: (lambda _reader, _: SnapshotFooter(), 0),
    ControlType.KRAFT_VERSION: (lambda reader, _: KRaftVersion(reader.int16()), 0),
    ControlType.KRAFT_VOTERS: (_kraft_voters, 0),
}
"""For each type: the parser of its message and the newest version that it knows."""
