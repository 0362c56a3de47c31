"""Cursors that moved with ranges, packed: one value for all logs of a publication, where a row for each costs several times as much.

A move says where a log is now and which of its producers have changed. Moves wait in the table ``moves`` until they are merged into the
rows of their logs: from time to time, and whenever somebody reads those rows. Where a log gets a row of its own meanwhile, that is noted
among the moves, and those before it do not count any more.

While moves wait, the file has another version: an earlier segtail, which would not find them, refuses it.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import lz4.frame
import numpy as np
import pyarrow as pa

from streaming.broker.journal import producer_pages, stored_logs
from streaming.broker.journal.cursor import Cursor
from streaming.common.log_key import KEY, KEY_COLUMNS, LogKey, key_arrays
from streaming.common.rows import pack_rows, unpack_rows
from streaming.kafka.scan.producer_states import ENTRIES, Entries

TABLE = "CREATE TABLE IF NOT EXISTS moves (number INTEGER PRIMARY KEY, rows BLOB NOT NULL)"

_Row = dict[str, Any]

_OWN_ROW = -1
"""In place of a position: from here on the row of the log counts."""

_MOVE = pa.schema(
    [
        *KEY_COLUMNS,
        ("position", pa.int64()),
        ("next_offset", pa.int64()),
        ("anchor", pa.binary()),
        ("anchor_position", pa.int64()),
        ("largest_timestamp", pa.int64()),
        ("producers", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class CursorMoves:
    """What one publication moves.

    ``cursors``: after it. Of what is in a cursor, only position, next offset, frontier, anchor and largest timestamp may have changed since
    the row of its log; the frontier is the next offset. ``producers``: those of each log that have changed, as bytes of `ENTRIES`.
    ``rows``: logs that have moved before and get a row now.
    """

    cursors: Sequence[Cursor]
    producers: Sequence[bytes]
    rows: Sequence[LogKey] = ()

    def pack(self) -> bytes:
        """As it is stored."""
        count = len(self.rows)
        columns: list[list[Any]] = [[_OWN_ROW] * count, [0] * count, [b""] * count, [0] * count, [0] * count, [b""] * count]
        for column, name in zip(columns, ("position", "next_offset", "anchor", "anchor_position", "largest_timestamp"), strict=False):
            column += [getattr(cursor, name) for cursor in self.cursors]
        columns[-1] += self.producers
        keys = key_arrays([*self.rows, *(cursor.log for cursor in self.cursors)])
        fields = [field.type for field in _MOVE][len(KEY) :]
        arrays = [pa.array(column, of) for column, of in zip(columns, fields, strict=True)]
        packed: bytes = lz4.frame.compress(pack_rows(pa.RecordBatch.from_arrays([*keys, *arrays], schema=_MOVE)))
        return packed


def write(run: sqlite3.Connection, moves: CursorMoves) -> None:
    """Write the moves of a publication."""
    run.execute("INSERT INTO moves (rows) VALUES (?)", (moves.pack(),))


def forget(run: sqlite3.Connection) -> None:
    """Delete all moves: each log has a row of its own since."""
    run.execute("DELETE FROM moves")


def merge(run: sqlite3.Connection) -> None:
    """Write the moves into the rows of their logs, and delete them."""
    waiting: dict[LogKey, list[_Row]] = defaultdict(list)
    for (packed,) in run.execute("SELECT rows FROM moves ORDER BY number"):
        for row in unpack_rows(lz4.frame.decompress(packed), _MOVE).to_pylist():
            log = LogKey(*(row.pop(name) for name in KEY))
            if row["position"] == _OWN_ROW:
                waiting.pop(log, None)
            else:
                waiting[log].append(row)
    for log, changed in _merged_cursors(run, waiting):
        producer_pages.merge(run, log, changed)
    forget(run)


def _merged_cursors(run: sqlite3.Connection, waiting: dict[LogKey, list[_Row]]) -> Iterable[tuple[LogKey, Sequence[Entries]]]:
    """Write the cursors; returns the producers of each log that have changed, in order. A log that is gone has no row, and needs none."""
    cursors = [cursor for cursor in stored_logs.cursors(run) if cursor.log in waiting]
    after, changed = [], []
    for cursor in cursors:
        moves = waiting[cursor.log]
        changed.append((cursor.log, [np.frombuffer(found, ENTRIES) for move in moves if (found := move.pop("producers"))]))
        after.append(cursor._replace(frontier=moves[-1]["next_offset"], **moves[-1]))
    stored_logs.write_cursors(run, after)
    return changed
