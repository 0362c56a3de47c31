"""The ladders of closed segments, which are kept so that no segment is scanned for its ladder again: the table ``ladders``."""

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streaming.broker.disk.scanned_timestamps import SegmentKey
from streaming.broker.journal.tables import Table, equal


@dataclass(frozen=True, slots=True)
class _Stored:
    key: SegmentKey
    ladder: bytes


def _row(ladder: bytes, **key: int) -> _Stored:
    return _Stored(SegmentKey(**key), ladder)


_OF_KEY = {name: f"key.{name}" for name in SegmentKey._fields}
_LADDERS = Table("ladders", _row, _OF_KEY | {"ladder": "ladder"})
_IS_KEY = equal(SegmentKey._fields)


def keys(run: sqlite3.Connection) -> set[SegmentKey]:
    """The segments that have a ladder here."""
    return {SegmentKey(*found) for found in run.execute(f"SELECT {', '.join(SegmentKey._fields)} FROM ladders")}


def read(run: sqlite3.Connection, wanted: Iterable[SegmentKey]) -> dict[SegmentKey, bytes]:
    """The packed ladders of those segments that have one."""
    found = (_LADDERS.first(run, f"WHERE {_IS_KEY}", *key) for key in wanted)
    return {row.key: row.ladder for row in found if row is not None}


def write(run: sqlite3.Connection, found: Mapping[SegmentKey, bytes]) -> None:
    """Write ladders, in place of those that are there."""
    _LADDERS.put(run, [_Stored(key, ladder) for key, ladder in found.items()])


def forget(run: sqlite3.Connection, gone: Iterable[SegmentKey]) -> None:
    """Delete the ladders of segments."""
    run.executemany(f"DELETE FROM ladders WHERE {_IS_KEY}", gone)
