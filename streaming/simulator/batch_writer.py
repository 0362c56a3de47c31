"""Record batches of magic 2, control batches among them: values in, the bytes of a log out.

Follows `DefaultRecordBatch`, `DefaultRecord`, `ControlRecordType` and `EndTransactionMarker`. A `Batch` is what a producer made; its
position in a log (base offset, leader epoch) is given when it is encoded, as a leader does it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

import google_crc32c

from streaming.kafka.formats.compression import compress
from streaming.kafka.formats.wire import varint

_PREFIX = struct.Struct(">qiibI")  # base offset, batch length, leader epoch, magic, crc
_CHECKED = struct.Struct(">hiqqqhii")  # what the CRC covers, up to the records
_CONTROL_KEY = struct.Struct(">hh")
_END_TXN = struct.Struct(">hi")

_LOG_APPEND_TIME, _TRANSACTIONAL, _CONTROL, _DELETE_HORIZON = 1 << 3, 1 << 4, 1 << 5, 1 << 6


class Codec(IntEnum):
    """Attributes bits 0 to 2 of a batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


@dataclass(frozen=True, slots=True)
class Record:
    """One record; ``timestamp`` in Unix milliseconds, ``offset_delta`` None for its index in the batch."""

    key: bytes | None = None
    value: bytes | None = None
    timestamp: int = -1
    headers: tuple[tuple[str, bytes | None], ...] = ()
    offset_delta: int | None = None


@dataclass(frozen=True, slots=True)
class Marker:
    """How a transaction ended."""

    committed: bool
    coordinator_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch of magic 2 with all its attributes.

    ``log_append_time`` is the broker's time where the topic uses it, ``delete_horizon`` the time that compaction wrote into the base
    timestamp. ``last_offset_delta`` and ``max_timestamp`` are worked out from the records unless given (as they must be for an empty one).
    """

    records: tuple[Record, ...]
    codec: Codec = Codec.NONE
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    transactional: bool = False
    control: bool = False
    marker: Marker | None = None
    log_append_time: int | None = None
    delete_horizon: int | None = None
    last_offset_delta: int | None = None
    max_timestamp: int | None = None

    def entries(self, base_offset: int, leader_epoch: int) -> Iterator[tuple[BatchEntry, bytes]]:
        """The one entry of this batch, and its bytes."""
        data = encode(self, base_offset, leader_epoch)
        last_delta = _last_offset_delta(self)
        yield (
            BatchEntry(
                base_offset=base_offset,
                last_offset=base_offset + last_delta,
                size=len(data),
                magic=2,
                records=0 if self.control else len(self.records),
                control=self.control,
                max_timestamp=_max_timestamp(self),
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                last_sequence=next_sequence(self.base_sequence, last_delta) if self.base_sequence >= 0 else -1,
                transactional=self.transactional,
                marker=self.marker,
            ),
            data,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEntry:
    """A batch as its log has to know it; ``records`` is 0 for a control batch, -1 stands for "none"."""

    base_offset: int
    last_offset: int
    size: int
    magic: int
    records: int
    control: bool
    max_timestamp: int
    producer_id: int = -1
    producer_epoch: int = -1
    last_sequence: int = -1
    transactional: bool = False
    marker: Marker | None = None


def encode(batch: Batch, base_offset: int, leader_epoch: int = 0) -> bytes:
    """The bytes of a batch at its position in a log."""
    base_timestamp = _base_timestamp(batch)
    payload = compress(batch.codec, encode_records(batch.records, base_timestamp)) if batch.records else b""
    checked = (
        _CHECKED.pack(
            _attributes(batch),
            _last_offset_delta(batch),
            base_timestamp,
            _max_timestamp(batch),
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            len(batch.records),
        )
        + payload
    )
    # The length counts what follows it; the CRC leaves out what a leader writes afterwards.
    return _PREFIX.pack(base_offset, 9 + len(checked), leader_epoch, 2, google_crc32c.value(checked)) + checked


def _base_timestamp(batch: Batch) -> int:
    if batch.delete_horizon is not None:
        return batch.delete_horizon
    return batch.records[0].timestamp if batch.records else -1


def encode_records(records: Iterable[Record], base_timestamp: int) -> bytes:
    """The records section before compression."""
    out = bytearray()
    for index, record in enumerate(records):
        delta = index if record.offset_delta is None else record.offset_delta
        parts = [
            b"\x00",  # attributes
            varint(record.timestamp - base_timestamp),
            varint(delta),
            _sized(record.key),
            _sized(record.value),
            varint(len(record.headers)),
        ]
        for name, value in record.headers:
            parts += (_sized(name.encode()), _sized(value))
        body = b"".join(parts)
        out += varint(len(body))
        out += body
    return bytes(out)


def _sized(data: bytes | None) -> bytes:
    return b"\x01" if data is None else varint(len(data)) + data


def _attributes(batch: Batch) -> int:
    attributes = int(batch.codec) if batch.records else 0
    if batch.log_append_time is not None:
        attributes |= _LOG_APPEND_TIME
    if batch.transactional:
        attributes |= _TRANSACTIONAL
    if batch.control:
        attributes |= _CONTROL
    if batch.delete_horizon is not None:
        attributes |= _DELETE_HORIZON
    return attributes


def _last_offset_delta(batch: Batch) -> int:
    if batch.last_offset_delta is not None:
        return batch.last_offset_delta
    last = batch.records[-1].offset_delta
    return len(batch.records) - 1 if last is None else last


def _max_timestamp(batch: Batch) -> int:
    if batch.log_append_time is not None:
        return batch.log_append_time
    if batch.max_timestamp is not None:
        return batch.max_timestamp
    return max(record.timestamp for record in batch.records)


def next_sequence(sequence: int, records: int) -> int:
    """The sequence number ``records`` after ``sequence``; numbers wrap from 2^31-1 to 0."""
    return (sequence + records) & 0x7FFFFFFF


def end_transaction(*, committed: bool, producer_id: int, producer_epoch: int, coordinator_epoch: int, timestamp: int) -> Batch:
    """A COMMIT or ABORT marker; ``producer_epoch`` is the data's, plus one where transaction.version is 2."""
    kind = MarkerKind.COMMIT if committed else MarkerKind.ABORT
    return Batch(
        records=(Record(control_key(kind), _END_TXN.pack(0, coordinator_epoch), timestamp),),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        marker=Marker(committed, coordinator_epoch),
    )


class MarkerKind(IntEnum):
    """Types of control records; all above 1 belong to the metadata log."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4


def control_key(kind: MarkerKind) -> bytes:
    """Key of a control record, version 0."""
    return _CONTROL_KEY.pack(0, kind)
