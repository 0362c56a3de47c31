"""A block: events of one agent as columns, in order. The journal stores blocks, and an agent sends blocks.

Besides the columns that are sent (`streaming.common.event_row.Event`), a row has the running total of the log bytes that were published up
to it. In the journal's file the key of a block is the seq of its last row; forgotten and joined rows are cut out of it.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, takewhile

import lz4.frame
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming.broker.journal.tables import StoredTable, value
from streaming.common.arrays import Longs
from streaming.common.column_types import values_of
from streaming.common.event_row import EVENT, MISSING, Event
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind, pack_rows, unpack_rows

TABLE = """
CREATE TABLE blocks (
  last INTEGER PRIMARY KEY, first INTEGER NOT NULL, count INTEGER NOT NULL, at_ms INTEGER NOT NULL, total INTEGER NOT NULL,
  size INTEGER NOT NULL, published INTEGER NOT NULL, rows BLOB NOT NULL)
"""

BLOCK_ROWS = 1000
"""The most rows of a block: to read, cut or change a block, all of it has to be loaded."""

BLOCK_BYTES = 4 << 20
"""About the most bytes of a block's values of transactions, coordinators and segments."""

COUNTED = (Kind.APPENDED, Kind.SKIPPED)
"""The kinds of events whose ``bytes`` are published bytes of logs."""

BLOCK = pa.schema([("seq", pa.int64()), ("total", pa.int64()), *EVENT])
_BLOBS = tuple(field.name for field in BLOCK if pa.types.is_binary(field.type))
_LISTS = tuple(field.name for field in BLOCK if pa.types.is_list(field.type))


@dataclass(frozen=True, slots=True)
class PlacedEvent:
    """An event, its seq in the journal, and the bytes of logs that were published up to and with it."""

    seq: int
    total: int
    event: Event


def counted_bytes(event: Event) -> int:
    """The bytes of logs that an event publishes."""
    return event.bytes if event.kind in COUNTED else 0


def blob_bytes(event: Event) -> int:
    """The bytes of an event's binary values."""
    return sum(len(getattr(event, name) or b"") for name in _BLOBS)


def block_of(rows: Sequence[PlacedEvent]) -> pa.RecordBatch:
    """Rows as columns of `BLOCK`."""
    events = [row.event for row in rows]
    columns = [pa.array([row.seq for row in rows], pa.int64()), pa.array([row.total for row in rows], pa.int64())]
    columns += [_column(name, [getattr(event, name) for event in events]) for name in EVENT.names]
    return pa.RecordBatch.from_arrays(columns, schema=BLOCK)


def _column(name: str, values: Sequence[object]) -> pa.Array:
    if name not in _LISTS:
        return pa.array(values, BLOCK.field(name).type)
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)  # type: ignore[arg-type]
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(np.fromiter(chain.from_iterable(values), np.int64, ends[-1])))  # type: ignore[arg-type]


def rows_of(block: pa.RecordBatch) -> list[PlacedEvent]:
    """The rows from which `block_of` made a block."""
    columns = {name: values_of(column) for name, column in zip(block.schema.names, block.columns, strict=True)}
    columns["kind"] = list(map(Kind, columns["kind"]))
    events = zip(*(columns[name] for name in EVENT.names), strict=True)
    return [PlacedEvent(seq, total, Event(*values)) for seq, total, values in zip(columns["seq"], columns["total"], events, strict=True)]


def longs(block: pa.RecordBatch, name: str) -> NDArray[np.int64]:
    """A column of whole numbers."""
    values: NDArray[np.int64] = block.column(name).to_numpy(zero_copy_only=False)
    return values


def part(block: pa.RecordBatch, after: int, upto: int) -> pa.RecordBatch:
    """The rows with ``after < seq <= upto``."""
    begin, end = np.searchsorted(longs(block, "seq"), (after, upto), side="right")
    return block.slice(begin, max(0, end - begin))


def counted(block: pa.RecordBatch) -> int:
    """The bytes of logs that a whole block publishes."""
    kinds = np.isin(block.column("kind").to_numpy(zero_copy_only=False), COUNTED)
    return int(longs(block, "bytes")[kinds].sum())


def pack(block: pa.RecordBatch) -> bytes:
    """A block as it is stored. Most columns of neighboring rows are alike, so a whole block is compressed to a fifth of its size."""
    packed: bytes = lz4.frame.compress(pack_rows(block))
    return packed


def unpack(packed: bytes) -> pa.RecordBatch:
    """The block that `pack` was given."""
    return unpack_rows(lz4.frame.decompress(packed), BLOCK, MISSING)


