"""Reads what a reader has planned: events of the journal as they are, without what comes again, and the excerpts of its backlog.

Rows of ranges are events. Batches and transactions are made from the same events, whose byte ranges are scanned again here, where they are.
What is not there any more comes as an event of kind SKIPPED.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.broker.agent.reader_scanning import Scanning
from streaming.broker.journal.blocks import PlacedEvent, block_of, longs, rows_of
from streaming.broker.journal.consumer_states import Loss, without_lost
from streaming.broker.journal.consumers import Readers
from streaming.broker.journal.cutting import cut
from streaming.broker.protocol.event_tables import blocks_table, events_table
from streaming.broker.protocol.excerpt_messages import Excerpt, Scan
from streaming.broker.protocol.reader_messages import ReaderRange
from streaming.broker.protocol.selection import Selection
from streaming.common.event_row import Event
from streaming.common.rows import Kind

WANTED = tuple(map(str, (Kind.APPENDED, Kind.TRUNCATED, Kind.SKIPPED, Kind.CORRUPT, Kind.GONE, Kind.FOUND)))
"""The kinds of events that may become rows."""


@dataclass(frozen=True, slots=True)
class ReaderReading:
    """For several threads. ``agent``: its name; ``broker``: the one that a loss without a log is reported for."""

    agent: str
    broker: int
    readers: Readers
    scanning: Scanning
    is_of: Callable[[ReaderRange], bool]  # whether a range is still of the journal as its reader knows it

    def rows(self, request: ReaderRange) -> Iterator[pa.RecordBatch]:
        """The rows of a range: of `EVENTS`, and for batches and transactions of their own columns, too."""
        selection, rows = request.selected.selection(), Scan(request.rows)
        if request.events:
            yield from self._events(request, selection, rows)
        for excerpt in self.readers.backlog(request.reader, request.begin.excerpts, request.end.excerpts):
            if selection.has(excerpt.topic, excerpt.partition):
                for found in self.scanning.backlog(Excerpt(*astuple(excerpt)), rows):
                    yield self._sent(request, found)

    def _events(self, request: ReaderRange, selection: Selection, rows: Scan) -> Iterator[pa.RecordBatch]:
        begin, end, journal = request.begin, request.end, self.readers.journal
        with journal.database.reading():
            after, total = begin.seq, begin.total
            if not self.is_of(request):
                missing = end.total - total if after >= 0 else 0
                yield self._lost(request, [Event(kind=Kind.SKIPPED, broker=self.broker, reason="agent_lost", bytes=missing)])
                return
            if after < 0:  # from the reader's beginning on
                after = self.readers.begun(request.reader)
                total = journal.at(after).total
            losses = self.readers.send(request.reader, after, total, end.seq)
        if losses:
            yield self._lost(request, [self._loss(loss) for loss in losses])
        for block in journal.each_block(after, end.seq):
            yield from self._of_block(request, new_of(without_lost(losses, block), selection), rows)

    def _of_block(self, request: ReaderRange, block: pa.RecordBatch, rows: Scan) -> Iterator[pa.RecordBatch]:
        if not len(block):
            return
        if rows is Scan.RANGES:
            yield from blocks_table(self.agent, request.end.journal, [block]).to_batches()
            return
        for placed in rows_of(block):
            for found in self.scanning.appended(placed.event, rows):
                yield self._sent(request, found, placed.seq)

    def _sent(self, request: ReaderRange, rows: pa.RecordBatch | Event, seq: int = -1) -> pa.RecordBatch:
        if isinstance(rows, Event):
            return _one(events_table(self.agent, request.end.journal, [(seq, [rows])]))
        return rows

    def _lost(self, request: ReaderRange, events: Sequence[Event]) -> pa.RecordBatch:
        return _one(events_table(self.agent, request.end.journal, [(request.end.seq, events)]))

    def _loss(self, loss: Loss) -> Event:
        return Event(kind=Kind.SKIPPED, broker=self.broker, reason="journal_trimmed", bytes=loss.bytes)


def has_rows(blocks: Iterable[pa.RecordBatch], selection: Selection) -> bool:
    """Whether any of these events may become a row for a reader."""
    return any(len(new_of(block, selection)) for block in blocks)


def new_of(block: pa.RecordBatch, selection: Selection) -> pa.RecordBatch:
    """The events of a block that a reader wants, without what the journal had published before.

    The beginning of another job may publish again what this reader has had, or did not want.
    """
    found = block.filter(pc.and_(pc.is_in(block["kind"], pa.array(WANTED)), _selected(block, selection)))
    known, base, following = longs(found, "published_upto"), longs(found, "base_offset"), longs(found, "next_offset")
    kinds = found["kind"].to_numpy(zero_copy_only=False)
    listed = (kinds == Kind.FOUND) & ~(_has(found, "rolled") | _has(found, "deleted"))
    again = (known >= following) & (base < following)
    empty = (kinds == Kind.TRUNCATED) & (longs(found, "bytes") == 0)  # only the end of a log, published again
    parted = (base < known) & (known < following)
    if not (again | empty | listed | parted).any():
        return found
    kept = found.filter(pa.array(~(again | empty | listed)))
    if not parted.any():
        return kept
    return block_of([PlacedEvent(each.seq, each.total, _rest(each.event)) for each in rows_of(kept)])


def _has(block: pa.RecordBatch, name: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = block[name].is_valid().to_numpy(zero_copy_only=False)
    return found


def _rest(event: Event) -> Event:
    """What of an event was not published before."""
    if not event.base_offset < event.published_upto < event.next_offset:
        return event
    rest = cut(event, event.published_upto) if event.kind is Kind.APPENDED else None
    if rest is not None:
        return replace(rest, start_position=rest.end_position - rest.bytes)
    missing = event.bytes * (event.next_offset - event.published_upto) // (event.next_offset - event.base_offset)
    reason = event.reason if event.kind is Kind.SKIPPED else "journal_trimmed"
    of_log = Event(kind=Kind.SKIPPED, **event.log._asdict(), log_dir=event.log_dir, segment=event.segment)
    return replace(of_log, reason=reason, bytes=missing, base_offset=event.published_upto, next_offset=event.next_offset)


def _selected(block: pa.RecordBatch, selection: Selection) -> pa.Array:
    topics = block["topic"].dictionary_encode()
    wanted = [selection.has_topic(topic) for topic in topics.dictionary.to_pylist()]
    selected = np.array(wanted, np.bool_)[topics.indices.to_numpy()] if wanted else np.zeros(len(block), np.bool_)
    if selection.partitions:
        selected &= np.isin(block["partition"].to_numpy(), selection.partitions)
    return pa.array(selected)


def _one(table: pa.Table) -> pa.RecordBatch:
    found = table.combine_chunks().to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], table.schema)
