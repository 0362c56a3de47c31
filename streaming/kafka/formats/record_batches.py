"""Reads record batches of magic 2 one by one, for logs with records that are read (`DefaultRecordBatch`).

The layout is in `layout`; all numbers are big-endian. The logs of user topics are walked and summed elsewhere, many batches at once. This
is the simple way.
"""

import struct
from dataclasses import dataclass

from streaming.errors import FormatError
from streaming.kafka.formats.crc import CHECKED_FROM, crc32c
from streaming.kafka.formats.layout import (
    CODEC_MASK,
    CONTROL_BIT,
    CURRENT_MAGIC,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    MAGIC_AT,
    PREFIX_BYTES,
    TIMESTAMP_TYPE_BIT,
)

_PREFIX = struct.Struct(">qi")
_HEADER = struct.Struct(">qiibIhiqqqhii")
_MOST_SEQUENCE = 0x7FFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBatch:
    """One batch: the fields of its header, and its records section as it is in the log.

    Times are Unix milliseconds; leader epoch, producer fields and sequence are -1 where there are none. `base_timestamp` is the time of the
    first record only if the batch is not empty and has no delete horizon.
    """

    size: int
    base_offset: int
    last_offset: int
    partition_leader_epoch: int
    crc: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int
    payload: memoryview

    @property
    def next_offset(self) -> int:
        """The offset after this batch."""
        return self.last_offset + 1

    @property
    def codec(self) -> int:
        """Codec id of the records section."""
        return self.attributes & CODEC_MASK

    @property
    def is_control(self) -> bool:
        """Whether it has control records: markers of transactions, or the metadata quorum's own records."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def is_log_append_time(self) -> bool:
        """Whether `max_timestamp` is the time of every record in it."""
        return bool(self.attributes & TIMESTAMP_TYPE_BIT)

    @property
    def delete_horizon(self) -> int | None:
        """The time from which compaction may remove the tombstones and markers in it; None if it has set none."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def last_sequence(self) -> int:
        """Sequence of the record at `last_offset`, -1 if there is none."""
        return self.sequence_at(self.last_offset - self.base_offset)

    def sequence_at(self, offset_delta: int) -> int:
        """Sequence of the record at `base_offset + offset_delta`, -1 if there is none. After 2^31 - 1, sequences continue at 0."""
        return -1 if self.base_sequence < 0 else (self.base_sequence + offset_delta) & _MOST_SEQUENCE


def read_batch(data: memoryview, position: int = 0, *, check_crc: bool = True) -> RecordBatch | None:
    """The batch that starts at `position`, or None if it is not complete yet (or if zeros of a preallocated file begin there).

    Raises:
        FormatError: these bytes are no batch of magic 2, or its CRC is wrong and `check_crc` is set; with the position.
    """
    if len(data) - position < PREFIX_BYTES:
        return None
    _, length = _PREFIX.unpack_from(data, position)
    if length == 0:
        return None
    size = PREFIX_BYTES + length
    if size < HEADER_BYTES:
        raise FormatError(f"batch length {length} is too small", position)
    if len(data) - position > MAGIC_AT and data[position + MAGIC_AT] != CURRENT_MAGIC:
        raise FormatError(f"magic {data[position + MAGIC_AT]} where {CURRENT_MAGIC} is expected", position)
    if len(data) - position < size:
        return None
    return _batch(data[position : position + size], position, check_crc)


def read_begun_batch(data: memoryview) -> RecordBatch:
    """The batch of which `data` is the beginning: its header, and as much of its records section as is there. The CRC is not checked.

    Raises:
        FormatError: not even the header of a batch of magic 2 is there.
    """
    if len(data) < HEADER_BYTES or data[MAGIC_AT] != CURRENT_MAGIC:
        raise FormatError("no header of a batch")
    return _batch(data, 0, check_crc=False)


def _batch(data: memoryview, position: int, check_crc: bool) -> RecordBatch:
    (base_offset, _, leader_epoch, _, crc, attributes, last_delta, base_timestamp, max_timestamp, *producer, count) = _HEADER.unpack_from(
        data
    )
    if check_crc and crc32c(data[CHECKED_FROM:]) != crc:
        raise FormatError("wrong CRC", position)
    if base_offset < 0 or last_delta < 0 or count < 0:
        raise FormatError("negative offset or count in a batch", position)
    return RecordBatch(
        size=len(data),
        base_offset=base_offset,
        last_offset=base_offset + last_delta,
        partition_leader_epoch=leader_epoch,
        crc=crc,
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        records_count=count,
        payload=data[HEADER_BYTES:],
    )
