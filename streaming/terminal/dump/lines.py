"""Writes tables as lines: aligned text, JSON objects, comma-separated values."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from streaming.common.units import NONE, format_table, format_word, plain
from streaming.terminal.dump.request import Format
from streaming.terminal.dump.row_table import Cell, Cells, Choices, Column, Flags, Numbers, RowTable, cells_of

Characters = NDArray[np.uint8]

GROUP = 4
"""Digits that are painted at once. The width of a cell with numbers is a multiple of it."""

_GROUPS = 10**GROUP
_MINUS_ONE, _NULL = 2 * _GROUPS, 2 * _GROUPS + 1

FLAGS = ("false", "true")

_WIDE = 12  # with more columns, one line is too short
_LEAST_DIGITS = 11  # for an offset or a position in text, so that columns stay aligned while a log grows

_ROWS = 4096


class LineSink:
    """Writes tables as the lines of one format."""

    def __init__(self, form: Format, out: BinaryIO) -> None:
        self._lines = LineWriter(_STYLES[form]())
        self._out = out

    def write(self, table: RowTable) -> None:
        """Append a table."""
        for lines in self._lines.lines(table):
            self._out.write(lines)

    def close(self) -> None:
        """Do nothing: there is nothing after the last line."""


class LineWriter:
    """Converts tables to the bytes of one format.

    The text that each line format puts around values and uses instead of them.
    """

    def __init__(self, style: Style) -> None:
        self._style = style
        self._painter = Painter(style.blank, style.null)
        self._shown: tuple[str, str] | None = None
        self._named = False  # whether the names of the columns are above the rows
        self._layouts: dict[tuple[str, str, int], _Layout] = {}

    def lines(self, table: RowTable) -> Iterator[bytes | memoryview]:
        """The lines of a table. Each item is valid until the next one is requested."""
        if (table.kind, table.path) != self._shown:
            self._shown, self._named = (table.kind, table.path), False
            self._layouts.clear()
            if head := self._style.head(table):
                yield head
        if not table.rows:
            return
        begins, self._named = not self._named, True
        if any(isinstance(column, Cells) for column in table.columns):
            yield b"".join(self._style.rows(table, begins))
            return
        if begins and isinstance(self._style, TextStyle):
            yield self._names(table)
        for start in range(0, table.rows, _ROWS):
            yield self._painted(table, start, min(_ROWS, table.rows - start))

    def _names(self, table: RowTable) -> bytes:
        layout = self._layout(table)
        line = "".join(column.name.rjust(cell.width) for column, cell in zip(table.columns, layout.cells, strict=True))
        return f"{line}\n".encode()

    def _painted(self, table: RowTable, start: int, rows: int) -> bytes | memoryview:
        layout = self._layout(table)
        matrix = layout.matrix[:rows]
        for column, cell in zip(table.columns, layout.cells, strict=True):
            self._paint(matrix, layout.matrix, column, cell, slice(start, start + rows))
        if self._style.shrinks:
            return matrix.tobytes().translate(None, self._style.blank)
        return matrix.data.cast("B")

    def _paint(self, matrix: Characters, whole: Characters, column: Column, cell: _Cell, rows: slice) -> None:
        values = _codes(column)[rows]
        lowest = int(values.min())
        constant = lowest if lowest == int(values.max()) else None
        if constant is not None:  # painted once into every row, and then not again
            if cell.constant == constant:
                return
            matrix, values = whole, np.full(len(whole), constant, values.dtype)
        cell.constant = constant
        if cell.table is not None:
            cell_view(matrix, cell.at, cell.width)[...] = cell.table[values]
        else:
            nullable = isinstance(column, Numbers) and column.nullable
            floor = self._painter.paint_numbers(matrix, slice(cell.at, cell.at + cell.width), cell.floor, values, nullable)
            # the rows after these may still have longer numbers of an earlier part
            cell.floor = floor if len(matrix) == len(whole) else min(floor, cell.floor)

    def _layout(self, table: RowTable) -> _Layout:
        """The layout for a table; it is made again if a value no longer fits into its cell."""
        key = (table.kind, table.path, len(table.columns))
        layout = self._layouts.get(key)
        needed = [_needed(column, self._style) for column in table.columns]
        if (
            layout is None
            or len(layout.matrix) < min(table.rows, _ROWS)
            or any(
                self._style.width(column, size) > cell.width for column, size, cell in zip(table.columns, needed, layout.cells, strict=True)
            )
        ):
            layout = self._new_layout(table, needed, layout)
            self._layouts[key] = layout
        return layout

    def _new_layout(self, table: RowTable, needed: list[int], before: _Layout | None) -> _Layout:
        style, template = self._style, bytearray()
        made = []
        for at, (column, size) in enumerate(zip(table.columns, needed, strict=True)):
            template += style.label(table, at)
            width = max(style.width(column, size), before.cells[at].width if before else 0)
            made.append(_Cell(len(template), width, len(template) + width, _names(column, width, style)))
            template += style.blank * width
        template += style.end() or f",{csv_text(plain(table.path))}\n".encode()
        rows = min(table.rows, _ROWS) if before is None else _ROWS  # the first table of a small file is the whole file
        return _Layout(np.tile(np.frombuffer(bytes(template), np.uint8), (rows, 1)), made)


class Style(Protocol):
    """The text that one format puts around values and uses instead of them."""

    blank: bytes
    null: bytes
    shrinks: bool  # blanks are removed from the finished lines

    def head(self, table: RowTable) -> bytes:
        """The text before the first row of a table from a file."""

    def label(self, table: RowTable, at: int) -> bytes:
        """The text before the value of a column."""

    def end(self) -> bytes:
        """The end of a row."""

    def name(self, text: str) -> bytes:
        """A name as a value."""
        return text.encode()

    def width(self, column: Column, needed: int) -> int:
        """The characters of a cell whose longest value has ``needed`` characters."""
        return -(-needed // GROUP) * GROUP

    def rows(self, table: RowTable, begins: bool) -> Iterator[bytes]:
        """The lines of a table row by row."""


class Painter:
    """Paints into cells of a matrix.

    Paints whole columns of numbers and names into a matrix of characters, one row for each line: text at numpy's speed. A number is
    painted four digits at a time. Each group is found in a table of all groups: one division and one copy for each group and column.
    Arrow's casts, pads and joins take five times as long for text, and `pyarrow.csv` twice as long for CSV.

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


