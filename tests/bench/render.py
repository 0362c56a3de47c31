"""A scrape of 1,000,000 series against prometheus_client, which is what a Python exporter would use otherwise.

Both write the same series of partitions, from values they already have: prometheus_client from gauges set before, on a smaller
number of series, as its time grows in proportion.

Left out: how the values get there, HTTP and packing (`scrape`), consumer groups.
"""

import statistics
from collections.abc import Callable
from time import perf_counter

import numpy as np
import pyarrow as pa
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from streaming.cluster.view.export import EVERYTHING, Export
from streaming.cluster.view.observer import Observer, Versions
from streaming.cluster.view.table import Table
from streaming.cluster.view.value_matrix import LISTS
from streaming.common.catalog.catalog_tables import LATER, PARTITIONS, Catalog
from streaming.common.definitions.sections import METRICS
from streaming.common.rows import SEGMENTS, TRANSACTIONS
from streaming.common.state_row import STATES
from streaming.pages.exposition.render import render
from tests.bench.table import show
from tests.view.rows import new_context

SERIES = 1_000_000
PEER_SERIES = 50_000
ROUNDS = 5
PARTITIONS_A_TOPIC = 100
NO_LIMIT = 1 << 40
NOW_MS = 1_700_000_000_000
_ACTIVE = 4000  # base offset of the last of five segments

_METRICS = [metric for metric in METRICS if metric.column]


