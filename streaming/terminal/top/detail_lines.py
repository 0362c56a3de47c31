"""The lines of what is opened, and the command to copy there."""

from streaming.broker.protocol.group_json import GroupDetail
from streaming.broker.protocol.listing_json import TransactionRow
from streaming.broker.protocol.status_json import Problem
from streaming.pages.listings.list_cells import Times
from streaming.terminal.top.group_lines import findings_of, group_lines
from streaming.terminal.top.labelled_text import DetailLine
from streaming.terminal.top.partition_lines import partition_lines
from streaming.terminal.top.problem_lines import problem_lines
from streaming.terminal.top.questions import Detail
from streaming.terminal.top.top_state import ScreenState, key_of


def detail_lines(state: ScreenState) -> list[DetailLine]:
    """The lines of the thing that is opened last."""
    opened = state.opened[-1]
    if opened.problem:
        problem, rows = opened_problem(state), state.rows
        if problem is None or rows is None:
            return [DetailLine("This problem is not there any more: esc goes back.")]
        return problem_lines(problem, Times(rows.at_ms, state.relative), state.width)
    found = state.found
    if found is None:
        return [DetailLine("" if state.error else "asking ...")]
    if found.detail is None:
        return [DetailLine("It is not there (any more): esc goes back.")]
    times = Times(found.detail.at_ms, state.relative)
    if isinstance(found.detail, GroupDetail):
        return group_lines(found.detail, times, state.width)
    return partition_lines(found.detail, times, state.width)


def opened_problem(state: ScreenState) -> Problem | None:
    """The problem that is opened, as the last answer has it."""
    rows, key = state.rows, state.opened[-1].problem
    problems = (row for row in (rows.rows if rows else ()) if isinstance(row, Problem))
    return next((each for each in problems if key_of(each) == key), None)


def command_of(state: ScreenState) -> tuple[str, str]:
    """The command that is the first to run for what is opened, and if there is none the reason."""
    if state.opened[-1].problem:
        problem = opened_problem(state)
        return (problem.command, problem.no_command) if problem else ("", "")
    detail = state.found.detail if state.found else None
    commands = _commands(detail) if detail else []
    return next((each for each in commands if each[0]), next((each for each in commands if each[1]), ("", "")))


def _commands(detail: Detail) -> list[tuple[str, str]]:
    if isinstance(detail, GroupDetail):
        return [(each.command, each.no_command) for each in findings_of(detail)]
    found: list[Problem | TransactionRow] = [*detail.problems, *detail.transactions]
    return [(each.command, each.no_command) for each in found]
