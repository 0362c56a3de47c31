"""A state as the lines of a screen."""

from dataclasses import dataclass

from rich.text import Text

from streaming.broker.protocol.listing_json import TransactionRow
from streaming.broker.protocol.shown import Unit
from streaming.broker.protocol.status_json import Problem
from streaming.common.formatting import format_count
from streaming.pages.listings.answered_lists import LISTS
from streaming.pages.listings.cells import MORE, cut, plain
from streaming.pages.listings.details import Fact
from streaming.pages.listings.list_cells import Times
from streaming.pages.listings.transaction_list import advice
from streaming.terminal.top.detail_lines import DetailLine, command_lines, detail_lines, fact_lines, problem_lines, title
from streaming.terminal.top.help_lines import help_lines
from streaming.terminal.top.questions import Row
from streaming.terminal.top.screen_parts import body_height, foot, head, preview_height
from streaming.terminal.top.table_lines import table_lines
from streaming.terminal.top.top_state import ScreenState

LEAST = 5
"""With fewer lines there is no preview."""


def preview_lines(state: ScreenState, height: int) -> list[Text]:
    """At most ``height`` lines about the chosen row, none if there is none or not enough room."""
    row, rows = state.chosen, state.rows
    if row is None or rows is None or height < LEAST:
        return []
    lines = _of(row, Times(rows.at_ms, state.relative), state)
    while lines and not lines[0].text:
        lines = lines[1:]
    if len(lines) >= height:
        lines = [*lines[: height - 2], DetailLine("enter shows more")]
    style = " dim" if state.is_old else ""
    return [Text("─" * state.width, "dim"), *(Text(cut(each.text, state.width), f"{each.style}{style}".strip()) for each in lines)]


def _of(row: Row, times: Times, state: ScreenState) -> list[DetailLine]:
    if isinstance(row, Problem):
        return problem_lines(row, times, state.width)
    first, *rest = LISTS[state.view].text_columns
    facts = (Fact(name=each.heading, cell=each.cell_in(row, times)) for each in rest if each.unit is not Unit.CURVE)
    command = command_lines(row.command, row.no_command, state.width, advice(row)) if isinstance(row, TransactionRow) else []
    return [*title(plain(first.cell_in(row, times).text), state.width), *fact_lines(facts, state.width), *command]


@dataclass(frozen=True, slots=True)
class Frame:
    """As many lines as the terminal has. ``row``: where the terminal's cursor belongs, at the chosen row: a screen reader follows it."""

    lines: tuple[Text, ...]
    row: int


def drawn(state: ScreenState) -> Frame:
    """The screen of a state; no line is wider than the terminal."""
    above, below, height = head(state), foot(state), body_height(state)
    if state.helping:
        body = _page([DetailLine(line) for line in help_lines(state.width)], state, height)
    elif state.opened:
        body = _page(detail_lines(state), state, height)
    else:
        body = _list(state, height)
    lines = [*above, *body, *below][: state.height]
    return Frame(tuple(lines), min(len(lines) - 1, _cursor_row(state, len(above), height)))


def _list(state: ScreenState, height: int) -> list[Text]:
    """The rows, and below them the chosen one where there is room."""
    lines = table_lines(state, height)
    while lines and not lines[-1].plain:
        lines.pop()
    room = 1 + height + preview_height(state)
    preview = preview_lines(state, room - len(lines))
    return [*lines, *preview, *(Text("") for _ in range(room - len(lines) - len(preview)))]


def _page(lines: list[DetailLine], state: ScreenState, height: int) -> list[Text]:
    visible = lines[state.line : state.line + height]
    if (below := len(lines) - state.line - height) > 0:
        visible[-1:] = [DetailLine(f"{MORE} {format_count(below + 1, 'more line')}: PgDn, down", "dim")]
    style = " dim" if state.is_old else ""
    texts = [Text(cut(each.text, state.width), f"{each.style}{style}".strip()) for each in visible]
    return [*texts, *(Text("") for _ in range(height - len(texts)))]


def _cursor_row(state: ScreenState, above: int, height: int) -> int:
    if state.typing:
        return above - 1
    if state.helping or state.opened:
        return above
    return above + 1 + min(height - 1, max(0, state.place.cursor - state.place.first))
