"""Which columns a width has room for, and how wide each is."""

from collections.abc import Sequence

GAP = 2
"""Columns of the terminal between two columns of the table."""

_KEPT, _LEAST = 2, 8
"""So many columns at the left are rather cut down to this than left out."""


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
