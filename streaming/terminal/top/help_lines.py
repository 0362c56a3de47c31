"""The help of `segtail top`."""

from streaming.pages.listings.cells import wrapped

_KEYS = (
    ("1 to 6, tab", "problems, partitions, transactions, retention, groups, events"),
    ("up, down, j, k", "the next row; PgUp, PgDn, Home, End by pages"),
    ("enter", "open the row: a problem with its command, a partition with its segments, a group with its verdicts"),
    ("esc", "back; in a list it clears the filter, and --use"),
    ("/", "filter: rows that hold the text; enter keeps it, esc clears it"),
    ("shift and letter", "sort by the column in whose heading that letter is underlined; again: the other way"),
    ("c", "copy the command of the row to the clipboard (OSC 52), and show it"),
    ("t", "times as ages or as ISO 8601 in UTC"),
    ("p", "pause: nothing changes until p again"),
    ("+, -", "ask less often, more often"),
    ("r", "ask now; log dirs are read again"),
    ("?", "this help"),
    ("q, Ctrl-C", "quit"),
)
_MORE = (
    "The first line says what is wrong, the second how fresh that is. If the first begins with `not current`, everything on the screen is "
    "as old as the second line says.",
    "A dash means that a value is not known or that there is none. A question mark after it means that limits are assumed.",
    "`segtail top --once` prints the same once; `--plain` as labelled lines.",
)
_LABEL = 18


def help_lines(width: int) -> list[str]:
    """The help in lines of a width."""
    label = min(_LABEL, max(6, width // 3))
    lines = []
    for key, what in _KEYS:
        first, *rest = wrapped(what, max(8, width - label))
        lines += [f"{key:<{label}}{first}" if len(key) < label else f"{key}: {what}"[:width], *(f"{'':<{label}}{line}" for line in rest)]
    for text in _MORE:
        lines += ["", *wrapped(text, width)]
    return lines
