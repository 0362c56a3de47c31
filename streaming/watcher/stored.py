"""An event as a row of the journal's table, and back.

What nothing is looked up by stands in one JSON list, in the order of `_BODY`. A row that an earlier version wrote is shorter: what is
missing at its end has the default of `Event`.
"""

import json
import sqlite3
from operator import attrgetter
from typing import Any

from streaming.rows import Kind
from streaming.watcher.events import Event

COUNTED = (Kind.APPENDED, Kind.SKIPPED)
"""Events whose bytes are bytes of logs that were published."""

_BLOBS = ("detail", "transactions", "coordinator", "segments")
_KEYED = ("kind", "broker", "topic", "partition", "topic_id", "base_offset", "next_offset", *_BLOBS)

COLUMNS = f"seq, {', '.join(_KEYED)}, body"
"""What `event_of` takes, in its order."""

_BODY = (
    *("log_dir", "segment", "start_position", "end_position", "log_epoch", "leads", "settled", "seen_at", "max_timestamp"),
    *("bytes", "batches", "records", "old_format_batches", "codec_bytes", "batch_bytes_buckets", "batch_records_buckets"),
    *("active_producers", "sequence_gaps", "high_watermark", "log_start_offset", "leader", "leader_epoch", "reason", "follows"),
    *("local_log_start_offset", "oldest_timestamp", "active_first_timestamp", "active_created_ms"),
)
"""Names are added at the end, and stay whatever becomes of the field: journals of earlier versions are read by this order."""

_TUPLES = frozenset({"codec_bytes", "batch_bytes_buckets", "batch_records_buckets"})
_values = attrgetter(*_BODY)
_blobs = attrgetter(*_BLOBS)
_WRITTEN = ("seq", "at_ms", "bytes", "total", "size", *_KEYED[: -len(_BLOBS)], "body", *_BLOBS)
_INSERT = f"INSERT INTO events ({', '.join(_WRITTEN)}) VALUES ({','.join('?' * len(_WRITTEN))})"
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_OVERHEAD_BYTES = 200  # what SQLite needs for an event besides its body, about


def counted_bytes(event: Event) -> int:
    """The bytes of logs that an event publishes."""
    return event.bytes if event.kind in COUNTED else 0


def insert(run: sqlite3.Connection, event: Event, at_ms: int, *, seq: int | None = None, total: int | None = None) -> tuple[int, int]:
    """Write an event; returns its seq and about how many bytes it takes.

    Args:
        seq: None for the next one.
        total: bytes of logs up to and with it, None while that may still change.
    """
    body = _ENCODER.encode(_values(event))
    blobs = _blobs(event)
    size = _OVERHEAD_BYTES + len(body) + sum(len(blob) for blob in blobs if blob is not None)
    keys = (event.kind, event.broker, event.topic, event.partition, event.topic_id, event.base_offset, event.next_offset)
    cursor = run.execute(_INSERT, (seq, at_ms, counted_bytes(event), total, size, *keys, body, *blobs))
    assert cursor.lastrowid is not None
    return cursor.lastrowid, size


def event_of(row: tuple[Any, ...]) -> Event:
    """The event in a row of `COLUMNS`."""
    body = {name: tuple(value) if name in _TUPLES else value for name, value in zip(_BODY, json.loads(row[-1]), strict=False)}
    keys = zip(_KEYED, row[1:-1], strict=True)
    return Event(**{**dict(keys), "kind": Kind(row[1]), **body})
