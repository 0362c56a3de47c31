"""The results of scans of closed segments, which are kept so that no segment is scanned again: the table ``scanned``."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from streaming.broker.disk.scanned_timestamps import SegmentKey
from streaming.broker.journal.tables import Table, equal


@dataclass(frozen=True, slots=True)
class _ScannedSegment:
    key: SegmentKey
    largest_timestamp: int


def _row(largest_timestamp: int, **key: Any) -> _ScannedSegment:
    return _ScannedSegment(SegmentKey(**key), largest_timestamp)


_OF_KEY = {name: f"key.{name}" for name in SegmentKey._fields}
_SCANNED = Table("scanned", _row, _OF_KEY | {"largest_timestamp": "largest_timestamp"})


def read(run: sqlite3.Connection) -> dict[SegmentKey, int]:
    """The largest timestamp of each segment, Unix milliseconds, -1 none."""
    return {row.key: row.largest_timestamp for row in _SCANNED.all(run)}


def write(run: sqlite3.Connection, found: Iterable[tuple[SegmentKey, int]]) -> None:
    """Write further results."""
    _SCANNED.put(run, [_ScannedSegment(key, time) for key, time in found])


def forget(run: sqlite3.Connection, gone: Iterable[SegmentKey]) -> None:
    """Delete the results of segments."""
    run.executemany(f"DELETE FROM scanned WHERE {equal(SegmentKey._fields)}", gone)