def _items(groups: Characters) -> NDArray[np.void]:
    items: NDArray[np.void] = np.ascontiguousarray(groups).view(f"V{GROUP}").reshape(-1)
    return items


def cell_view(matrix: Characters, at: int, width: int) -> NDArray[np.void]:
    """The cells ``[at, at + width)`` of all rows as items of that many characters."""
    rows, stride = matrix.shape
    return np.ndarray((rows,), f"V{width}", buffer=matrix.data, offset=at, strides=(stride,))


@dataclass(slots=True)
class _Cell:
    """The cell in which a column is painted; ``constant`` is the value that is in all rows of the matrix already."""

    at: int
    width: int
    floor: int
    table: NDArray[np.void] | None
    constant: int | None = None


@dataclass(slots=True)
class _Layout:
    matrix: Characters
    cells: list[_Cell] = field(default_factory=list)


class TextStyle(Style):
    """Columns below a line with their names, which begins with the file's name."""

    blank, null, shrinks = b" ", NONE.encode(), False

    def head(self, table: RowTable) -> bytes:
        return f"# {plain(table.path)}\n".encode()

    def label(self, table: RowTable, at: int) -> bytes:
        return b""

    def end(self) -> bytes:
        return b"\n"

    def width(self, column: Column, needed: int) -> int:
        if isinstance(column, Numbers) and column.values.dtype.itemsize == 8:
            needed = max(needed, _LEAST_DIGITS)
        return super().width(column, max(needed, len(column.name)) + 1)

    def rows(self, table: RowTable, begins: bool) -> Iterator[bytes]:
        columns = [(column.name, *map(_shown, cells_of(column))) for column in table.columns]
        wide = table.rows == 1 and len(columns) > _WIDE  # such as a summary: one line for each column
        lines = format_table(columns if wide else zip(*columns, strict=True))
        yield from (f"  {line}\n".encode() for line in islice(lines, 0 if begins or wide else 1, None))


