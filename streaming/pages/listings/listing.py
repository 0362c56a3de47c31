"""A list as one table of fields: their names in JSON, what they mean, and how they are headed, written, ranked and sorted on every face."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from streaming.broker.protocol.json_message import PublicMessage
from streaming.broker.protocol.problem_json import Problem
from streaming.common.formatting import plain
from streaming.pages.listings.list_cells import Cell, Times, Unit, cell_of, words

ASCENDING, DESCENDING = "asc", "desc"

WIDE = 20
"""Columns of this rank and above are left out by faces that wrap no cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a row.

    ``heading``, ``rank``: of its column, the most important one first; "" and 0 if no table has it. Where there is no room, terminal and
    page leave out the least important ones. ``sort``: the order in which the list is sorted by it unless another one is asked for, "" if it
    cannot be sorted by. ``key``: the letter of the heading that sorts by it in a terminal. ``toned``: it looks as severe as its row.
    ``least``: columns of a terminal that it can do with, 0 if it needs all. ``rare``: lines of text do without it where no row has anything
    in it. ``choices``: its words, if the list can be had with the rows that have some of them. ``cell``: makes its cell from the row, if
    the value alone does not say it.
    """

    name: str
    unit: Unit
    meaning: str
    heading: str = ""
    rank: int = 0
    sort: str = ""
    key: str = ""
    toned: bool = False
    least: int = 0
    rare: bool = False
    choices: Collection[str] = ()
    cell: Callable[[Any, Times], Cell] | None = None

    def cell_in(self, row: PublicMessage, times: Times) -> Cell:
        """The cell of a row, without control characters but in a command."""
        cell = cell_of(self.unit, getattr(row, self.name), times) if self.cell is None else self.cell(row, times)
        return cell if cell.text.isprintable() and cell.note.isprintable() else replace(cell, text=plain(cell.text), note=plain(cell.note))


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: what follows from the fields is found once
class Listing:
    """A list. ``noun``: what a row is called; ``default``: the field by which it is sorted if none is named, "" if it comes sorted.

    ``off_page``: fields whose columns the page leaves out: it shows fifty rows at once, and nobody has to scroll sideways there.

    Raises:
        TypeError: the fields are not those of ``row``, each once and in their order.
    """

    name: str
    noun: str
    row: type[PublicMessage]
    fields: Sequence[Field]
    default: str = ""
    off_page: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check that each field of the row is declared."""
        declared, present = [each.name for each in self.fields], [each.name for each in fields(self.row)]
        if declared != present:
            differing = sorted({*declared} ^ {*present}) or [name for name, other in zip(declared, present, strict=True) if name != other]
            raise TypeError(f"{self.row.__name__} and the fields of {self.name} differ in {', '.join(differing)}")

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


JUDGED = (
    Field(
        name="kind",
        unit=Unit.WORD,
        meaning="the worst problem of the log, in `RetentionRow` of what is kept of it, in `TransactionRow` of the transaction: a `kind` "
        "of `Problem`. Problems of consumer groups, log dirs and agents are of no row",
    ),
    Field(name="severity", unit=Unit.WORD, meaning="of that problem: `critical`, `warning` or `info`; `null` if nothing is wrong"),
    Field(name="since_ms", unit=Unit.MOMENT, meaning="since when it is so"),
)
"""The last fields of every row that is judged."""

SHOWN_JUDGED = (
    replace(
        JUDGED[0],
        heading="Verdict",
        rank=2,
        sort=ASCENDING,
        key="V",
        toned=True,
        least=8,
        cell=lambda row, times: verdict_cell(row.kind, row.since_ms, times),
    ),
    *JUDGED[1:],
)
"""The same with a column, right after the name. In ascending order the worst come first."""
