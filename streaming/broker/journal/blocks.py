"""A block: events of one agent as columns, in order. The journal keeps blocks, and an agent sends blocks.

Besides the columns that are sent (`streaming.common.event_row.Event`), a row has the running total of the log bytes that were published up
to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import lz4.frame
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.common.column_types import values_of
from streaming.common.event_row import EVENT, MISSING, Event
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind, pack_rows, unpack_rows

BLOCK_ROWS = 1000
"""The most rows of a block: to read one of them, all have to be unpacked."""

BLOCK_BYTES = 4 << 20
"""About the most bytes of a block's values of transactions, coordinators and segments."""

COUNTED = (Kind.APPENDED, Kind.SKIPPED)
"""The kinds of events whose ``bytes`` are published bytes of logs."""

BLOCK = pa.schema([("seq", pa.int64()), ("total", pa.int64()), *EVENT])
_BLOBS = tuple(field.name for field in BLOCK if pa.types.is_binary(field.type))
_LISTS = tuple(field.name for field in BLOCK if pa.types.is_list(field.type))


def block_of(rows: Sequence[PlacedEvent]) -> pa.RecordBatch:
    """Rows as columns of `BLOCK`."""
    events = [row.event for row in rows]
    columns = [pa.array([row.seq for row in rows], pa.int64()), pa.array([row.total for row in rows], pa.int64())]
    columns += [_column(name, [getattr(event, name) for event in events]) for name in EVENT.names]
    return pa.RecordBatch.from_arrays(columns, schema=BLOCK)


@dataclass(frozen=True, slots=True)
class PlacedEvent:
    """An event, its seq in the journal, and the bytes of logs that were published up to and with it."""

    seq: int
    total: int
    event: Event


def _column(name: str, values: Sequence[object]) -> pa.Array:
    if name not in _LISTS:
        return pa.array(values, BLOCK.field(name).type)
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)  # type: ignore[arg-type]
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(np.fromiter(chain.from_iterable(values), np.int64, ends[-1])))  # type: ignore[arg-type]


def counted_bytes(event: Event) -> int:
    """The bytes of logs that an event publishes."""
    return event.bytes if event.kind in COUNTED else 0


def blob_bytes(event: Event) -> int:
    """The bytes of an event's binary values."""
    return sum(len(getattr(event, name) or b"") for name in _BLOBS)


def rows_of(block: pa.RecordBatch) -> list[PlacedEvent]:
    """The rows from which `block_of` made a block."""
    columns = {name: values_of(column) for name, column in zip(block.schema.names, block.columns, strict=True)}
    columns["kind"] = list(map(Kind, columns["kind"]))
    events = zip(*(columns[name] for name in EVENT.names), strict=True)
    return [PlacedEvent(seq, total, Event(*values)) for seq, total, values in zip(columns["seq"], columns["total"], events, strict=True)]


def part(block: pa.RecordBatch, after: int, upto: int) -> pa.RecordBatch:
    """The rows with ``after < seq <= upto``."""
    begin, end = np.searchsorted(longs(block, "seq"), (after, upto), side="right")
    return block.slice(begin, max(0, end - begin))


def longs(block: pa.RecordBatch, name: str) -> NDArray[np.int64]:
    """A column of whole numbers."""
    values: NDArray[np.int64] = block.column(name).to_numpy(zero_copy_only=False)
    return values


def pack(block: pa.RecordBatch) -> bytes:
    """A block as it is stored. Most columns of neighboring rows are alike, so a whole block is compressed to a fifth of its size."""
    packed: bytes = lz4.frame.compress(pack_rows(block))
    return packed


def unpack(packed: bytes) -> pa.RecordBatch:
    """The block that `pack` was given."""
    return unpack_rows(lz4.frame.decompress(packed), BLOCK, MISSING)


@dataclass(frozen=True, slots=True, eq=False)
class AppendedRanges:
    """APPENDED events of as many logs, one of each, in order: the bytes of each, and all columns of `EVENT`."""

    logs: Sequence[LogKey]
    bytes: Longs
    columns: pa.RecordBatch

    def placed(self, seq: int, total: int) -> pa.RecordBatch:
        """The block of the rows that come after ``seq``, where so many bytes were published before."""
        places = [pa.array(seq + 1 + np.arange(len(self.logs))), pa.array(total + np.cumsum(self.bytes))]
        return pa.RecordBatch.from_arrays([*places, *self.columns.columns], schema=BLOCK)
