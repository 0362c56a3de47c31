"""A declared list as lines of text, for faces that wrap no cell: with all its columns, or with those that a terminal has room for."""

from collections.abc import Sequence

from rich.cells import cell_len

from streaming.broker.protocol.json_message import PublicMessage
from streaming.common.units import NONE, format_table
from streaming.pages.listings.cells import MORE, cut_inside, filled, wrapped
from streaming.pages.listings.listing import Field, Listing, Times

GAP = 2
"""Columns of the terminal between two columns of the table."""

_KEPT, _LEAST = 2, 8
"""So many columns at the left are rather cut down to this than left out."""

_ENDS_WITH_NUMBER = "topic"
"""The field whose cell ends with the number of a partition: what is cut off is in its middle."""


def text_table(listing: Listing, rows: Sequence[PublicMessage], times: Times, width: int | None = None) -> list[str]:
    """The headings, and the rows below each other, with the columns of such faces.

    Args:
        width: columns of the terminal. Then the table has the most important columns that fit, and below it what is left out. None for all.
    """
    every = [(each, [each.cell_in(row, times).text for row in rows]) for each in listing.text_columns]
    shown = [(each, texts) for each, texts in every if not each.rare or any(text != NONE for text in texts)]
    columns = [each for each, _ in shown]
    heads, cells = [each.heading for each in columns], list(zip(*(texts for _, texts in shown), strict=True))
    if width is None:
        return list(format_table([heads, *cells], [each.heading for each in columns if each.unit.is_number]))
    natural = [max(cell_len(head), *map(cell_len, texts), 0) for head, (_, texts) in zip(heads, shown, strict=True)]
    widths = fitted(natural, [each.least for each in columns], width)
    is_cut = any(most > given for most, given in zip(natural, widths, strict=False))
    return [*(joined(columns, widths, texts) for texts in (heads, *cells)), *left_out(columns[len(widths) :], width, is_cut=is_cut)]


def fitted(natural: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """The widths of the columns that are shown; the rest is left out.

    Args:
        natural: the width that each column would like to have, the most important one first.
        least: the width that each can do with where there is not much room, 0 if it is only shown whole.
        width: of the terminal.
    """
    share = width // 3  # a name is whole before less important columns come, unless it is very long
    needed = [min(most, max(few, share)) if few else most for most, few in zip(natural, least, strict=True)]
    needed[:1] = [min(each, width) for each in needed[:1]]
    widths: list[int] = []
    for index, need in enumerate(needed):
        left = width - sum(widths) - GAP * len(widths)
        if need > left and index < _KEPT and least[index] and left >= _LEAST:
            need = left
        if need > left:
            break
        widths.append(need)
    used = sum(widths) + GAP * (len(widths) - 1)
    for index in range(len(widths)):
        more = min(natural[index] - widths[index], width - used)
        widths[index] += more
        used += more
    return widths


def joined(columns: Sequence[Field], widths: Sequence[int], texts: Sequence[str]) -> str:
    """A row of a table with columns of these widths: the first ones, as many as there are widths."""
    pieces = []
    for column, width, text in zip(columns, widths, texts, strict=False):
        short = cut_inside(text, width) if column.name == _ENDS_WITH_NUMBER else text
        pieces.append(filled(short, width, right=column.unit.is_number))
    return (" " * GAP).join(pieces).rstrip()


def left_out(columns: Sequence[Field], width: int, *, is_cut: bool = False) -> list[str]:
    """What a table of this width does not show, and how to see it; nothing if it shows all."""
    parts = [f"no room for {', '.join(each.heading for each in columns)}"] if columns else []
    parts += [f"cells with {MORE} are cut"] if is_cut else []
    return wrapped(f"({'; '.join(parts)}: -o wide shows all)", width) if parts else []
