"""Blocks in the journal's file. The key of a block is the seq of its last row; forgotten and joined rows are cut out of it."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streaming.journal.blocks import Row, block_of, counted, longs, pack, part, rows_of, unpack
from streaming.journal.events import Event
from streaming.rows import Kind

_COLUMNS = "last, first, at_ms, size, published, rows"
_WRITTEN = "last, first, count, at_ms, total, size, published, rows"
_OVERHEAD_BYTES = 60  # what SQLite needs for a block besides its rows, about


@dataclass(frozen=True, slots=True)
class Stored:
    """A block of the file: the seqs of its first and last row, when it was published, and about how many bytes it takes.

    ``published``: the bytes of logs that it publishes.
    """

    last: int
    first: int
    at_ms: int
    size: int
    published: int
    packed: bytes

    @property
    def rows(self) -> pa.RecordBatch:
        """Its rows, as columns."""
        return unpack(self.packed)


def insert(run: sqlite3.Connection, block: pa.RecordBatch, at_ms: int) -> int:
    """Write a block; returns about how many bytes it takes."""
    seqs, totals, packed = longs(block, "seq"), longs(block, "total"), pack(block)
    size = _OVERHEAD_BYTES + len(packed)
    values = (int(seqs[-1]), int(seqs[0]), len(seqs), at_ms, int(totals[-1]), size, counted(block), packed)
    run.execute(f"INSERT INTO blocks ({_WRITTEN}) VALUES ({','.join('?' * len(values))})", values)
    return size


def blocks(run: sqlite3.Connection, after: int, upto: int) -> Iterator[Stored]:
    """The blocks that hold rows with ``after < seq <= upto``, in order; nothing may be written until the last one is read."""
    sql = f"SELECT {_COLUMNS} FROM blocks WHERE last > ? ORDER BY last"
    for row in run.execute(sql, (after,)):
        block = Stored(*row)
        if block.first > upto:
            return
        yield block


def with_row_behind(run: sqlite3.Connection, seq: int) -> Stored | None:
    """The block of the first row behind ``seq``, None where there is none."""
    row = run.execute(f"SELECT {_COLUMNS} FROM blocks WHERE last > ? ORDER BY last LIMIT 1", (seq,)).fetchone()
    return None if row is None else Stored(*row)


def rows(run: sqlite3.Connection, after: int, upto: int, most: int) -> list[Row]:
    """The first rows with ``after < seq <= upto``, at most ``most``."""
    found: list[Row] = []
    for block in blocks(run, after, upto):
        found += rows_of(part(block.rows, after, upto).slice(0, most - len(found)))
        if len(found) == most:
            break
    return found


@dataclass(frozen=True, slots=True)
class Entry:
    """How many bytes a row of the journal takes, and when it was published."""

    seq: int
    size: float
    at_ms: int


def entries(run: sqlite3.Connection, after: int, upto: int, most: int) -> list[Entry]:
    """The first rows with ``after < seq <= upto``, at most ``most``."""
    found: list[Entry] = []
    for block in blocks(run, after, upto):
        has = block.rows
        size = block.size / len(has)
        found += [Entry(seq, size, block.at_ms) for seq in longs(part(has, after, upto), "seq")[: most - len(found)].tolist()]
        if len(found) == most:
            break
    return found


def counted_between(run: sqlite3.Connection, after: int, upto: int) -> int:
    """The bytes of logs that the rows with ``after < seq <= upto`` publish."""
    return sum(
        block.published if after < block.first and block.last <= upto else counted(part(block.rows, after, upto))
        for block in blocks(run, after, upto)
    )


def kinds(run: sqlite3.Connection, seqs: Iterable[int]) -> dict[int, Kind]:
    """The kinds of the rows with these seqs, as far as they exist."""
    found: dict[int, Kind] = {}
    for block, wanted in _of(run, sorted(seqs)):
        has = block.rows.select(["seq", "kind"])
        has = has.filter(pa.array(np.isin(longs(has, "seq"), wanted)))
        found |= dict(zip(has["seq"].to_pylist(), map(Kind, has["kind"].to_pylist()), strict=True))
    return found


def delete(run: sqlite3.Connection, after: int, upto: int) -> int:
    """Delete the rows with ``after < seq <= upto``; returns by about how many bytes the stored blocks have grown."""
    grown = 0
    for block in list(blocks(run, after, upto)):
        has = block.rows
        seqs = longs(has, "seq")
        grown += _put(run, block, has.filter(pa.array((seqs <= after) | (seqs > upto))))
    return grown


def change(run: sqlite3.Connection, gone: Iterable[int], put: Mapping[int, Event]) -> int:
    """Delete rows, and replace the events of some others; returns by about how many bytes the stored blocks have grown."""
    gone, grown = set(gone), 0
    for block, _ in _of(run, sorted(gone | put.keys())):
        left = [replace(row, event=put[row.seq]) if row.seq in put else row for row in rows_of(block.rows) if row.seq not in gone]
        grown += _put(run, block, block_of(left))
    return grown


def _put(run: sqlite3.Connection, block: Stored, left: pa.RecordBatch) -> int:
    run.execute("DELETE FROM blocks WHERE last = ?", (block.last,))
    return (insert(run, left, block.at_ms) if len(left) else 0) - block.size


def _of(run: sqlite3.Connection, seqs: list[int]) -> Iterator[tuple[Stored, list[int]]]:
    """The blocks whose ranges contain these seqs, each with its seqs."""
    at = 0
    while at < len(seqs):
        block, begin = with_row_behind(run, seqs[at] - 1), at
        if block is None:
            return
        while at < len(seqs) and seqs[at] <= block.last:
            at += 1
        yield block, seqs[begin:at]
