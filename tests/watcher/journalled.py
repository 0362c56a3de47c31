"""The events of a journal, one by one, as tests want them."""

from streaming.event_row import Event
from streaming.journal.blocks import rows_of
from streaming.journal.journal import Journal


def events_of(journal: Journal, after: int, upto: int) -> list[tuple[int, Event]]:
    """The events with ``after < seq <= upto``, in order, each with its seq."""
    return [(row.seq, row.event) for block in journal.blocks(after, upto) for row in rows_of(block)]
