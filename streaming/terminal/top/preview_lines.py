"""What the chosen row has to say, below the list: a problem with its command, or a row with all its columns."""

from rich.text import Text

from streaming.broker.protocol.listing_json import TransactionRow
from streaming.broker.protocol.shown import Unit
from streaming.broker.protocol.status_json import Problem
from streaming.pages.listings.answered_lists import LISTS
from streaming.pages.listings.cells import cut, plain
from streaming.pages.listings.details import Fact
from streaming.pages.listings.list_cells import Times
from streaming.pages.listings.transaction_list import advice
from streaming.terminal.top.detail_lines import DetailLine, command_lines, fact_lines, problem_lines, title
from streaming.terminal.top.questions import Row
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
