"""Up to which offset this journal has published each log: which part of an event comes again for a later consumer.

A beginning of a job sets logs back, and what the journal has already is published once more. Jobs know by their own state what they have
counted. Readers have none: an event tells them how much of it was published before. That is ``published_upto``, put in where the event is
written, in one transaction with the event itself.

In ordinary life the end is that of the cursor, so only logs whose end is ahead of their cursor have a row in the table ``published``.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from streaming.broker.journal.appended_ranges import AppendedRanges
from streaming.broker.journal.cursor import Cursor
from streaming.broker.journal.tables import OF_LOG, StoredTable, equal
from streaming.common.arrays import Longs
from streaming.common.event_row import Event
from streaming.common.log_key import KEY, LogKey
from streaming.common.rows import Kind

TABLE = """
CREATE TABLE IF NOT EXISTS published (
  broker INTEGER NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, topic_id TEXT NOT NULL,
  upto INTEGER NOT NULL, epoch INTEGER NOT NULL, PRIMARY KEY (broker, topic, partition, topic_id)) WITHOUT ROWID
"""

_MOST_OFFSET = (1 << 63) - 3
"""Larger frontiers are no offsets (`streaming.broker.watcher.cursors`)."""


class PublishedEnd(NamedTuple):
    """The offset after what was published of a log, and the latest leader epoch of that, -1 not known. One is made for each range."""

    upto: int
    epoch: int


@dataclass(frozen=True, slots=True)
class _Row:
    log: LogKey
    upto: int
    epoch: int


def _row(broker: int, topic: str, partition: int, topic_id: str, upto: int, epoch: int) -> _Row:
    return _Row(LogKey(broker, topic, partition, topic_id), upto, epoch)


_TABLE = StoredTable("published", _row, OF_LOG | {"upto": "upto", "epoch": "epoch"})


class PublishedEnds:
    """The ends of all logs. For whoever holds the journal's lock."""

    def __init__(self, ends: dict[LogKey, PublishedEnd], ahead: set[LogKey]) -> None:
        self._ends = ends
        self._ahead = ahead  # logs that have a row

    @classmethod
    def read(cls, run: sqlite3.Connection, cursors: Iterable[Cursor]) -> "PublishedEnds":
        """The ends as the journal's file has them."""
        ends = {each.log: PublishedEnd(_end_of(each), each.log_epoch) for each in cursors}
        stored = {row.log: PublishedEnd(row.upto, row.epoch) for row in _TABLE.all(run)}
        return cls(ends | stored, set(stored))

    def all(self) -> Mapping[LogKey, PublishedEnd]:
        """The end of each log, as of the last event."""
        return dict(self._ends)

    def publish(
        self, events: Sequence[Event], cursors: Iterable[Cursor], gone: Iterable[LogKey], ranges: AppendedRanges | None = None
    ) -> "Publication":
        """What becomes of the ends by these events, and by the ranges after them. They are those after it once `take` is called."""
        publication = Publication(self._ends, self._ahead)
        publication.events = list(publication.marked(events))
        if ranges is not None:
            publication.ranges_upto = publication.of_ranges(ranges)
        publication.settle(cursors, gone)
        return publication

    def take(self, publication: "Publication") -> None:
        """Take over what was written."""
        for log, end in publication.ends.items():
            if end is None:
                self._ends.pop(log, None)
            else:
                self._ends[log] = end
        self._ahead |= {row.log for row in publication.put}
        self._ahead -= set(publication.forget)


class Publication:
    """The ends that some events change, and the rows to write with them.

    ``events``: the events, each with what of it comes again; ``ranges_upto``: that column of the ranges.
    """

    def __init__(self, before: Mapping[LogKey, PublishedEnd], ahead: set[LogKey]) -> None:
        self._before = before
        self._ahead = ahead
        self.events: list[Event] = []
        self.ranges_upto: Longs = np.empty(0, np.int64)
        self.ends: dict[LogKey, PublishedEnd | None] = {}
        self.put: list[_Row] = []
        self.forget: list[LogKey] = []

    def _end(self, log: LogKey) -> PublishedEnd | None:
        return self.ends[log] if log in self.ends else self._before.get(log)

    def marked(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events in order, each with what of it comes again."""
        for event in events:
            yield _STEPS[event.kind](self, event) if event.kind in _STEPS else event

    def of_ranges(self, ranges: AppendedRanges) -> Longs:
        """The column ``published_upto`` of these ranges."""
        rows = zip(ranges.logs, ranges.base_offset.tolist(), ranges.next_offset.tolist(), ranges.log_epoch.tolist(), strict=True)
        return np.fromiter((self._go_on(*row) for row in rows), np.int64, len(ranges.logs))

    def _appended(self, event: Event) -> Event:
        upto = self._go_on(event.log, event.base_offset, event.next_offset, event.log_epoch)
        return replace(event, published_upto=upto) if upto >= 0 and event.base_offset < event.next_offset else event

    def _go_on(self, log: LogKey, base_offset: int, next_offset: int, epoch: int) -> int:
        """Publish these offsets of a log; returns up to which offset they were published before, -1 if none of them was."""
        end = self._end(log)
        if end is None or end.upto <= base_offset or 0 <= end.epoch < epoch:
            # a later epoch below the end has overwritten what was published there
            self.ends[log] = PublishedEnd(next_offset, epoch)
            return -1
        self.ends[log] = PublishedEnd(max(end.upto, next_offset), max(end.epoch, epoch))
        return end.upto

    def _appeared(self, event: Event) -> Event:
        if self._end(event.log) is None:
            self.ends[event.log] = PublishedEnd(event.next_offset, event.log_epoch)
        return event

    def _truncated(self, event: Event) -> Event:
        end = self._end(event.log)
        if end is None or event.next_offset < end.upto:
            self.ends[event.log] = PublishedEnd(event.next_offset, event.log_epoch)
        return event

    def settle(self, cursors: Iterable[Cursor], gone: Iterable[LogKey]) -> None:
        """Find the rows to write: of logs whose end is ahead of their cursor from now on, and of those that are not any more."""
        for cursor in cursors:
            end = self._end(cursor.log)
            if end is None:
                self.ends[cursor.log] = PublishedEnd(_end_of(cursor), cursor.log_epoch)
            elif end.upto > cursor.next_offset:
                self.put.append(_Row(cursor.log, end.upto, end.epoch))
            elif cursor.log in self._ahead:
                self.forget.append(cursor.log)
        for log in gone:
            self.ends[log] = None
            self.forget.append(log)

    def write(self, run: sqlite3.Connection) -> None:
        """Write these rows."""
        _TABLE.put(run, self.put)
        if self.forget:
            run.executemany(f"DELETE FROM published WHERE {equal(KEY)}", self.forget)


_STEPS = {
    Kind.APPENDED: Publication._appended,
    Kind.SKIPPED: Publication._appended,
    Kind.APPEARED: Publication._appeared,
    Kind.TRUNCATED: Publication._truncated,
}


def _end_of(cursor: Cursor) -> int:
    return max(cursor.next_offset, cursor.frontier if cursor.frontier < _MOST_OFFSET else 0)
