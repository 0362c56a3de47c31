"""`segtail top --once`: a view as text or JSON, and how everything is as an exit status."""

import json
from collections.abc import Iterator
from dataclasses import replace

from rich.text import Text

from streaming.broker.protocol.problem_json import CRITICAL, WARNING
from streaming.broker.protocol.status_json import Status
from streaming.pages.listings.listing import ASCENDING, DESCENDING
from streaming.terminal.top.cells import plain
from streaming.terminal.top.questions import Answer, Rows
from streaming.terminal.top.screen_parts import severity_style
from streaming.terminal.top.table_lines import table_lines
from streaming.terminal.top.top_state import Place, ScreenState

FINE, FOUND, NOT_KNOWN = 0, 3, 4
"""Exit status."""


def exit_status(status: Status) -> int:
    """0 if nothing is wrong, 3 if a problem is critical or a warning, 4 if nothing is found and not everything can be told."""
    if status.severity in (CRITICAL, WARNING) or status.critical > 0 or status.warning > 0:
        return FOUND
    return NOT_KNOWN if status.doubts or not status.ready else FINE


def table(state: ScreenState, answer: Answer, rows: Rows) -> Iterator[Text]:
    """The verdict, how fresh it is, and the rows, as wide as the state."""
    status = answer.status
    yield Text(plain(status.verdict), severity_style(status.severity))
    yield Text(plain(status.freshness))
    yield from (Text(f"not known: {plain(text)}") for text in status.doubts)
    yield Text("")
    state = replace(state, status=replace(status, doubts=[]), content=rows, answered=state.now).with_place(
        Place(cursor=-1, filter=rows.asked.filter)
    )
    yield from table_lines(state, max(1, len(rows.rows)))
    if (rest := rows.matched - rows.offset - len(rows.rows)) > 0:
        yield Text(f"and {rest:,} more: --limit shows them")
    yield from (Text(plain(note)) for note in rows.notes)


def as_json(answer: Answer, rows: Rows) -> str:
    """The job's message with the rows; of groups, which come in several, one like the others."""
    if rows.page is not None:
        return json.dumps(rows.page.fields(), indent=2)
    head = {"at_ms": rows.at_ms, "version": answer.status.version, "doubts": [*answer.status.doubts, *rows.notes]}
    counts = {"total": rows.total, "matched": rows.matched, "offset": rows.offset}
    order = {"sort": rows.sort, "order": DESCENDING if rows.descending else ASCENDING}
    return json.dumps({**head, **counts, **order, "rows": [row.fields() for row in rows.rows]}, indent=2)
