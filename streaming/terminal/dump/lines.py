"""Writes tables as lines: aligned text, JSON objects, comma-separated values.

Most dumps are tables of numbers, flags and names only. Such a table is painted as a matrix of characters; others are written row by row.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from streaming.common.formatting import plain
from streaming.terminal.dump.digits import Characters, Painter, cell_view, digits_of, names_table
from streaming.terminal.dump.request import Format
from streaming.terminal.dump.row_table import Cells, Choices, Column, Flags, Numbers, RowTable
from streaming.terminal.dump.styles import FLAGS, CsvStyle, JsonStyle, Style, TextStyle, csv_text

_ROWS = 4096
_STYLES: dict[Format, type[Style]] = {Format.TEXT: TextStyle, Format.JSON: JsonStyle, Format.CSV: CsvStyle}


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


class LineWriter:
    """Converts tables to the bytes of one format."""

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


def _names(column: Column, width: int, style: Style) -> NDArray[np.void] | None:
    match column:
        case Choices(names=names):
            return names_table(tuple(style.name(name) for name in names), width, style.blank)
        case Flags():
            return names_table(tuple(name.encode() for name in FLAGS), width, style.blank)
        case _:
            return None
