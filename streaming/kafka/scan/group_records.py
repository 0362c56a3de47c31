"""The records of a range of `__consumer_offsets`: commits, records about groups, ends of transactions.

A coordinator mostly writes uncompressed batches of one commit, and a busy one writes thousands a second. These are read at fixed places,
everything else by the general readers.
"""

from dataclasses import dataclass, fields, replace
from enum import Enum
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
from streaming.kafka.formats.entries import read_entry_records
from streaming.kafka.formats.layout import CURRENT_MAGIC
from streaming.kafka.formats.records import Record
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.single_commits import read_single_commit
from streaming.kafka.scan.transaction_steps import marker_type
from streaming.kafka.scan.walk import Bytes


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
    view, headers = buffer.data, _as_any(batches)
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


def _as_any(batches: Batches) -> Any:
    return batches.headers  # fields of a structured array, which have no types


def _read(record: Record, producer_id: int) -> Commit | GroupRecord | None:
    """None for a key that is not understood."""
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
