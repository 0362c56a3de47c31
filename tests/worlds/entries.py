"""Entries of a transaction coordinator."""

import pyarrow as pa

from streaming.common.rows import COORDINATOR


def entry(
    transactional_id: str,
    offset: int = 0,
    state: str = "Ongoing",
    *,
    producer: int = 7,
    partitions: tuple[str, ...] = (),
    start_ms: int = 100,
    updated: int = 100,
    timeout_ms: int = 60_000,
) -> dict[str, object]:
    return {
        "transactional_id": transactional_id,
        "offset": offset,
        "state": state,
        "producer_id": producer,
        "producer_epoch": 0,
        "timeout_ms": timeout_ms,
        "start_ms": start_ms,
        "last_update_ms": updated,
        "partitions": list(partitions),
    }


def table(*entries: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist(list(entries), COORDINATOR)
