"""Publishes what the watcher has read: events, the cursors behind them, and what is gone, in one transaction of the journal."""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streaming.broker.journal.appended_ranges import AppendedRanges
from streaming.broker.journal.consumer_rows import Registration
from streaming.broker.journal.cursor import Cursor, Replays
from streaming.broker.journal.journal import Journal
from streaming.broker.journal.producer_pages import Pages
from streaming.broker.watcher.replaying import Replaying
from streaming.broker.watcher.rereading import Rereading, chained
from streaming.broker.watcher.tail import Tail
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey


@dataclass(frozen=True, slots=True)
class _Publication:
    """The content of one transaction of the journal. ``published`` is set when it is written."""

    events: Sequence[Event]
    cursors: Sequence[tuple[Tail, Cursor]]
    gone: Sequence[LogKey]
    pages: Sequence[Pages]
    registers: Registration | None
    published: threading.Event | None
    ranges: AppendedRanges | None


class Publisher:
    """For the watcher's thread. Logs whose cursors ask for it are put to those that replay or reread them."""

    def __init__(self, journal: Journal, replaying: Replaying, rereading: Rereading) -> None:
        self._journal = journal
        self._replaying = replaying
        self._rereading = rereading
        self._owed: _Publication | None = None  # what could not be written to the journal yet

    def publish(
        self,
        events: Sequence[Event],
        tails: Iterable[Tail],
        gone: Sequence[LogKey] = (),
        registers: Registration | None = None,
        published: threading.Event | None = None,
        ranges: AppendedRanges | None = None,
    ) -> None:
        """Publish events, with what has changed in these tails.

        Args:
            gone: the logs that are not watched any more.
            registers: a consumer to register in the same transaction.
            published: is set when it is written.
            ranges: further events, which come after the others.

        Raises:
            JournalError: the journal cannot be written. It is tried again before anything else is written.
        """
        self.write_owed()
        tails = list(tails)
        events = chained(events, tails)
        changed = [(tail, tail.cursor) for tail in tails if tail.cursor is not tail.stored_cursor]
        for tail, cursor in changed:
            if cursor.replay != Replays.NOT:
                self._replaying.put(tail)
            if cursor.reread:
                self._rereading.put(tail)
        pages = [pages for tail in tails if (pages := tail.unwritten_producers()) is not None]
        if events or changed or gone or pages or registers is not None or ranges is not None:
            self._owed = _Publication(events, changed, gone, pages, registers, published, ranges)
            self.write_owed()
        elif published is not None:
            published.set()

    def write_owed(self) -> None:
        """Write what could not be written so far. The cursors in memory have moved on, so nothing else may be written before it."""
        if self._owed is not None:
            owed = self._owed
            self._journal.publish(owed.events, [cursor for _, cursor in owed.cursors], owed.gone, owed.pages, owed.registers, owed.ranges)
            self._owed = None
            for tail, cursor in owed.cursors:
                tail.note_stored(cursor)
            if owed.published is not None:
                owed.published.set()
