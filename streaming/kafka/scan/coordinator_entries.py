"""The newest entry of every transactional id in a range of `__transaction_state`, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streaming.common.rows import NOT_UNDERSTOOD, TOMBSTONE
from streaming.common.short_names import short_name
from streaming.errors import FormatError
from streaming.kafka.formats.coordinator_states import read_transaction_key, read_transaction_value
from streaming.kafka.formats.entries import read_entry_records
from streaming.kafka.formats.layout import CURRENT_MAGIC, HEADER_BYTES
from streaming.kafka.formats.records import Record
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.walk import Bytes

# The fields of a record before its key: its length in one or two bytes, attributes, timestamp and offset delta, the length of its key.
_BEFORE_KEY = 6

# What follows the key up to the end of the producer id: the length of the value in one or two bytes, its version, the id.
_TO_PRODUCER_ID = 2 + 2 + 8


def coordinator_entries(batches: Batches, buffer: Bytes) -> CoordinatorEntries:
    """The newest entries in the sound batches of a range. ``buffer`` contains the whole range, and positions count from its beginning."""
    newest: dict[str, Record] = {}
    unreadable = 0
    for item in _worth_opening(batches, buffer):
        position = int(batches.positions[item])
        try:
            opened, unknown = _open(buffer.data[position : position + int(batches.size[item])])
        except FormatError:
            unreadable += 1
            continue
        unreadable += unknown
        for transactional_id, record in opened.items():
            newest.pop(transactional_id, None)  # so that its index is that of its newest record
            newest[transactional_id] = record
    return CoordinatorEntries(tuple(_entry(*found) for found in newest.items()), unreadable)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorEntry:
    """The last entry of a coordinator for one transactional id; columns and units as `streaming.common.rows.COORDINATOR`.

    ``transactional_id`` is short: see `short_names`. If ``state`` is `TOMBSTONE` or `NOT_UNDERSTOOD`, the fields after it have no meaning.
    """

    transactional_id: str
    offset: int
    state: str
    producer_id: int = -1
    producer_epoch: int = -1
    timeout_ms: int = -1
    start_ms: int = -1
    last_update_ms: int = -1
    partitions: tuple[str, ...] = ()
    previous_producer_id: int = -1


@dataclass(frozen=True, slots=True)
class CoordinatorEntries:
    """The newest entry of each transactional id in a range, in the order of their offsets, and how many records could not be read.

    The latter are batches that cannot be parsed (one each), and records with a damaged key, so that even the transactional id is not known.
    """

    entries: tuple[CoordinatorEntry, ...]
    unreadable: int

    @property
    def not_understood(self) -> int:
        """The number of transactional ids whose newest entry is damaged, or of a version that is not known."""
        return sum(entry.state == NOT_UNDERSTOOD for entry in self.entries)


def _worth_opening(batches: Batches, buffer: Bytes, beyond_key: int = 0) -> list[int]:
    """The data batches, without those whose only record a later one of the range replaces: a busy coordinator mostly writes such batches.

    ``beyond_key``: one replaces another only if so many bytes after their keys are equal, too.

    A coordinator writes uncompressed batches of one record with deltas of 0. So the key is at a fixed position and can be read without
    parsing the batch.
    """
    data = np.flatnonzero(~batches.control & (batches.records > 0))
    at = batches.positions[data] + HEADER_BYTES
    single = (batches.magic[data] == CURRENT_MAGIC) & (batches.codec[data] == 0) & (batches.records[data] == 1)
    single &= at + _BEFORE_KEY <= len(buffer)
    if not single.any():
        return data.tolist()
    head = buffer[np.where(single, at, 0)[:, None] + np.arange(_BEFORE_KEY)]
    longer = (head[:, 0] >= 0x80).astype(np.int64)  # the record's own length takes two bytes; the second byte shows if it takes more
    fields = np.where(longer[:, None] == 1, head[:, 1:], head[:, :-1])
    key_size = fields[:, 4]
    usual = single & (fields[:, 0] < 0x80) & ~fields[:, 1:4].any(axis=1) & (key_size < 0x80) & (key_size & 1 == 0)
    begins = (at + longer + 5)[usual].tolist()
    newest = {
        bytes(buffer.data[begin : begin + size + beyond_key]): item
        for item, begin, size in zip(data[usual].tolist(), begins, (key_size[usual] >> 1).tolist(), strict=True)
    }
    return sorted([*data[~usual].tolist(), *newest.values()])


def _open(entry: memoryview) -> tuple[dict[str, Record], int]:
    """The newest record of each id in a batch, in the order of offsets, and how many keys are not understood.

    Raises:
        FormatError: the batch is damaged or too large; then nothing of it counts.
    """
    found: dict[str, Record] = {}
    unknown = 0
    records = read_entry_records(entry)
    if records is None:
        raise FormatError("the batch is not all there")
    for record in records:
        try:
            transactional_id = read_transaction_key(record.key or b"")
        except FormatError:
            unknown += 1
            continue
        if transactional_id is not None:
            found.pop(transactional_id, None)
            found[transactional_id] = record
    return found, unknown


def _entry(whole_id: str, record: Record) -> CoordinatorEntry:
    transactional_id = short_name(whole_id)
    if record.value is None:
        return CoordinatorEntry(transactional_id=transactional_id, offset=record.offset, state=TOMBSTONE)
    try:
        value = read_transaction_value(record.value)
    except FormatError:
        return CoordinatorEntry(transactional_id=transactional_id, offset=record.offset, state=NOT_UNDERSTOOD)
    return CoordinatorEntry(
        transactional_id=transactional_id,
        offset=record.offset,
        state=value.state.kafka_name,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.timeout_ms,
        start_ms=value.start_timestamp,
        last_update_ms=value.last_update_timestamp,
        partitions=tuple(f"{some.topic}-{partition}" for some in value.partitions for partition in some.partitions),
        previous_producer_id=value.previous_producer_id,
    )


def producer_owners(batches: Batches, buffer: Bytes) -> list[tuple[int, int, str]]:
    """The offset of a record, a producer id and the short transactional id that it was given to, for each that the sound batches name.

    Not only the newest records count: a transactional id that had a producer id once has it for good. Records that cannot be read are left
    out.
    """
    found: dict[int, tuple[int, int, str]] = {}
    for item in _worth_opening(batches, buffer, beyond_key=_TO_PRODUCER_ID):
        position = int(batches.positions[item])
        try:
            for record in read_entry_records(buffer.data[position : position + int(batches.size[item])]) or ():
                transactional_id = read_transaction_key(record.key or b"")
                if transactional_id is None or record.value is None:
                    continue
                value = read_transaction_value(record.value)
                for producer_id in (value.producer_id, value.previous_producer_id, value.next_producer_id):
                    if producer_id >= 0:
                        found[producer_id] = (record.offset, producer_id, short_name(transactional_id))
        except FormatError:
            continue
    return list(found.values())
