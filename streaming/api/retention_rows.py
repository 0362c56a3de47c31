"""The listing of retention: what is kept of each partition, what Kafka is about to delete, and what prevents that."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from streaming.api.paging import Asked, Sheet, cut, natural_order
from streaming.api.seen import Seen
from streaming.protocol.listing_json import RetentionPage, RetentionRow
from streaming.rules.config_values import Source
from streaming.rules.retention_rule import BLOCKED
from streaming.verdicts.log_problems import WHY_BLOCKED

_COLUMNS = {
    "broker": "broker",
    "partition": "partition",
    "size_bytes": "size_bytes",
    "segments": "segments",
    "oldest_record_ms": "oldest_record_ms",
    "retention_ms": "retention_limit_ms",
    "retention_bytes": "retention_limit_bytes",
    "lag_ms": "retention_lag_ms",
    "overdue_ms": "retention_overdue_ms",
    "reclaimable_bytes": "retention_reclaimable_bytes",
    "next_deletion_ms": "next_deletion_ms",
}
"""Fields, and the columns with their values."""

SORTABLE = ("topic", *_COLUMNS, "blocked")
"""The fields that the listing can be sorted by."""

DEFAULT_SORT = "overdue_ms"


def retention_page(seen: Seen, asked: Asked) -> RetentionPage:
    """A page of what is kept."""
    columns = retention_columns(seen)
    sheet = Sheet(columns=columns, texts=seen.texts, natural=natural_order(seen.topics, seen.partitions, seen.brokers))
    found = cut(sheet, asked)
    return RetentionPage(
        at_ms=seen.now_ms,
        total=found.total,
        matched=found.matched,
        offset=asked.offset,
        sort=asked.sort,
        order=asked.order,
        rows=retention_rows(seen, columns, found.items),
    )


def retention_columns(seen: Seen) -> dict[str, NDArray[Any]]:
    """All numbers of the listing, by field."""
    logs = seen.shown.logs
    return {field: logs[column] for field, column in _COLUMNS.items()} | {"blocked": logs["blocked"]}


def retention_rows(seen: Seen, columns: dict[str, NDArray[Any]], items: Sequence[int]) -> list[RetentionRow]:
    """Some of the rows."""
    limits = seen.shown.logs.limits
    rows = []
    for item in items:
        reason = BLOCKED[int(columns["blocked"][item])] if columns["blocked"][item] >= 0 else ""
        limit = limits[item]
        rows.append(
            RetentionRow(
                **{field: int(columns[field][item]) for field in _COLUMNS},
                topic=seen.topics[item],
                limits_assumed=limit is not None and limit.source is Source.ASSUMED,
                blocked=reason,
                blocked_why=WHY_BLOCKED.get(reason, ""),
            )
        )
    return rows
