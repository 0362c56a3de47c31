"""Values of the logs of a healthy cluster: made up, but such as a cluster has. One log in a thousand has faults, one of each kind."""

from dataclasses import MISSING, fields
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming.cluster.view.value_matrix import LISTS
from streaming.common.state_row import StateRow

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
