"""The list of segments of each log as it was published last: which segments were rolled and which were deleted since.

A FOUND event has the whole list. Jobs compare it with their state; readers have none, and are told the difference. It is put in where the
event is written, so that each roll and each deletion is in one event of a journal, over restarts too.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import zstandard

from streaming.broker.journal.tables import OF_LOG, StoredTable, equal
from streaming.common.event_row import Event
from streaming.common.log_key import KEY, LogKey
from streaming.common.rows import Kind
from streaming.rules.inventory_changes import Difference, difference

_LEVEL = 1

TABLE = """
CREATE TABLE IF NOT EXISTS listed (
  broker INTEGER NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, topic_id TEXT NOT NULL,
  segments BLOB NOT NULL, PRIMARY KEY (broker, topic, partition, topic_id)) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class _Row:
    log: LogKey
    segments: bytes


def _row(broker: int, topic: str, partition: int, topic_id: str, segments: bytes) -> _Row:
    return _Row(LogKey(broker, topic, partition, topic_id), segments)


_TABLE = StoredTable("listed", _row, OF_LOG | {"segments": "segments"})


def with_differences(run: sqlite3.Connection, events: Sequence[Event]) -> list[Event]:
    """The events, those with a list with what has changed in it since the one before; stores the lists. In the caller's transaction."""
    if not any(event.kind is Kind.FOUND and event.segments is not None for event in events):
        return list(events)
    written: dict[LogKey, bytes] = {}
    found = []
    for event in events:
        if event.kind is Kind.FOUND and event.segments is not None:
            before = written.get(event.log) or _stored(run, event.log)
            changed = difference(before, event.segments) if before else Difference(b"", b"")
            if before != event.segments:
                written[event.log] = event.segments
            if changed.rolled or changed.deleted:
                event = replace(event, rolled=changed.rolled or None, deleted=changed.deleted or None)
        found.append(event)
    _TABLE.put(run, [_Row(log, zstandard.compress(segments, _LEVEL)) for log, segments in written.items()])
    return found


def _stored(run: sqlite3.Connection, log: LogKey) -> bytes:
    row = _TABLE.first(run, f"WHERE {equal(KEY)}", *log)
    return b"" if row is None else zstandard.decompress(row.segments)


def forget(run: sqlite3.Connection, gone: Iterable[LogKey]) -> None:
    """Forget the lists of logs."""
    run.executemany(f"DELETE FROM listed WHERE {equal(KEY)}", gone)
