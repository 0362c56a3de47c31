"""The journal: events in order with their cursors. Both are written together, so that neither can be ahead of the other.

``seq`` is the position of an event. Events that are published together are a block. Later, events that wait may be joined or merged, but
never across a position at which a consumer may be. Each event has the running total of the log bytes that were published up to it, so one
query finds how far a byte budget reaches.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from streaming.broker.disk.segment_files import SegmentKey
from streaming.broker.journal import blocks, consumer_states, database, producer_pages, stored_logs
from streaming.broker.journal.blocks import (
    BLOCK_BYTES,
    BLOCK_ROWS,
    AppendedRanges,
    PlacedEvent,
    blob_bytes,
    block_of,
    counted_bytes,
    longs,
    part,
)
from streaming.broker.journal.cursor import Cursor
from streaming.broker.journal.database import Database
from streaming.broker.journal.producer_pages import Pages
from streaming.broker.journal.published import PublishedEnd, PublishedEnds, with_differences
from streaming.broker.journal.stored_logs import CursorMoves
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.kafka.scan.producer_states import Producers

BLOCKS_AT_ONCE = 8
"""So many blocks are in memory for one range, however long it is."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point in a journal: everything up to and with ``seq``. ``total``: the bytes of logs published up to there since its beginning."""

    seq: int
    total: int