@dataclass(frozen=True, slots=True, eq=False)
class AppendedRanges:
    """APPENDED events of as many logs, one of each, in order.

    ``base_offset``, ``next_offset``, ``log_epoch`` and ``bytes`` are columns of theirs in numpy; ``columns`` are all of `EVENT`.
    """

    logs: Sequence[LogKey]
    base_offset: Longs
    next_offset: Longs
    log_epoch: Longs
    bytes: Longs
    columns: pa.RecordBatch

    def placed(self, seq: int, total: int, published_upto: Longs) -> pa.RecordBatch:
        """The block of the rows that come after ``seq``, where so many bytes were published before; for the last argument see `Event`."""
        places = [pa.array(seq + 1 + np.arange(len(self.logs))), pa.array(total + np.cumsum(self.bytes))]
        columns = dict(zip(EVENT.names, self.columns.columns, strict=True)) | {"published_upto": pa.array(published_upto)}
        return pa.RecordBatch.from_arrays([*places, *columns.values()], schema=BLOCK)


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

    def seqs(self, after: int, upto: int) -> list[int]:
        """Those of its rows with ``after < seq <= upto``."""
        found: list[int] = longs(part(self.batch, after, upto), "seq").tolist()
        return found


_HEADS, _BLOCKS = StoredTable("blocks", BlockHead), StoredTable("blocks", StoredBlock)


def size(run: sqlite3.Connection) -> int:
    """About how many bytes all blocks take."""
    return int(value(run, "SELECT coalesce(sum(size), 0) FROM blocks"))


def last_head(run: sqlite3.Connection, where: str = "", *values: int) -> BlockHead | None:
    """The last of some blocks."""
    return _HEADS.first(run, f"{where} ORDER BY last DESC", *values)


def waiting_since(run: sqlite3.Connection, after: int, latest_ms: int) -> tuple[int, int]:
    """How many events were published after ``after`` and until then, and the seq of the last of them."""
    sql = "SELECT coalesce(sum(count), 0), coalesce(max(last), ?1) FROM blocks WHERE last > ?1 AND at_ms <= ?2"
    rows, last = run.execute(sql, (after, latest_ms)).fetchone()
    return rows, last


def limit_times(run: sqlite3.Connection, latest_ms: int) -> None:
    """Take times later than this as this one: they are of a clock that was ahead."""
    run.execute("UPDATE blocks SET at_ms = ? WHERE at_ms > ?", (latest_ms, latest_ms))


def insert(run: sqlite3.Connection, block: pa.RecordBatch, at_ms: int) -> int:
    """Write a block; returns about how many bytes it takes."""
    seqs, totals, packed = longs(block, "seq"), longs(block, "total"), pack(block)
    own = int(seqs[-1]), int(seqs[0]), len(seqs), at_ms, int(totals[-1]), _OVERHEAD_BYTES + len(packed), counted(block)
    _BLOCKS.insert(run, StoredBlock(*own, packed))
    return _OVERHEAD_BYTES + len(packed)


def heads(run: sqlite3.Connection, after: int, upto: int) -> Iterator[BlockHead]:
    """The same blocks as `blocks`, without their rows."""
    return takewhile(lambda head: head.first <= upto, _HEADS.all(run, "WHERE last > ? ORDER BY last", after))


def blocks(run: sqlite3.Connection, after: int, upto: int) -> Iterator[StoredBlock]:
    """The blocks that hold rows with ``after < seq <= upto``, in order; nothing may be written until the last one is read."""
    return takewhile(lambda block: block.first <= upto, _BLOCKS.all(run, "WHERE last > ? ORDER BY last", after))


def with_row_after(run: sqlite3.Connection, seq: int) -> StoredBlock | None:
    """The block of the first row after ``seq``, None where there is none."""
    return _BLOCKS.first(run, "WHERE last > ? ORDER BY last", seq)


def head_after(run: sqlite3.Connection, seq: int) -> BlockHead | None:
    """The same block, without its rows."""
    return _HEADS.first(run, "WHERE last > ? ORDER BY last", seq)


def first_rows(run: sqlite3.Connection, after: int, upto: int, most: int) -> tuple[int, int]:
    """How many the first rows with ``after < seq <= upto`` are, at most ``most``, and the last seq. Only blocks that are cut are read."""
    count, last = 0, after
    for head in heads(run, after, upto):
        if head.is_within(after, upto) and count + head.count <= most:
            count, last = count + head.count, head.last
            continue
        block = with_row_after(run, max(after, last))
        seqs = [] if block is None else block.seqs(after, upto)[: most - count]
        count, last = count + len(seqs), seqs[-1] if seqs else last
        if count == most:
            break
    return count, last


def rows(run: sqlite3.Connection, after: int, upto: int, most: int) -> list[PlacedEvent]:
    """The first rows with ``after < seq <= upto``, at most ``most``."""
    found: list[PlacedEvent] = []
    for block in blocks(run, after, upto):
        found += rows_of(part(block.batch, after, upto).slice(0, most - len(found)))
        if len(found) == most:
            break
    return found


def entries(run: sqlite3.Connection, after: int, upto: int, most: int) -> list[tuple[int, float, int]]:
    """Of the first rows with ``after < seq <= upto``, at most ``most``: seq, bytes in the file, and when it was published."""
    each = ((seq, block.size / block.count, block.at_ms) for block in blocks(run, after, upto) for seq in block.seqs(after, upto))
    return list(islice(each, most))


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
    while seqs:
        block = with_row_after(run, seqs[0] - 1)
        if block is None:
            return
        own = [seq for seq in seqs if seq <= block.last]
        yield block, own
        seqs = seqs[len(own) :]
