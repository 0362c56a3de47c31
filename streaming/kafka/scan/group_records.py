"""The records of a range of `__consumer_offsets`: commits, records about groups, ends of transactions.

A coordinator mostly writes uncompressed batches of one commit, and a busy one writes thousands a second. These are read at fixed places,
everything else by the general readers.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields, replace
from enum import Enum
from struct import Struct
from typing import Any

from streaming.common.rows import Step
from streaming.common.short_names import SHORT_CHARS, short_name
from streaming.errors import FormatError
from streaming.kafka.formats.consumer_offsets import (
    OffsetCommit,
    OffsetCommitKey,
    OffsetsKey,
    OffsetsValue,
    OtherKey,
    read_offsets_key,
    read_offsets_value,
)
from streaming.kafka.formats.coordinator_states import ShareKey, ShareSnapshot, ShareUpdate, read_share_key, read_share_value
from streaming.kafka.formats.entries import read_entry_records
from streaming.kafka.formats.layout import CURRENT_MAGIC, HEADER_BYTES
from streaming.kafka.formats.records import Record
from streaming.kafka.formats.wire import UUID_BYTES, uuid_text
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.transaction_steps import marker_type
from streaming.kafka.scan.walk import Bytes

_SHORTS = Struct(">hh").unpack_from
_SHORT = Struct(">h").unpack_from
_INT = Struct(">i").unpack_from
_LONG = Struct(">q").unpack_from
_HEAD = Struct(">hqi").unpack_from  # version, offset, leader epoch
_HEAD_BYTES = 14
_TOPIC_ID_TAG = b"\1\0\x10"  # one tagged field: tag 0, 16 bytes
_PLAIN, _FLEXIBLE = 3, 4

Single = tuple[str, str, int, OffsetCommit | None]
"""Group, topic, partition, and the commit; None for a tombstone."""


def read_single_commit(view: memoryview, position: int, size: int) -> Single | None:
    """Read the only record of an uncompressed batch of magic 2; None if it is not of the usual form, which need not be wrong.

    Reads a batch of one commit as coordinators write it, several times faster than record by record.
    """
    data = bytes(view[position + HEADER_BYTES : position + size])
    try:
        length, at = _size(data, 0)
        # attributes and both deltas are 0, and the record fills the batch, with a count of 0 headers at its end
        if at + length != len(data) or data[at : at + 3] != b"\0\0\0" or data[-1] != 0:
            return None
        key_size, key = _size(data, at + 3)
        key_type, group_size = _SHORTS(data, key)
        topic_at = key + 4 + group_size
        (topic_size,) = _SHORT(data, topic_at)
        end = topic_at + 2 + topic_size
        if not 0 <= key_type <= 1 or group_size < 0 or topic_size < 0 or end + 4 != key + key_size:
            return None
        group, topic = str(data[key + 4 : topic_at], "utf-8"), str(data[topic_at + 2 : end], "utf-8")
        (partition,) = _INT(data, end)
        if data[end + 4] == 1:  # a size of -1
            return (group, topic, partition, None) if end + 6 == len(data) else None
        value_size, value = _size(data, end + 4)
        commit = _read_value(data, value) if value + value_size + 1 == len(data) else None
    except (IndexError, struct.error, UnicodeDecodeError):
        return None
    return None if commit is None else (group, topic, partition, commit)


def _size(data: bytes, at: int) -> tuple[int, int]:
    """A size of up to two bytes, and the position after it; a longer or negative one is none that could fit."""
    low = data[at]
    if low & 1:
        return len(data), at + 1
    if low < 0x80:
        return low >> 1, at + 1
    high = data[at + 1]
    return (low & 0x7F | high << 7) >> 1 if high < 0x80 else len(data), at + 2


def _read_value(data: bytes, at: int) -> OffsetCommit | None:
    """The value from ``at`` to the byte before the last."""
    version, offset, leader_epoch = _HEAD(data, at)
    at += _HEAD_BYTES
    end = len(data) - 1
    if version == _PLAIN:
        (size,) = _SHORT(data, at)
        text, after = at + 2, at + 2 + size
        if size < 0 or after + 8 != end:
            return None
        topic_id = None
    elif version == _FLEXIBLE:
        size = data[at] - 1
        text, after = at + 1, at + 1 + size
        if not 0 <= size < 0x7F:
            return None
        if data[after + 8 : after + 11] == _TOPIC_ID_TAG and after + 11 + UUID_BYTES == end:
            topic_id = uuid_text(data[after + 11 : end])
        elif data[after + 8 : end] == b"\0":
            topic_id = None
        else:
            return None
    else:
        return None
    (timestamp,) = _LONG(data, after)
    metadata = str(data[text:after], "utf-8")
    return OffsetCommit(offset=offset, leader_epoch=leader_epoch, metadata=metadata, commit_timestamp=timestamp, topic_id=topic_id)


class NotUnderstood(Enum):
    """Used instead of a value that is damaged, or of a later version: what was known of its key no longer counts."""

    NOT_UNDERSTOOD = "?"


NOT_UNDERSTOOD = NotUnderstood.NOT_UNDERSTOOD


@dataclass(frozen=True, slots=True)
class Commit:
    """A record with the key of a committed offset. ``producer_id`` is that of its batch, -1 outside of transactions; no value deletes.
    ``at_ms``: when its coordinator wrote it, Unix milliseconds, -1 not known.

    Names in keys are short here and in `GroupRecord`: see `short_names`.
    """

    record_offset: int
    producer_id: int
    group: str
    topic: str
    partition: int
    value: OffsetCommit | NotUnderstood | None
    at_ms: int = -1


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A record about a group or a member; no value deletes. ``at_ms``: when its coordinator wrote it, Unix milliseconds, -1 not known."""

    record_offset: int
    key: OffsetsKey
    value: OffsetsValue | NotUnderstood | None
    at_ms: int = -1


