"""A list: the fields of its rows as tables have them, and how each is written, ranked and sorted on every face.

What a field is, its unit and its column are declared in the class of the row (`streaming.broker.protocol.json_message`). A list adds how
cells are written that the value alone does not say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from streaming.broker.protocol.json_message import WIDE, Heading, PublicMessage, Unit
from streaming.broker.protocol.status_json import Problem
from streaming.common.units import NONE, format_age, format_duration, format_list, format_name, format_size, format_time, plain

BLOCKS = "▁▂▃▄▅▆▇█"
CURVE_WIDTH = 12

MOST_NAMES = 3
"""So many names of a list of names are in its cell."""


@dataclass(frozen=True, slots=True)
class Times:
    """How points in time are written: as ages at ``now_ms``, or in UTC."""

    now_ms: int
    relative: bool = True

    def of(self, at_ms: int) -> str:
        """A point in time, Unix milliseconds; -1 is none."""
        if at_ms < 0:
            return NONE
        return format_age((self.now_ms - at_ms) / 1000) if self.relative else format_time(at_ms)

    def deadline(self, at_ms: int) -> str:
        """A point in time until when something may be done: what should have been before, by its own times, is due now."""
        return self.of(at_ms) if not 0 <= at_ms <= self.now_ms else "now"

    def deletion(self, at_ms: int) -> str:
        """When retention may delete something: what its limits have let go is due at the broker's next check."""
        return self.of(at_ms) if not 0 <= at_ms <= self.now_ms else "due"

    def both(self, at_ms: int) -> str:
        """Both ways, for a place with room for it."""
        return NONE if at_ms < 0 else f"{format_time(at_ms)}, {format_age((self.now_ms - at_ms) / 1000)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One value. ``text`` is what every face writes; a command is written by those that can have it copied, and its text is "" there.

    ``topic``, ``partition``, ``group``, ``groups``: what it names, to lead there.
    """

    text: str
    note: str = ""  # more about it
    topic: str | None = None
    partition: tuple[str, int] | None = None
    group: str | None = None
    groups: tuple[str, ...] = ()
    at_ms: int = -1  # the time that the text is about
    curve: tuple[float, ...] = ()  # values that a face may draw instead of the blocks of the text
    command: str = ""


def place(topic: str, partition: int) -> str:
    """A partition by its name; a topic's name that is no plain word is escaped."""
    return f"{format_name(topic, 249)}-{partition}"


