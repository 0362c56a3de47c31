"""Messages are small JSON objects, each a frozen value: what all of them share, and how those for people write what is not known."""

import json
from collections.abc import Callable, Collection
from dataclasses import MISSING, Field, asdict, dataclass, fields
from enum import Enum, auto
from functools import cache
from typing import Annotated, Any, ClassVar, Self, get_args, get_origin, get_type_hints

from streaming.broker.protocol.json_values import MOST_VALUES, Reader, load, reader_of
from streaming.errors import AgentError, quoted

ASC, DESC = "asc", "desc"

WIDE = 20
"""Columns of this rank and above are left out by faces that wrap no cell."""


@dataclass(frozen=True, slots=True)
class Message:
    """A value that is sent as JSON. The types of its fields are all that a message of its kind may hold (`json_values`)."""

    MOST_VALUES: ClassVar[int] = MOST_VALUES
    """The most values of such a message, lists and objects in it included."""

    def fields(self) -> dict[str, object]:
        """The message as JSON has it."""
        return asdict(self)

    def encode(self) -> bytes:
        """Encode the message as JSON."""
        return json.dumps(self.fields()).encode()

    def encode_readable(self) -> str:
        """Encode the message as JSON for people, too."""
        return json.dumps(self.fields(), indent=2)

    @classmethod
    def decode(cls, data: bytes, most: int | None = None) -> Self:
        """Decode the message from JSON. Unknown fields are ignored, because the other side may be newer.

        Args:
            most: values, if fewer than usual are taken.

        Raises:
            AgentError: it is not such a message.
        """
        kind: Any = cls
        try:
            found: Self = _reader(kind)(load(data, cls.MOST_VALUES if most is None else most))
        except ValueError as error:
            raise AgentError(f"not a message of kind {cls.__name__}: {quoted(data)} ({error})", "protocol") from error
        return found


@cache
def _reader(kind: Any) -> Reader:
    """Makes a message of this kind of an object of JSON."""
    hints = get_type_hints(kind, include_extras=True)
    readers = {each.name: reader_of(hints[each.name], _reader) for each in fields(kind)}
    if issubclass(kind, PublicMessage):
        readers = {each.name: _from_public(each, hints[each.name], readers[each.name]) for each in fields(kind)}
    needed = [each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING]

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise ValueError(f"{quoted(value)} is no object")
        missing = [name for name in needed if name not in value]
        if missing:
            raise ValueError(f"{missing[0]} of {kind.__name__} is missing")
        found = dict[str, object]()
        for name in value.keys() & readers.keys():
            try:
                found[name] = readers[name](value[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        return kind(**found)

    return read


def is_absent(default: object) -> bool:
    """Whether a field with this default is null in JSON where it has that value."""
    return not isinstance(default, bool) and (default == -1 or default == "")


@cache
def _writers(kind: Any) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """The fields of a kind, and what makes JSON of their values."""
    return tuple((each.name, _unless(each.default) if is_absent(each.default) else _plain) for each in fields(kind))


def _unless(absent: object) -> Callable[[Any], Any]:
    return lambda value: None if value == absent else value


def _plain(value: Any) -> Any:
    if isinstance(value, PublicMessage):
        return value.fields()
    if isinstance(value, list):
        return [None if each == -1 else _plain(each) for each in value]
    return value


def _from_public(field: Field[Any], hint: Any, read: Reader) -> Reader:
    """Reads what `PublicMessage` writes."""
    if is_absent(field.default):
        return lambda value: field.default if value is None else read(value)
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(hint) is list and get_args(hint)[0] in (int, float):
        return lambda value: read([-1 if each is None else each for each in value] if type(value) is list else value)
    return read


@dataclass(frozen=True, slots=True)
class PublicMessage(Message):
    """A message for people and their tools: what a job serves below `/api/v1/`, and what commands print as JSON.

    In memory -1 and "" stand for what is not known and what there is not. In JSON that is ``null``: of a field whose default is one of
    them, and of a number in a list. A field without a default is always written as it is: a consumer group may be called "". All times
    are Unix milliseconds and all durations are milliseconds; the names of both end with ``_ms``.
    """

    def fields(self) -> dict[str, object]:
        """The message as JSON has it."""
        kind: Any = type(self)
        return {name: write(getattr(self, name)) for name, write in _writers(kind)}


class Unit(Enum):
    """What kind of value a field has: it decides how that is written, and in which column side.

    How the fields of messages for people are written and in which columns of their lists: named where a field is declared. A field is
    one line of its class: its type, which says its unit; its column, if tables have one; its default; and, behind it, what it means.
    `docs.generators.api_reference` reads that for the JSON Schema; it goes on in the comments below.
    """

    NAME = auto()
    WORD = auto()
    SENTENCE = auto()
    NAMES = auto()
    FLAG = auto()
    ID = auto()
    COUNT = auto()
    RATIO = auto()
    BYTES = auto()
    BYTES_RATE = auto()
    RATE = auto()
    MOMENT = auto()
    DURATION = auto()
    CURVE = auto()
    MESSAGE = auto()
    """A message of its own, or a list of them: no table has it."""

    @property
    def is_number(self) -> bool:
        """Whether values are aligned at their right."""
        return self in _NUMBERS


_NUMBERS = {Unit.ID, Unit.COUNT, Unit.RATIO, Unit.BYTES, Unit.BYTES_RATE, Unit.RATE, Unit.MOMENT, Unit.DURATION}


Sentence = Annotated[str, Unit.SENTENCE]


Names = Annotated[list[str], Unit.NAMES]


Flag = Annotated[bool, Unit.FLAG]


Count = Annotated[int, Unit.COUNT]


Ratio = Annotated[float, Unit.RATIO]


Bytes = Annotated[int, Unit.BYTES]


BytesRate = Annotated[float, Unit.BYTES_RATE]


Rate = Annotated[float, Unit.RATE]


Moment = Annotated[int, Unit.MOMENT]


Duration = Annotated[int, Unit.DURATION]


Curve = Annotated[list[float], Unit.CURVE]


Name = Annotated[str, Unit.NAME]


@dataclass(frozen=True, slots=True)
class Heading:
    """The column of a field. ``rank``: the most important one first; 0 for none. Where there is no room, the least important are left out.

    ``sort``: the order in which the list is sorted by it unless another one is asked for, "" if it cannot be sorted by. ``key``: the letter
    of the heading that sorts by it in a terminal, which no other column of the list has. ``toned``: it looks as severe as its row.
    ``least``: columns of a terminal that it can do with, 0 if it needs all. ``rare``: lines of text do without it where no row has anything
    in it. ``choices``: its words, if the list can be had with the rows that have some of them.
    """

    heading: str = ""
    rank: int = 0
    sort: str = ""
    key: str = ""
    toned: bool = False
    least: int = 0
    rare: bool = False
    choices: Collection[str] = ()


Partition = Annotated[Name, Heading("Partition", 1, ASC, "P", least=16)]
"""The topic of a row that is about a partition."""


Id = Annotated[int, Unit.ID]


Number = Annotated[Id, Heading(sort=ASC)]
"""Its number."""


Word = Annotated[str, Unit.WORD]


Verdict = Annotated[Word, Heading("Verdict", 2, ASC, "V", toned=True, least=8)]
"""What is worst about a row; in ascending order the worst come first."""
