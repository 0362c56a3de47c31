"""Blocks in the journal's file. The key of a block is the seq of its last row; forgotten and joined rows are cut out of it."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streaming.broker.journal.blocks import PlacedEvent, block_of, counted, longs, pack, part, rows_of, unpack
from streaming.broker.journal.tables import StoredTable, value
from streaming.common.event_row import Event
from streaming.common.rows import Kind

_OVERHEAD_BYTES = 60  # what SQLite needs for a block besides its rows, about


@dataclass(frozen=True, slots=True)
class BlockHead:
    """A block of the file without its rows: the seqs of its last and first row, and how many it has.

    ``at_ms``: when it was published, in the journal's own time; ``total``: the running total at its end; ``size``: about how many bytes
    it takes; ``published``: the bytes of logs that it publishes.
    """

    last: int
    first: int
    count: int
    at_ms: int
    total: int
    size: int
    published: int

    def is_within(self, after: int, upto: int) -> bool:
        """Whether all of its rows have ``after < seq <= upto``."""
        return after < self.first and self.last <= upto


@dataclass(frozen=True, slots=True)
class StoredBlock(BlockHead):
    """A block of the file, with its rows as they are stored."""

    rows: bytes

    @property
    def batch(self) -> pa.RecordBatch:
        """Its rows, as columns."""
        return unpack(self.rows)


@dataclass(frozen=True, slots=True)
class RowsUpto:
    """Rows that follow each other: how many, and the seq of the last one."""

    rows: int
    last: int


_BOUNDS, _BLOCKS = StoredTable("blocks", BlockHead), StoredTable("blocks", StoredBlock)


def size(run: sqlite3.Connection) -> int:
    """About how many bytes all blocks take."""
    return int(value(run, "SELECT coalesce(sum(size), 0) FROM blocks"))


def newest(run: sqlite3.Connection) -> BlockHead | None:
    """The last block."""
    return _BOUNDS.first(run, "ORDER BY last DESC")


def last_within(run: sqlite3.Connection, after: int, total: int) -> BlockHead | None:
    """The last of the blocks that end after ``after``, and at this running total at most."""
    return _BOUNDS.first(run, "WHERE last > ? AND total <= ? ORDER BY last DESC", after, total)


def last_between(run: sqlite3.Connection, after: int, before: int) -> BlockHead | None:
    """The last of the blocks that end between two seqs."""
    return _BOUNDS.first(run, "WHERE last > ? AND last < ? ORDER BY last DESC", after, before)


def waiting_since(run: sqlite3.Connection, after: int, latest_ms: int) -> RowsUpto:
    """The events that were published after ``after`` and until then."""
    sql = "SELECT coalesce(sum(count), 0), coalesce(max(last), ?1) FROM blocks WHERE last > ?1 AND at_ms <= ?2"
    rows, last = run.execute(sql, (after, latest_ms)).fetchone()
    return RowsUpto(rows, last)


def limit_times(run: sqlite3.Connection, latest_ms: int) -> None:
    """Take times later than this as this one: they are of a clock that was ahead."""
    run.execute("UPDATE blocks SET at_ms = ? WHERE at_ms > ?", (latest_ms, latest_ms))


def first_rows(run: sqlite3.Connection, after: int, upto: int, most: int) -> RowsUpto:
    """The first rows with ``after < seq <= upto``, at most ``most``. Only blocks of which they are a part are read."""
    rows, last = 0, after
    for head in heads(run, after, upto):
        if head.is_within(after, upto) and rows + head.count <= most:
            rows, last = rows + head.count, head.last
            continue
        block = with_row_after(run, max(after, last))
        seqs = [] if block is None else longs(part(block.batch, after, upto), "seq")[: most - rows].tolist()
        rows, last = rows + len(seqs), seqs[-1] if seqs else last
        if rows == most:
            break
    return RowsUpto(rows, last)


def insert(run: sqlite3.Connection, block: pa.RecordBatch, at_ms: int) -> int:
    """Write a block; returns about how many bytes it takes."""
    seqs, totals, packed = longs(block, "seq"), longs(block, "total"), pack(block)
    stored = StoredBlock(
        last=int(seqs[-1]),
        first=int(seqs[0]),
        count=len(seqs),
        at_ms=at_ms,
        total=int(totals[-1]),
        size=_OVERHEAD_BYTES + len(packed),
        published=counted(block),
        rows=packed,
    )
    _BLOCKS.insert(run, stored)
    return stored.size


def heads(run: sqlite3.Connection, after: int, upto: int) -> Iterator[BlockHead]:
    """The same blocks as `blocks`, without their rows."""
    for head in _BOUNDS.all(run, "WHERE last > ? ORDER BY last", after):
        if head.first > upto:
            return
        yield head


def blocks(run: sqlite3.Connection, after: int, upto: int) -> Iterator[StoredBlock]:
    """The blocks that hold rows with ``after < seq <= upto``, in order; nothing may be written until the last one is read."""
    for block in _BLOCKS.all(run, "WHERE last > ? ORDER BY last", after):
        if block.first > upto:
            return
        yield block


def with_row_after(run: sqlite3.Connection, seq: int) -> StoredBlock | None:
    """The block of the first row after ``seq``, None where there is none."""
    return _BLOCKS.first(run, "WHERE last > ? ORDER BY last", seq)


def head_after(run: sqlite3.Connection, seq: int) -> BlockHead | None:
    """The same block, without its rows."""
    return _BOUNDS.first(run, "WHERE last > ? ORDER BY last", seq)


def rows(run: sqlite3.Connection, after: int, upto: int, most: int) -> list[PlacedEvent]:
    """The first rows with ``after < seq <= upto``, at most ``most``."""
    found: list[PlacedEvent] = []
    for block in blocks(run, after, upto):
        found += rows_of(part(block.batch, after, upto).slice(0, most - len(found)))
        if len(found) == most:
            break
    return found


@dataclass(frozen=True, slots=True)
class StoredRow:
    """How many bytes a row of the journal takes, and when it was published."""

    seq: int
    size: float
    at_ms: int


def entries(run: sqlite3.Connection, after: int, upto: int, most: int) -> list[StoredRow]:
    """The first rows with ``after < seq <= upto``, at most ``most``."""
    found: list[StoredRow] = []
    for block in blocks(run, after, upto):
        has = block.batch
        size = block.size / len(has)
        found += [StoredRow(seq, size, block.at_ms) for seq in longs(part(has, after, upto), "seq")[: most - len(found)].tolist()]
        if len(found) == most:
            break
    return found


def counted_between(run: sqlite3.Connection, after: int, upto: int) -> int:
    """The bytes of logs that the rows with ``after < seq <= upto`` publish."""
    found = list(heads(run, after, upto))
    cut = (with_row_after(run, head.last - 1) for head in found if not head.is_within(after, upto))
    parts = sum(counted(part(block.batch, after, upto)) for block in cut if block is not None)
    return parts + sum(head.published for head in found if head.is_within(after, upto))


def kinds(run: sqlite3.Connection, seqs: Iterable[int]) -> dict[int, Kind]:
    """The kinds of the rows with these seqs, as far as they exist."""
    found: dict[int, Kind] = {}
    for block, wanted in _of(run, sorted(seqs)):
        has = block.batch.select(["seq", "kind"])
        has = has.filter(pa.array(np.isin(longs(has, "seq"), wanted)))
        found |= dict(zip(has["seq"].to_pylist(), map(Kind, has["kind"].to_pylist()), strict=True))
    return found


def delete(run: sqlite3.Connection, after: int, upto: int) -> int:
    """Delete the rows with ``after < seq <= upto``; returns by about how many bytes the stored blocks have grown."""
    whole = [head for head in heads(run, after, upto) if head.is_within(after, upto)]
    grown = -sum(head.size for head in whole)
    run.executemany("DELETE FROM blocks WHERE last = ?", [(head.last,) for head in whole])
    for block in list(blocks(run, after, upto)):  # one at each end at most
        has = block.batch
        seqs = longs(has, "seq")
        grown += _put(run, block, has.filter(pa.array((seqs <= after) | (seqs > upto))))
    return grown


def change(run: sqlite3.Connection, gone: Iterable[int], put: Mapping[int, Event]) -> int:
    """Delete rows, and replace the events of some others; returns by about how many bytes the stored blocks have grown."""
    gone, grown = set(gone), 0
    for block, _ in _of(run, sorted(gone | put.keys())):
        left = [replace(row, event=put[row.seq]) if row.seq in put else row for row in rows_of(block.batch) if row.seq not in gone]
        grown += _put(run, block, block_of(left))
    return grown


def _put(run: sqlite3.Connection, block: StoredBlock, left: pa.RecordBatch) -> int:
    run.execute("DELETE FROM blocks WHERE last = ?", (block.last,))
    return (insert(run, left, block.at_ms) if len(left) else 0) - block.size


def _of(run: sqlite3.Connection, seqs: list[int]) -> Iterator[tuple[StoredBlock, list[int]]]:
    """The blocks whose ranges contain these seqs, each with its seqs."""
    at = 0
    while at < len(seqs):
        block, begin = with_row_after(run, seqs[at] - 1), at
        if block is None:
            return
        while at < len(seqs) and seqs[at] <= block.last:
            at += 1
        yield block, seqs[begin:at]
