"""What is stored of logs beside their events, so that nothing is read again: cursors, results of scans, ladders.

Each has a table: ``cursors``, ``scanned`` and ``ladders``.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from streaming.broker.disk.scanned_timestamps import SegmentKey
from streaming.broker.journal.cursor import Cursor
from streaming.broker.journal.tables import OF_LOG, StoredTable, equal
from streaming.common.log_key import KEY, LogKey

_OF_SEGMENT = {name: f"key.{name}" for name in SegmentKey._fields}
_IS_SEGMENT = equal(SegmentKey._fields)


@dataclass(frozen=True, slots=True)
class _ScannedSegment:
    key: SegmentKey
    largest_timestamp: int


@dataclass(frozen=True, slots=True)
class _StoredLadder:
    key: SegmentKey
    ladder: bytes


def _cursor(broker: int, topic: str, partition: int, topic_id: str, **rest: Any) -> Cursor:
    return Cursor(log=LogKey(broker, topic, partition, topic_id), **rest)


def _scanned_segment(largest_timestamp: int, **key: int) -> _ScannedSegment:
    return _ScannedSegment(SegmentKey(**key), largest_timestamp)


def _stored_ladder(ladder: bytes, **key: int) -> _StoredLadder:
    return _StoredLadder(SegmentKey(**key), ladder)


_CURSORS = StoredTable("cursors", _cursor, OF_LOG | {name: name for name in Cursor._fields if name != "log"})
_SCANNED = StoredTable("scanned", _scanned_segment, _OF_SEGMENT | {"largest_timestamp": "largest_timestamp"})
_LADDERS = StoredTable("ladders", _stored_ladder, _OF_SEGMENT | {"ladder": "ladder"})


def cursors(run: sqlite3.Connection) -> list[Cursor]:
    """The cursors of all logs, as of the last event."""
    return list(_CURSORS.all(run))


def write_cursors(run: sqlite3.Connection, written: Iterable[Cursor]) -> None:
    """Write cursors, each in place of the one before."""
    _CURSORS.put(run, written)


def forget_cursors(run: sqlite3.Connection, logs: Iterable[LogKey]) -> None:
    """Delete the cursors of logs."""
    run.executemany(f"DELETE FROM cursors WHERE {equal(KEY)}", logs)


def scanned(run: sqlite3.Connection) -> dict[SegmentKey, int]:
    """The largest timestamp of each closed segment that was scanned, Unix milliseconds, -1 none."""
    return {row.key: row.largest_timestamp for row in _SCANNED.all(run)}


def write_scanned(run: sqlite3.Connection, times: Iterable[tuple[SegmentKey, int]]) -> None:
    """Write further results of scans."""
    _SCANNED.put(run, [_ScannedSegment(key, time) for key, time in times])


def forget_scanned(run: sqlite3.Connection, gone: Iterable[SegmentKey]) -> None:
    """Delete the results of segments."""
    run.executemany(f"DELETE FROM scanned WHERE {_IS_SEGMENT}", gone)


def laddered(run: sqlite3.Connection) -> set[SegmentKey]:
    """The closed segments that have a ladder here."""
    return {SegmentKey(*key) for key in run.execute(f"SELECT {', '.join(SegmentKey._fields)} FROM ladders")}


def ladders(run: sqlite3.Connection, wanted: Iterable[SegmentKey]) -> dict[SegmentKey, bytes]:
    """The packed ladders of those segments that have one."""
    rows = (_LADDERS.first(run, f"WHERE {_IS_SEGMENT}", *key) for key in wanted)
    return {row.key: row.ladder for row in rows if row is not None}


def write_ladders(run: sqlite3.Connection, packed: Mapping[SegmentKey, bytes]) -> None:
    """Write ladders, in place of those that are there."""
    _LADDERS.put(run, [_StoredLadder(key, ladder) for key, ladder in packed.items()])


def forget_ladders(run: sqlite3.Connection, gone: Iterable[SegmentKey]) -> None:
    """Delete the ladders of segments."""
    run.executemany(f"DELETE FROM ladders WHERE {_IS_SEGMENT}", gone)
