"""What each view shows, as values that its template only writes down; and tables that the server sorts, filters and pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from streaming.broker.protocol.json_message import ASC, DESC, PublicMessage, Unit
from streaming.broker.protocol.listing_json import DEFAULT_LIMIT
from streaming.broker.protocol.status_json import Status
from streaming.common.units import format_time
from streaming.pages.listings import details
from streaming.pages.listings.listing import Field, Times, severity_of
from streaming.pages.site.page_links import link
from streaming.pages.site.page_words import NO_CELL, PageCell, drawn

STEP, WIDEST = 4, 96
"""The style sheet has a class for each of these widths of a table, in rem."""

_CHARACTER, _PADDING, _SPARK, _COMMAND = 0.55, 1.5, 8.0, 16.0
"""Widths in rem: of a character of a table in the widest of the usual fonts, of what is around a cell, of a line, of a command."""

_NAME, _TEXT, _WORD = 34, 22, 12
"""So many characters of a name, of other texts and of a heading are on one line, if there are so many."""

_KEPT = 2
"""So many columns are shown at every width: what a row is about, and what is wrong with it."""

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    """What all views have."""

    title: str
    here: str  # the entry of the navigation
    status: Status
    json: str = ""  # the same for programs, "" if there is none

    @property
    def as_of(self) -> PageCell:
        """When this was so."""
        return PageCell(text=format_time(self.status.at_ms), time=format_time(self.status.at_ms))

    @property
    def tone(self) -> str:
        """The class of the verdict: a severity, or none of them while the job starts."""
        return "starting" if self.status.start is not None else self.status.severity or "fine"

    @property
    def badge(self) -> str:
        """One word for how it is."""
        return "starting" if self.status.start is not None else badge(self.status.severity)

    @property
    def not_current(self) -> str:
        """The band above everything, "" if what is below is current."""
        return f"Not current: {lower_first(self.status.not_current)}." if self.status.not_current else ""

    @property
    def counts(self) -> str:
        """How many problems there are, in words; while the job starts, how far it is."""
        status = self.status
        if status.start is not None:
            return status.start.what
        numbers = ((status.critical, "critical"), (status.warning, "warning"), (status.info, "info"))
        return ", ".join(counted(count, word) for count, word in numbers if count) or "no problems"


def badge(severity: str) -> str:
    """The word for a severity, as everywhere else."""
    return severity or "fine"


def lower_first(sentence: str) -> str:
    """A sentence behind a colon."""
    return f"{sentence[:1].lower()}{sentence[1:]}"


def counted(count: int, word: str) -> str:
    """Some problems of one severity."""
    plural = "s" if word == "warning" and count != 1 else ""
    return f"{count:,} {word}{plural}"


def columns_of(fields: Sequence[Field]) -> tuple[Column[Any], ...]:
    """The columns of a declared list."""
    return tuple(map(_column, fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Generic[Row]):
    """One column. ``cell`` makes a value as of a time in Unix milliseconds."""

    head: str
    cell: Callable[[Row, int], PageCell]
    sort: str = ""  # the field that it is sorted by, "" if it is not
    numbers: bool = False
    first: str = DESC  # the order in which it is sorted at first
    rare: bool = False  # it is left out where no row has anything in it


def _column(field: Field) -> Column[Any]:
    def cell(row: PublicMessage, now_ms: int) -> PageCell:
        tone = severity_of(row) if field.toned else ""
        return drawn(field.cell_in(row, Times(now_ms)), tone, name=field.unit is Unit.NAME)

    numbers = field.unit.is_number and field.unit is not Unit.MOMENT
    return Column(
        head=field.heading,
        cell=cell,
        sort=field.name if field.sort else "",
        numbers=numbers,
        first=field.sort or DESC,
        rare=field.rare,
    )


def draw(
    key: str,
    caption: str,
    columns: Sequence[Column[Row]],
    rows: Sequence[Row],
    now_ms: int,
    *,
    empty: str,
    sorting: Sorting | None = None,
    paging: Paging | None = None,
) -> PageTable:
    """Make the table; without ``sorting`` its heads are no links.

    Which columns of a table a width has room for, so that no name is broken while a less important column is beside it. The page is
    drawn for every width at once: a class says from which width on a column is shown, and the style sheet compares.
    """
    every = [(column, [column.cell(row, now_ms) for row in rows]) for column in columns]
    shown = [(column, cells) for column, cells in every if not column.rare or any(cell != NO_CELL for cell in cells)]
    kept = [sorting is not None and bool(column.sort) and column.sort == sorting.sort for column, _ in shown]
    rooms = rooms_of([column.head for column, _ in shown], [cells for _, cells in shown], kept)
    return PageTable(
        key=key,
        caption=caption,
        heads=tuple(_head(column, sorting, room) for (column, _), room in zip(shown, rooms, strict=True)),
        rows=tuple(zip(*(cells for _, cells in shown), strict=True)),
        empty=empty,
        paging=paging,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorting:
    """What a table is sorted by, and the parameters of the view that are not about that."""

    path: str
    sort: str
    order: str
    others: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paging:
    """Where a page of a table is, "" where there are no rows at all; ``previous`` and ``next`` are "" where there is none."""

    words: str
    previous: str = ""
    next: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A head as it is drawn: ``href`` sorts by it, "" if nothing does."""

    text: str
    href: str = ""
    sorted_as: str = ""  # the word for ``aria-sort``, "" if by another
    numbers: bool = False
    room: int = 0  # of the style sheet, the width in rem from which on its column is shown; 0 for always

    @property
    def classes(self) -> str:
        """Those of its cells."""
        return " ".join((*(["n"] if self.numbers else []), *([f"w{self.room}"] if self.room else [])))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    """A table as it is drawn. ``key``: its id on the page; ``empty``: the sentence in place of rows."""

    key: str
    caption: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[PageCell, ...], ...]
    empty: str
    paging: Paging | None = None


