"""A scrape of 1,000,000 series against prometheus_client, which is what a Python exporter would use otherwise.

Both write the same series of partitions, from values they already have: prometheus_client from gauges set before, on a smaller
number of series, as its time grows in proportion.
"""

import statistics
from collections.abc import Callable
from time import perf_counter

import numpy as np
import pyarrow as pa
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from streaming.metrics.columns import LISTS
from streaming.metrics.definitions import METRICS
from streaming.metrics.observer import Observer, Versions
from streaming.metrics.render import render
from streaming.metrics.table import Table
from streaming.rows import STATES
from tests.bench.table import show

SERIES = 1_000_000
PEER_SERIES = 50_000
ROUNDS = 5
PARTITIONS_A_TOPIC = 100

_METRICS = [metric for metric in METRICS if metric.column]


def run() -> None:
    """Print one table: seconds of both, and how many times faster this is."""
    logs = SERIES // len(_METRICS)
    table = Table(replicas="leaders", stale_after_s=300, series_limit=2 * SERIES)
    table.apply(states(logs))
    observer = Observer(query="segtail", versions=Versions(segtail="", spark="", python=""), thresholds=[])
    series = sum(not line.startswith(b"#") for line in render(table, observer, 0.0).splitlines())
    own = _seconds(lambda: render(table, observer, 0.0)) * SERIES / series
    registry = _peer_registry(PEER_SERIES // len(_METRICS))
    peer = _seconds(lambda: generate_latest(registry)) * SERIES / PEER_SERIES
    rows = [("segtail", f"{own:.2f}", f"{peer / own:.1f}"), ("prometheus_client", f"{peer:.2f}", "1.0")]
    show(f"a page of {SERIES:,} series; medians of {ROUNDS}", ("", "seconds", "prometheus_client's / it"), rows)


def _seconds(work: Callable[[], bytes]) -> float:
    def once() -> float:
        began = perf_counter()
        work()
        return perf_counter() - began

    return statistics.median(once() for _ in range(ROUNDS))


def _place(log: int, partitions: int = PARTITIONS_A_TOPIC) -> tuple[str, int]:
    return f"payments.settled.{log // partitions}", log % partitions


def states(logs: int, partitions_a_topic: int = PARTITIONS_A_TOPIC) -> pa.Table:
    """Rows of so many logs, every value in them made up."""
    random = np.random.default_rng(1)
    topics, partitions = zip(*(_place(log, partitions_a_topic) for log in range(logs)), strict=True)
    columns: dict[str, pa.Array] = {
        "change": pa.array(["log"] * logs),
        "agent": pa.array(["agent"] * logs),
        "topic": pa.array(topics),
        "topic_id": pa.array(topics),
        "log_dir": pa.array(["/data"] * logs),
        "partition": pa.array(partitions, pa.int32()),
        "settled": pa.array([True] * logs),
    }
    for field in STATES:
        if field.name in LISTS:
            columns[field.name] = pa.array(random.integers(0, 10**9, (logs, LISTS[field.name])).tolist(), field.type)
        elif field.type == pa.int64():
            columns[field.name] = pa.array(random.integers(0, 2 * 10**12, logs))
        elif field.name not in columns:
            columns[field.name] = pa.array(np.ones(logs, np.int32))
    return pa.table([columns[field.name] for field in STATES], schema=STATES)


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
