"""Rows of the fold, as small as a test wants them."""

from typing import Any

import pyarrow as pa

from streaming.cluster.view.family import EVERYTHING, Export
from streaming.cluster.view.observer import Observer, Versions
from streaming.cluster.view.page_context import LogGrowth, PageContext
from streaming.cluster.view.table import Table
from streaming.cluster.view.transaction_columns import TransactionJudge
from streaming.common.column_types import defaults_of
from streaming.common.state_row import StateRow
from streaming.rules.limits import Limiter
from tests.view.reported import ReportedTable, reported

Row = dict[str, Any]

EVER = 1e11
"""Seconds: an agent whose every look, however late, has been taken in."""

_VALUES: Row = {
    **defaults_of(StateRow),
    **{"settled": True, "log_start_offset": 0, "log_end_offset": 0, "coordinator_upto": 1 << 60},
    **{"leader": -2, "leader_epoch": -1, "high_watermark": 0},
}


def place(
    change: str, topic: str = "orders", partition: int = 0, *, broker: int = 1, topic_id: str = "", agent: str = "a1", **values: object
) -> Row:
    return {
        "change": change,
        "agent": agent,
        "broker": broker,
        "topic": topic,
        "partition": partition,
        "topic_id": topic_id,
        "log_dir": "/data",
    } | values


def log(topic: str = "orders", partition: int = 0, **values: Any) -> Row:
    return _VALUES | place("log", topic, partition, **values)


def departed(topic: str = "orders", partition: int = 0, **values: Any) -> Row:
    return _VALUES | place("departed", topic, partition, **values)


def removed(topic: str = "orders", partition: int = 0, **where: Any) -> Row:
    return place("removed", topic, partition, **where)


def residue(shard: int, skipped_bytes: list[int], *, broker: int = 1) -> Row:
    return place("residue", "", shard, broker=broker, skipped_bytes=skipped_bytes)


def recalled(shard: int) -> Row:
    return {"change": "recalled", "agent": "", "partition": shard}


def states(*rows: Row) -> pa.Table:
    return reported(list(rows))


def new_table(*rows: Row, replicas: Any = "leaders", series_limit: int = 1_000_000, export: Export = EVERYTHING, **judged: Any) -> Table:
    table = ReportedTable(replicas=replicas, stale_after_s=300, series_limit=series_limit, export=export, context=new_context(**judged))
    table.set_reading(dict.fromkeys(("a1", "a2", "a3"), EVER))
    if rows:
        table.apply(states(*rows))
    return table


def untold_table() -> Table:
    """One that is reported catalogs apart from its rows."""
    return Table(replicas="leaders", stale_after_s=300, series_limit=1_000_000, context=new_context())


def new_context(**judged: Any) -> PageContext:
    transactions = TransactionJudge(
        hanging_after_ms=900_000,
        stuck_after_ms=1_200_000,
        late_after_ms=60_000,
        late_limit=judged.pop("late_limit", 500),
        once=judged.pop("once", False),
    )
    return PageContext(transactions=transactions, limiter=Limiter(judged.pop("static", dict)), growth=LogGrowth(), **judged)


def new_observer() -> Observer:
    return Observer(query="segtail", versions=Versions(segtail="0.1.0", spark="4.3.0", python="3.11.7"), thresholds=[])


def share(records: int) -> Row:
    """Values of a log to which `records` records were appended while it led, each in a batch of 100 bytes."""
    return {
        "appended_bytes": 1000 + 100 * records,
        "share_codec_bytes": [60 * records, 40 * records, 0, 0, 0],
        "share_batch_bytes_buckets": [records, 0, 0, 0, 0, 0, 0, 0, 0],
        "share_batch_records_buckets": [records, 0, 0, 0, 0, 0, 0, 0, 0],
        "share_records": records,
    }


ROWS = [
    log("a", 0, broker=1, topic_id="a", leader=1, leader_epoch=0, last_append_ms=5000, max_timestamp_ms=-1, **share(3)),
    log("a", 0, broker=2, topic_id="a", leader=1, leader_epoch=0, last_append_ms=9000, max_timestamp_ms=7000, truncations=1, **share(1)),
    log(
        "a", 1, broker=1, topic_id="a", leader=1, leader_epoch=0, last_append_ms=6000, max_timestamp_ms=4000, corrupt_batches=2, **share(0)
    ),
    departed("a", 2, broker=1, topic_id="a", **share(10)),
    log("waiting", 0, settled=False, log_end_offset=4, **share(100)),
]
