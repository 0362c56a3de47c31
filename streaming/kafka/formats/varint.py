"""Variable-length integers: base 128, least significant group first, signed ones in ZigZag (`ByteUtils`)."""

from streaming.errors import FormatError

Bytes = bytes | bytearray | memoryview

_INT_BYTES = 5
_LONG_BYTES = 10


def read_uvarint(data: Bytes, position: int) -> tuple[int, int]:
    """Return an unsigned varint of at most 32 bits and the position after it."""
    if position < len(data) and (raw := data[position]) < 0x80:  # most have one byte: lengths and tags
        return raw, position + 1
    return _read(data, position, _INT_BYTES, 32)


def read_varint(data: Bytes, position: int) -> tuple[int, int]:
    """Return a signed varint of at most 32 bits and the position after it."""
    if position < len(data) and (raw := data[position]) < 0x80:  # most have one byte, and every record has seven of them
        return (raw >> 1) ^ -(raw & 1), position + 1
    raw, position = _read(data, position, _INT_BYTES, 32)
    return (raw >> 1) ^ -(raw & 1), position


def read_varlong(data: Bytes, position: int) -> tuple[int, int]:
    """Return a signed varint of at most 64 bits and the position after it."""
    raw, position = _read(data, position, _LONG_BYTES, 64)
    return (raw >> 1) ^ -(raw & 1), position


def _read(data: Bytes, position: int, longest: int, bits: int) -> tuple[int, int]:
    value = shift = 0
    for at in range(position, min(position + longest, len(data))):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> bits:
                raise FormatError(f"varint of more than {bits} bits", position)
            return value, at + 1
        shift += 7
    raise FormatError("varint without an end", position)