def curve(values: Sequence[float], width: int) -> str:
    """Values as a line of blocks, each the largest of its stretch against the largest of all; a value that is not known is a space."""
    if not values or width < 1:
        return ""
    top = max(values)
    width = min(width, len(values))
    parts = [values[len(values) * at // width : len(values) * (at + 1) // width] for at in range(width)]
    return "".join(" " if max(part) < 0 else BLOCKS[int(max(part) / top * (len(BLOCKS) - 1)) if top > 0 else 0] for part in parts)


MakeCell = Callable[[Any, Times], Cell]


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: what follows from the fields is found once
class Listing:
    """A list. ``noun``: what a row is called; ``default``: the field by which it is sorted if none is named, "" if it comes sorted.

    ``path``: where it is answered, by the message ``page``; "" for one that is a part of another message, or of several forms.
    ``off_page``: fields whose columns the page leaves out: it shows fifty rows at once, and should not be wider than a screen.
    ``heads``: headings by their fields, the most important one first, of a list whose row says of no column how it is headed.

    Raises:
        TypeError: a field that is named here is none of ``row``.
    """

    name: str
    noun: str
    row: type[PublicMessage]
    path: str = ""
    page: type[PublicMessage] = PublicMessage
    cells: Mapping[str, MakeCell] = field(default_factory=dict)
    default: str = ""
    off_page: Sequence[str] = ()
    heads: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that the fields are there."""
        if missing := {*self.cells, *self.off_page, *self.heads} - {each.name for each in fields(self.row)}:
            raise TypeError(f"{self.row.__name__} of {self.name} has no {', '.join(sorted(missing))}")

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """All fields, as the row has them."""
        hints = get_type_hints(self.row, include_extras=True)
        return tuple(self._field(each.name, hints[each.name]) for each in fields(self.row))

    def _field(self, name: str, hint: Any) -> Field:
        extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
        unit = next((each for each in extras if isinstance(each, Unit)), Unit.MESSAGE)
        column = next((each for each in reversed(extras) if isinstance(each, Heading)), Heading())
        if self.heads:
            rank = 1 + list(self.heads).index(name) if name in self.heads else 0
            column = replace(column, heading=self.heads.get(name, ""), rank=rank, least=16 if rank == 1 else column.least)
        return Field(**{each.name: getattr(column, each.name) for each in fields(Heading)}, name=name, unit=unit, cell=self.cells.get(name))

    @cached_property
    def columns(self) -> tuple[Field, ...]:
        """The fields that tables have, the most important one first."""
        return tuple(sorted((each for each in self.fields if each.rank), key=lambda each: each.rank))

    @cached_property
    def page_columns(self) -> tuple[Field, ...]:
        """Those of the page."""
        return tuple(each for each in self.columns if each.name not in self.off_page)

    @cached_property
    def text_columns(self) -> tuple[Field, ...]:
        """Those of faces that wrap no cell."""
        return tuple(each for each in self.columns if each.rank < WIDE)

    @cached_property
    def sortable(self) -> tuple[str, ...]:
        """The names of the fields that it can be sorted by."""
        return tuple(each.name for each in self.fields if each.sort)

    @cached_property
    def chosen_by(self) -> dict[str, tuple[str, ...]]:
        """The words of the fields by which rows can be chosen, by the names of these fields."""
        return {each.name: tuple(each.choices) for each in self.fields if each.choices}

    def order(self, sort: str) -> str:
        """The order by a field unless another one is asked for."""
        return next(each.sort for each in self.fields if each.name == sort)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field(Heading):
    """A field of a row. ``cell``: makes its cell from the row, if the value alone does not say it.

    What a list has to say in one place of its table, the same on every face: a text, and what a face with more means can make of it.
    """

    name: str
    unit: Unit
    cell: MakeCell | None = None

    def cell_in(self, row: PublicMessage, times: Times) -> Cell:
        """The cell of a row, without control characters but in a command."""
        cell = cell_of(self.unit, getattr(row, self.name), times) if self.cell is None else self.cell(row, times)
        return cell if cell.text.isprintable() and cell.note.isprintable() else replace(cell, text=plain(cell.text), note=plain(cell.note))


def cell_of(unit: Unit, value: Any, times: Times) -> Cell:
    """A value as its unit is written; an absent value is a dash."""
    if unit is Unit.MOMENT:
        return Cell(text=times.of(value), at_ms=value)
    if unit is Unit.CURVE:
        blocks = curve(value, CURVE_WIDTH)
        return Cell(text=blocks if blocks.strip() else NONE, curve=tuple(value))
    if unit is Unit.NAMES:
        return Cell(text=format_list([format_name(each) for each in value], MOST_NAMES) or NONE)
    if unit is Unit.FLAG:
        return Cell(text="yes" if value else NONE)
    if unit is Unit.WORD:
        return Cell(text=words(value))
    if unit in (Unit.NAME, Unit.SENTENCE):
        return Cell(text=(format_name(value, 300) if unit is Unit.NAME else value) if value else NONE)
    return Cell(text=NONE if value < 0 else _NUMBER_TEXTS[unit](value))


def words(value: str) -> str:
    """A word of a message for people: JSON has it as one, such as ``will_lose``."""
    return value.replace("_", " ") or NONE


def count(value: float) -> str:
    """A whole number; below zero it is not known."""
    return NONE if value < 0 else f"{round(value):,}"


def number(value: int) -> str:
    """An id or an offset, to be copied."""
    return NONE if value < 0 else str(value)


def rate(value: float) -> str:
    """Things a second."""
    return NONE if value < 0 else f"{value:,.1f}" if 0 < value < 10 else f"{value:,.0f}"


def ratio(value: float) -> str:
    """Three digits: a fourth behind a point is read as thousands by half of the world."""
    return f"{value:.2f}" if abs(value) < 10 else f"{value:,.1f}" if abs(value) < 100 else f"{value:,.0f}"


def size(value: float) -> str:
    """Bytes."""
    return NONE if value < 0 else format_size(round(value))


def length(milliseconds: int) -> str:
    """How long something takes or took."""
    return NONE if milliseconds < 0 else format_duration(milliseconds / 1000)


_NUMBER_TEXTS = {
    Unit.ID: number,
    Unit.COUNT: count,
    Unit.RATIO: ratio,
    Unit.BYTES: size,
    Unit.BYTES_RATE: size,
    Unit.RATE: rate,
    Unit.DURATION: length,
}


def of_partition(row: Any, _: Times) -> Cell:
    """The partition that a row is about."""
    return partition_cell(row.topic, row.partition)


def partition_cell(topic: str, partition: int) -> Cell:
    """A partition."""
    return Cell(text=place(topic, partition), partition=(topic, partition))


def topic_cell(topic: str) -> Cell:
    """A topic."""
    return Cell(text=format_name(topic, 249), topic=topic)


def unsure(cell: Cell, *, assumed: bool) -> Cell:
    """What depends on limits: with a question mark if they are assumed."""
    return Cell(text=f"{cell.text}?", at_ms=cell.at_ms) if assumed and cell.text != NONE else cell


def after_start(broker: int) -> str:
    """Instead of the time of what a broker without a process does once it is started."""
    return f"after broker {broker} starts"


def at_least(value: int, *, more: bool) -> str:
    """A whole number; with a plus sign if there may be more."""
    return f"{count(value)}+" if more and value >= 0 else count(value)


def severity_of(row: PublicMessage) -> str:
    """How severe a row looks on every face: as it was judged. "" for what needs no look."""
    severity: str = row.gravity if isinstance(row, Problem) else getattr(row, "severity", "")
    return severity


def judged_cell(row: Any, times: Times) -> Cell:
    """The same of a row with the last fields of those that are judged."""
    return verdict_cell(row.kind, row.since_ms, times)


def verdict_cell(word: str, since_ms: int, times: Times) -> Cell:
    """What is wrong with a row, and since when."""
    return Cell(text=words(word)) if since_ms < 0 else Cell(text=words(word), note=times.of(since_ms), at_ms=since_ms)


def word(text: str) -> str:
    """A name, or nothing."""
    return format_name(text) if text else NONE
