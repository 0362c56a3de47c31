"""Reads the records of an entry of a `.log`, whether a batch of magic 2 or a message of magic 0 or 1 (`AbstractRecords`)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

from streaming.errors import FormatError, TooLargeError
from streaming.kafka.formats.decompression import decompressed_old
from streaming.kafka.formats.layout import (
    CODEC_MASK,
    CURRENT_MAGIC,
    MAGIC_AT,
    MIN_LENGTH,
    OLD_CHECKED_FROM,
    PREFIX_BYTES,
    TIMESTAMP_TYPE_BIT,
    crc32,
)
from streaming.kafka.formats.records import (
    MAX_OPENED_BYTES,
    MAX_OPENED_RECORDS,
    MAX_RECORDS_BYTES,
    MAX_TIMED_BYTES,
    MovingWindow,
    Record,
    read_batch,
    read_begun_batch,
    read_record_heads,
    read_records,
)
from streaming.kafka.formats.wire import Bytes

_HEAD = struct.Struct(">qiIbb")
_OFFSET_SIZE = struct.Struct(">qi")
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_MIN_LENGTHS = {0: MIN_LENGTH, 1: MIN_LENGTH + _TIMESTAMP.size}

TIMED_ENTRY_BYTES = MAX_TIMED_BYTES + (64 << 10)
"""How much of an entry is worth reading for times: more only holds what lies beyond `MAX_TIMED_BYTES`, or what does not grow at all."""


def read_entry_records(
    data: memoryview, position: int = 0, limit: int = MAX_OPENED_BYTES, most: int = MAX_OPENED_RECORDS
) -> Iterator[Record] | None:
    """The records of the entry at `position`, opened as they are taken; None if the entry is not complete yet. The CRC is not checked.

    Raises:
        FormatError: there is no entry of any magic; or, while records are taken, they are damaged.
        TooLargeError: while records are taken: they grow beyond `limit` bytes, or are more than `most`.
    """
    if len(data) - position <= MAGIC_AT:
        return None
    if data[position + MAGIC_AT] < CURRENT_MAGIC:
        message = read_message(data, position)
        return None if message is None else (_record(one) for one in inner_messages(message, limit, most))
    batch = read_batch(data, position, check_crc=False)
    return None if batch is None else read_records(batch, limit, most)


def read_message(data: Bytes, position: int = 0) -> OldMessage | None:
    """The message that starts at `position`, or None if it is not complete yet (or if zeros of a preallocated file begin there).

    A wrong CRC is no error; `is_valid` reports it.

    Raises:
        FormatError: these bytes are no message of magic 0 or 1; with the position.
    """
    if len(data) - position < PREFIX_BYTES:
        return None
    (length,) = _LENGTH.unpack_from(data, position + PREFIX_BYTES - _LENGTH.size)
    if length == 0:
        return None
    if length < MIN_LENGTH:
        raise FormatError(f"message length {length} is too small", position)
    if len(data) - position > MAGIC_AT and data[position + MAGIC_AT] not in _MIN_LENGTHS:
        raise FormatError(f"magic {data[position + MAGIC_AT]} where 0 or 1 is expected", position)
    size = PREFIX_BYTES + length
    return None if len(data) - position < size else _message(data[position : position + size], position)


@dataclass(frozen=True, slots=True, kw_only=True)
class OldMessage:
    """One message: alone, inside a wrapper, or a wrapper itself. `timestamp` is -1 in magic 0, `size` counts all of its bytes."""

    size: int
    offset: int
    magic: int
    crc: int
    is_valid: bool
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None

    @property
    def codec(self) -> int:
        """Codec id of the inner messages, 0 for a message that is no wrapper."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether `timestamp` is the broker's."""
        return self.magic > 0 and bool(self.attributes & TIMESTAMP_TYPE_BIT)


