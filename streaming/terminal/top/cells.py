"""Text as a terminal shows it: without control characters, cut, wrapped and filled by columns of the terminal and not by characters."""

from rich.cells import cell_len, chop_cells, set_cell_size

from streaming.common.formatting import plain as plain

MORE = "…"


def cut(text: str, width: int) -> str:
    """At most ``width`` columns; what is cut off at the end shows as an ellipsis."""
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


def filled(text: str, width: int, *, right: bool = False) -> str:
    """Exactly ``width`` columns, cut or filled with spaces."""
    text = cut(text, width)
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` columns, broken at spaces, and inside of words that are longer than a line."""
    lines, line = [], ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if cell_len(joined) <= width:
            line = joined
            continue
        lines += [line] if line else []
        *whole, line = chop_cells(word, max(2, width)) if word else [""]
        lines += whole
    return [*lines, line]
