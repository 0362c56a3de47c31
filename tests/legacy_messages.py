"""Messages of magic 0 and 1, alone and in compressed wrappers, as brokers before 0.11 wrote them (`LegacyRecord`).

No current broker writes them; logs that were never rewritten still hold them.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from streaming.kafka.formats.compression import compress
from streaming.simulator.batch_writer import BatchEntry, Codec, Record

_LOG_APPEND_TIME = 1 << 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """What one old producer request appended: a message a record without a codec, one wrapper around them all with one."""

    magic: int
    records: tuple[Record, ...]
    codec: Codec = Codec.NONE
    log_append_time: int | None = None

    def entries(self, base_offset: int, leader_epoch: int) -> Iterator[tuple[BatchEntry, bytes]]:
        """One entry and its bytes for each message of the log; old messages carry no leader epoch."""
        if self.codec is Codec.NONE:
            for place, record in enumerate(self.records):
                data = encode_message(self.magic, base_offset + place, record, log_append_time=self.log_append_time)
                yield self._entry(base_offset + place, base_offset + place, 1, record.timestamp, len(data)), data
        else:
            last_offset = base_offset + len(self.records) - 1
            timestamp = max(record.timestamp for record in self.records)
            data = encode_wrapper(self.magic, base_offset, self.records, self.codec, log_append_time=self.log_append_time)
            yield self._entry(base_offset, last_offset, len(self.records), timestamp, len(data)), data

    def _entry(self, base_offset: int, last_offset: int, records: int, timestamp: int, size: int) -> BatchEntry:
        if self.log_append_time is not None:
            timestamp = self.log_append_time
        return BatchEntry(
            base_offset=base_offset,
            last_offset=last_offset,
            size=size,
            magic=self.magic,
            records=records,
            control=False,
            max_timestamp=-1 if self.magic == 0 else timestamp,
        )


def encode_message(magic: int, offset: int, record: Record, *, codec: Codec = Codec.NONE, log_append_time: int | None = None) -> bytes:
    """One message. Headers and leader epochs do not exist here; magic 0 has no timestamp either.

    Raises:
        ValueError: not a magic of old messages, or zstd, which came after them.
    """
    if magic not in (0, 1):
        raise ValueError(f"messages have magic 0 or 1, not {magic}")
    if codec is Codec.ZSTD:
        raise ValueError("zstd needs magic 2")
    attributes = int(codec)
    stamp = b""
    if magic == 1:
        attributes |= _LOG_APPEND_TIME if log_append_time is not None else 0
        stamp = struct.pack(">q", record.timestamp if log_append_time is None else log_append_time)
    checked = struct.pack(">bb", magic, attributes) + stamp + _sized(record.key) + _sized(record.value)
    return struct.pack(">qiI", offset, 4 + len(checked), zlib.crc32(checked)) + checked


def encode_wrapper(magic: int, base_offset: int, records: tuple[Record, ...], codec: Codec, *, log_append_time: int | None = None) -> bytes:
    """Messages compressed into one. Its offset is the last inner one; inner offsets are absolute in magic 0, relative in magic 1.

    The lz4 frame of magic 0 has a correct header checksum; brokers of that time wrote a wrong one, which readers do not check.
    """
    first_inner = base_offset if magic == 0 else 0
    inner = b"".join(encode_message(magic, first_inner + place, record) for place, record in enumerate(records))
    outer = Record(None, compress(codec, inner), max(record.timestamp for record in records))
    return encode_message(magic, base_offset + len(records) - 1, outer, codec=codec, log_append_time=log_append_time)


def _sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data
