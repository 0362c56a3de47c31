"""Messages of magic 0 and 1 (`LegacyRecord`, `AbstractLegacyRecordBatch`): the parts that their fixed head does not contain.

An uncompressed message is a batch of one. A compressed one is a *wrapper*: its value is the compressed stream of inner messages, and its
offset is that of the last of them. So the first offset and the number of records are known only from inside. Inner offsets are absolute in
magic 0 and count from 0 in magic 1.
"""

from dataclasses import dataclass
from struct import Struct, error

from streaming.errors import FormatError
from streaming.kafka.decompression import decompress_old
from streaming.kafka.layout import CODEC_MASK

_OFFSET_SIZE = Struct(">qi")
_LENGTH = Struct(">i")
_TIMESTAMP = Struct(">q")
_HEAD_BYTES = {0: 18, 1: 26}  # up to the key's length

MAX_INFLATED_BYTES = 256 << 20
"""The most bytes of a decompressed wrapper. A larger one is refused: no broker accepts a message set of that size."""


@dataclass(frozen=True, slots=True)
class LegacyEntry:
    """One message or wrapper of magic 0 or 1. ``timestamp`` is -1 in magic 0 (milliseconds otherwise)."""

    base_offset: int
    last_offset: int
    records: int
    codec: int
    timestamp: int


def read_entry(entry: memoryview) -> LegacyEntry:
    """Read one complete message, including offset and size.

    Raises:
        FormatError: a length inside it points outside, a wrapper cannot be decompressed, or its offsets do not fit into 64 bits.
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
    inner = _inner_offsets(decompress_old(magic, codec, _value(entry, _HEAD_BYTES[magic]), MAX_INFLATED_BYTES))
    if not inner:
        raise FormatError("a compressed message holds no message")
    first = inner[0] if magic == 0 else offset - inner[-1] + inner[0]
    if not -(2**63) <= first < 2**63:
        raise FormatError(f"a compressed message whose first offset would be {first}")
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
