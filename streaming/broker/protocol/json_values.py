"""The values of a message's fields, as JSON has them: each is checked against its declared type before anybody uses it.

The other side may be of another version, damaged, or lie. So an integer is one of 64 bits and no truth value, a number is finite, and
texts, values and their nesting are bounded. What is declared is all that there is to check: a field of type ``list[int]`` holds integers.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from streaming.errors import quoted

MOST_VALUES = 4 << 20
"""The most values of a message: the counts of 500,000 topics have as many, and they take some 300 MiB in memory."""

MOST_CHARACTERS = 64 << 10
"""The most characters of a text that is not declared otherwise. The longest name of Kafka's has 32,767."""

Reader = Callable[[Any], Any]
"""Takes a value of JSON and returns it as a field has it. Raises ValueError if it is none."""

NAME_CHARACTERS = 1_000


def reader_of(hint: Any, of_class: Callable[[Any], Reader]) -> Reader:
    """The reader of values of a type. ``of_class``: that of a class which is none of JSON's own."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        bounds = next((each for each in arguments[1:] if isinstance(each, (Text, Whole))), None)
        return reader_of(arguments[0], of_class) if bounds is None else bounds.read
    if origin in (Union, UnionType):
        (inner,) = (each for each in arguments if each is not NoneType)
        return _optional(reader_of(inner, of_class))
    if origin is list:
        return _list(reader_of(arguments[0], of_class))
    if origin is dict:
        return _dict(*(reader_of(each, of_class) for each in arguments))
    own = _OWN.get(hint)
    return of_class(hint) if own is None else own


@dataclass(frozen=True, slots=True)
class Text:
    """What a text may be: so many characters, and a form that all of it has, as a regular expression."""

    least: int = 0
    most: int = MOST_CHARACTERS
    form: str = ""

    def read(self, value: Any) -> str:
        """The text of a value. Half of a surrogate pair, which can be written nowhere, becomes a replacement character."""
        if type(value) is not str:
            raise ValueError(f"{quoted(value)} is no text")
        if not self.least <= len(value) <= self.most:
            raise ValueError(f"a text of {len(value)} characters, and not of {self.least} to {self.most}")
        if self.form and not re.fullmatch(self.form, value):
            raise ValueError(f"{quoted(value)} has another form")
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass(frozen=True, slots=True)
class Whole:
    """Which integers there may be."""

    least: int = -(1 << 63)
    most: int = (1 << 63) - 1

    def read(self, value: Any) -> int:
        """The integer of a value."""
        if type(value) is not int:
            raise ValueError(f"{quoted(value)} is no integer")
        if not self.least <= value <= self.most:
            raise ValueError(f"{quoted(value)} is not between {self.least} and {self.most}")
        return value


def _optional(inner: Reader) -> Reader:
    return lambda value: None if value is None else inner(value)


def _list(inner: Reader) -> Reader:
    def read(value: Any) -> list[Any]:
        if type(value) is not list:
            raise ValueError(f"{quoted(value)} is no list")
        return list(map(inner, value))

    return read


def _dict(key: Reader, inner: Reader) -> Reader:
    def read(value: Any) -> dict[Any, Any]:
        if type(value) is not dict:
            raise ValueError(f"{quoted(value)} is no object")
        return {key(name): inner(each) for name, each in value.items()}

    return read


def _truth(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"{quoted(value)} is neither true nor false")
    return value


def _number(value: Any) -> float:
    if type(value) is int:
        return float(_OWN[int](value))
    if type(value) is not float or not isfinite(value):
        raise ValueError(f"{quoted(value)} is no number")
    return value


_OWN: Mapping[Any, Reader] = {str: Text().read, int: Whole().read, bool: _truth, float: _number}


NAME = Text(least=1, most=NAME_CHARACTERS)


Name = Annotated[str, NAME]
"""A name or an id that is kept with rows, in offsets and in states."""


AnyName = Annotated[str, Text(most=NAME_CHARACTERS)]
"""The same, or "" for none."""


Packed = Annotated[str, Text(most=1 << 62)]
"""Packed content, as large as a message may be."""


Small = Annotated[int, Whole(-(1 << 31), (1 << 31) - 1)]
"""An integer of 32 bits: the id of a broker, the number of a partition."""


Natural = Annotated[int, Whole(least=-1)]
"""A number from 0 on, or -1 for none."""


def load(data: bytes, most: int = MOST_VALUES) -> Any:
    """The value that is written as JSON. Raises ValueError: it is none, or has more than ``most`` values or too many levels."""
    if sum(map(data.count, (b",", b"[", b"{"))) > most:  # before it is read: an empty list takes 20 times its two characters
        raise ValueError(f"more than {most} values")
    try:
        return json.loads(data, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("too many levels") from error


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number")