@dataclass(frozen=True, slots=True)
class EndMarker:
    """The end of a producer's transaction. ``at_ms``: when its broker wrote it, Unix milliseconds, -1 not known."""

    record_offset: int
    producer_id: int
    committed: bool
    at_ms: int = -1


@dataclass(frozen=True, slots=True)
class GroupRecords:
    """The records of a range in the order of their offsets, and how many were not understood.

    The latter are batches that cannot be parsed (one each), records with a damaged key or one of a later version, which are left out, and
    records whose value is `NOT_UNDERSTOOD`.
    """

    records: tuple[Commit | GroupRecord | EndMarker, ...]
    unreadable: int


def group_records(batches: Batches, buffer: Bytes) -> GroupRecords:
    """The records of the sound batches of a range. ``buffer`` contains the whole range, and positions count from its beginning."""
    found: list[Commit | GroupRecord | EndMarker] = []
    unreadable = 0
    view = buffer.data
    headers: Any = batches.headers  # fields of a structured array, which have no types
    current = batches.magic == CURRENT_MAGIC
    single = current & (batches.codec == 0) & (batches.records == 1) & ~batches.control
    columns = (
        batches.positions,
        batches.size,
        batches.base_offset,
        headers["producer_id"],
        current,
        single,
        batches.control,
        batches.records,
        batches.max_timestamp,
    )
    for position, size, offset, producer, magic_2, usual, control, count, at_ms in zip(*(each.tolist() for each in columns), strict=True):
        producer_id = producer if magic_2 else -1
        if usual:
            commit = read_single_commit(view, position, size)
            if commit is not None:
                group, topic, partition, value = commit
                found.append(Commit(offset, producer_id, short_name(group), short_name(topic), partition, value, at_ms))
                continue
        if count == 0:  # compaction has emptied it
            continue
        try:
            if control:
                step = marker_type(buffer, position, size)
                if step >= 0:
                    found.append(EndMarker(offset, producer_id, step == Step.COMMIT, at_ms))
                continue
            opened, unknown = _open(view[position : position + size], producer_id)
        except FormatError:
            unreadable += 1
            continue
        found += opened
        unreadable += unknown
    return GroupRecords(tuple(found), unreadable)


