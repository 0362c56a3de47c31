"""The same without a table: a labelled line for each item, for screen readers, pipes and dumb terminals."""

from collections.abc import Iterator

from streaming.broker.protocol.problem_json import Problem
from streaming.common.formatting import NONE
from streaming.pages.listings.list_cells import Times, Unit
from streaming.terminal.top.cells import plain
from streaming.terminal.top.questions import Answer, ListName, Row, Rows
from streaming.terminal.top.view_columns import COLUMNS


def labelled_rows(answer: Answer, rows: Rows, *, relative: bool) -> Iterator[str]:
    """The verdict, how fresh it is, and the rows of a view, with the names of the columns in each line."""
    status, times = answer.status, Times(rows.at_ms, relative)
    yield f"verdict: {plain(status.verdict)}"
    yield f"freshness: {plain(status.freshness)}"
    yield from (f"not known: {plain(text)}" for text in status.doubts)
    shown = f"{len(rows.rows):,} of {rows.matched:,}" if len(rows.rows) < rows.matched else f"{rows.matched:,}"
    yield f"{rows.asked.view}: {shown}"
    noun = "retention" if rows.asked.view is ListName.RETENTION else rows.asked.view.removesuffix("s")
    for row in rows.rows:
        yield f"{noun}: {', '.join(_problem(row, times) if isinstance(row, Problem) else _cells(row, rows, times))}"
    yield from (f"note: {plain(text)}" for text in rows.notes)


def _cells(row: Row, rows: Rows, times: Times) -> Iterator[str]:
    first, *rest = COLUMNS[rows.asked.view]
    yield plain(first.cell_in(row, times).text)
    for column in rest:
        text = plain(column.cell_in(row, times).text)
        if text not in (NONE, "") and column.unit is not Unit.CURVE:
            yield f"{column.heading.lower()} {text}"


def _problem(row: Problem, times: Times) -> Iterator[str]:
    """Its sentence has no name of a column before it."""
    yield f"{row.severity}: {plain(row.what)}"
    yield from [f"since {times.of(row.since_ms)}"] if row.since_ms >= 0 else []
    yield from [f"holds back: {plain(row.holds_back.rstrip('.'))}"] if row.holds_back else []
    if row.command:
        yield f"command: {plain(row.command)}"
    elif row.no_command:
        yield f"no command: {plain(row.no_command)}"
