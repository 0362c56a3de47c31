"""The messages of Kafka's protocol: the flexible encoding, the plain one before it, and layouts declared on dataclasses."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from streaming.errors import FormatError, quoted

Bytes = bytes | bytearray | memoryview

_INT_BYTES = 5
_LONG_BYTES = 10

UUID_BYTES = 16
_TEXT = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)

_ALWAYS = range(2**15)
_VERSION_BYTES = 2


class SchemaMessage(Generic[_T_co]):
    """A message with its valid versions, and those that are flexible, such as "0-4" and "4+".

    `kind` is the class of the message, or a function that reads any version of it. `given` are fields that the message does not contain.
    """

    __slots__ = ("_flexible", "_layouts")

    def __init__(self, kind: Callable[..., _T_co], valid: str, flexible: str = "0+", **given: object) -> None:
        self._flexible = _range(flexible)
        self._layouts: dict[int, Callable[[Reader], _T_co]] = {
            version: structure(kind, version, **given) if isinstance(kind, type) else kind for version in _range(valid)
        }

    def layout(self, version: int) -> Callable[[Reader], _T_co] | None:
        """What reads this version of the message; None if the version is not valid."""
        return self._layouts.get(version)

    def read(self, data: bytes, what: str) -> _T_co:
        """Read a message that begins with its version, an int16.

        Raises:
            FormatError: it is damaged, or of a version that is not valid; `what` is what the error calls it.
        """
        version = PlainReader(data).int16()
        layout = self.layout(version)
        if layout is None:
            raise FormatError(f"{what} of version {version} is not known")
        reader = (Reader if version in self._flexible else PlainReader)(data, _VERSION_BYTES)
        found = layout(reader)
        reader.end()
        return found


def _range(text: str) -> range:
    """The versions of "3", "0-4", "3+" or "none"."""
    if text == "none":
        return range(0)
    first, _, last = text.removesuffix("+").partition("-")
    return range(int(first), _ALWAYS.stop if text.endswith("+") else int(last or first) + 1)


def read_uvarint(data: Bytes, position: int) -> tuple[int, int]:
    """Return an unsigned varint of at most 32 bits and the position after it."""
    if position < len(data) and (raw := data[position]) < 0x80:  # most have one byte: lengths and tags
        return raw, position + 1
    return _read(data, position, _INT_BYTES, 32)


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


def varint(number: int) -> bytes:
    """ZigZag varint (or varlong: the two agree where both can hold the number)."""
    if 0 <= number < len(_SMALL_VARINTS):
        return _SMALL_VARINTS[number]
    return uvarint((number << 1) ^ (number >> 63))


def uvarint(number: int) -> bytes:
    """Unsigned varint: base 128, least significant group first."""
    if number < 0x80:
        return bytes((number,))
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


# Sizes and deltas are small, and every record has six of them.
_SMALL_VARINTS = tuple(uvarint(number << 1) for number in range(2048))


def uuid_text(raw: bytes | bytearray | memoryview) -> str:
    """The text of 16 raw bytes."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _number(form: str) -> Callable[[Reader], int]:
    number = struct.Struct(form)
    unpack, size = number.unpack_from, number.size

    def read(reader: Reader) -> int:
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

    def skip_string(self) -> bool:
        """Skip a string, or null, without reading it. Returns whether it is a string."""
        length = self._string_length()
        self._take(max(length, 0))
        return length >= 0

    def data(self) -> bytes:
        """A field of bytes; null is read as empty."""
        return bytes(self._take(max(self._array_length(), 0)))

    def count(self) -> int:
        """The length of an array, -1 for null. Each item takes at least one byte, so a length beyond the remaining bytes is refused."""
        count = self._array_length()
        if count > len(self._data) - self._position:
            raise FormatError("array longer than its message", self._position)
        return count

    def tagged_fields(self) -> Iterator[tuple[int, Reader]]:
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


