"""Events as journals up to version 6 stored them, one row each, and their conversion to blocks.

The values that no query used were stored in one JSON list, in the order of `_BODY`. The list of an even earlier version is shorter: values
that are missing at its end have the defaults of `Event`.
"""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streaming.column_types import widths_of
from streaming.event_row import Event
from streaming.journal.blocks import BLOCK_ROWS, Row, block_of, counted_bytes
from streaming.journal.stored_blocks import insert
from streaming.journal.tables import Table, value
from streaming.rows import Kind

_KEYED = (
    *("kind", "broker", "topic", "partition", "topic_id", "base_offset", "next_offset"),
    *("detail", "transactions", "coordinator", "segments"),
)
_BODY = (
    *("log_dir", "segment", "start_position", "end_position", "log_epoch", "leads", "settled", "seen_at", "max_timestamp"),
    *("bytes", "batches", "records", "old_format_batches", "codec_bytes", "batch_bytes_buckets", "batch_records_buckets"),
    *("active_producers", "sequence_gaps", "high_watermark", "log_start_offset", "leader", "leader_epoch", "reason", "follows"),
    *("local_log_start_offset", "oldest_timestamp", "active_first_timestamp", "active_created_ms"),
)
_TUPLES = widths_of(Event)


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the table ``events``; ``keyed``: the values of the columns of `_KEYED`."""

    seq: int
    total: int | None
    at_ms: int
    body: str
    keyed: dict[str, Any]


def _row(seq: int, total: int | None, at_ms: int, body: str, **keyed: Any) -> _Row:
    return _Row(seq, total, at_ms, body, keyed)


_EVENTS = Table("events", _row, {name: name for name in ("seq", "total", "at_ms", "body", *_KEYED)})


def into_blocks(run: sqlite3.Connection) -> None:
    """Write all rows of the table ``events`` as blocks."""
    block: list[Row] = []
    block_ms = 0
    for row, at_ms in _rows(run):
        if block and (len(block) == BLOCK_ROWS or at_ms != block_ms):
            insert(run, block_of(block), block_ms)
            block = []
        block_ms = at_ms
        block.append(row)
    if block:
        insert(run, block_of(block), block_ms)


def _rows(run: sqlite3.Connection) -> Iterator[tuple[Row, int]]:
    """Each row in order, and when it was published. The last rows had no running total yet."""
    total = int(value(run, "SELECT trimmed_total FROM totals"))
    for row in _EVENTS.all(run, "ORDER BY seq"):
        event = _event(row.keyed, row.body)
        total = total + counted_bytes(event) if row.total is None else row.total
        yield Row(row.seq, total, event), row.at_ms


def _event(keyed: dict[str, Any], body: str) -> Event:
    values = {name: tuple(value) if name in _TUPLES else value for name, value in zip(_BODY, json.loads(body), strict=False)}
    return Event(**{**keyed, "kind": Kind(keyed["kind"]), **values})
