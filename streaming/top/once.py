"""`segtail top --once`: a view as text or JSON, and how everything is as an exit status."""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace

from rich.text import Text

from streaming.protocol.problem_json import CRITICAL, WARNING
from streaming.protocol.status_json import Status
from streaming.top.cells import plain
from streaming.top.questions import Answer, Rows
from streaming.top.screen_parts import severity_style
from streaming.top.table_lines import table_lines
from streaming.top.top_state import Place, State

FINE, FOUND, NOT_KNOWN = 0, 3, 4
"""Exit status."""


def exit_status(status: Status) -> int:
    """0 if nothing is wrong, 3 if a problem is critical or a warning, 4 if nothing is found and not everything can be told."""
    if status.severity in (CRITICAL, WARNING) or status.critical > 0 or status.warning > 0:
        return FOUND
    return NOT_KNOWN if status.unknown or not status.ready else FINE


def table(state: State, answer: Answer, rows: Rows) -> Iterator[Text]:
    """The verdict, how fresh it is, and the rows, as wide as the state."""
    status = answer.status
    yield Text(plain(status.verdict), severity_style(status.severity))
    yield Text(plain(status.freshness))
    yield from (Text(f"not known: {plain(text)}") for text in status.unknown)
    yield Text("")
    state = replace(state, status=replace(status, unknown=[]), content=rows, answered=state.now).with_place(
        Place(cursor=-1, filter=rows.asked.filter)
    )
    yield from table_lines(state, max(1, len(rows.rows)))
    if (rest := rows.matched - rows.offset - len(rows.rows)) > 0:
        yield Text(f"and {rest:,} more: --limit shows them")
    yield from (Text(plain(note)) for note in rows.notes)


def as_json(answer: Answer, rows: Rows) -> str:
    """The status and the rows, with the fields of the job's messages."""
    asked = rows.asked
    shown = {"view": asked.view, "filter": asked.filter, "sort": rows.sort, "total": rows.total, "matched": rows.matched}
    return json.dumps({"status": asdict(answer.status), **shown, "rows": [asdict(row) for row in rows.rows]}, indent=2)
