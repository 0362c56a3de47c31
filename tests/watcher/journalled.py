"""The events of a journal, one by one, as tests want them."""

from streaming.broker.journal.blocks import rows_of
from streaming.broker.journal.journal import Journal
from streaming.common.event_row import Event


def events_of(journal: Journal, after: int, upto: int) -> list[tuple[int, Event]]:
    """The events with ``after < seq <= upto``, in order, each with its seq."""
    return [(row.seq, row.event) for block in journal.blocks(after, upto) for row in rows_of(block)]