def _open(entry: memoryview, producer_id: int) -> tuple[list[Commit | GroupRecord], int]:
    """What is understood of a batch's records, and how many are not. Raises FormatError: then nothing of the batch counts."""
    found: list[Commit | GroupRecord] = []
    unknown = 0
    for record in read_entry_records(entry) or ():
        one = _read(record, producer_id)
        unknown += one is None or one.value is NOT_UNDERSTOOD
        if one is not None:
            found.append(one)
    return found, unknown


def _read(record: Record, producer_id: int) -> Commit | GroupRecord | None:
    """The commit or the record of a group that a record is, None for a key that is not understood."""
    try:
        key = read_offsets_key(record.key or b"")
    except FormatError:
        return None
    if isinstance(key, OtherKey):
        return None
    if len(record.key or b"") >= SHORT_CHARS:
        key = _with_short_names(key)
    value: OffsetsValue | NotUnderstood | None = None
    if record.value is not None:
        try:
            value = read_offsets_value(key, record.value)
        except FormatError:
            value = NOT_UNDERSTOOD
    if isinstance(key, OffsetCommitKey):
        assert value is None or isinstance(value, OffsetCommit | NotUnderstood)
        return Commit(record.offset, producer_id, key.group, key.topic, key.partition, value, record.timestamp)
    return GroupRecord(record.offset, key, value, record.timestamp)


def _with_short_names(key: Any) -> OffsetsKey:
    values = {one.name: getattr(key, one.name) for one in fields(key)}
    shorter: OffsetsKey = replace(key, **{name: short_name(value) for name, value in values.items() if isinstance(value, str)})
    return shorter


@dataclass(frozen=True, slots=True)
class ShareRecord:
    """A record about a partition of a share group; ``timestamp_ms`` of the record. Without a value of a snapshot it deletes."""

    record_offset: int
    timestamp_ms: int
    key: ShareKey
    value: ShareSnapshot | ShareUpdate | NotUnderstood | None


@dataclass(frozen=True, slots=True)
class ShareRecords:
    """The records of a range in the order of their offsets, and how many were not understood: as `GroupRecords`."""

    records: tuple[ShareRecord, ...]
    unreadable: int


def share_records(batches: Batches, buffer: Bytes) -> ShareRecords:
    """The records of the sound batches of a range. ``buffer`` contains the whole range, and positions count from its beginning."""
    found: list[ShareRecord] = []
    unreadable = 0
    data = (~batches.control & (batches.records > 0)).nonzero()[0]
    for position, size in zip(batches.positions[data].tolist(), batches.size[data].tolist(), strict=True):
        try:
            opened, unknown = _share_records_of(buffer.data[position : position + size])
        except FormatError:
            unreadable += 1
            continue
        found += opened
        unreadable += unknown
    return ShareRecords(tuple(found), unreadable)


def _share_records_of(entry: memoryview) -> tuple[list[ShareRecord], int]:
    """What is understood of a batch's records, and how many are not. Raises FormatError: then nothing of the batch counts."""
    found: list[ShareRecord] = []
    unknown = 0
    for record in read_entry_records(entry) or ():
        one = _share_record(record)
        unknown += one is None or one.value is NOT_UNDERSTOOD
        if one is not None:
            found.append(one)
    return found, unknown


def _share_record(record: Record) -> ShareRecord | None:
    """None for a key that is not understood."""
    try:
        key = read_share_key(record.key or b"")
    except FormatError:
        return None
    if key is None:
        return None
    value: ShareSnapshot | ShareUpdate | NotUnderstood | None = None
    if record.value is not None:
        try:
            value = read_share_value(key, record.value)
        except FormatError:
            value = NOT_UNDERSTOOD
    return ShareRecord(record.offset, record.timestamp, replace(key, group=short_name(key.group)), value)
