"""Which columns of a table a width has room for, so that no name is broken while a less important column is beside it.

The page is drawn for every width at once: a class says from which width on a column is shown, and the style sheet compares.
"""

from collections.abc import Sequence

from streaming.pages.site.page_words import PageCell

STEP, WIDEST = 4, 96
"""The style sheet has a class for each of these widths of a table, in rem."""

_CHARACTER, _PADDING, _SPARK, _COMMAND = 0.55, 1.5, 8.0, 16.0
"""Widths in rem: of a character of a table in the widest of the usual fonts, of what is around a cell, of a line, of a command."""

_NAME, _TEXT, _WORD = 34, 22, 12
"""So many characters of a name, of other texts and of a heading are on one line, if there are so many."""

_KEPT = 2
"""So many columns are shown at every width: what a row is about, and what is wrong with it."""


def rooms_of(heads: Sequence[str], columns: Sequence[Sequence[PageCell]], stays: Sequence[bool]) -> list[int]:
    """The width in rem from which on each column is shown, 0 for always: so is a command, which somebody came for.

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
