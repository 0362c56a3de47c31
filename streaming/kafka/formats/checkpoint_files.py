"""The small files of Kafka next to its segments: offset checkpoints, leader epochs, topic ids, elections of the metadata quorum."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

from streaming.errors import FormatError, quoted
from streaming.kafka.formats.wire import check_uuid

_MAX_INT = 2**31 - 1
_MAX_LONG = 2**63 - 1
_MOST_DIGITS = 19
_MOST_SHOWN = 40
_AS_WRITTEN = re.compile(r"0\n(0|[1-9][0-9]{0,8})\n(?:[a-zA-Z0-9._-]+ [0-9]{1,9} [0-9]{1,18}\n)*+", re.ASCII)

_VERSIONS = (0, 1)


def parse_offset_checkpoint(data: bytes) -> tuple[CheckpointEntry, ...]:
    """The entries of an offset checkpoint of a log dir, in no order (`OffsetCheckpointFile`).

    A broker creates the file empty; then there are no entries. Raises FormatError that names the line.
    """
    entries = _entries_as_written(data)
    if entries is not None:
        return entries
    return tuple(
        CheckpointEntry(sys.intern(topic), _number(partition, _MAX_INT, line), _number(offset, _MAX_LONG, line))
        for line, (topic, partition, offset) in _entries(data, 3)
    )


class CheckpointEntry(NamedTuple):
    """One line of an offset checkpoint. A live broker of 10,000 partitions writes them all every five seconds."""

    topic: str
    partition: int
    offset: int


def _entries_as_written(data: bytes) -> tuple[CheckpointEntry, ...] | None:
    """The same of a file that looks as Kafka writes it, in less than half the time; None for any other, good or bad."""
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        return None
    whole = _AS_WRITTEN.fullmatch(text)
    if whole is None:
        return None
    words = text.split()
    topics, partitions, offsets = words[2::3], words[3::3], words[4::3]
    if len(topics) != int(whole[1]):
        return None
    return tuple(
        map(tuple.__new__, repeat(CheckpointEntry), zip(map(sys.intern, topics), map(int, partitions), map(int, offsets), strict=True))
    )


def _number(text: str, largest: int, line: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and int(text) <= largest):
        raise FormatError(f"line {line}: {quoted(text)} is not a number from 0 to {largest}")
    return int(text)


def _entries(data: bytes, fields: int) -> list[tuple[int, list[str]]]:
    """The (line number, fields) after the two header lines of a checkpoint file. Their count is checked (`CheckpointFile`)."""
    if len(data) > _MOST_DIGITS and data.find(b"\n", 0, _MOST_DIGITS + 2) < 0:  # before all of it is taken for text
        raise FormatError(f"line 1: {quoted(data[: 2 * _MOST_DIGITS])} is no version")
    lines = _lines(data)
    if not lines:
        return []
    if _number(lines[0].strip(), _MAX_INT, 1) != 0:
        raise FormatError(f"line 1: version {quoted(lines[0])} is not known")
    if len(lines) < 2:
        raise FormatError("line 2: the number of entries is missing")
    expected = _number(lines[1].strip(), _MAX_INT, 2)
    entries = [(number, line.split()) for number, line in enumerate(lines[2:], start=3)]
    for number, entry in entries:
        if len(entry) != fields:
            raise FormatError(f"line {number}: expected {fields} fields, found {len(entry)}")
    if len(entries) != expected:
        raise FormatError(f"line 2: {expected} entries announced, {len(entries)} found")
    return entries


def _lines(data: bytes) -> list[str]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError("not text", error.start) from error
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def changed_entries(data: bytes, before: bytes) -> tuple[CheckpointEntry, ...] | None:
    """The entries in which an offset checkpoint differs from an earlier version of it, which was understood.

    None if it has to be parsed as a whole: its head is another, most of its lines are, or not each of them has taken the place of one of
    the same partition. Raises FormatError, whose line number means nothing.
    """
    lines, lines_before = data.split(b"\n"), before.split(b"\n")
    there, known = set(lines[2:]), set(lines_before[2:])
    come, gone = there - known, known - there
    twice = len(there) < len(lines[2:]) or len(known) < len(lines_before[2:])
    if lines[:2] != lines_before[:2] or twice or 2 * len(come) > len(there):
        return None
    if len(come) != len(gone) or {_place(line) for line in come} != {_place(line) for line in gone}:
        return None
    return parse_offset_checkpoint(b"\n".join([b"0", b"%d" % len(come), *come]))


def _place(line: bytes) -> bytes:
    return line.rpartition(b" ")[0]


def parse_leader_epochs(data: bytes) -> tuple[EpochEntry, ...]:
    """The entries of `leader-epoch-checkpoint` in the file's order, which Kafka keeps ascending (`LeaderEpochCheckpointFile`).

    It may be ahead of the log, because a new epoch is written before its first batch. An empty file has no entries. Raises FormatError that
    names the line.
    """
    return tuple(EpochEntry(_number(epoch, _MAX_INT, line), _number(start, _MAX_LONG, line)) for line, (epoch, start) in _entries(data, 2))


@dataclass(frozen=True, slots=True)
class EpochEntry:
    """One line of `leader-epoch-checkpoint`: `start_offset` is the first offset of `epoch`."""

    epoch: int
    start_offset: int


def parse_partition_metadata(data: bytes) -> str:
    """The topic id in `partition.metadata`, 22 characters (`PartitionMetadataFile`). Raises FormatError that names the line."""
    lines = _lines(data)
    if len(lines) != 2:
        raise FormatError(f"expected 2 lines, found {len(lines)}")
    if lines[0].split() != ["version:", "0"]:
        raise FormatError(f"line 1: version {quoted(lines[0])} is not known")
    key, _, topic_id = lines[1].partition(": ")
    if key != "topic_id":
        raise FormatError(f"line 2: expected topic_id, found {quoted(lines[1])}")
    return check_uuid(topic_id.strip())


def parse_clean_shutdown(data: bytes) -> tuple[int | None, int | None]:
    """The version and the broker's epoch in `.kafka_cleanshutdown` (`CleanShutdownFileHandler`); brokers before 3.7 leave it empty.

    Raises FormatError if it has something else.
    """
    try:
        found = json.loads(data) if data.strip() else {"version": None, "brokerEpoch": None}
        return found["version"], found["brokerEpoch"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(f"{quoted(data[:_MOST_SHOWN])} has no broker's epoch") from error


def parse_quorum_state(data: bytes) -> QuorumState:
    """Parse the quorum state of a node. Raises FormatError if it is not one of the two versions.

    `quorum-state` next to the metadata log: a node's record of the quorum's elections (`FileQuorumStateStore`, `QuorumStateData`).
    One JSON object. Version 0: `clusterId, leaderId, leaderEpoch, votedId, appliedOffset, currentVoters [{voterId}], data_version`.
    Version 1 (Kafka 3.9, voters that may change): `leaderId, leaderEpoch, votedId, votedDirectoryId, data_version`. Kafka replaces
    the file by a rename.
    """
    try:
        state = json.loads(data)
    except (ValueError, RecursionError) as error:  # not UTF-8 is a ValueError too
        raise FormatError(f"quorum state is not JSON: {error}") from error
    if not isinstance(state, dict):
        raise FormatError("quorum state is not a JSON object")
    version = _state_number(state, "data_version")
    if version not in _VERSIONS:
        raise FormatError(f"quorum state of version {version} is not known")
    return QuorumState(
        version=version,
        leader_id=_state_number(state, "leaderId"),
        leader_epoch=_state_number(state, "leaderEpoch"),
        voted_id=_state_number(state, "votedId"),
        voted_directory_id=_uuid(state, "votedDirectoryId") if version == 1 else None,
        voters=_voters(state.get("currentVoters")) if version == 0 else (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumState:
    """`leader_id` is the active controller and `voted_id` the node that this one voted for, -1 if there is none.

    `voters` is empty in version 1, where the metadata log contains them; `voted_directory_id` is None in version 0.
    """

    version: int
    leader_id: int
    leader_epoch: int
    voted_id: int
    voted_directory_id: str | None
    voters: tuple[int, ...]


def _state_number(state: dict[str, object], name: str) -> int:
    value = state.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise FormatError(f"{name} of the quorum state is {quoted(value)}, not a number")
    return value


def _uuid(state: dict[str, object], name: str) -> str:
    value = state.get(name)
    if not isinstance(value, str):
        raise FormatError(f"{name} of the quorum state is {quoted(value)}, not a UUID")
    return check_uuid(value)


def _voters(value: object) -> tuple[int, ...]:
    if value is None:  # nullable in version 0
        return ()
    if not isinstance(value, list):
        raise FormatError(f"currentVoters of the quorum state is {quoted(value)}, not a list")
    return tuple(_state_number(voter if isinstance(voter, dict) else {}, "voterId") for voter in value)
