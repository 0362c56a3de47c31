"""Text as a terminal shows it: without control characters, cut, wrapped and filled by columns of the terminal and not by characters."""

import re
from collections.abc import Iterator

from rich.cells import cell_len, chop_cells, set_cell_size

from streaming.common.units import plain as plain

MORE = "…"

_WORD_OF_SHELL = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+""", re.DOTALL)
"""A word of a command, with the quotes in it."""

_GOES_ON = "  "
"""Before the lines that go on with a command."""


def filled(text: str, width: int, *, right: bool = False) -> str:
    """Exactly ``width`` columns, cut or filled with spaces."""
    text = cut(text, width)
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def cut(text: str, width: int) -> str:
    """At most ``width`` columns of a text; an ellipsis shows that its end is cut off."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + MORE if width > 1 else MORE[:width]


def cut_inside(text: str, width: int) -> str:
    """At most ``width`` columns with the end whole, which a partition's number is in."""
    if cell_len(text) <= width or width < 8:
        return cut(text, width)
    end = text[-(width // 3) :]
    while cell_len(end) > width // 3:
        end = end[1:]
    return set_cell_size(text, width - 1 - cell_len(end)) + MORE + end


def wrapped(text: str, width: int, *, whole: bool = False) -> list[str]:
    """Lines of at most ``width`` columns, broken at spaces, and inside of words that are longer than a line unless they stay ``whole``."""
    lines, line = [], ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if cell_len(joined) <= width:
            line = joined
            continue
        lines += [line] if line else []
        *pieces, line = chop_cells(word, max(2, width)) if word and not whole else [word]
        lines += pieces
    return [*lines, line]


def shell_lines(command: str, width: int, *, whole: bool = False) -> list[str]:
    """A command as lines that a shell reads as one: each but the last ends with a backslash. An option and its value stay together.

    A word that is longer than a line is broken as it comes unless it stays ``whole``.
    """
    if cell_len(command) <= width:
        return [command]
    lines = [""]
    for pair in _pairs(_WORD_OF_SHELL.findall(command)):
        for words in (pair,) if cell_len(_GOES_ON + " ".join(pair)) + 2 <= width else tuple((word,) for word in pair):
            joined = " ".join([lines[-1], *words] if lines[-1].strip() else [lines[-1] + words[0], *words[1:]])
            if cell_len(joined) + 2 <= width or not lines[-1].strip():
                lines[-1] = joined
            else:
                lines.append(_GOES_ON + " ".join(words))
    lines = [*(f"{line} \\" for line in lines[:-1]), lines[-1]]
    return lines if whole else [piece for line in lines for piece in chop_cells(line, max(2, width))]


def _pairs(words: list[str]) -> Iterator[tuple[str, ...]]:
    """Options with their values, and the other words alone."""
    rest = iter(words)
    for word in rest:
        if not word.startswith("--") or "=" in word:
            yield (word,)
            continue
        value = next(rest, "")
        if value.startswith("-") or not value:
            yield (word,)
            if value:
                yield (value,)
        else:
            yield word, value
