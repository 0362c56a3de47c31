"""Reads the messages of Kafka's protocol: the flexible encoding and the plain one before it (`ByteBufferAccessor`, `MessageGenerator`).

Flexible: an unsigned varint of length + 1 comes before strings, bytes and arrays, 0 for null, and every structure ends with tagged fields.
Plain: an int16 comes before strings, an int32 before bytes and arrays, -1 for null, and there are no tagged fields. Numbers are big-endian.
"""

import base64
import re
import struct
from collections.abc import Callable, Iterator

from streaming.errors import FormatError, quoted

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


UUID_BYTES = 16
_TEXT = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)


def uuid_text(raw: bytes | bytearray | memoryview) -> str:
    """The text of 16 raw bytes."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def check_uuid(text: str) -> str:
    """Return the UUID in its only spelling, so that texts can be compared; FormatError if it is none."""
    if not _TEXT.fullmatch(text):
        raise FormatError(f"{quoted(text)} is not a UUID")
    return uuid_text(base64.urlsafe_b64decode(text + "=="))


def _number(form: str) -> "Callable[[Reader], int]":
    number = struct.Struct(form)
    unpack, size = number.unpack_from, number.size

    def read(reader: "Reader") -> int:
        position = reader._position
        try:
            (value,) = unpack(reader._data, position)
        except struct.error:
            raise FormatError("message is cut short", position) from None
        reader._position = position + size
        return value  # type: ignore[no-any-return]  # a number

    return read


class Reader:
    """A position in the bytes of a flexible message. A method reads one value and advances; FormatError if the bytes end too soon."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: Bytes, position: int = 0) -> None:
        self._data = data
        self._position = position

    int8 = _number(">b")
    int16 = _number(">h")
    uint16 = _number(">H")
    int32 = _number(">i")
    int64 = _number(">q")

    def boolean(self) -> bool:
        return self.int8() != 0

    def uvarint(self) -> int:
        value, self._position = read_uvarint(self._data, self._position)
        return value

    def uuid(self) -> str:
        return uuid_text(self._take(UUID_BYTES))

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise FormatError("null where a string is expected", self._position)
        return text

    def nullable_string(self) -> str | None:
        length = self._string_length()
        if length < 0:
            return None
        start = self._position
        try:
            return str(self._take(length), "utf-8")
        except UnicodeDecodeError as error:
            raise FormatError("string is not UTF-8", start) from error

    def skip_string(self) -> None:
        """Skip a string, or null, without reading it."""
        self._take(max(self._string_length(), 0))

    def data(self) -> bytes:
        """A field of bytes; null is read as empty."""
        return bytes(self._take(max(self._array_length(), 0)))

    def count(self) -> int:
        """The length of an array, -1 for null. Each item takes at least one byte, so a length beyond the remaining bytes is refused."""
        count = self._array_length()
        if count > len(self._data) - self._position:
            raise FormatError("array longer than its message", self._position)
        return count

    def tagged_fields(self) -> "Iterator[tuple[int, Reader]]":
        """The (tag, content) pairs at the end of a structure. A tag that the caller does not know is skipped by not reading it."""
        for _ in range(self.uvarint()):
            tag = self.uvarint()
            yield tag, Reader(self._take(self.uvarint()))

    def skip_tagged_fields(self) -> None:
        for _ in self.tagged_fields():
            pass

    def end(self) -> None:
        """Check that nothing is left."""
        if self._position != len(self._data):
            raise FormatError("bytes after the end of a message", self._position)

    def _string_length(self) -> int:
        return self.uvarint() - 1

    def _array_length(self) -> int:
        return self.uvarint() - 1

    def _take(self, length: int) -> Bytes:
        end = self._position + length
        if end > len(self._data):
            raise FormatError("message is cut short", self._position)
        taken = self._data[self._position : end]
        self._position = end
        return taken


class PlainReader(Reader):
    """The same for a message of a version that is not flexible."""

    __slots__ = ()

    def tagged_fields(self) -> Iterator[tuple[int, Reader]]:
        """None: they came with the flexible encoding."""
        return iter(())

    def _string_length(self) -> int:
        return self._checked(self.int16())

    def _array_length(self) -> int:
        return self._checked(self.int32())

    def _checked(self, length: int) -> int:
        if length < -1:
            raise FormatError(f"length {length} in a message", self._position)
        return length
