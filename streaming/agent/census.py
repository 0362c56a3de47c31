"""Expands a census in the journal into rows."""

from collections.abc import Sequence

from streaming.rows import Kind
from streaming.watcher.census import members
from streaming.watcher.events import Event


def expanded(event: Event) -> Sequence[Event]:
    """Expand an event into the events that are sent.

    A census becomes one row for each log and a closing row, which names the log dirs that the census does not cover.
    """
    if event.kind is not Kind.CENSUS:
        return [event]
    return [*members(event), Event(kind=Kind.CENSUS_END, reason=event.reason)]
