"""Events in the form in which they are sent: columns of `streaming.common.event_row.EVENTS`."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from streaming.broker.journal.blocks import PlacedEvent, block_of, rows_of
from streaming.broker.journal.census import expanded
from streaming.common.event_row import EVENT, EVENTS, Event
from streaming.common.rows import Kind

SentEvents = tuple[int, Sequence[Event]]
"""Events that are in no block, and the seq that all of them have."""


def events_table(agent: str, journal: str, sent: Iterable[SentEvents]) -> pa.Table:
    """The rows of events that are in no block."""
    return pa.Table.from_batches([_expanded(agent, journal, each) for each in sent], schema=EVENTS).combine_chunks()


def _expanded(agent: str, journal: str, sent: SentEvents) -> pa.RecordBatch:
    seq, events = sent
    return _named(agent, journal, block_of([PlacedEvent(seq, 0, event) for event in events]), pa.array(range(len(events)), pa.int32()))


def _named(agent: str, journal: str, block: pa.RecordBatch, part: pa.Array | None = None) -> pa.RecordBatch:
    """Add the columns that a journal does not keep: the agent, the journal, and the order of rows with the same seq."""
    count = len(block)
    if part is None:
        part = pa.repeat(pa.scalar(0, pa.int32()), count)
    named = [pa.repeat(agent, count), pa.repeat(journal, count), block["seq"], part]
    return pa.RecordBatch.from_arrays([*named, *(block[name] for name in EVENT.names)], schema=EVENTS)


def blocks_table(agent: str, journal: str, blocks: Iterable[pa.RecordBatch], first: Iterable[SentEvents] = ()) -> pa.Table:
    """The rows of a journal's blocks, after those of ``first``. Blocks are sent as they are, but a census gets a row for each log."""
    batches = [_expanded(agent, journal, each) for each in first]
    for block in blocks:
        begin = 0
        for at in pc.indices_nonzero(pc.equal(block["kind"], Kind.CENSUS)).to_pylist():
            (census,) = rows_of(block.slice(at, 1))
            batches += [
                _named(agent, journal, block.slice(begin, at - begin)),
                _expanded(agent, journal, (census.seq, expanded(census.event))),
            ]
            begin = at + 1
        batches.append(_named(agent, journal, block.slice(begin)))
    return pa.Table.from_batches(batches, schema=EVENTS).combine_chunks()