class Journal:
    """The events of one agent. Safe to use from several threads. Everything raises JournalError if the file cannot be used."""

    def __init__(self, directory: Path | None, cluster_id: str, clock_ms: Callable[[], int]) -> None:
        """Open or make the journal in ``directory``; in memory if that is None. Raises JournalError as `Database` does.

        Args:
            clock_ms: milliseconds of a clock that only goes forward, from any beginning; see `now_ms`.
        """
        self.database = Database(directory, cluster_id)
        self.id = self.database.id
        self._clock_ms = clock_ms
        self._ahead_ms = 0  # how far the journal's own time is ahead of that clock
        self._go_on_in_time()
        self._published = threading.Condition()
        cursors = self.cursors()
        with self.database.reading() as run:
            self._size = blocks.size(run)
            self._ends = PublishedEnds(run, cursors)

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    def now_ms(self) -> int:
        """The journal's own time: it goes on from the time where an earlier process stopped, and only while an agent holds the journal.

        So nothing becomes old because a clock was set, or because an agent was down.
        """
        return self._clock_ms() + self._ahead_ms

    def _go_on_in_time(self) -> None:
        with self.database.transaction() as run:
            newest = blocks.last_head(run)
            seen = [each.seen_ms for each in consumer_states.read_all(run)]
            if newest is None and not seen:
                return
            # a time later than the last event was written by a clock that was ahead for a while
            last_ms = max(seen) if newest is None else newest.at_ms
            blocks.limit_times(run, last_ms)
            consumer_states.limit_times(run, last_ms)
            self._ahead_ms = last_ms - self._clock_ms()

    # --- writing

    def cursors(self) -> list[Cursor]:
        """The cursors of all logs, as of the last event."""
        self._merge_moves()
        with self.database.reading() as run:
            return stored_logs.cursors(run)

    def producers(self, log: LogKey, limit: int) -> Producers | None:
        """The producers of a log as of its cursor, None if they are not known."""
        self._merge_moves()
        with self.database.reading() as run:
            return producer_pages.read(run, log, limit)

    def publish(
        self,
        events: Sequence[Event],
        cursors: Iterable[Cursor] = (),
        gone: Sequence[LogKey] = (),
        pages: Iterable[Pages] = (),
        registers: consumer_states.Registration | None = None,
        ranges: AppendedRanges | None = None,
        moved: CursorMoves | None = None,
        *,
        merged: bool = False,
    ) -> None:
        """Write events, the cursors after them, and the changed producers of the logs, durably: all of it or nothing.

        Args:
            ranges: further events, which come after the others.
            moved: further cursors after them.
            merged: every log that has moved is among ``cursors``.
            registers: a consumer that begins with these events. It is registered at the seq right before them.
        """
        with self.database.reading():  # the lock is held until the values in memory agree with the file
            cursors = list(cursors)
            stand = [*cursors, *(moved.cursors if moved is not None else ())]
            publication = self._ends.publish(events, stand, gone, ranges)
            with self.database.transaction() as run:
                at_ms, end, grown = self.now_ms(), self.end(), 0
                if registers is not None:
                    consumer_states.register(run, registers, end.seq, at_ms)
                for block in _blocks(with_differences(run, publication.events), end):
                    grown += blocks.insert(run, block_of(block), at_ms)
                    end = Point(block[-1].seq, block[-1].total)
                if ranges is not None:
                    grown += blocks.insert(run, ranges.placed(end.seq, end.total, publication.ranges_upto), at_ms)
                    end = Point(end.seq + len(ranges.logs), end.total + int(ranges.bytes.sum()))
                database.note(run, seq=end.seq, published=end.total)
                stored_logs.write_cursors(run, cursors)
                stored_logs.forget_cursors(run, gone)
                producer_pages.write(run, pages)
                producer_pages.forget(run, gone)
                publication.write(run)
                if merged:
                    stored_logs.forget_moves(run)
                if moved is not None:
                    stored_logs.write_moves(run, moved)
            self._ends.take(publication)
            self._size += grown
        if events or ranges is not None:
            with self._published:
                self._published.notify_all()

    def _merge_moves(self) -> None:
        with self.database.reading() as reading:
            if stored_logs.moves_wait(reading):
                with self.database.transaction() as run:
                    stored_logs.merge_moves(run)

    def scanned(self) -> dict[SegmentKey, int]:
        """The results of scans of closed segments: their largest timestamps, Unix milliseconds, -1 none."""
        with self.database.reading() as run:
            return stored_logs.scanned(run)

    def keep_scanned(self, times: Iterable[tuple[SegmentKey, int]], gone: Iterable[SegmentKey]) -> None:
        """Store the results of further scans, and forget segments that do not exist any more."""
        with self.database.transaction() as run:
            stored_logs.keep_scanned(run, times, gone)

    def laddered(self) -> set[SegmentKey]:
        """The closed segments whose ladders are stored."""
        with self.database.reading() as run:
            return stored_logs.laddered(run)

    def ladders(self, wanted: Iterable[SegmentKey]) -> dict[SegmentKey, bytes]:
        """The packed ladders of those of the segments whose ladders are stored."""
        with self.database.reading() as run:
            return stored_logs.ladders(run, wanted)

    def keep_ladders(self, ladders: Mapping[SegmentKey, bytes], gone: Iterable[SegmentKey] = ()) -> None:
        """Store the ladders of closed segments, and forget those of segments that do not exist any more."""
        with self.database.transaction() as run:
            stored_logs.keep_ladders(run, ladders, gone)

    # --- reading

    def end(self) -> Point:
        """The point up to which events are published."""
        with self.database.reading() as run:
            found = database.totals(run)
        return Point(found.seq, found.published)

    def published_ends(self) -> Mapping[LogKey, PublishedEnd]:
        """Up to where each log is published, as of the last event. For whoever reads more at this moment: inside of `Database.reading`."""
        return self._ends.all()

    def reach(self, after: int, budget: int | None) -> Point:
        """How far ``budget`` bytes of logs reach after seq ``after`` (None: to the end).

        At least one event is always included, or a consumer would never go on.
        """
        with self.database.reading() as run:
            if budget is None:
                return self.end()
            begin = self.at(after)
            limit = begin.total + budget
            fits = blocks.last_head(run, "WHERE last > ? AND total <= ?", after, limit)
            whole = None if fits is None else Point(fits.last, fits.total)
            block = blocks.with_row_after(run, after if whole is None else whole.seq)
            if block is None:
                return whole or begin
            rows = part(block.batch, after, block.last)
            seqs, totals = longs(rows, "seq"), longs(rows, "total")
            fitting = int(np.searchsorted(totals, limit, side="right"))
            if fitting == 0 and whole is not None:
                return whole
            at = max(fitting - 1, 0)
            return Point(int(seqs[at]), int(totals[at]))

    def at(self, seq: int) -> Point:
        """The mark of an event that is in the journal, or that was forgotten last."""
        with self.database.reading() as run:
            trimmed, head = self.trimmed(), blocks.head_after(run, seq - 1)
            if head is not None and head.last == seq > trimmed.seq:  # as nearly always
                return Point(seq, head.total)
            block = blocks.with_row_after(run, seq - 1)
            rows = None if block is None else part(block.batch, trimmed.seq, seq)  # older events are held for another consumer
            if rows is not None and len(rows):
                return Point(seq, int(longs(rows, "total")[-1]))
            before = blocks.last_head(run, "WHERE last > ? AND last < ?", trimmed.seq, seq)
            return Point(seq, trimmed.total if before is None else before.total)

    def blocks(self, after: int, upto: int, most: int | None = None) -> list[pa.RecordBatch]:
        """The events with ``after < seq <= upto``, in order, as they are stored: columns of `streaming.broker.journal.blocks.BLOCK`.

        Args:
            most: the most blocks, None for all of them.
        """
        with self.database.reading() as run:
            found = list(islice(blocks.blocks(run, after, upto), most))
        return [part(block.batch, after, upto) for block in found]

    def has_been_at(self, seq: int, total: int) -> bool:
        """Whether a consumer can have read this journal up to here; if not, this is an earlier copy of the journal that it has read.

        True also if this cannot be decided: the event was forgotten or merged since, or ``total`` is not known (-1).
        """
        with self.database.reading() as run:
            has = database.totals(run)
            if seq > has.seq:
                return False
            if total < 0 or seq < has.trimmed_seq or seq <= has.merged_seq:
                return True
            if seq == has.trimmed_seq:
                return total == has.trimmed_total
            block = blocks.with_row_after(run, seq - 1)
            rows = () if block is None else part(block.batch, seq - 1, seq)
            return len(rows) > 0 and int(longs(rows, "total")[0]) == total

    def wait(self, seconds: float) -> bool:
        """Wait until something is published; returns False when ``seconds`` have passed without."""
        with self._published:
            return seconds > 0 and self._published.wait(seconds)

    # --- forgetting

    def trimmed(self) -> Point:
        """The point up to which events have been forgotten for ever."""
        with self.database.reading() as run:
            found = database.totals(run)
        return Point(found.trimmed_seq, found.trimmed_total)

    def first_unchanged(self) -> int:
        """The seq after which nothing was forgotten, joined or merged."""
        with self.database.reading() as run:
            found = database.totals(run)
        return max(found.trimmed_seq, found.merged_seq)

    def size(self) -> int:
        """About how many bytes the events take."""
        return self._size

    def note_grown(self, grown: int) -> None:
        """Note by about how many bytes the stored events have grown: for whoever holds the lock."""
        self._size += grown


def _blocks(events: Iterable[Event], end: Point) -> Iterator[list[PlacedEvent]]:
    """The rows of events that come after ``end``, a block at a time."""
    block: list[PlacedEvent] = []
    seq, total, size = end.seq, end.total, 0
    for event in events:
        seq, total, size = seq + 1, total + counted_bytes(event), size + blob_bytes(event)
        block.append(PlacedEvent(seq, total, event))
        if len(block) == BLOCK_ROWS or size >= BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block
