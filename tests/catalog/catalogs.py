"""Catalogs as small as a test wants them, and what they say."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from streaming.common.catalog import LOGS, PARTITIONS, TOPICS, UNREADABLE, Catalog

Row = Mapping[str, Any]

_PARTITION = {"topic": "orders", "topic_id": "", "partition": 0, "leader": -2, "leader_epoch": -1, "leader_metadata_version": -1}
_LOG = {
    **{"broker": 1, "topic": "orders", "topic_id": "", "partition": 0, "high_watermark": -1, "cleaner_checkpoint": -1},
    **{"recovery_point": UNREADABLE, "recovery_position": 0, "moving": 0, "epochs": b""},
}


def catalog(*, topics: list[Row] = [], partitions: list[Row] = [], logs: list[Row] = []) -> Catalog:  # noqa: B006 - read only
    return Catalog(
        topics=pa.Table.from_pylist([{"broker": 1, "topic": "orders", "topic_id": "", "configs": "", **row} for row in topics], TOPICS),
        partitions=pa.Table.from_pylist([{**_PARTITION, **row} for row in partitions], PARTITIONS),
        logs=pa.Table.from_pylist([{**_LOG, "log_start_checkpoint": -1, **row} for row in logs], LOGS),
    )


def rows_of(found: Catalog) -> list[list[str]]:
    """All that a catalog says, in no order of its own."""
    return [sorted(map(str, table.to_pylist())) for table in found.tables]
