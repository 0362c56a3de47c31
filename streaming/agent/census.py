"""The rows that a census in the journal stands for."""

from collections.abc import Sequence

from streaming.rows import Kind
from streaming.watcher.census import members
from streaming.watcher.events import Event


def expanded(event: Event) -> Sequence[Event]:
    """An event as it travels: of a census a row for every log, and a closing one, which names the log dirs of which it tells nothing."""
    if event.kind is not Kind.CENSUS:
        return [event]
    return [*members(event), Event(kind=Kind.CENSUS_END, reason=event.reason)]
