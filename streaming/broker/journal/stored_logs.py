"""What is stored of logs beside their events, so that nothing is read again: cursors, results of scans, ladders.

Cursors that moved with ranges are stored packed: one value for all logs of a publication, where a row for each costs several times as
much. A move says where a log is now and which of its producers have changed. Moves wait in the table ``moves`` until they are merged into
the rows of their logs: from time to time, and whenever somebody reads those rows. Where a log gets a row of its own meanwhile, that is
noted among the moves, and those before it do not count any more.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import lz4.frame
import numpy as np
import pyarrow as pa

from streaming.broker.disk.segment_files import SegmentKey
from streaming.broker.journal import producer_pages
from streaming.broker.journal.cursor import Cursor
from streaming.broker.journal.tables import StoredTable, equal, value
from streaming.common.log_key import KEY, KEY_COLUMNS, LogKey, key_arrays
from streaming.common.rows import pack_rows, unpack_rows
from streaming.kafka.scan.producer_states import ENTRIES

_SEGMENT = SegmentKey._fields
_SEGMENT_COLUMNS = ", ".join(f"{name} INTEGER NOT NULL" for name in _SEGMENT)
_BY_SEGMENT = "PRIMARY KEY (inode, base_offset, device, size, modified_ms)"

TABLES = f"""
CREATE TABLE cursors (
  broker INTEGER NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, topic_id TEXT NOT NULL,
  segment INTEGER NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL, position INTEGER NOT NULL, next_offset INTEGER NOT NULL,
  log_epoch INTEGER NOT NULL, anchor BLOB NOT NULL, anchor_position INTEGER NOT NULL, frontier INTEGER NOT NULL, stopped TEXT NOT NULL,
  skipped INTEGER NOT NULL, backlog_segment INTEGER NOT NULL, backlog_position INTEGER NOT NULL,
  first_timestamp INTEGER NOT NULL, largest_timestamp INTEGER NOT NULL, epochs BLOB NOT NULL,
  replay TEXT NOT NULL, wanted TEXT NOT NULL, entries_upto INTEGER NOT NULL, reread INTEGER NOT NULL,
  offset_bytes INTEGER NOT NULL,
  PRIMARY KEY (broker, topic, partition, topic_id)) WITHOUT ROWID;
