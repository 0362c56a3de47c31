"""The lines above and below a list or a detail: verdict, freshness, views, what is filtered; the keys, and messages."""

from dataclasses import replace

from rich.text import Text

from streaming.broker.protocol.status_json import Status
from streaming.common.units import format_duration, format_time
from streaming.pages.listings.cells import MORE, cut, plain, shell_lines, wrapped
from streaming.terminal.top.questions import VIEWS, ListName
from streaming.terminal.top.top_state import ScreenState

_MOST_LINES = 3
"""The most lines of the verdict, and of the freshness below it."""

_LOW = 16
"""With fewer lines in the terminal, verdict and freshness have one each."""

_TALL = 24
"""With so many lines between head and foot, a third of them is kept for the chosen row."""

_LEAST_FOR_PROBLEM = 14
"""With so many, half of them is kept for the chosen problem: its consequence and its command are why the user looks."""

WARNING_COLOUR = "color(130)"
"""A brown that can be read on black and on white, which yellow cannot: its contrast to both is above 4.4."""

NOT_CURRENT_STYLE = "bold magenta"
"""The style of the line that begins with `not current`."""

_STYLES = {"critical": "bold red", "warning": f"bold {WARNING_COLOUR}", "info": "bold", "": "bold green"}
_KEYS = "? help  / filter  enter opens  c copies the command  p pauses  q quits"
_FEW_KEYS = "? help  q quits"

