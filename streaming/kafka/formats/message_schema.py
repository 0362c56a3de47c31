"""Layouts of Kafka's messages, declared on the dataclasses that they are read into, as Kafka's JSON schemas declare them.

The fields of a class are those of the message, in its order. A field of Kafka's schema, on the left, is declared as on the right::

    "type": "int32"                                       partition: Int32
    "type": "string", "nullableVersions": "0+"            rack: str | None
    "type": "[]Endpoint"                                  endpoints: tuple[Endpoint, ...]
    "versions": "3+", "default": -1                       leader_epoch: Int32 = versions("3+", -1)
    "tag": 0, "taggedVersions": "4+", "default": "null"   topic_id: Uuid | None = tagged(0, "4+", None)

A field of another type is annotated with the function that reads it: `Annotated[State, read_state]`. A null array is read as empty, unless
the field may be None; null bytes are read as empty.
"""

from collections.abc import Callable
from dataclasses import field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from streaming.errors import FormatError
from streaming.kafka.formats.wire import PlainReader, Reader

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)
_Read = Callable[[Reader], Any]

Int8 = Annotated[int, Reader.int8]
Int16 = Annotated[int, Reader.int16]
Uint16 = Annotated[int, Reader.uint16]
Int32 = Annotated[int, Reader.int32]
Int64 = Annotated[int, Reader.int64]
Uuid = Annotated[str, Reader.uuid]

_READS: dict[Any, _Read] = {bool: Reader.boolean, str: Reader.string, bytes: Reader.data}
_ALWAYS = range(2**15)
_VERSION_BYTES = 2


def versions(text: str, default: _T) -> _T:
    """Declare a field that only some versions of the message have, such as "1+"; in the others it is `default`."""
    return field(default=default, metadata={"versions": _range(text)})


def tagged(tag: int, text: str, default: _T) -> _T:
    """Declare a tagged field of these versions; without it in the message it is `default`."""
    return field(default=default, metadata={"versions": _range(text), "tag": tag})


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


def structure(kind: type[_T], version: int = 0, **given: object) -> Callable[[Reader], _T]:
    """What reads a structure, with its tagged fields, in a version of its message."""
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


def _reader_of(hint: Any, version: int, *, tagged: bool = False) -> _Read:
    """What reads a field of a type in a version of its message."""
    if get_origin(hint) is Annotated:
        return cast(_Read, hint.__metadata__[0])
    if get_origin(hint) is tuple:
        return _array(_reader_of(get_args(hint)[0], version), null=())
    if get_origin(hint) in (Union, UnionType):
        return _nullable(next(one for one in get_args(hint) if one is not NoneType), version, tagged)
    return _READS[hint] if hint in _READS else structure(hint, version)


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


def _array(read: _Read, null: tuple[()] | None) -> _Read:
    def read_array(reader: Reader) -> tuple[Any, ...] | None:
        count = reader.count()
        return null if count < 0 else tuple([read(reader) for _ in range(count)])

    return read_array


def _range(text: str) -> range:
    """The versions of "3", "0-4", "3+" or "none"."""
    if text == "none":
        return range(0)
    first, _, last = text.removesuffix("+").partition("-")
    return range(int(first), _ALWAYS.stop if text.endswith("+") else int(last or first) + 1)
