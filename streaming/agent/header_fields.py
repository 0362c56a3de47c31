"""How many fields the headers of a call have, as HPACK writes them (RFC 7541, 5 and 6): without its table, their names or values.

A field that was sent before is one byte: 15,000 of them fit into headers, take gRPC some 100 KiB a call, and not all of it is given back.
"""

from streaming.errors import FormatError

_MOST_SHIFT = 28


def field_count(block: bytes | bytearray, begin: int, most: int) -> int:
    """The fields from ``begin`` on; those of which not all has come count, too. It stops at one beyond ``most``.

    Raises:
        FormatError: a number has no end.
    """
    count, at = 0, begin
    while at < len(block) and count <= most:
        count += 1
        kind = block[at]
        if kind & 0x80:  # a field of the table
            _, at = _number(block, at, 7)
        elif kind & 0xE0 == 0x20:  # the table's size
            _, at = _number(block, at, 5)
        else:
            name, at = _number(block, at, 6 if kind & 0x40 else 4)
            for _ in range(1 if name else 2):
                length, at = _number(block, at, 7)
                at += length
    return count


def _number(block: bytes | bytearray, at: int, bits: int) -> tuple[int, int]:
    """A number, and where it ends: behind the block if not all of it has come."""
    if at >= len(block):
        return 0, at
    most = (1 << bits) - 1
    value, at, shift = block[at] & most, at + 1, 0
    if value < most:
        return value, at
    while at < len(block):
        if shift > _MOST_SHIFT:
            raise FormatError("a number in the headers of a call has no end")
        part = block[at]
        value, at, shift = value + ((part & 0x7F) << shift), at + 1, shift + 7
        if part < 0x80:
            return value, at
    return value, at