def _message(data: Bytes, position: int) -> OldMessage:
    offset, crc, magic, attributes, timestamp, at = _head(data, position)
    key, at = _field(data, at, position)
    value, at = _field(data, at, position)
    if at != len(data):
        raise FormatError("message does not end where its size says", position)
    return OldMessage(
        size=len(data),
        offset=offset,
        magic=magic,
        crc=crc,
        is_valid=crc32(data[OLD_CHECKED_FROM:]) == crc,
        attributes=attributes,
        timestamp=timestamp,
        key=key,
        value=value,
    )


def _head(data: Bytes, position: int) -> tuple[int, int, int, int, int, int]:
    """Offset, CRC, magic, attributes and timestamp of the message in `data`, and where its key begins."""
    if len(data) < PREFIX_BYTES + MIN_LENGTH:
        raise FormatError("message is cut short", position)
    offset, length, crc, magic, attributes = _HEAD.unpack_from(data)
    if length < _MIN_LENGTHS[magic]:
        raise FormatError(f"message length {length} is too small", position)
    if magic == 0:
        return offset, crc, magic, attributes, -1, _HEAD.size
    (timestamp,) = _TIMESTAMP.unpack_from(data, _HEAD.size)
    return offset, crc, magic, attributes, timestamp, _HEAD.size + _TIMESTAMP.size


def _field(data: Bytes, at: int, position: int) -> tuple[bytes | None, int]:
    """A field with its length before it, -1 for null, and the position after it."""
    start = at + _LENGTH.size
    if start > len(data):
        raise FormatError("message is cut short", position)
    (length,) = _LENGTH.unpack_from(data, at)
    if length == -1:
        return None, start
    if not 0 <= length <= len(data) - start:
        raise FormatError("field longer than its message", position)
    return bytes(data[start : start + length]), start + length


def _record(message: OldMessage) -> Record:
    return Record(message.offset, message.timestamp, -1, message.key, message.value, ())


def inner_messages(message: OldMessage, limit: int = MAX_OPENED_BYTES, most: int = MAX_OPENED_RECORDS) -> Iterator[OldMessage]:
    """The messages inside a wrapper, with absolute offsets, opened as they are taken. Any other message is its own.

    Raises:
        FormatError: the wrapper cannot be decompressed, or contains something else than messages of its own magic.
        TooLargeError: it grows beyond `limit` bytes, or holds more than `most` messages.
    """
    if message.codec == 0:
        yield message
        return
    if message.value is None:
        raise FormatError("compressed message without a value")
    inner = _inner_offsets(message.magic, message.codec, message.value, limit)  # the last one is needed before the first is placed
    if not inner.count:
        raise FormatError("compressed message without a message in it")
    if inner.count > most:
        raise TooLargeError(f"{inner.count} messages in a compressed one, more than {most}")
    window = MovingWindow(decompressed_old(message.magic, message.codec, message.value, limit))
    while window.has(1):
        one = _next_message(window)
        if one.magic != message.magic or one.codec:
            what = f"message of magic {one.magic} and codec {one.codec} inside a compressed one of magic {message.magic}"
            raise FormatError(what, window.position)
        window.at += one.size
        yield _placed(message, one, inner)


def _inner_offsets(magic: int, codec: int, value: Bytes, limit: int) -> _Offsets:
    window = MovingWindow(decompressed_old(magic, codec, value, limit))
    count = first = last = 0
    while window.has(_OFFSET_SIZE.size):
        last, size = _OFFSET_SIZE.unpack_from(window.data, window.at)
        if size <= 0:
            raise FormatError("a message inside a compressed one reaches past its end")
        first = first if count else last
        count += 1
        window.at += _OFFSET_SIZE.size + size
    if window.at > len(window.data):
        raise FormatError("a message inside a compressed one reaches past its end")
    return _Offsets(count, first, last)


@dataclass(frozen=True, slots=True)
class _Offsets:
    """How many messages a wrapper holds, and the offsets of the first and the last as they are inside."""

    count: int
    first: int
    last: int


