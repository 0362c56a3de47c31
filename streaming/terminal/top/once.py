"""`segtail top --once`: a view as a table, labelled lines or JSON, and how everything is as an exit status."""

import json
from collections.abc import Iterator
from dataclasses import replace

from rich.text import Text

from streaming.broker.protocol.json_message import ASC, DESC, Unit
from streaming.broker.protocol.status_json import CRITICAL, WARNING, Problem, Status
from streaming.common.units import NONE
from streaming.pages.listings.cells import plain, wrapped
from streaming.pages.listings.declared_lists import LISTS
from streaming.pages.listings.listing import Times
from streaming.terminal.top.frame import following, missing_columns, table_lines
from streaming.terminal.top.questions import Answer, ListName, Row, Rows
from streaming.terminal.top.screen_parts import NOT_CURRENT_STYLE, verdict_style
from streaming.terminal.top.top_state import Place, ScreenState

FINE, FOUND, NOT_KNOWN = 0, 3, 4
"""Exit status."""


def labelled_rows(answer: Answer, rows: Rows, *, relative: bool) -> Iterator[str]:
    """The same without a table, for screen readers, pipes and dumb terminals: the names of the columns are in each line."""
    status, times = answer.status, Times(rows.at_ms, relative)
    if status.not_current:
        yield f"not current: {plain(status.not_current)}"
    yield f"verdict: {plain(status.verdict)}"
    yield f"freshness: {plain(status.freshness)}"
    yield from (f"not known: {plain(text)}" for text in status.doubts)
    count = f"{len(rows.rows):,} of {rows.matched:,}" if len(rows.rows) < rows.matched else f"{rows.matched:,}"
    yield f"{rows.question.view}: {count if rows.matched or status.start is None else 'none known yet'}"
    noun = "retention" if rows.question.view is ListName.RETENTION else rows.question.view.removesuffix("s")
    for row in rows.rows:
        if isinstance(row, Problem):
            yield f"{noun}: {row.gravity}: {plain(row.what)}"
            yield from (f"  {label}: {plain(text)}" for label, text in _about(row, times) if text)
        else:
            yield f"{noun}: {', '.join(_cells(row, rows, times))}"
    yield from (f"note: {plain(text)}" for text in rows.notes)


def _about(row: Problem, times: Times) -> Iterator[tuple[str, str]]:
    """What is to be said of a problem, each with its label; "" for what is not known."""
    yield "since", times.of(row.since_ms) if row.since_ms >= 0 else ""
    yield "due", times.deadline(row.deadline_ms) if row.deadline_ms >= 0 else ""
    yield "holds back", row.holds_back
    yield from (("follows", text) for text in following(row))
    yield "command", row.command
    yield "no command", "" if row.command else row.no_command


def _cells(row: Row, rows: Rows, times: Times) -> Iterator[str]:
    first, *rest = LISTS[rows.question.view].text_columns
    yield plain(first.cell_in(row, times).text)
    for column in rest:
        text = plain(column.cell_in(row, times).text)
        if text not in (NONE, "") and column.unit is not Unit.CURVE:
            yield f"{column.heading.lower()} {text}"


def exit_status(status: Status) -> int:
    """0 if nothing is wrong, 3 if a problem is critical or a warning, 4 if nothing is found and not everything can be told."""
    if status.severity in (CRITICAL, WARNING) or status.critical > 0 or status.warning > 0:
        return FOUND
    return NOT_KNOWN if status.doubts or not status.ready or status.not_current else FINE


def table(state: ScreenState, answer: Answer, rows: Rows) -> Iterator[Text]:
    """The verdict, how fresh it is, and the rows, as wide as the state."""
    status = answer.status
    if status.not_current:
        yield from (Text(line, NOT_CURRENT_STYLE) for line in wrapped(f"not current: {plain(status.not_current)}", state.width))
        verdict, style = f"last known: {plain(status.verdict)}", NOT_CURRENT_STYLE
    else:
        verdict, style = plain(status.verdict), verdict_style(status)
    yield from (Text(line, style) for line in wrapped(verdict, state.width))
    yield from map(Text, wrapped(plain(status.freshness), state.width))
    yield from (Text(line) for text in status.doubts for line in wrapped(f"not known: {plain(text)}", state.width))
    yield Text("")
    state = replace(state, status=status, content=rows, answered=state.now).with_place(
        Place(cursor=-1, filter=rows.question.filter, use=rows.question.use)
    )
    yield from table_lines(state, max(1, len(rows.rows)))
    yield from map(Text, missing_columns(rows, Times(rows.at_ms, state.relative), state.width))
    if (rest := rows.matched - rows.offset - len(rows.rows)) > 0:
        yield Text(f"and {rest:,} more: --limit shows them")
    yield from (Text(line) for note in rows.notes for line in wrapped(plain(note), state.width))


def as_json(answer: Answer, rows: Rows) -> str:
    """The job's message with the rows; of groups, which come in several, one like the others."""
    if rows.page is not None:
        return json.dumps(rows.page.fields(), indent=2)
    head = {"at_ms": rows.at_ms, "version": answer.status.version, "doubts": [*answer.status.doubts, *rows.notes]}
    counts = {"total": rows.total, "matched": rows.matched, "offset": rows.offset}
    order = {"sort": rows.sort, "order": DESC if rows.descending else ASC}
    return json.dumps({**head, **counts, **order, "rows": [row.fields() for row in rows.rows]}, indent=2)
