"""What a command prints for people: as wide as their terminal. What goes into a pipe or a file has lines of any length, as `ps` has."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence

import click

from streaming.common.units import format_table
from streaming.pages.listings.cells import shell_lines, wrapped

_NARROWEST = 20


def echo_lines(lines: Iterable[str], width: int | None) -> None:
    """Print lines. Those that are wider than ``width`` go on below their own beginning."""
    click.echo("\n".join(lines if width is None else (piece for line in lines for piece in _broken(line, width))))


def _broken(line: str, width: int) -> Iterator[str]:
    for part in line.split("\n"):
        text = part.lstrip(" ").removeprefix("- ")
        before = part.removesuffix(text)
        room = max(_NARROWEST, width - len(before))
        first, *rest = shell_lines(text, room, whole=True) if isinstance(line, ShellCommand) else wrapped(text, room, whole=True)
        yield before + first
        yield from (" " * len(before) + piece for piece in rest)


class ShellCommand(str):
    """A line that is a command to copy. Where it is broken, a shell reads on."""

    __slots__ = ()


def screen_width() -> int | None:
    """Columns of the terminal that the output goes to: COLUMNS if it is set, else by the terminal. None where there is none."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return max(_NARROWEST, int(given))
    try:
        return max(_NARROWEST, os.get_terminal_size(sys.stdout.fileno()).columns)
    except (OSError, ValueError):  # it is no terminal, or no file at all
        return None


def sentence_table(rows: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    """A table whose last column is of sentences: they go on below their beginning."""
    if width is None:
        yield from format_table(rows)
        return
    before = list(format_table([(*row[:-1], "") for row in rows]))
    room = max(map(len, before), default=0) + 2
    for short, row in zip(before, rows, strict=True):
        first, *rest = wrapped(row[-1], max(_NARROWEST, width - room), whole=True)
        yield f"{short:<{room}}{first}"
        yield from (f"{'':<{room}}{line}" for line in rest)
