"""A list: the fields of its rows as tables have them, and how each is written, ranked and sorted on every face.

What a field is, its unit and its column are declared in the class of the row (`streaming.broker.protocol.shown`). A list adds how cells are
written that the value alone does not say.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from streaming.broker.protocol.json_message import PublicMessage
from streaming.broker.protocol.shown import WIDE, Heading, Unit
from streaming.broker.protocol.status_json import Problem
from streaming.common.formatting import plain
from streaming.pages.listings.list_cells import Cell, Times, cell_of, words

MakeCell = Callable[[Any, Times], Cell]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field(Heading):
    """A field of a row. ``cell``: makes its cell from the row, if the value alone does not say it."""

    name: str
    unit: Unit
    cell: MakeCell | None = None

    def cell_in(self, row: PublicMessage, times: Times) -> Cell:
        """The cell of a row, without control characters but in a command."""
        cell = cell_of(self.unit, getattr(row, self.name), times) if self.cell is None else self.cell(row, times)
        return cell if cell.text.isprintable() and cell.note.isprintable() else replace(cell, text=plain(cell.text), note=plain(cell.note))


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: what follows from the fields is found once
class Listing:
    """A list. ``noun``: what a row is called; ``default``: the field by which it is sorted if none is named, "" if it comes sorted.

    ``path``: where it is answered, by the message ``page``; "" for one that is a part of another message, or of several forms.
    ``off_page``: fields whose columns the page leaves out: it shows fifty rows at once, and nobody has to scroll sideways there.
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
            column = Heading(self.heads.get(name, ""), rank, least=16 if rank == 1 else 0)
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


def severity_of(row: PublicMessage) -> str:
    """How severe a row looks on every face: as it was judged. "" for what needs no look."""
    severity: str = row.gravity if isinstance(row, Problem) else getattr(row, "severity", "")
    return severity


def verdict_cell(word: str, since_ms: int, times: Times) -> Cell:
    """What is wrong with a row, and since when."""
    return Cell(text=words(word)) if since_ms < 0 else Cell(text=words(word), note=times.of(since_ms), at_ms=since_ms)


def judged_cell(row: Any, times: Times) -> Cell:
    """The same of a row with the last fields of those that are judged."""
    return verdict_cell(row.kind, row.since_ms, times)
