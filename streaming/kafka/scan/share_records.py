"""The records of a range of `__share_group_state`: how far share groups are."""

from dataclasses import dataclass, replace

from streaming.common.short_names import short_name
from streaming.errors import FormatError
from streaming.kafka.formats.entries import read_entry_records
from streaming.kafka.formats.records import Record
from streaming.kafka.formats.share_group_state import ShareKey, ShareSnapshot, ShareUpdate, read_share_key, read_share_value
from streaming.kafka.scan.group_records import NOT_UNDERSTOOD, NotUnderstood
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.walk import Bytes


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
            opened, unknown = _open(buffer.data[position : position + size])
        except FormatError:
            unreadable += 1
            continue
        found += opened
        unreadable += unknown
    return ShareRecords(tuple(found), unreadable)


def _open(entry: memoryview) -> tuple[list[ShareRecord], int]:
    """What is understood of a batch's records, and how many are not. Raises FormatError: then nothing of the batch counts."""
    found: list[ShareRecord] = []
    unknown = 0
    for record in read_entry_records(entry) or ():
        one = _read(record)
        unknown += one is None or one.value is NOT_UNDERSTOOD
        if one is not None:
            found.append(one)
    return found, unknown


def _read(record: Record) -> ShareRecord | None:
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
