"""Transactions of a log and of a coordinator, as an agent reports them."""

from typing import Any

import numpy as np
import pyarrow as pa

from streaming.cluster.view.table import Table
from streaming.common.rows import COORDINATOR, TRANSACTIONS, StartSource, pack_rows
from tests.exposition.reading import named
from tests.view.reported import Facts
from tests.view.rows import Row, log

NOW = 1_700_000_000


MS = NOW * 1000


ALONE = Facts(replicas=(1,), isr=(1,)).encode()


LATE, INFO, OMITTED = (
    "segtail_late_transaction_start_timestamp_seconds",
    "segtail_late_transaction_info",
    "segtail_late_transactions_omitted",
)


def transaction(producer: int, first: int, *, age: int, marker: int = -1, **values: Any) -> tuple[Any, ...]:
    """One that began so many seconds before NOW, and was silent since."""
    given = {
        "source": StartSource.SEEN,
        "committed": -1 if marker < 0 else 1,
        "producer_epoch": 3,
        "producer_id": producer,
        "first_offset": first,
        "next_offset": first + 1,
        "marker_offset": marker,
        "bytes": 10,
        "bytes_at": 10 * first,
        "start_ms": MS - age * 1000,
        "last_ms": MS - age * 1000,
        **values,
    }
    return tuple(given[name] for name in TRANSACTIONS.names or ())


def orders(*found: tuple[Any, ...], **values: Any) -> Row:
    made = np.array(list(found), TRANSACTIONS).tobytes() if found else None
    given = {"leader": 1, "leader_epoch": 0, "log_start_offset": 0, "log_end_offset": 100, "appended_bytes": 1000, "facts": ALONE}
    return log(transactional=True, transactions=made, **{**given, **values})


def coordinator(*entries: dict[str, Any], partition: int = 0, **values: Any) -> Row:
    given = {"offset": 1, "producer_epoch": 3, "timeout_ms": 60_000, "start_ms": -1, "last_update_ms": MS, "partitions": ["orders-0"]}
    packed = pack_rows(pa.RecordBatch.from_pylist([given | entry for entry in entries], COORDINATOR))
    reported = {"leader": 1, "leader_epoch": 0, "coordinator": packed, "facts": ALONE}
    return log("__transaction_state", partition, **{**reported, **values})


def late(table: Table, *, after: float = 0) -> list[dict[str, str]]:
    """The labels of the listed ones, joined from both families."""
    infos = [dict(labels) for labels in named(table, INFO, now=NOW + after)]
    starts = [dict(labels) for labels in named(table, LATE, now=NOW + after)]
    shared = ("broker", "topic", "partition", "producer_id", "first_offset")
    assert [{name: each[name] for name in shared} for each in infos] == starts
    return infos


def verdict(table: Table, *, after: float = 0) -> str:
    (one,) = late(table, after=after)
    return one["verdict"]
