"""The results of retention and compaction for logs, as columns beside their published values."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streaming.cluster.view.decisions import Decided
from streaming.cluster.view.fading_rates import Rates
from streaming.cluster.view.listed_segments import Listed
from streaming.cluster.view.page_context import PageContext
from streaming.cluster.view.replica_offsets import ABSENT, ReplicaOffsets
from streaming.cluster.view.value_matrix import Carried, Columns
from streaming.common.arrays import Longs
from streaming.rules.cleaning import UNCLEANABLE, CompactionRule
from streaming.rules.limits import Limits, effective_min_isr
from streaming.rules.retention_rule import RetentionRule, SegmentColumns, away_of
from streaming.rules.space_outlook import growth_now

COLUMNS = (
    "segments",
    "active_segment_size_bytes",
    "active_segment_first_timestamp_ms",
    "active_segment_created_ms",
    "segment_limit_ms",
    "segment_limit_bytes",
    "oldest_record_ms",
    "retention_limit_ms",
    "retention_limit_bytes",
    "retention_lag_ms",
    "retention_overdue_ms",
    "retention_reclaimable_bytes",
    "due_upto",
    "next_deletion_ms",
    "next_deletion_start_of",
    "next_deletion_by_size",
    "retention_blocked",
    "max_timestamp_ahead_ms",
    "dirty_bytes",
    "dirty_millionths",
    "long_dirty_millionths",
    "dirty_limit_millionths",
    "uncleanable_open_transaction_bytes",
    "uncleanable_compaction_lag_bytes",
    "uncleanable_moving_bytes",
    "cleaner_checkpoint_offset",
    "local_log_start_offset",
    "min_in_sync_replicas",
    "check_interval_ms",
    "away",
)
"""What `keep` computes; ``retention_blocked`` is an index in `streaming.rules.retention_rule.BLOCKED`, ``away`` as `away_of` has it."""

JUDGED = (
    "retention_lag_ms",
    "retention_overdue_ms",
    "retention_reclaimable_bytes",
    "due_upto",
    "retention_blocked",
    "max_timestamp_ahead_ms",
    "dirty_bytes",
    "dirty_millionths",
    "long_dirty_millionths",
    "uncleanable_open_transaction_bytes",
    "uncleanable_compaction_lag_bytes",
    "uncleanable_moving_bytes",
)
"""The columns that depend on the present time. For a log that has not been read for long they would age, whatever its broker does."""


def keep(
    logs: Columns,
    carried: Sequence[Carried],
    names: Sequence[str],
    decided: Decided,
    replica_offsets: ReplicaOffsets,
    context: PageContext,
    now_ms: int,
    steady_ms: int,
) -> tuple[ReplicaOffsets, list[Limits | None], Listed, Rates]:
    """Compute `COLUMNS` for some logs, their limits (None for a log whose segments have not been published yet), their segments, and the
    bytes a second by which those of which these are known grow now, `ABSENT` where that was not measured.

    Args:
        names: their topics.
        decided: what is decided of them.
        replica_offsets: the result of `streaming.cluster.view.replica_offsets.replica_offsets_of` for the same logs.
        context: its memory is of earlier pages and rounds.
        steady_ms: ``now_ms`` by a monotonic clock.
    """
    columns = {name: np.full(len(logs), ABSENT, np.int64) for name in COLUMNS}
    limits: list[Limits | None] = [None] * len(logs)
    found = context.listed.listed(logs, carried, names, decided, replica_offsets, context.limiter)
    listed, together = found.items, found.logs
    if not len(listed):
        return columns, limits, found, np.empty(0)
    for item, limit in zip(listed.tolist(), found.limits, strict=True):
        limits[item] = limit
    bound = None if context.deletable is None else context.deletable.bound(logs["slot"][listed], now_ms)
    watched = _watched(logs.select(listed), together, context, steady_ms)
    growth = growth_now(together, watched, logs["active_first_timestamp"][listed], now_ms)
    away = away_of(logs["broker"][listed], context.away)
    retention = RetentionRule(together).at(now_ms, bound, growth, away)
    compaction = CompactionRule(together).at(now_ms)
    last = together.last
    goes = (retention.next_deletion != ABSENT) | (retention.next_start_of != ABSENT)
    values: dict[str, Longs] = {
        "segments": together.count,
        "active_segment_size_bytes": together.size[last],
        "active_segment_first_timestamp_ms": logs["active_first_timestamp"][listed],
        "active_segment_created_ms": logs["active_created_ms"][listed],
        "segment_limit_ms": together.limit("roll_ms"),
        "segment_limit_bytes": together.limit("segment_bytes"),
        "oldest_record_ms": together.oldest_record,
        "retention_limit_ms": np.where(together.limit("deletes") > 0, together.limit("retention_ms"), ABSENT),
        "retention_limit_bytes": np.where(together.limit("deletes") > 0, together.limit("retention_bytes"), ABSENT),
        "retention_lag_ms": retention.retention_lag,
        "retention_overdue_ms": retention.overdue,
        "retention_reclaimable_bytes": retention.reclaimable,
        "due_upto": np.where(together.limit("expires_ms") >= 0, retention.due_upto, ABSENT),
        "next_deletion_ms": retention.next_deletion,
        "next_deletion_start_of": retention.next_start_of,
        "next_deletion_by_size": np.where(goes, retention.next_by_size, ABSENT),
        "retention_blocked": retention.blocked.astype(np.int64),
        "max_timestamp_ahead_ms": retention.ahead,
        "dirty_bytes": compaction.dirty_bytes,
        "dirty_millionths": _millionths(compaction.dirty_ratio),
        "long_dirty_millionths": _millionths(compaction.long_dirty_ratio),
        "dirty_limit_millionths": _millionths(compaction.dirty_limit),
        **{f"uncleanable_{reason}_bytes": held for reason, held in zip(UNCLEANABLE, compaction.uncleanable, strict=True)},
        "cleaner_checkpoint_offset": np.where(together.limit("compacts") > 0, together.cleaner_checkpoint, ABSENT),
        "local_log_start_offset": np.where(together.limit("remote_storage") > 0, logs["local_log_start_offset"][listed], ABSENT),
        "min_in_sync_replicas": np.where(
            replica_offsets["replicas"][listed] >= 0,  # useless if the replicas are not known
            effective_min_isr(
                together.limit("min_insync_replicas"),
                np.maximum(decided.all_replicas[listed], 0),
                decided.leader_metadata_version[listed],
            ),
            ABSENT,
        ),
        "check_interval_ms": together.limit("check_interval_ms"),
        "away": away,
    }
    for name, column in columns.items():
        column[listed] = values[name]
    return columns, limits, found, watched


def _watched(logs: Columns, segments: SegmentColumns, context: PageContext, steady_ms: int) -> Rates:
    if context.growth is None:
        return np.full(len(logs), float(ABSENT))
    return context.growth.rates(logs["slot"], logs["topic"] << 32 | logs["partition"], segments, steady_ms)


def _millionths(ratio: NDArray[np.float64]) -> Longs:
    millionths: Longs = np.where(ratio >= 0, np.round(ratio * 1e6), ABSENT).astype(np.int64)
    return millionths
