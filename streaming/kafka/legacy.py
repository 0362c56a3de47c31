"""Messages of magic 0 and 1 (`LegacyRecord`, `AbstractLegacyRecordBatch`): what their fixed part does not tell.

An uncompressed message is a batch of one. A compressed one is a *wrapper*: its value is the compressed stream of inner messages and its offset is
that of the last of them, so the first offset and the number of records stand only inside. Inner offsets are absolute in magic 0 and
count from 0 in magic 1.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct, error

import cramjam
import lz4.block
import lz4.frame

from streaming.errors import FormatError
from streaming.kafka.layout import CODEC_MASK

_OFFSET_SIZE = Struct(">qi")
_LENGTH = Struct(">i")
_TIMESTAMP = Struct(">q")
_HEAD_BYTES = {0: 18, 1: 26}  # up to the key's length
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEAD_BYTES = 16
MAX_INFLATED_BYTES = 256 << 20
"""A wrapper that grows beyond this is refused: no broker takes a message set of that size."""


@dataclass(frozen=True, slots=True)
class LegacyEntry:
    """One message or wrapper of magic 0 or 1. ``timestamp`` is -1 in magic 0 (milliseconds otherwise)."""

    base_offset: int
    last_offset: int
    records: int
    codec: int
    timestamp: int


def read_entry(entry: memoryview) -> LegacyEntry:
    """Read one whole message, offset and size included.

    Raises:
        FormatError: a length inside it points outside, or a wrapper cannot be inflated.
    """
    try:
        return _read_entry(entry)
    except (error, IndexError) as reason:
        raise FormatError(f"a message of an old format is cut short ({reason})") from reason


def _read_entry(entry: memoryview) -> LegacyEntry:
    offset, _ = _OFFSET_SIZE.unpack_from(entry)
    magic, attributes = entry[16], entry[17]
    codec = attributes & CODEC_MASK
    timestamp = _TIMESTAMP.unpack_from(entry, 18)[0] if magic == 1 else -1
    if codec == 0:
        return LegacyEntry(offset, offset, 1, 0, timestamp)
    inner = _inner_offsets(_inflate(codec, _value(entry, _HEAD_BYTES[magic])))
    if not inner:
        raise FormatError("a compressed message holds no message")
    first = inner[0] if magic == 0 else offset - inner[-1] + inner[0]
    return LegacyEntry(first, offset, len(inner), codec, timestamp)


def _value(entry: memoryview, at: int) -> memoryview:
    for _ in ("key", "value"):
        (length,) = _LENGTH.unpack_from(entry, at)
        begin, at = at + 4, at + 4 + max(length, 0)
    if at > len(entry):
        raise FormatError("the value of a message reaches past its end")
    return entry[begin:at]


def _inner_offsets(messages: bytes) -> list[int]:
    offsets, at = [], 0
    while at + _OFFSET_SIZE.size <= len(messages):
        offset, size = _OFFSET_SIZE.unpack_from(messages, at)
        at += _OFFSET_SIZE.size + size
        if size <= 0 or at > len(messages):
            raise FormatError("a message inside a compressed one reaches past its end")
        offsets.append(offset)
    return offsets


def _inflate(codec: int, data: memoryview) -> bytes:
    inflate = _INFLATERS.get(codec)
    if inflate is None:
        raise FormatError(f"codec {codec} does not exist in messages of magic 0 and 1")
    try:
        return inflate(data)
    except (zlib.error, cramjam.DecompressionError, RuntimeError, lz4.block.LZ4BlockError, ValueError, error) as reason:
        raise FormatError(f"a compressed message cannot be inflated ({reason})") from reason


def _gzip(data: memoryview) -> bytes:
    return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, MAX_INFLATED_BYTES)


def _snappy(data: memoryview) -> bytes:
    if bytes(data[: len(_XERIAL)]) != _XERIAL:  # other clients write one raw block
        return bytes(cramjam.snappy.decompress_raw(data))
    out, at = [], _XERIAL_HEAD_BYTES
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        out.append(bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + length])))
        at += 4 + length
    return b"".join(out)


def _lz4(data: memoryview) -> bytes:
    # the frame's header checksum is wrong in magic 0 (KAFKA-3160), so the blocks are taken one by one: Kafka's frames have independent ones
    flags, at, out = data[4], 7 + (8 if data[4] & 0x08 else 0), []
    biggest = 1 << (8 + 2 * (data[5] >> 4 & 7))
    while length := int.from_bytes(data[at : at + 4], "little"):
        block = data[at + 4 : at + 4 + (length & 0x7FFFFFFF)]
        out.append(bytes(block) if length >> 31 else lz4.block.decompress(block, uncompressed_size=biggest))
        at += 4 + len(block) + (4 if flags & 0x10 else 0)
    return b"".join(out)


_INFLATERS: dict[int, Callable[[memoryview], bytes]] = {1: _gzip, 2: _snappy, 3: _lz4}
