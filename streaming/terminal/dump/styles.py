"""The text that each line format puts around values and uses instead of them."""

import csv
import io
import json
from collections.abc import Iterator
from itertools import islice
from typing import Protocol

from streaming.common.formatting import NONE, format_table, format_word, plain
from streaming.terminal.dump.digits import GROUP
from streaming.terminal.dump.row_table import Cell, Column, Numbers, RowTable, cells_of

FLAGS = ("false", "true")

_WIDE = 12  # with more columns, one line is too short
_LEAST_DIGITS = 11  # for an offset or a position in text, so that columns stay aligned while a log grows


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

    def width(self, column: Column, needed: int) -> int:
        """The characters of a cell whose longest value has ``needed`` characters."""

    def rows(self, table: RowTable, begins: bool) -> Iterator[bytes]:
        """The lines of a table row by row."""


class TextStyle:
    """Columns below a line with their names, which begins with the file's name."""

    blank, null, shrinks = b" ", NONE.encode(), False

    def head(self, table: RowTable) -> bytes:
        return f"# {plain(table.path)}\n".encode()

    def label(self, table: RowTable, at: int) -> bytes:
        return b""

    def end(self) -> bytes:
        return b"\n"

    def name(self, text: str) -> bytes:
        return text.encode()

    def width(self, column: Column, needed: int) -> int:
        if isinstance(column, Numbers) and column.values.dtype.itemsize == 8:
            needed = max(needed, _LEAST_DIGITS)
        return -(-(max(needed, len(column.name)) + 1) // GROUP) * GROUP

    def rows(self, table: RowTable, begins: bool) -> Iterator[bytes]:
        columns = [(column.name, *map(_shown, cells_of(column))) for column in table.columns]
        wide = table.rows == 1 and len(columns) > _WIDE  # such as a summary: one line for each column
        lines = format_table(columns if wide else zip(*columns, strict=True))
        yield from (f"  {line}\n".encode() for line in islice(lines, 0 if begins or wide else 1, None))


class JsonStyle:
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

    def width(self, column: Column, needed: int) -> int:
        return -(-needed // GROUP) * GROUP

    def rows(self, table: RowTable, begins: bool) -> Iterator[bytes]:
        names = [column.name for column in table.columns]
        start = {"kind": table.kind, "file": table.path}
        for row in zip(*map(cells_of, table.columns), strict=True):
            yield (json.dumps(start | dict(zip(names, row, strict=True))) + "\n").encode()


class CsvStyle:
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

    def name(self, text: str) -> bytes:
        return text.encode()

    def width(self, column: Column, needed: int) -> int:
        return -(-needed // GROUP) * GROUP

    def rows(self, table: RowTable, begins: bool) -> Iterator[bytes]:
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        for row in zip(*map(cells_of, table.columns), strict=True):
            writer.writerow([*("" if cell is None else _plain(cell) for cell in row), table.path])
        yield lines.getvalue().encode()


def _plain(cell: Cell) -> str | int:
    if isinstance(cell, bool):
        return FLAGS[cell]
    if isinstance(cell, str | int):
        return cell
    return json.dumps(cell, ensure_ascii=False)


def _shown(cell: Cell) -> str | None:
    return None if cell is None else format_word(cell) if isinstance(cell, str) else str(_plain(cell))


def csv_text(text: str) -> str:
    """A text as one value of a line, quoted if necessary."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([text])
    return line.getvalue()
