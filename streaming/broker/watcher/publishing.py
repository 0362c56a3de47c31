"""Publishes what the watcher has read: events, the cursors behind them, and what is gone, in one transaction of the journal."""

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from streaming.broker.journal.blocks import AppendedRanges
from streaming.broker.journal.consumer_states import Registration
from streaming.broker.journal.cursor import Cursor, Replays
from streaming.broker.journal.journal import Journal
from streaming.broker.journal.producer_pages import Pages
from streaming.broker.journal.stored_logs import CursorMoves
from streaming.broker.watcher.cluster_knowledge import Cluster
from streaming.broker.watcher.replaying import Replaying
from streaming.broker.watcher.rereading import Rereading, chained
from streaming.broker.watcher.tail import Tail
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind

log = logging.getLogger(__name__)

MOST_MOVES = 200_000
"""After so many moves, the logs that have moved get rows: so many moves take some twenty megabytes."""


@dataclass(frozen=True, slots=True)
class _Publication:
    """The content of one transaction of the journal. ``published`` is set when it is written.

    ``cursors`` get rows, ``moved`` does not. ``merged``: all that have moved before get rows.
    """

    events: Sequence[Event]
    cursors: Sequence[tuple[Tail, Cursor]]
    gone: Sequence[LogKey] = ()
    pages: Sequence[Pages] = ()
    registers: Registration | None = None
    published: threading.Event | None = None
    ranges: AppendedRanges | None = None
    moving: Sequence[Tail] = ()
    moved: CursorMoves | None = None
    merged: bool = False


class Publisher:
    """For the watcher's thread. Logs whose cursors ask for it are put to those that replay or reread them."""

    def __init__(self, journal: Journal, cluster: Cluster, replaying: Replaying, rereading: Rereading) -> None:
        self._journal = journal
        self._cluster = cluster
        self._replaying = replaying
        self._rereading = rereading
        self._owed: _Publication | None = None  # what could not be written to the journal yet
        self._moved: dict[LogKey, Tail] = {}  # logs whose last cursor is a move, and the tail that moved
        self._moves = 0

    def publish(
        self,
        events: Sequence[Event],
        tails: Iterable[Tail],
        gone: Sequence[LogKey] = (),
        registers: Registration | None = None,
        published: threading.Event | None = None,
    ) -> None:
        """Publish events, with what has changed in these tails.

        Args:
            gone: the logs that are not watched any more.
            registers: a consumer to register in the same transaction.
            published: is set when it is written.

        Raises:
            JournalError: the journal cannot be written. It is tried again before anything else is written.
        """
        self.write_owed()
        tails = list(tails)
        events = chained([self._led(each) if each.kind in (Kind.SKIPPED, Kind.TRUNCATED) else each for each in events], tails)
        changed = [(tail, tail.cursor) for tail in tails if tail.cursor is not tail.stored_cursor or tail.needs_row]
        for tail, cursor in changed:
            if cursor.replay != Replays.NOT:
                self._replaying.put(tail)
            if cursor.reread:
                self._rereading.put(tail)
        if events or changed or gone or registers is not None:
            pages, rows = _pages(changed), [cursor.log for _, cursor in changed if cursor.log in self._moved]
            moved = CursorMoves((), (), rows) if rows else None
            self._write(_Publication(events, changed, gone, pages, registers, published, moved=moved))
        elif published is not None:
            published.set()

    def _led(self, loss: Event) -> Event:
        """With who leads by now: the epoch shows whether a leader's counters are too low, and a follower that starts cuts off its end."""
        state = self._cluster.partition(loss.log)
        if state is not None:
            loss = replace(loss, leader=state.leader, leader_epoch=state.leader_epoch)
        if loss.kind is Kind.TRUNCATED and loss.bytes:
            follows = loss.leader >= 0 and loss.leader != loss.broker
            where = {"log_dir": loss.log_dir, "segment": loss.segment, "position": loss.end_position, "offset": loss.next_offset}
            level = logging.INFO if follows else logging.WARNING
            log.log(level, "log truncated", extra={"log": str(loss.log), **where, "bytes": loss.bytes, "leader": loss.leader})
        return loss

    def publish_ranges(self, ranges: AppendedRanges, tails: Sequence[Tail], producers: Sequence[bytes]) -> None:
        """Publish ranges of these tails, whose cursors are after them; ``producers``: those that have changed, as bytes of `ENTRIES`.

        Raises:
            JournalError: as `publish` does.
        """
        self.write_owed()
        need_row = {tail for tail in tails if tail.needs_row}
        moving = [tail for tail in tails if tail not in need_row] if need_row else tails
        own = [each for tail, each in zip(tails, producers, strict=True) if tail not in need_row] if need_row else producers
        changed = [(tail, tail.cursor) for tail in need_row]
        rows = [cursor.log for _, cursor in changed if cursor.log in self._moved]
        moved = CursorMoves([tail.cursor for tail in moving], own, rows) if moving or rows else None
        self._write(_Publication((), changed, pages=_pages(changed), ranges=ranges, moving=moving, moved=moved))
        if self._moves > MOST_MOVES:
            self.merge()

    def merge(self) -> None:
        """Give a row to every log that has moved: what is read of a row is cheap at the next start.

        Raises:
            JournalError: as `publish` does.
        """
        self.write_owed()
        if self._moved:
            changed = [(tail, cursor) for tail in self._moved.values() if (cursor := tail.stored_cursor) is not None]
            self._write(_Publication((), changed, pages=_pages(changed), merged=True))

    def _write(self, publication: _Publication) -> None:
        self._owed = publication
        self.write_owed()

    def write_owed(self) -> None:
        """Write what could not be written so far. The cursors in memory have moved on, so nothing else may be written before it."""
        if self._owed is not None:
            owed, cursors = self._owed, [cursor for _, cursor in self._owed.cursors]
            self._journal.publish(owed.events, cursors, owed.gone, owed.pages, owed.registers, owed.ranges, owed.moved, merged=owed.merged)
            self._owed = None
            self._note_written(owed)
            if owed.published is not None:
                owed.published.set()

    def _note_written(self, owed: _Publication) -> None:
        for tail, cursor in owed.cursors:
            tail.note_stored(cursor)
            self._moved.pop(cursor.log, None)  # also of a tail before this one
        for log in owed.gone:
            self._moved.pop(log, None)
        self._moves = 0 if owed.merged else self._moves + len(owed.moving)
        if owed.moved is not None:
            for tail, cursor in zip(owed.moving, owed.moved.cursors, strict=True):
                tail.note_stored(cursor)
            self._moved.update((tail.cursor.log, tail) for tail in owed.moving)


def _pages(changed: Iterable[tuple[Tail, Cursor]]) -> list[Pages]:
    return [pages for tail, _ in changed if (pages := tail.unwritten_producers()) is not None]
