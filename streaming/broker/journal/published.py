"""What this journal has published of each log: up to which offset, and which segments. A later consumer gets a part of it again.

Jobs know by their own state what they have counted. Readers have none, so events tell them: how much of a range was published before
(``published_upto``), and which segments of a list were rolled and which deleted since the list before. Both are put in where the event is
written, in one transaction with it.

In ordinary life the end is that of the cursor, so only logs whose end is ahead of their cursor have a row in the table ``published``.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import zstandard

from streaming.broker.journal.blocks import AppendedRanges
from streaming.broker.journal.cursor import Cursor
from streaming.broker.journal.tables import StoredTable, equal
from streaming.common.arrays import Longs
from streaming.common.event_row import Event
from streaming.common.log_key import KEY, LogKey
from streaming.common.rows import Kind
from streaming.rules.inventory_changes import difference

TABLES = """
CREATE TABLE published (
  broker INTEGER NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, topic_id TEXT NOT NULL,
  upto INTEGER NOT NULL, epoch INTEGER NOT NULL, PRIMARY KEY (broker, topic, partition, topic_id)) WITHOUT ROWID;
CREATE TABLE listed (
  broker INTEGER NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, topic_id TEXT NOT NULL,
  segments BLOB NOT NULL, PRIMARY KEY (broker, topic, partition, topic_id)) WITHOUT ROWID;
"""

_LEVEL = 1

_MOST_OFFSET = (1 << 63) - 3
"""Larger frontiers are no offsets (`streaming.broker.watcher.cursors`)."""


class PublishedEnd(NamedTuple):
    """The offset after what was published of a log, and the latest leader epoch of that, -1 not known. One is made for each range."""

    upto: int
    epoch: int


@dataclass(frozen=True, slots=True)
class _EndRow:
    log: LogKey
    end: PublishedEnd


@dataclass(frozen=True, slots=True)
class _ListRow:
    log: LogKey
    segments: bytes


_ENDS, _LISTS = StoredTable("published", _EndRow), StoredTable("listed", _ListRow)


class PublishedEnds:
    """The ends of all logs. For whoever holds the journal's lock."""

    def __init__(self, run: sqlite3.Connection, cursors: Iterable[Cursor]) -> None:
        stored = {row.log: row.end for row in _ENDS.all(run)}
        self._ends = {each.log: PublishedEnd(_end_of(each), each.log_epoch) for each in cursors} | stored
        self._ahead = set(stored)  # logs that have a row

    def all(self) -> Mapping[LogKey, PublishedEnd]:
        """The end of each log, as of the last event."""
        return dict(self._ends)

    def publish(
        self, events: Iterable[Event], cursors: Iterable[Cursor], gone: Iterable[LogKey], ranges: AppendedRanges | None = None
    ) -> "Publication":
        """What becomes of the ends by these events, and by the ranges after them. They are those after it once `take` is called."""
        return Publication(self._ends, self._ahead, events, cursors, gone, ranges)

    def take(self, publication: "Publication") -> None:
        """Take over what was written."""
        self._ends |= publication.ends
        for log in publication.gone:
            self._ends.pop(log, None)
        self._ahead = (self._ahead | {row.log for row in publication.put}).difference(publication.forget)


class Publication:
    """The ends that some events change, and the rows to write with them.

    ``events``: the events, each with what of it comes again; ``ranges_upto``: that column of the ranges.
    """

    def __init__(
        self,
        before: Mapping[LogKey, PublishedEnd],
        ahead: set[LogKey],
        events: Iterable[Event],
        cursors: Iterable[Cursor],
        gone: Iterable[LogKey],
        ranges: AppendedRanges | None,
    ) -> None:
        self._before = before
        self.ends: dict[LogKey, PublishedEnd] = {}
        self.events = [self._marked(event) for event in events]
        self.ranges_upto: Longs = np.empty(0, np.int64)
        if ranges is not None:
            rows = zip(ranges.logs, ranges.base_offset.tolist(), ranges.next_offset.tolist(), ranges.log_epoch.tolist(), strict=True)
            self.ranges_upto = np.fromiter((self._go_on(*row) for row in rows), np.int64, len(ranges.logs))
        self.put: list[_EndRow] = []
        self.gone = list(gone)
        self.forget = list(self.gone)
        for cursor in cursors:
            end = self._end(cursor.log)
            if end is None:
                self.ends[cursor.log] = PublishedEnd(_end_of(cursor), cursor.log_epoch)
            elif end.upto > cursor.next_offset:
                self.put.append(_EndRow(cursor.log, end))
            elif cursor.log in ahead:
                self.forget.append(cursor.log)

    def _end(self, log: LogKey) -> PublishedEnd | None:
        return self.ends.get(log) or self._before.get(log)

    def _marked(self, event: Event) -> Event:
        """The event with what of it comes again."""
        if event.kind in (Kind.APPENDED, Kind.SKIPPED):
            upto = self._go_on(event.log, event.base_offset, event.next_offset, event.log_epoch)
            return replace(event, published_upto=upto) if upto >= 0 and event.base_offset < event.next_offset else event
        if event.kind in (Kind.APPEARED, Kind.TRUNCATED):
            end = self._end(event.log)
            if end is None or (event.kind is Kind.TRUNCATED and event.next_offset < end.upto):
                self.ends[event.log] = PublishedEnd(event.next_offset, event.log_epoch)
        return event

    def _go_on(self, log: LogKey, base_offset: int, next_offset: int, epoch: int) -> int:
        """Publish these offsets of a log; returns up to which offset they were published before, -1 if none of them was."""
        end = self._end(log)
        if end is None or end.upto <= base_offset or 0 <= end.epoch < epoch:
            # a later epoch below the end has overwritten what was published there
            self.ends[log] = PublishedEnd(next_offset, epoch)
            return -1
        self.ends[log] = PublishedEnd(max(end.upto, next_offset), max(end.epoch, epoch))
        return end.upto

    def write(self, run: sqlite3.Connection) -> None:
        """Write the rows, and forget the lists of logs that are gone."""
        _ENDS.put(run, self.put)
        _ENDS.remove(run, KEY, self.forget)
        _LISTS.remove(run, KEY, self.gone)


def _end_of(cursor: Cursor) -> int:
    return max(cursor.next_offset, cursor.frontier if cursor.frontier < _MOST_OFFSET else 0)


def with_differences(run: sqlite3.Connection, events: Sequence[Event]) -> list[Event]:
    """The events, those with a list with what has changed in it since the one before; stores the lists. In the caller's transaction."""
    written: dict[LogKey, bytes] = {}
    found = []
    for event in events:
        if event.kind is Kind.FOUND and event.segments is not None:
            before = written.get(event.log) or _listed(run, event.log)
            if before != event.segments:
                written[event.log] = event.segments
                changed = difference(before, event.segments) if before else None
                if changed is not None and (changed.rolled or changed.deleted):
                    event = replace(event, rolled=changed.rolled or None, deleted=changed.deleted or None)
        found.append(event)
    _LISTS.put(run, [_ListRow(log, zstandard.compress(segments, _LEVEL)) for log, segments in written.items()])
    return found


def _listed(run: sqlite3.Connection, log: LogKey) -> bytes:
    row = _LISTS.first(run, f"WHERE {equal(KEY)}", *log)
    return b"" if row is None else zstandard.decompress(row.segments)
