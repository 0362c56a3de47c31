"""Blocks: events as columns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.journal.blocks import (
    BLOCK_BYTES,
    BLOCK_ROWS,
    PlacedEvent,
    block_of,
    counted_bytes,
    pack,
    part,
    rows_of,
    unpack,
)
from streaming.broker.journal.journal import Journal
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from tests.watcher.journalled import events_of

blobs = st.none() | st.binary(max_size=40)
nine = st.tuples(*[st.integers(0, 2**63 - 1)] * 9)
events = st.builds(
    Event,
    kind=st.sampled_from(Kind),
    broker=st.integers(-1, 2**31 - 1),
    topic=st.text(max_size=5),
    partition=st.integers(-1, 9),
    settled=st.booleans(),
    start_position=st.integers(-1, 2**63 - 1),
    bytes=st.integers(0, 1 << 40),
    batch_bytes_buckets=nine,
    batch_records_buckets=nine,
    detail=blobs,
    transactions=blobs,
    coordinator=blobs,
    segments=blobs,
    reason=st.text(max_size=5),
)


def numbered(events: list[Event], gaps: list[int]) -> list[PlacedEvent]:
    """Rows in order, with holes between their seqs."""
    rows, seq, total = [], 0, 0
    for event, gap in zip(events, gaps, strict=False):
        seq, total = seq + gap, total + counted_bytes(event)
        rows.append(PlacedEvent(seq, total, event))
    return rows


rows = st.builds(numbered, st.lists(events, min_size=1, max_size=8), st.lists(st.integers(1, 3), min_size=8, max_size=8))


@given(rows)
def test_rows_come_back_as_they_were(found: list[PlacedEvent]) -> None:
    block = unpack(pack(block_of(found)))
    assert rows_of(block) == found


@given(rows, st.integers(0, 25), st.integers(0, 25))
def test_a_part_is_what_lies_between(found: list[PlacedEvent], after: int, upto: int) -> None:
    assert rows_of(part(block_of(found), after, upto)) == [row for row in found if after < row.seq <= upto]


@pytest.mark.parametrize(
    ("event", "count"), [(Event(kind=Kind.APPEARED), 2 * BLOCK_ROWS + 1), (Event(kind=Kind.APPENDED, detail=bytes(BLOCK_BYTES // 2)), 5)]
)
def test_a_block_has_its_bounds(event: Event, count: int) -> None:
    journal = Journal()
    journal.publish([event] * count)
    assert len(journal.blocks(0, count)) == 3
    assert events_of(journal, 0, count) == [(seq, event) for seq in range(1, count + 1)]
