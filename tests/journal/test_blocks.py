"""Blocks: events as columns, and what is cut out of them in a journal's file."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.journal import blocks
from streaming.broker.journal.blocks import (
    BLOCK_BYTES,
    BLOCK_ROWS,
    PlacedEvent,
    block_of,
    counted,
    counted_bytes,
    pack,
    part,
    rows_of,
    unpack,
)
from streaming.broker.journal.journal import Journal
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from tests.builders import CLUSTER_ID
from tests.clocks import Clock
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
    assert counted(block) == sum(counted_bytes(row.event) for row in found)


@given(rows, st.integers(0, 25), st.integers(0, 25))
def test_a_part_is_what_lies_between(found: list[PlacedEvent], after: int, upto: int) -> None:
    assert rows_of(part(block_of(found), after, upto)) == [row for row in found if after < row.seq <= upto]


class File:
    """A journal's table of blocks."""

    def __init__(self, found: list[PlacedEvent], size: int) -> None:
        database = Journal(None, CLUSTER_ID, Clock()).database
        with database.transaction() as run:
            self.run: sqlite3.Connection = run
        for begin in range(0, len(found), size):
            blocks.insert(self.run, block_of(found[begin : begin + size]), at_ms=begin)

    def rows(self) -> list[PlacedEvent]:
        return blocks.rows(self.run, 0, 99, 99)

    def size(self) -> int:
        (size,) = self.run.execute("SELECT coalesce(sum(size), 0) FROM blocks").fetchone()
        return int(size)


@given(rows, st.integers(1, 4), st.integers(0, 25), st.integers(0, 25))
def test_what_is_deleted_is_cut_out_of_its_blocks(found: list[PlacedEvent], size: int, after: int, upto: int) -> None:
    file = File(found, size)
    before = file.size()
    between = [row for row in found if after < row.seq <= upto]
    assert blocks.counted_between(file.run, after, upto) == sum(counted_bytes(row.event) for row in between)
    assert [seq for seq, _, _ in blocks.entries(file.run, after, upto, 3)] == [row.seq for row in between[:3]]
    assert blocks.first_rows(file.run, after, upto, 3) == (len(between[:3]), between[:3][-1].seq if between else after)
    grown = blocks.delete(file.run, after, upto)
    assert file.rows() == [row for row in found if row not in between]
    assert file.size() == before + grown


@given(rows, st.integers(1, 4), st.data())
def test_what_is_changed_stands_where_it_stood(found: list[PlacedEvent], size: int, data: st.DataObject) -> None:
    file, seqs = File(found, size), [row.seq for row in found]
    before = file.size()
    gone = data.draw(st.sets(st.sampled_from(seqs)))
    put = {seq: Event(kind=Kind.GONE, reason="put") for seq in data.draw(st.sets(st.sampled_from(seqs))) - gone}
    assert blocks.kinds(file.run, seqs) == {row.seq: row.event.kind for row in found}
    grown = blocks.change(file.run, gone, put)
    assert file.rows() == [replace(row, event=put.get(row.seq, row.event)) for row in found if row.seq not in gone]
    assert file.size() == before + grown


@pytest.mark.parametrize(
    ("event", "count"), [(Event(kind=Kind.APPEARED), 2 * BLOCK_ROWS + 1), (Event(kind=Kind.APPENDED, detail=bytes(BLOCK_BYTES // 2)), 5)]
)
def test_a_block_has_its_bounds(tmp_path: Path, event: Event, count: int) -> None:
    journal = Journal(tmp_path, CLUSTER_ID, Clock())
    journal.publish([event] * count)
    with journal.database.reading() as run:
        assert run.execute("SELECT count(*) FROM blocks").fetchone() == (3,)
    assert events_of(journal, 0, count) == [(seq, event) for seq in range(1, count + 1)]
