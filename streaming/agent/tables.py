"""Events as Arrow rows (`streaming.rows.EVENTS`)."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from streaming.rows import EVENTS
from streaming.watcher.events import Event

_OF_EVENT = EVENTS.names[4:]  # all but agent, journal, seq and part


def events_table(agent: str, journal: str, events: Iterable[tuple[int, Sequence[Event]]]) -> pa.Table:
    """A table of (seq, what that event expands to)."""
    rows = [(seq, part, event) for seq, expanded in events for part, event in enumerate(expanded)]
    columns = [
        pa.array([agent] * len(rows), pa.string()),
        pa.array([journal] * len(rows), pa.string()),
        pa.array([seq for seq, _, _ in rows], pa.int64()),
        pa.array([part for _, part, _ in rows], pa.int32()),
        *(pa.array([getattr(event, name) for _, _, event in rows], EVENTS.field(name).type) for name in _OF_EVENT),
    ]
    return pa.Table.from_arrays(columns, schema=EVENTS)