def _shown(cell: Cell) -> str | None:
    return None if cell is None else format_word(cell) if isinstance(cell, str) else str(_plain(cell))


def _plain(cell: Cell) -> str | int:
    if isinstance(cell, bool):
        return FLAGS[cell]
    if isinstance(cell, str | int):
        return cell
    return json.dumps(cell, ensure_ascii=False)


def _codes(column: Column) -> NDArray[np.integer]:
    match column:
        case Numbers(values=values):
            return values
        case Flags(values=flags):
            return flags.view(np.int8)
        case Choices(codes=codes):
            return codes
        case Cells():
            raise TypeError(f"{column.name} is no column of numbers")


def _needed(column: Column, style: Style) -> int:
    match column:
        case Numbers(values=values):
            return max(digits_of(values), len(style.null) if column.nullable else 0)
        case Choices(names=names):
            return max(len(style.name(name)) for name in names)
        case _:
            return max(map(len, FLAGS))


def digits_of(values: NDArray[np.integer]) -> int:
    """The characters of the longest of some numbers."""
    return max(len(str(values.max())), len(str(values.min())))


def _names(column: Column, width: int, style: Style) -> NDArray[np.void] | None:
    match column:
        case Choices(names=names):
            return names_table(tuple(style.name(name) for name in names), width, style.blank)
        case Flags():
            return names_table(tuple(name.encode() for name in FLAGS), width, style.blank)
        case _:
            return None


def names_table(names: tuple[bytes, ...], width: int, blank: bytes) -> NDArray[np.void]:
    """Names as items of equal width, indexed by their codes."""
    return np.frombuffer(b"".join(name.rjust(width, blank) for name in names), f"V{width}")


def csv_text(text: str) -> str:
    """A text as one value of a line, quoted if necessary."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([text])
    return line.getvalue()


class JsonStyle(Style):
    """One object on each line."""

    blank, null, shrinks = b"\0", b"null", True

    def head(self, table: RowTable) -> bytes:
        return b""

    def label(self, table: RowTable, at: int) -> bytes:
        start = json.dumps({"kind": table.kind, "file": table.path})[:-1] if at == 0 else ""
        return f'{start}, "{table.columns[at].name}": '.encode()

    def end(self) -> bytes:
        return b"}\n"

    def name(self, text: str) -> bytes:
        return b'"%s"' % text.encode() if text not in FLAGS else text.encode()

    def rows(self, table: RowTable, begins: bool) -> Iterator[bytes]:
        names = [column.name for column in table.columns]
        start = {"kind": table.kind, "file": table.path}
        for row in zip(*map(cells_of, table.columns), strict=True):
            yield (json.dumps(start | dict(zip(names, row, strict=True))) + "\n").encode()


class CsvStyle(Style):
    """RFC 4180 with one line of names; the file is the last column."""

    blank, null, shrinks = b"\0", b"", True

    def __init__(self) -> None:
        self._begun = False

    def head(self, table: RowTable) -> bytes:
        if self._begun or not table.columns:
            return b""
        self._begun = True
        return (",".join(column.name for column in table.columns) + ",file\n").encode()

    def label(self, table: RowTable, at: int) -> bytes:
        return b"," if at else b""

    def end(self) -> bytes:
        return b""

    def rows(self, table: RowTable, begins: bool) -> Iterator[bytes]:
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        for row in zip(*map(cells_of, table.columns), strict=True):
            writer.writerow([*("" if cell is None else _plain(cell) for cell in row), table.path])
        yield lines.getvalue().encode()


_STYLES: dict[Format, type[Style]] = {Format.TEXT: TextStyle, Format.JSON: JsonStyle, Format.CSV: CsvStyle}