def paging(
    path: str, parameters: Mapping[str, str], *, offset: int, rows: int, matched: int, total: int, limit: int = DEFAULT_LIMIT
) -> Paging:
    """Which rows a page shows, of ``limit`` at most, with the ways to its neighbours; ``parameters``: those that stay."""
    every = f"{matched:,}" if matched == total else f"{matched:,} that match, of {total:,}"
    words = f"{offset + 1:,} to {offset + rows:,} of {every}" if rows else f"none of {every}" if total else ""
    previous = link(path, {**parameters, "offset": str(max(0, min(offset, matched) - limit))}) if offset and matched else ""
    more = link(path, {**parameters, "offset": str(offset + limit)}) if offset + rows < matched and rows else ""
    return Paging(words=words, previous=previous, next=more)


def rooms_of(heads: Sequence[str], columns: Sequence[Sequence[PageCell]], stays: Sequence[bool]) -> list[int]:
    """The width in rem from which on each column is shown, 0 for always: so is a command, which a reader came for.

    Args:
        heads: the most important one first.
        columns: their cells.
        stays: whether each is shown at every width, because the rows are sorted by it.
    """
    widths = [max([_of_head(head), *map(_of_cell, cells)]) for head, cells in zip(heads, columns, strict=True)]
    always = [at < _KEPT or stays[at] or any(each.command for each in cells) for at, cells in enumerate(columns)]
    used = sum(width for width, shown in zip(widths, always, strict=True) if shown)
    rooms = []
    for width, shown in zip(widths, always, strict=True):
        used += 0 if shown else width
        rooms.append(0 if shown else min(WIDEST, -int(-used // STEP) * STEP))
    return rooms


def _of_head(head: str) -> float:
    return min(len(head), max(_WORD, *(len(word) for word in head.split()))) * _CHARACTER + _PADDING


def _of_cell(cell: PageCell) -> float:
    if cell.line is not None:
        return _SPARK + _PADDING
    if cell.command:
        return _COMMAND + _PADDING
    links = max((len(each.text) for each in cell.links), default=0)
    text = min(_NAME if cell.name else _TEXT, max(len(cell.text), links))
    return max(text, min(_WORD, len(cell.note))) * _CHARACTER + _PADDING


def _head(column: Column[Row], sorting: Sorting | None, room: int) -> Head:
    if sorting is None or not column.sort:
        return Head(text=column.head, numbers=column.numbers, room=room)
    here = sorting.sort == column.sort
    order = column.first if not here else ASC if sorting.order == DESC else DESC
    return Head(
        text=column.head,
        href=link(sorting.path, {**sorting.others, "sort": column.sort, "order": order}),
        sorted_as=("ascending" if sorting.order == ASC else "descending") if here else "",
        numbers=column.numbers,
        room=room,
    )


def choices(columns: Sequence[Column[Row]], sort: str) -> tuple[FormChoice, ...]:
    """The columns to sort by, for a form."""
    return tuple(FormChoice(value=each.sort, text=each.head, chosen=each.sort == sort) for each in columns if each.sort)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormChoice:
    """One choice of a form."""

    value: str
    text: str
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A form that filters a table. ``parameters``: those that it does not change, as hidden fields; ``sorts``: its choices, if any."""

    path: str
    text: str
    label: str
    parameters: tuple[tuple[str, str], ...] = ()
    sorts: tuple[FormChoice, ...] = ()
    order: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListView(PageView):
    """A table."""

    intro: str
    table: PageTable
    filter: Filter | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorView(PageView):
    """Why there is no view."""

    words: str


def drawn_facts(facts: Iterable[details.Fact]) -> tuple[Fact, ...]:
    """What is said of a thing, as it is drawn."""
    return tuple(Fact(name=each.name, value=drawn(each.cell, each.tone, name=each.is_name), long=each.long) for each in facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A name and a value; ``long``: a sentence, which has a row of its own."""

    name: str
    value: PageCell
    long: bool = False
