"""Messages of magic 0 and 1 (`LegacyRecord`, `AbstractLegacyRecordBatch`). Kafka wrote them before 0.11 and still reads them.

Layout, big-endian::

    0 offset i64 | 8 size i32 (bytes after it) | 12 crc u32 (CRC-32 of 16..end) | 16 magic i8 | 17 attributes i8
    18 timestamp i64 (magic 1 only, Unix milliseconds) | key | value

An int32 length comes before key and value, -1 for null. Attributes: bits 0 to 2 codec, bit 3 timestamp type (magic 1 only).

A message without a codec is a batch of one. One with a codec is a *wrapper*: its value is the compressed stream of inner messages, and its
offset is that of the last of them. So its first offset and the number of its records are known only from inside. Inner offsets are absolute
in magic 0 and relative in magic 1. A wrapper with LogAppendTime gives its time to the inner messages.
"""

import struct
from dataclasses import dataclass, replace

from streaming.errors import FormatError
from streaming.kafka.crc import OLD_CHECKED_FROM, crc32
from streaming.kafka.decompression import decompress_old
from streaming.kafka.layout import CODEC_MASK, MAGIC_AT, MIN_LENGTH, PREFIX_BYTES, TIMESTAMP_TYPE_BIT
from streaming.kafka.records import MAX_RECORDS_BYTES
from streaming.kafka.varint import Bytes

_HEAD = struct.Struct(">qiIbb")
_OFFSET_SIZE = struct.Struct(">qi")
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_MIN_LENGTHS = {0: MIN_LENGTH, 1: MIN_LENGTH + _TIMESTAMP.size}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
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


@dataclass(frozen=True, slots=True)
class LegacyEntry:
    """The offsets of a message or wrapper, and how many messages it is. `timestamp` is -1 in magic 0 (milliseconds otherwise)."""

    base_offset: int
    last_offset: int
    records: int
    codec: int
    timestamp: int


def read_message(data: Bytes, position: int = 0) -> Message | None:
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


def inner_messages(message: Message, limit: int = MAX_RECORDS_BYTES) -> tuple[Message, ...]:
    """The messages inside a wrapper, decompressed to at most `limit` bytes, with absolute offsets. Any other message is its own.

    Raises:
        FormatError: the wrapper cannot be decompressed, grows beyond `limit`, or contains something else than messages of its own magic.
    """
    if message.codec == 0:
        return (message,)
    if message.value is None:
        raise FormatError("compressed message without a value")
    data = decompress_old(message.magic, message.codec, message.value, limit)
    inner: list[Message] = []
    position = 0
    while position < len(data):
        one = read_message(data, position)
        if one is None:
            raise FormatError("message inside a compressed one is cut short", position)
        if one.magic != message.magic or one.codec:
            raise FormatError(
                f"message of magic {one.magic} and codec {one.codec} inside a compressed one of magic {message.magic}", position
            )
        inner.append(one)
        position += one.size
    if not inner:
        raise FormatError("compressed message without a message in it")
    return _placed(message, inner)


def read_entry(entry: Bytes, limit: int = MAX_RECORDS_BYTES) -> LegacyEntry:
    """Read no more of one complete message than it takes to know its offsets: a wrapper is decompressed, to at most `limit` bytes.

    Raises:
        FormatError: a length inside it points outside, a wrapper cannot be decompressed, or its offsets do not fit into 64 bits.
    """
    offset, _, magic, attributes, timestamp, at = _head(entry, 0)
    codec = attributes & CODEC_MASK
    if codec == 0:
        return LegacyEntry(offset, offset, 1, 0, timestamp)
    _key, at = _field(entry, at, 0)
    value, _ = _field(entry, at, 0)
    inner = _inner_offsets(decompress_old(magic, codec, value or b"", limit))
    if not inner:
        raise FormatError("compressed message without a message in it")
    first = inner[0] if magic == 0 else offset - inner[-1] + inner[0]
    if not -(2**63) <= first < 2**63:
        raise FormatError(f"a compressed message whose first offset would be {first}")
    return LegacyEntry(first, offset, len(inner), codec, timestamp)


def _inner_offsets(messages: bytes) -> list[int]:
    offsets, at = [], 0
    while at + _OFFSET_SIZE.size <= len(messages):
        offset, size = _OFFSET_SIZE.unpack_from(messages, at)
        at += _OFFSET_SIZE.size + size
        if size <= 0 or at > len(messages):
            raise FormatError("a message inside a compressed one reaches past its end")
        offsets.append(offset)
    return offsets


def _placed(wrapper: Message, inner: list[Message]) -> tuple[Message, ...]:
    """The inner messages with the offsets of their wrapper and, if it has one, its append time."""
    if wrapper.magic == 0:
        return tuple(inner)
    base = wrapper.offset - inner[-1].offset
    if not wrapper.is_log_append_time:
        return tuple(replace(one, offset=base + one.offset) for one in inner)
    return tuple(replace(one, offset=base + one.offset, timestamp=wrapper.timestamp) for one in inner)


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


def _message(data: Bytes, position: int) -> Message:
    offset, crc, magic, attributes, timestamp, at = _head(data, position)
    key, at = _field(data, at, position)
    value, at = _field(data, at, position)
    if at != len(data):
        raise FormatError("message does not end where its size says", position)
    return Message(
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