def run() -> None:
    """Print one table: seconds of both, and how many times faster this is."""
    table, observer = million(), new_observer()
    series = series_in(render(table, observer, NOW_MS / 1000))
    own = _seconds(lambda: render(table, observer, NOW_MS / 1000)) * SERIES / series
    registry = _peer_registry(PEER_SERIES // len(_METRICS))
    peer = _seconds(lambda: generate_latest(registry)) * SERIES / PEER_SERIES
    rows = [("segtail", f"{own:.2f}", f"{peer / own:.1f}"), ("prometheus_client", f"{peer:.2f}", "1.0")]
    show(f"a page of {SERIES:,} series; medians of {ROUNDS}", ("", "seconds", "prometheus_client's / it"), rows)


def million() -> Table:
    """A table with about `SERIES` series."""
    table = new_table()
    publish(table, states(1000))
    logs = round(SERIES / series_in(render(table, new_observer(), NOW_MS / 1000)) * 1000)
    publish(table, states(logs))
    return table


def _seconds(work: Callable[[], bytes]) -> float:
    def once() -> float:
        began = perf_counter()
        work()
        return perf_counter() - began

    return statistics.median(once() for _ in range(ROUNDS))


def _place(log: int, partitions: int = PARTITIONS_A_TOPIC) -> tuple[str, int]:
    return f"payments.settled.{log // partitions}", log % partitions


def new_table(*, series_limit: int = NO_LIMIT, export: Export = EVERYTHING) -> Table:
    """A table without rows."""
    return Table(replicas="leaders", stale_after_s=300, series_limit=series_limit, context=new_context(), export=export)


def new_observer() -> Observer:
    """An observer that was reported nothing."""
    return Observer(query="segtail", versions=Versions(segtail="", spark="", python=""), thresholds=[])


def states(logs: int, partitions_a_topic: int = PARTITIONS_A_TOPIC) -> pa.Table:
    """Rows of so many logs that lead and are in sync, with five segments each; one in ten has an open transaction."""
    random = np.random.default_rng(1)
    topics, partitions = zip(*(_place(log, partitions_a_topic) for log in range(logs)), strict=True)
    ends = pa.array(random.integers(10**6, 10**9, logs))
    listed, open_transaction = _listed(), _open_transaction()
    columns: dict[str, pa.Array] = {
        "change": pa.array(["log"] * logs),
        "agent": pa.array(["agent"] * logs),
        "topic": pa.array(topics),
        "topic_id": pa.array(topics),
        "log_dir": pa.array(["/data"] * logs),
        "partition": pa.array(partitions, pa.int32()),
        "settled": pa.array([True] * logs),
        "transactional": pa.array([True] * logs),
        "log_start_offset": pa.array(np.zeros(logs, np.int64)),
        "log_end_offset": ends,
        "transactions": pa.array([None if log % 10 else open_transaction for log in range(logs)], pa.binary()),
        "coordinator": pa.nulls(logs, pa.binary()),
        "segments": pa.array([listed] * logs, pa.binary()),
        "active_segment": pa.array(np.full(logs, _ACTIVE)),
        "active_position": pa.array(random.integers(10**9, 2 * 10**9, logs)),
    }
    for field in STATES:
        if field.name in LISTS:
            columns[field.name] = pa.array(random.integers(0, 10**9, (logs, LISTS[field.name])).tolist(), field.type)
        elif field.name in columns:
            continue
        elif field.type == pa.int64():
            columns[field.name] = pa.array(random.integers(0, NOW_MS, logs))
        else:
            columns[field.name] = pa.array(np.ones(logs, np.int32))
    return pa.table([columns[field.name] for field in STATES], schema=STATES)


def publish(table: Table, logs: pa.Table) -> None:
    """Apply what `states` made, with a catalog by which each log leads, in sync."""
    table.apply(logs)
    count = len(logs)
    key = {name: logs[name] for name in ("broker", "topic", "topic_id", "partition")}
    three, ones = pa.array([[1, 2, 3]] * count, pa.list_(pa.int32())), pa.array(np.ones(count, np.int32))
    partitions = key | dict.fromkeys(("leader", "leader_epoch", "leader_metadata_version"), ones)
    partitions |= {"replicas": three, "isr": three, "adding_replicas": (empty := pa.array([[]] * count, three.type)), "eligible": empty}
    none = pa.array(np.full(count, -1, np.int64))
    checkpoints = {"high_watermark": logs["log_end_offset"], "cleaner_checkpoint": none, "log_start_checkpoint": none}
    checkpoints |= {name: pa.array(np.full(count, value, np.int64)) for name, value in LATER.items()}
    topics = pa.table(key).group_by(["broker", "topic", "topic_id"]).aggregate([])
    catalog = Catalog(
        topics=topics.append_column("configs", pa.array([""] * len(topics))),
        partitions=pa.table({each.name: partitions[each.name] for each in PARTITIONS}),
        logs=pa.table(key | checkpoints),
    )
    table.take_catalog("agent", catalog)


def _listed() -> bytes:
    ages_ms = (50_000_000, 40_000_000, 30_000_000, 20_000_000, 1_000)
    segments = [(number * _ACTIVE // 4, 10**9, NOW_MS - age, NOW_MS - age) for number, age in enumerate(ages_ms)]
    return np.array(segments, SEGMENTS).tobytes()


def _open_transaction() -> bytes:
    made = np.zeros(1, TRANSACTIONS)
    made["committed"], made["marker_offset"], made["producer_id"] = -1, -1, 7
    made["first_offset"], made["start_ms"], made["last_ms"] = 1000, NOW_MS - 5000, NOW_MS - 1000
    return made.tobytes()


def series_in(page: bytes) -> int:
    """How many samples a page has."""
    return page.count(b"\n") - sum(page.count(head) for head in (b"# HELP", b"# TYPE"))


def _peer_registry(logs: int) -> CollectorRegistry:
    random = np.random.default_rng(1)
    registry = CollectorRegistry()
    for metric in _METRICS:
        gauge = Gauge(metric.name.removesuffix("_total"), metric.help, metric.labels, registry=registry)
        for log, value in enumerate(random.integers(0, 2 * 10**12, logs).tolist()):
            topic, partition = _place(log)
            gauge.labels("1", topic, str(partition)).set(value)
    return registry


if __name__ == "__main__":
    run()