_WHAT_KEYS_DO = (
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


def resized(state: ScreenState, width: int, height: int) -> ScreenState:
    """The state in a terminal of another size; the chosen row stays visible."""
    return scrolled(replace(state, width=max(1, width), height=max(1, height)))


def scrolled(state: ScreenState) -> ScreenState:
    """The same with the cursor on a row that is there, and that row visible."""
    place, rows = state.place, state.rows
    last = max(0, rows.matched - 1) if rows else place.cursor
    cursor = min(max(0, place.cursor), last)
    page = body_height(state)
    first = max(min(place.first, cursor, max(0, last + 1 - page)), cursor - page + 1, 0)
    return state.with_place(replace(place, cursor=cursor, first=first))


def body_height(state: ScreenState) -> int:
    """The lines that are left for rows, without their headings, or for a detail."""
    headings = 0 if state.helping or state.opened else 1
    return max(1, _room(state) - headings - preview_height(state))


def _room(state: ScreenState) -> int:
    return state.height - len(head(state)) - len(foot(state))


def head(state: ScreenState) -> list[Text]:
    """The lines above: the first says what is wrong, the second how fresh that is."""
    verdict, freshness, style = _first_lines(state)
    return [
        *(Text(line, style) for line in _limited(verdict, state)),
        *(Text(line) for line in _limited(freshness, state)),
        _tabs(state),
        *([Text(cut(line, state.width), "bold") for line in [_conditions(state)] if line]),
    ]


def _first_lines(state: ScreenState) -> tuple[str, str, str]:
    """The verdict, how fresh it is, and the verdict's style."""
    status = state.status
    if status is None:
        return (f"not known yet: {plain(state.error)}" if state.error else f"asking {state.source} {MORE}"), "no answer yet", "bold"
    age = format_duration(max(0, round(state.now - state.answered)))
    verdict, freshness = plain(status.verdict), plain(status.freshness)
    if state.is_old:
        why = plain(state.error) or f"no answer for {age}"
        return f"not current: {why}", f"old, of {format_time(status.at_ms)} ({age} ago): {verdict}", NOT_CURRENT_STYLE
    if state.paused:
        return f"paused: {verdict}", f"as of {format_time(status.at_ms)} ({age} ago): {freshness}", "bold"
    if status.not_current:
        return f"not current: {plain(status.not_current)}", f"last known: {verdict}", NOT_CURRENT_STYLE
    return verdict, freshness, verdict_style(status)


def verdict_style(status: Status) -> str:
    """The style of a job's verdict: that of no severity while it starts."""
    return "bold" if status.start is not None else severity_style(status.severity)


def severity_style(severity: str) -> str:
    """The style of a verdict. Its words say the same."""
    return _STYLES.get(severity, "bold")


def _limited(text: str, state: ScreenState) -> list[str]:
    lines = [cut(line, state.width) for line in wrapped(text, state.width)]
    most = _MOST_LINES if state.height >= _LOW else 1
    return lines if len(lines) <= most else [*lines[: most - 1], cut(" ".join(lines[most - 1 :]), state.width)]


def _tabs(state: ScreenState) -> Text:
    """The views with their keys, the present one in brackets; where that is too long, the others are their keys alone."""
    names = [(f"{number} {view}", view is state.view) for number, view in enumerate(VIEWS, 1)]
    whole = "  ".join(f"[{name}]" if here else f" {name} " for name, here in names)
    if len(whole) > state.width:
        whole = " ".join(f"[{name}]" if here else name.partition(" ")[0] for name, here in names)
    line = Text(cut(whole, state.width))
    start = line.plain.find("[")
    line.stylize("reverse", max(0, start), line.plain.find("]") + 1)
    return line


def _conditions(state: ScreenState) -> str:
    """What makes the screen another one than usual: the filter, the breadcrumbs of a detail, another pace."""
    place, rows, parts = state.place, state.rows, []
    chosen = [f"use: {place.use}"] if place.use else []
    if state.typing or place.filter:
        chosen.append(f"filter: {plain(place.filter)}{'_' if state.typing else ''}")
    if chosen:
        found = f" ({rows.matched:,} of {rows.total:,})" if rows and not state.waits and not state.typing else ""
        parts.append(f"{'  '.join(chosen)}{found}")
    if state.opened:
        parts.append("esc goes back")
    if state.every != 2.0:
        parts.append(f"every {format_duration(state.every)}" if state.every else "r reads again")
    if state.paused:
        parts.append("p goes on")
    if state.waits and state.status is not None and not state.error:
        parts.append(f"asking {MORE}")
    return "  ".join(parts)


def foot(state: ScreenState) -> list[Text]:
    """The lines below: the message, or the keys and where in the list the screen is."""
    if state.message:
        sentence, *command = map(plain, state.message)
        broken = [piece for line in command for piece in shell_lines(line, state.width)]
        return [Text(cut(line, state.width), "bold") for line in [*wrapped(sentence, state.width), *broken][: max(1, state.height // 2)]]
    where = _where(state)
    keys = next((each for each in (_KEYS, _FEW_KEYS, "") if len(each) + len(where) + 2 <= state.width), "")
    return [Text(cut(f"{keys}{where:>{max(0, state.width - len(keys))}}", state.width), "dim")]


def _where(state: ScreenState) -> str:
    rows = state.rows
    if rows is None or state.opened or state.helping:
        return ""
    return f"{state.place.cursor + 1:,} of {rows.matched:,}" if rows.matched else "none"


def preview_height(state: ScreenState) -> int:
    """The lines that are kept for the chosen row below a list that would fill a tall screen. A shorter list leaves what it leaves."""
    room, of_problem = _room(state), state.view is ListName.PROBLEMS
    parts, least = (2, _LEAST_FOR_PROBLEM) if of_problem else (3, _TALL)
    is_long = state.rows is not None and state.rows.matched + 1 + of_problem * room // parts > room
    return room // parts if is_long and room >= least and not (state.helping or state.opened) else 0


def help_lines(width: int) -> list[str]:
    """The help in lines of a width."""
    label = min(_LABEL, max(6, width // 3))
    lines = []
    for key, what in _WHAT_KEYS_DO:
        first, *rest = wrapped(what, max(8, width - label))
        lines += [f"{key:<{label}}{first}" if len(key) < label else f"{key}: {what}"[:width], *(f"{'':<{label}}{line}" for line in rest)]
    for text in _MORE:
        lines += ["", *wrapped(text, width)]
    return lines
