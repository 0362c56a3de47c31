"""A scrape of 1,000,000 series against prometheus_client, which is what a Python exporter would use otherwise; and packed, again and again.

Both write the same series of partitions, from values they already have: prometheus_client from gauges set before, on a smaller
number of series, as its time grows in proportion. Packed pages are made by what is kept of the last one, as a job's are.

The values are made up, as of a healthy cluster of one broker.

Left out: the network, Spark, the rows of a micro-batch that go into the table, followers, consumer groups, faults in more than one log
of a thousand, and clocks of brokers.
"""

import statistics
from collections.abc import Callable
from time import process_time

import numpy as np
import pyarrow as pa
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from streaming.cluster.view.export import EVERYTHING, Export
from streaming.cluster.view.observer import Observer, Versions
from streaming.cluster.view.page_context import context_of
from streaming.cluster.view.table import Table
from streaming.cluster.view.value_matrix import LISTS
from streaming.common.catalog.catalog_tables import LATER, PARTITIONS, Catalog
from streaming.common.definitions.sections import METRICS
from streaming.common.rows import SEGMENTS, TRANSACTIONS
from streaming.common.settings import Settings
from streaming.common.state_row import STATES
from streaming.pages.exposition.kept_lines import KeptLines
from streaming.pages.exposition.render import render, render_packed
from tests.bench.healthy_values import ACTIVE, AGES_MS, NOW_MS, grown, healthy_values
from tests.bench.table import show

SERIES = 1_000_000
PEER_SERIES = 50_000
ROUNDS = 5
SCRAPE_S = 15
GROWING = 20
PARTITIONS_A_TOPIC = 100
NO_LIMIT = 1 << 40

_METRICS = [metric for metric in METRICS if metric.column]


def run() -> None:
    """Print two tables: CPU seconds of both, and how many times faster this is; what a packed page costs, by what has happened before."""
    logs = million()
    table, observer = new_table(), new_observer()
    publish(table, logs)
    series = series_in(page := render(table, observer, NOW_MS / 1000))
    own = _seconds(lambda: render(table, observer, NOW_MS / 1000)) * SERIES / series
    registry = _peer_registry(PEER_SERIES // len(_METRICS))
    peer = _seconds(lambda: generate_latest(registry)) * SERIES / PEER_SERIES
    rows = [("segtail", f"{own:.2f}", f"{peer / own:.1f}"), ("prometheus_client", f"{peer:.2f}", "1.0")]
    show(f"a page of {SERIES:,} series; medians of {ROUNDS}", ("", "CPU seconds", "prometheus_client's / it"), rows)
    title = f"packed, {len(logs):,} partitions, {series:,} series, {len(page) / 1e6:.0f} MB plain; medians of {ROUNDS}"
    show(title, ("", "CPU ms", "MB packed"), _packed(table, logs))


def million() -> pa.Table:
    """Rows of logs that have about `SERIES` series."""
    table = new_table()
    publish(table, states(1000))
    return states(round(SERIES / series_in(render(table, new_observer(), NOW_MS / 1000)) * 1000))


def _packed(table: Table, logs: pa.Table) -> list[tuple[str, str, str]]:
    """A row for each thing that can have happened since the last page: CPU milliseconds and megabytes of the next one."""
    few = {"of as many topics": logs.take(pa.array(np.linspace(0, len(logs) - 1, GROWING).astype(int))), "of one topic": logs[:GROWING]}
    happened: dict[str, pa.Table | None] = {"the first page": None, "again, nothing changed": None}
    happened |= {f"again, {GROWING} logs {where} have grown": rows for where, rows in few.items()}
    happened["again, all logs have grown"] = logs
    took: dict[str, list[float]] = {name: [] for name in happened}
    sizes, now, observer = {}, NOW_MS / 1000, new_observer()
    for number in range(ROUNDS):
        store = KeptLines()
        for name, rows in happened.items():
            now += SCRAPE_S
            if rows is not None:
                table.apply(grown(rows, number + 1, round(now * 1000)))
            began = process_time()
            sizes[name] = len(render_packed(store, table, observer, now))
            took[name].append(process_time() - began)
    return [(name, f"{1e3 * statistics.median(each):.0f}", f"{sizes[name] / 1e6:.1f}") for name, each in took.items()]


def _seconds(work: Callable[[], bytes]) -> float:
    def once() -> float:
        began = process_time()
        work()
        return process_time() - began

    return statistics.median(once() for _ in range(ROUNDS))


def _place(log: int, partitions: int = PARTITIONS_A_TOPIC) -> tuple[str, int]:
    return f"payments.settled.{log // partitions}", log % partitions


def new_table(*, series_limit: int = NO_LIMIT, export: Export = EVERYTHING) -> Table:
    """A table without rows, as a job has it."""
    return Table(replicas="leaders", stale_after_s=300, series_limit=series_limit, context=context_of(Settings()), export=export)


def new_observer() -> Observer:
    """An observer that was reported nothing."""
    return Observer(query="segtail", versions=Versions(segtail="", spark="", python=""), thresholds=[])


def states(logs: int, partitions_a_topic: int = PARTITIONS_A_TOPIC) -> pa.Table:
    """Rows of so many logs that lead and are in sync, with five segments each: all have had transactions, one in ten has one open."""
    topics, partitions = zip(*(_place(log, partitions_a_topic) for log in range(logs)), strict=True)
    values = healthy_values(logs)
    listed, open_transaction = _listed(), _open_transaction()
    columns: dict[str, pa.Array] = {
        "change": pa.array(["log"] * logs),
        "agent": pa.array(["agent"] * logs),
        "topic": pa.array(topics),
        "topic_id": pa.array(topics),
        "log_dir": pa.array(["/data"] * logs),
        "partition": pa.array(partitions, pa.int32()),
        "transactions": pa.array([None if log % 10 else open_transaction for log in range(logs)], pa.binary()),
        "coordinator": pa.nulls(logs, pa.binary()),
        "segments": pa.array([listed] * logs, pa.binary()),
    }
    for field in STATES:
        if field.name in columns:
            continue
        value = values[field.name]
        if field.name in LISTS:
            whole = np.broadcast_to(np.reshape(value, (-1, LISTS[field.name])), (logs, LISTS[field.name]))
            columns[field.name] = pa.array(whole.tolist(), field.type)
        else:
            columns[field.name] = pa.array(np.broadcast_to(np.asarray(value), logs)).cast(field.type)
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
    segments = [(number * ACTIVE // 4, 10**9, NOW_MS - age, NOW_MS - age) for number, age in enumerate(AGES_MS)]
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