def structure(kind: type[_T], version: int = 0, **given: object) -> Callable[[Reader], _T]:
    """What reads a structure, with its tagged fields, in a version of its message.

    Layouts of Kafka's messages, declared on the dataclasses that they are read into, as Kafka's JSON schemas declare them. The fields
    of a class are those of the message, in its order. A field of Kafka's schema, on the left, is declared as on the right:: "type":
    "int32" partition: Int32 "type": "string", "nullableVersions": "0+"            rack: str | None "type": "[]Endpoint" endpoints:
    tuple[Endpoint, ...] "versions": "3+", "default": -1                       leader_epoch: Int32 = versions("3+", -1) "tag": 0,
    "taggedVersions": "4+", "default": "null"   topic_id: Uuid | None = tagged(0, "4+", None) A field of another type is annotated
    with the function that reads it: `Annotated[State, read_state]`. A null array is read as empty, unless the field may be None; null
    bytes are read as empty.
    """
    hints = get_type_hints(kind, include_extras=True)
    plain: list[tuple[str, _Read]] = []
    tags: dict[int, tuple[str, _Read]] = {}
    for one in fields(kind):  # type: ignore[arg-type]  # a dataclass
        if one.name in given or version not in one.metadata.get("versions", _ALWAYS):
            continue
        read_field = _reader_of(hints[one.name], version, tagged="tag" in one.metadata)
        if "tag" in one.metadata:
            tags[one.metadata["tag"]] = one.name, read_field
        else:
            plain.append((one.name, read_field))

    def read(reader: Reader) -> _T:
        values = {name: read_field(reader) for name, read_field in plain}
        for tag, content in reader.tagged_fields():
            if tag in tags:
                name, read_field = tags[tag]
                values[name] = read_field(content)
        return kind(**given, **values)

    return read


def tagged(tag: int, text: str, default: _T) -> _T:
    """Declare a tagged field of these versions; without it in the message it is `default`."""
    return field(default=default, metadata={"versions": _range(text), "tag": tag})


def versions(text: str, default: _T) -> _T:
    """Declare a field that only some versions of the message have, such as "1+"; in the others it is `default`."""
    return field(default=default, metadata={"versions": _range(text)})


_Read = Callable[[Reader], Any]


def _reader_of(hint: Any, version: int, *, tagged: bool = False) -> _Read:
    """What reads a field of a type in a version of its message."""
    if get_origin(hint) is Annotated:
        return cast(_Read, hint.__metadata__[0])
    if get_origin(hint) is tuple:
        return _array(_reader_of(get_args(hint)[0], version), null=())
    if get_origin(hint) in (Union, UnionType):
        return _nullable(next(one for one in get_args(hint) if one is not NoneType), version, tagged)
    return _READS[hint] if hint in _READS else structure(hint, version)


def _array(read: _Read, null: tuple[()] | None) -> _Read:
    def read_array(reader: Reader) -> tuple[Any, ...] | None:
        count = reader.count()
        return null if count < 0 else tuple([read(reader) for _ in range(count)])

    return read_array


def _nullable(hint: Any, version: int, tagged: bool) -> _Read:
    if hint is str:
        return Reader.nullable_string
    if get_origin(hint) is tuple:
        return _array(_reader_of(get_args(hint)[0], version), null=None)
    read = _reader_of(hint, version)
    if is_dataclass(hint) and tagged:
        return lambda reader: read(reader) if reader.uvarint() else None
    if is_dataclass(hint):
        return lambda reader: read(reader) if reader.int8() >= 0 else None
    return read  # never null, but some versions do not have it


_READS: dict[Any, _Read] = {bool: Reader.boolean, str: Reader.string, bytes: Reader.data}


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


def check_uuid(text: str) -> str:
    """Return the UUID in its only spelling, so that texts can be compared; FormatError if it is none."""
    if not _TEXT.fullmatch(text):
        raise FormatError(f"{quoted(text)} is not a UUID")
    return uuid_text(base64.urlsafe_b64decode(text + "=="))


Int8 = Annotated[int, Reader.int8]


Int16 = Annotated[int, Reader.int16]


Uint16 = Annotated[int, Reader.uint16]


Int32 = Annotated[int, Reader.int32]


Int64 = Annotated[int, Reader.int64]


Uuid = Annotated[str, Reader.uuid]