CREATE TABLE moves (number INTEGER PRIMARY KEY, rows BLOB NOT NULL);
CREATE TABLE scanned ({_SEGMENT_COLUMNS}, largest_timestamp INTEGER NOT NULL, {_BY_SEGMENT}) WITHOUT ROWID;
CREATE TABLE ladders ({_SEGMENT_COLUMNS}, ladder BLOB NOT NULL, {_BY_SEGMENT});
"""

_OWN_ROW = -1
"""In place of a position: from here on the row of the log counts."""

_MOVED = ("position", "next_offset", "anchor", "anchor_position", "largest_timestamp")
_MOVE = pa.schema([*KEY_COLUMNS, *((name, pa.binary() if name == "anchor" else pa.int64()) for name in _MOVED), ("producers", pa.binary())])


@dataclass(frozen=True, slots=True)
class _ScannedSegment:
    key: SegmentKey
    largest_timestamp: int


@dataclass(frozen=True, slots=True)
class _StoredLadder:
    key: SegmentKey
    ladder: bytes


_CURSORS, _SCANNED, _LADDERS = (
    StoredTable("cursors", Cursor),
    StoredTable("scanned", _ScannedSegment),
    StoredTable("ladders", _StoredLadder),
)


def cursors(run: sqlite3.Connection) -> list[Cursor]:
    """The cursors of all logs, without the moves that wait."""
    return list(_CURSORS.all(run))


def write_cursors(run: sqlite3.Connection, written: Iterable[Cursor]) -> None:
    """Write cursors, each in place of the one before."""
    _CURSORS.put(run, written)


def forget_cursors(run: sqlite3.Connection, logs: Iterable[LogKey]) -> None:
    """Delete the cursors of logs."""
    _CURSORS.remove(run, KEY, logs)


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
        own, keys = (_OWN_ROW, 0, b"", 0, 0), key_arrays([*self.rows, *(cursor.log for cursor in self.cursors)])
        columns: list[list[Any]] = [
            [none] * len(self.rows) + [getattr(each, name) for each in self.cursors] for name, none in zip(_MOVED, own, strict=True)
        ]
        columns.append([b""] * len(self.rows) + list(self.producers))
        arrays = [pa.array(column, field.type) for column, field in zip(columns, list(_MOVE)[len(KEY) :], strict=True)]
        packed: bytes = lz4.frame.compress(pack_rows(pa.RecordBatch.from_arrays([*keys, *arrays], schema=_MOVE)))
        return packed


def write_moves(run: sqlite3.Connection, moves: CursorMoves) -> None:
    """Write the moves of a publication."""
    run.execute("INSERT INTO moves (rows) VALUES (?)", (moves.pack(),))


def forget_moves(run: sqlite3.Connection) -> None:
    """Delete all moves: each log has a row of its own since."""
    run.execute("DELETE FROM moves")


def moves_wait(run: sqlite3.Connection) -> bool:
    """Whether there are moves."""
    return bool(value(run, "SELECT EXISTS (SELECT 1 FROM moves)"))


def merge_moves(run: sqlite3.Connection) -> None:
    """Write the moves into the rows of their logs, and delete them. A log that is gone has no row, and needs none."""
    waiting: dict[LogKey, list[dict[str, Any]]] = defaultdict(list)
    for (packed,) in run.execute("SELECT rows FROM moves ORDER BY number"):
        for row in unpack_rows(lz4.frame.decompress(packed), _MOVE).to_pylist():
            log = LogKey(*(row.pop(name) for name in KEY))
            if row["position"] == _OWN_ROW:
                waiting.pop(log, None)
            else:
                waiting[log].append(row)
    before = [cursor for cursor in cursors(run) if cursor.log in waiting]
    for cursor in before:
        changed = [np.frombuffer(found, ENTRIES) for move in waiting[cursor.log] if (found := move.pop("producers"))]
        producer_pages.merge(run, cursor.log, changed)
    last = [(cursor, waiting[cursor.log][-1]) for cursor in before]
    write_cursors(run, [cursor._replace(frontier=move["next_offset"], **move) for cursor, move in last])
    forget_moves(run)


def scanned(run: sqlite3.Connection) -> dict[SegmentKey, int]:
    """The largest timestamp of each closed segment that was scanned, Unix milliseconds, -1 none."""
    return {row.key: row.largest_timestamp for row in _SCANNED.all(run)}


def keep_scanned(run: sqlite3.Connection, times: Iterable[tuple[SegmentKey, int]], gone: Iterable[SegmentKey]) -> None:
    """Write further results of scans, and delete those of other segments."""
    _SCANNED.put(run, [_ScannedSegment(key, time) for key, time in times])
    _SCANNED.remove(run, _SEGMENT, gone)


def laddered(run: sqlite3.Connection) -> set[SegmentKey]:
    """The closed segments that have a ladder here."""
    return {SegmentKey(*key) for key in run.execute(f"SELECT {', '.join(_SEGMENT)} FROM ladders")}


def ladders(run: sqlite3.Connection, wanted: Iterable[SegmentKey]) -> dict[SegmentKey, bytes]:
    """The packed ladders of those segments that have one."""
    rows = (_LADDERS.first(run, f"WHERE {equal(_SEGMENT)}", *key) for key in wanted)
    return {row.key: row.ladder for row in rows if row is not None}


def keep_ladders(run: sqlite3.Connection, packed: Mapping[SegmentKey, bytes], gone: Iterable[SegmentKey]) -> None:
    """Write ladders, in place of those that are there, and delete those of other segments."""
    _LADDERS.put(run, [_StoredLadder(key, ladder) for key, ladder in packed.items()])
    _LADDERS.remove(run, _SEGMENT, gone)
