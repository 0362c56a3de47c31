"""The layouts of messages as Kafka's own classes have them, and bytes of any content that follow them."""

import base64
import struct
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import strategies as st

PATH = Path(__file__).parents[1] / "data" / "messages" / "kafka_4_4.txt"

_NUMBERS = {"INT8": ">b", "INT16": ">h", "UINT16": ">H", "INT32": ">i", "INT64": ">q"}
_UNKNOWN_TAG = 77


@dataclass(frozen=True)
class Array:
    item: "Type"
    nullable: bool


@dataclass(frozen=True)
class Structure:
    """Fields by their names, and tagged ones by their tags, with what a reader need not find in this message."""

    fields: tuple[tuple[str, "Type"], ...]
    tagged: tuple[tuple[int, str, "Type"], ...]
    nullable: bool = False


Type = str | Array | Structure
"""A string is the name of a type without a content of its own."""


@dataclass(frozen=True)
class Layout:
    """One version of one message."""

    message: str
    version: int
    flexible: bool
    structure: Structure

    def __str__(self) -> str:
        return f"{self.message} {self.version}"


def layouts() -> list[Layout]:
    """All that Kafka reported."""
    found = []
    for line in PATH.read_text().splitlines():
        message, version, encoding, text = line.split(" ")
        structure, rest = _parse(text)
        assert isinstance(structure, Structure)
        assert not rest
        found.append(Layout(message, int(version), encoding == "flexible", structure))
    return found


def _parse(text: str) -> tuple[Type, str]:
    if text.startswith(("{", "?{")):
        return _parse_structure(text.removeprefix("?")[1:], text.startswith("?"))
    name = text[: min((at for at in map(text.find, ",:(){}") if at >= 0), default=len(text))]
    rest = text[len(name) :]
    if not name.endswith("ARRAY"):
        return name, rest
    item, rest = _parse(rest[1:])
    return Array(item, name.startswith("NULLABLE")), rest[1:]


def _parse_structure(text: str, nullable: bool) -> tuple[Structure, str]:
    fields: list[tuple[str, Type]] = []
    tagged: list[tuple[int, str, Type]] = []
    while not text.startswith("}"):
        name, _, text = text.removeprefix(",").partition(":")
        kind, text = _parse(text)
        tag, _, tag_name = name.partition("=")
        if tag_name:
            tagged.append((int(tag), tag_name, kind))
        else:
            fields.append((name, kind))
    return Structure(tuple(fields), tuple(tagged), nullable), text[1:]


def contents(kind: Type, special: dict[str, st.SearchStrategy[object]], name: str = "") -> st.SearchStrategy[object]:
    """Anything that a field of this type may contain: a structure as a dict, in which tagged fields may be absent.

    `special`: fields that may not contain just anything, by their names.
    """
    if name in special:
        return special[name]
    if isinstance(kind, Structure):
        plain = {field: contents(one, special, field) for field, one in kind.fields}
        found = st.fixed_dictionaries(plain, optional={field: contents(one, special, field) for _, field, one in kind.tagged})
        return st.none() | found if kind.nullable else found
    if isinstance(kind, Array):
        items = st.lists(contents(kind.item, special), max_size=3)
        return st.none() | items if kind.nullable else items
    if kind in _NUMBERS:
        bits = 8 * struct.calcsize(_NUMBERS[kind])
        return st.integers(0, 2**bits - 1) if kind.startswith("U") else st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    text = st.text(max_size=5) | st.just("x" * 200)  # a length of more than one byte
    simple: dict[str, st.SearchStrategy[object]] = {
        "BOOLEAN": st.booleans(),
        "UUID": st.binary(min_size=16, max_size=16).map(lambda raw: base64.urlsafe_b64encode(raw).decode().rstrip("=")),
        "STRING": text,
        "NULLABLE_STRING": st.none() | text,
        "BYTES": st.binary(max_size=5).map(bytes.hex),
    }
    return simple[kind]


def encoded(kind: Type, content: object, flexible: bool, *, tagged: bool = False) -> bytes:
    """The bytes of a content. A structure of a flexible message has also a tagged field that nobody knows."""
    if isinstance(kind, Structure) and kind.nullable:  # in one byte, whether it is tagged or not
        present = replace(kind, nullable=False)
        return (b"\0" if tagged else b"\xff") if content is None else b"\1" + encoded(present, content, flexible)
    if isinstance(kind, Structure):
        assert isinstance(content, dict)
        body = b"".join(encoded(one, content[name], flexible) for name, one in kind.fields)
        return body + (_tagged_fields(kind, content) if flexible else b"")
    if isinstance(kind, Array):
        if content is None:
            return _length(-1, flexible, ">i")
        assert isinstance(content, list)
        return _length(len(content), flexible, ">i") + b"".join(encoded(kind.item, item, flexible) for item in content)
    if kind in _NUMBERS:
        return struct.pack(_NUMBERS[kind], content)
    if isinstance(content, bool):
        return bytes([content])
    if content is None:
        return _length(-1, flexible, ">h")
    assert isinstance(content, str)
    if kind == "UUID":
        return base64.urlsafe_b64decode(content + "==")
    raw = bytes.fromhex(content) if kind == "BYTES" else content.encode()
    return _length(len(raw), flexible, ">i" if kind == "BYTES" else ">h") + raw


def _tagged_fields(structure: Structure, content: dict[str, object]) -> bytes:
    found = {}
    for tag, name, kind in structure.tagged:
        if name in content:
            found[tag] = encoded(kind, content[name], True, tagged=True)
    found[_UNKNOWN_TAG] = b"?"
    return _uvarint(len(found)) + b"".join(_uvarint(tag) + _uvarint(len(raw)) + raw for tag, raw in sorted(found.items()))


def _length(length: int, flexible: bool, plain: str) -> bytes:
    return _uvarint(length + 1) if flexible else struct.pack(plain, length)


def _uvarint(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + _uvarint(number >> 7)
