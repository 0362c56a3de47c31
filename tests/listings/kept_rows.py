"""Rows of `segtail retention` with a value in each column."""

from typing import Any

from streaming.broker.protocol.listing_json import RetentionRow

NOW_MS = 1_700_000_000_000


HOUR = 3_600_000


KEPT: dict[str, Any] = {
    "size_bytes": 1 << 20,
    "segments": 2,
    "oldest_record_ms": NOW_MS - 3 * HOUR,
    "retention_limit_ms": 4 * HOUR,
    "retention_limit_bytes": 5 << 20,
    "retention_lag_ms": 6 * HOUR,
    "retention_overdue_ms": 7 * HOUR,
    "retention_reclaimable_bytes": 8 << 20,
    "next_deletion_ms": NOW_MS + 9 * HOUR,
    "cleanup_policy": "delete",
}


def kept(named: str = "t", **values: Any) -> RetentionRow:
    return RetentionRow(broker=1, topic=named, partition=0, **KEPT | values)
