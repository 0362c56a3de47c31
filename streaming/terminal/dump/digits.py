"""Paints whole columns of numbers and names into a matrix of characters, one row for each line: text at numpy's speed.

A number is painted four digits at a time. Each group is found in a table of all groups: one division and one copy for each group and
column. Arrow's casts, pads and joins take five times as long for text, and `pyarrow.csv` twice as long for CSV.
"""

import numpy as np
from numpy.typing import NDArray

Characters = NDArray[np.uint8]

GROUP = 4
"""Digits that are painted at once. The width of a cell with numbers is a multiple of it."""

_GROUPS = 10**GROUP
_MINUS_ONE, _NULL = 2 * _GROUPS, 2 * _GROUPS + 1


class Painter:
    """Paints into cells of a matrix.

    ``blank`` is the character before the digits of a short number, ``null`` (at most 4 characters) is painted for a missing number.
    """

    def __init__(self, blank: bytes, null: bytes) -> None:
        self.blank = blank
        self.null = null
        numbers = np.arange(_GROUPS)
        plain = np.stack([numbers // 10**power % 10 + ord("0") for power in (3, 2, 1, 0)], axis=1).astype(np.uint8)
        leading = plain.copy()
        for place in range(GROUP - 1):
            leading[: 10 ** (GROUP - 1 - place), place] = ord(blank)
        upper = leading.copy()
        upper[0] = ord(blank)
        marks = np.frombuffer(b"-1".rjust(GROUP, blank) + null.rjust(GROUP, blank), np.uint8).reshape(2, GROUP)
        self._lowest_group = _items(np.concatenate([leading, plain, marks]))
        self._upper_group = _items(np.concatenate([upper, plain]))

    def paint_numbers(self, matrix: Characters, cell: slice, floor: int, values: NDArray[np.integer], nullable: bool) -> int:
        """Paint numbers at the right of a cell, and blanks from there back to ``floor``, where digits of earlier numbers may be.

        Returns:
            The first character that is not blank in every row: the ``floor`` of the next call.
        """
        lowest, highest = int(values.min()), int(values.max())
        if lowest < -1:
            return self._paint_slowly(matrix, cell, values, nullable)
        rest = values.astype(np.int64)
        none = rest == -1 if lowest < 0 else None
        if none is not None:
            rest[none] = 0
        at: int = cell.stop
        table = self._lowest_group
        while True:
            at -= GROUP
            index, above = rest, None
            if highest >= _GROUPS:
                above = rest // _GROUPS
                index = rest - above * _GROUPS
                index += (above > 0) * _GROUPS
            if none is not None and table is self._lowest_group:
                index = np.where(none, _NULL if nullable else _MINUS_ONE, index)
            cell_view(matrix, at, GROUP)[...] = table[index]
            if above is None:
                break
            table, rest, highest = self._upper_group, above, highest // _GROUPS
        matrix[:, floor:at] = ord(self.blank)
        return at

    def _paint_slowly(self, matrix: Characters, cell: slice, values: NDArray[np.integer], nullable: bool) -> int:
        """Paint numbers below -1, which only a damaged header has."""
        width = cell.stop - cell.start
        texts = [self.null if nullable and value == -1 else b"%d" % value for value in values.tolist()]
        painted = b"".join(text.rjust(width, self.blank) for text in texts)
        cell_view(matrix, cell.start, width)[...] = np.frombuffer(painted, f"V{width}")
        return int(cell.start)


def digits_of(values: NDArray[np.integer]) -> int:
    """The characters of the longest of some numbers."""
    return max(len(str(values.max())), len(str(values.min())))


def names_table(names: tuple[bytes, ...], width: int, blank: bytes) -> NDArray[np.void]:
    """Names as items of equal width, indexed by their codes."""
    return np.frombuffer(b"".join(name.rjust(width, blank) for name in names), f"V{width}")


def cell_view(matrix: Characters, at: int, width: int) -> NDArray[np.void]:
    """The cells ``[at, at + width)`` of all rows as items of that many characters."""
    rows, stride = matrix.shape
    return np.ndarray((rows,), f"V{width}", buffer=matrix.data, offset=at, strides=(stride,))


def _items(groups: Characters) -> NDArray[np.void]:
    items: NDArray[np.void] = np.ascontiguousarray(groups).view(f"V{GROUP}").reshape(-1)
    return items