def _next_message(window: MovingWindow) -> OldMessage:
    """The next message, at whose beginning the window stays."""
    window.has(PREFIX_BYTES)
    size = PREFIX_BYTES
    if len(window.data) - window.at >= PREFIX_BYTES:
        size += max(0, _LENGTH.unpack_from(window.data, window.at + PREFIX_BYTES - _LENGTH.size)[0])
    window.has(size)
    one = read_message(window.data, window.at)
    if one is None:
        raise FormatError("message inside a compressed one is cut short", window.position)
    return one


def _placed(wrapper: OldMessage, one: OldMessage, inner: _Offsets) -> OldMessage:
    """An inner message with the offset that its wrapper gives it and, if that has one, its append time."""
    if wrapper.magic == 0:
        return one
    offset = wrapper.offset - inner.last + one.offset
    return replace(one, offset=offset, timestamp=wrapper.timestamp if wrapper.is_log_append_time else one.timestamp)


def read_entry(entry: Bytes, limit: int = MAX_RECORDS_BYTES) -> LegacyEntry:
    """Read no more of one complete message than it takes to know its offsets: a wrapper is decompressed, to at most `limit` bytes.

    Nothing of that is kept, so the limit may be far above what a broker accepts: a log would stop at a wrapper that is beyond it.

    Raises:
        FormatError: a length inside it points outside, a wrapper cannot be decompressed, or its offsets do not fit into 64 bits.
    """
    offset, _, magic, attributes, timestamp, at = _head(entry, 0)
    codec = attributes & CODEC_MASK
    if codec == 0:
        return LegacyEntry(offset, offset, 1, 0, timestamp)
    _key, at = _field(entry, at, 0)
    value, _ = _field(entry, at, 0)
    inner = _inner_offsets(magic, codec, value or b"", limit)
    if not inner.count:
        raise FormatError("compressed message without a message in it")
    first = inner.first if magic == 0 else offset - inner.last + inner.first
    if not -(2**63) <= first < 2**63:
        raise FormatError(f"a compressed message whose first offset would be {first}")
    return LegacyEntry(first, offset, inner.count, codec, timestamp)


@dataclass(frozen=True, slots=True)
class LegacyEntry:
    """The offsets of a message or wrapper, and how many messages it is. `timestamp` is -1 in magic 0 (milliseconds otherwise)."""

    base_offset: int
    last_offset: int
    records: int
    codec: int
    timestamp: int


def read_entry_times(data: memoryview, limit: int = MAX_TIMED_BYTES) -> Iterator[tuple[int, int]]:
    """Offset and timestamp of each record of an entry, of which `data` is all or the beginning (`TIMED_ENTRY_BYTES`), one by one.

    Messages of magic 0 and 1 (`LegacyRecord`, `AbstractLegacyRecordBatch`). Kafka wrote them before 0.11 and still reads them.
    Layout, big-endian:: 0 offset i64 | 8 size i32 (bytes after it) | 12 crc u32 (CRC-32 of 16..end) | 16 magic i8 | 17 attributes i8
    18 timestamp i64 (magic 1 only, Unix milliseconds) | key | value An int32 length comes before key and value, -1 for null.
    Attributes: bits 0 to 2 codec, bit 3 timestamp type (magic 1 only). A message without a codec is a batch of one. One with a codec
    is a *wrapper*: its value is the compressed stream of inner messages, and its offset is that of the last of them. So its first
    offset and the number of its records are known only from inside. Inner offsets are absolute in magic 0 and relative in magic 1. A
    wrapper with LogAppendTime gives its time to the inner messages.

    Raises:
        FormatError: it is damaged, or ends too early.
        TooLargeError: it grows beyond `limit` bytes before the record that is asked for.
    """
    if len(data) > MAGIC_AT and data[MAGIC_AT] >= CURRENT_MAGIC:
        batch = read_begun_batch(data)
        for offset, timestamp, _ in read_record_heads(batch, limit, batch.records_count):
            yield offset, timestamp
        return
    message = read_message(data)
    if message is None:
        raise FormatError("no whole message")
    yield from ((one.offset, one.timestamp) for one in inner_messages(message, limit, limit))
