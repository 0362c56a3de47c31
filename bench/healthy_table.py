"""A table of logs of a healthy cluster, for pages: made up, but such as a cluster has. One log in a thousand has a fault of each kind."""

from dataclasses import MISSING, fields
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming.cluster.view.family import EVERYTHING, Export
from streaming.cluster.view.observer import Observer, Versions
from streaming.cluster.view.page_context import context_of
from streaming.cluster.view.table import Table
from streaming.cluster.view.value_matrix import LISTS
from streaming.common.catalog import PARTITIONS, UNREADABLE, Catalog
from streaming.common.rows import SEGMENTS, TRANSACTIONS
from streaming.common.settings import Settings
from streaming.common.state_row import STATES, StateRow
from streaming.pages.exposition.render import render

SERIES = 1_000_000
PARTITIONS_A_TOPIC = 100
NO_LIMIT = 1 << 40
NOW_MS = 1_700_000_000_000

SOUND = 1_000
"""One log in so many has faults."""

ACTIVE = 4000
"""The base offset of the last of a log's segments."""

AGES_MS = (50_000_000, 40_000_000, 30_000_000, 20_000_000, 1_000)
"""How old each of its segments is."""

DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(StateRow) if field.default is not MISSING}


def healthy_values(logs: int) -> dict[str, Any]:
    """The columns of so many logs that lead; what is not named here is as it is of a log that was just found."""
    random = np.random.default_rng(1)
    batches = random.integers(10**3, 10**7, logs)
    last_append_ms = NOW_MS - random.integers(0, 3_600_000, logs)
    committed, rolled = random.integers(10**3, 10**6, logs), random.integers(5, 10**4, logs)
    faults = np.where(np.arange(logs) % SOUND, 0, 1)
    faulty = dict.fromkeys(("corrupt_batches", "truncations", "truncated_bytes", "truncated_committed", "sequence_gaps"), faults)
    return {
        **DEFAULTS,
        **faulty,
        "broker": 1,
        "settled": True,
        "transactional": True,
        "judges_expiry": True,
        "log_start_offset": 0,
        "local_log_start_offset": 0,
        "log_end_offset": ACTIVE + 50 * batches,
        "log_epoch": 1,
        "last_append_ms": last_append_ms,
        "max_timestamp_ms": last_append_ms - 5,
        "active_max_timestamp_ms": last_append_ms - 5,
        "active_first_timestamp": last_append_ms - 10**6,
        "active_created_ms": last_append_ms - 10**6,
        "oldest_timestamp": NOW_MS - AGES_MS[0],
        "appended_bytes": 16_384 * batches,
        "appended_batches": batches,
        "appended_records": 50 * batches,
        "share_codec_bytes": _only(16_384 * batches, LISTS["share_codec_bytes"], 3),
        "share_batch_bytes_buckets": _only(batches, LISTS["share_batch_bytes_buckets"], 3),
        "share_batch_records_buckets": _only(batches, LISTS["share_batch_records_buckets"], 2),
        "share_records": 50 * batches,
        "share_append_delay_buckets": _only(batches, LISTS["share_append_delay_buckets"], 1),
        "share_append_delay_ms": 7 * batches,
        "committed_transactions": committed,
        "aborted_transactions": committed // 100,
        "aborted_bytes": 16_384 * (committed // 100),
        "share_transaction_buckets": _only(committed, LISTS["share_transaction_buckets"], 2),
        "share_transaction_ms": 200 * committed,
        "active_producers": random.integers(1, 20, logs),
        "segments_rolled": rolled,
        "segments_deleted": rolled - 5,
        "active_segment": ACTIVE,
        "active_position": random.integers(10**6, 10**9, logs),
    }


def _only(values: NDArray[np.int64], width: int, place: int) -> NDArray[np.int64]:
    """Lists that have all in one place."""
    made = np.zeros((len(values), width), np.int64)
    made[:, place] = values
    return made


def grown(logs: pa.Table, batches: int, now_ms: int) -> pa.Table:
    """The rows after so many more batches were appended to each log."""
    more = {"appended_batches": batches, "log_end_offset": 50 * batches, "appended_records": 50 * batches, "share_records": 50 * batches}
    more |= {"appended_bytes": 16_384 * batches, "active_position": 16_384 * batches}
    columns = {name: logs[name].to_numpy() + count for name, count in more.items()}
    columns |= {name: np.full(len(logs), now_ms) for name in ("last_append_ms", "max_timestamp_ms", "active_max_timestamp_ms")}
    return pa.table([columns.get(field.name, logs[field.name]) for field in logs.schema], schema=logs.schema)


def million() -> pa.Table:
    """Rows of logs that have about `SERIES` series."""
    table = new_table()
    publish(table, states(1000))
    return states(round(SERIES / series_in(render(table, new_observer(), NOW_MS / 1000)) * 1000))


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
    unknown: dict[str, int | bytes] = {"recovery_point": UNREADABLE, "recovery_position": 0, "moving": 0, "epochs": b""}
    checkpoints |= {name: pa.array([value] * count) for name, value in unknown.items()}
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
