"""What retention comes to for every partition at rest, by the names of the metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from streaming.agent.topic_configs import TopicConfigs
from streaming.rest.logs import LogAtRest, last_stable_offset
from streaming.rules.compaction import UNCLEANABLE, CompactionRule
from streaming.rules.limits import Limits, effective_limits
from streaming.rules.min_isr import effective_min_isr
from streaming.rules.retention import BLOCKED, RetentionRule
from streaming.rules.segments import LogFacts, Logs


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One partition. Fields have the names and units of the metrics, without ``segtail_partition_``; None where a metric has no value."""

    broker: int
    topic: str
    partition: int
    topic_id: str
    log_dir: str
    leader: int
    leader_epoch: int | None
    replicas: int | None
    in_sync_replicas: int | None
    min_in_sync_replicas: int | None
    log_start_offset: int
    local_log_start_offset: int | None
    log_end_offset: int
    high_watermark: int | None
    size_bytes: int
    segments: int
    active_segment_size_bytes: int
    active_segment_first_timestamp_seconds: float | None
    segment_limit_seconds: float
    segment_limit_bytes: int
    cleanup_policy: str
    limit_source: str
    oldest_record_timestamp_seconds: float | None
    retention_limit_seconds: float | None
    retention_limit_bytes: int | None
    retention_lag_seconds: float | None
    retention_overdue_seconds: float | None
    retention_check_interval_seconds: float
    retention_reclaimable_bytes: int | None
    next_deletion_timestamp_seconds: float | None
    retention_blocked: str | None
    max_timestamp_ahead_seconds: float | None
    last_stable_offset: int | None
    dirty_bytes: int | None
    dirty_ratio: float | None
    uncleanable_bytes: Mapping[str, int] | None
    cleaner_checkpoint_offset: int | None


def rows(logs: Sequence[LogAtRest], configs: Mapping[int, TopicConfigs], now_ms: int) -> list[Row]:
    """The rows of some logs in their order; ``configs`` are by broker."""
    limits = [effective_limits(at.partition.topic, configs[at.partition.log_dir.broker].of(at.partition.topic)) for at in logs]
    facts = [_facts(at, limit) for at, limit in zip(logs, limits, strict=True)]
    together = Logs(facts)
    retention, compaction = RetentionRule(together).at(now_ms), CompactionRule(together).at(now_ms)
    states = [at.state for at in logs]
    min_isr = effective_min_isr(
        together.limit("min_insync_replicas"),
        np.array([0 if state is None else len(state.replicas) for state in states], np.int64),
        np.array([at.replica.leader_metadata_version for at in logs], np.int64),
    )
    found = []
    for item, (at, limit, fact) in enumerate(zip(logs, limits, facts, strict=True)):
        seen, state = at.inventory, at.state
        blocked = int(retention.blocked[item])
        compacts = limit.compacts
        found.append(
            Row(
                broker=at.partition.log_dir.broker,
                topic=at.partition.topic,
                partition=at.partition.partition,
                topic_id=at.partition.topic_id,
                log_dir=str(at.partition.log_dir.path),
                leader=int(at.replica.leads),
                leader_epoch=None if state is None else state.leader_epoch,
                replicas=None if state is None else len(state.replicas),
                in_sync_replicas=None if state is None else len(state.isr),
                min_in_sync_replicas=None if state is None else int(min_isr[item]),
                log_start_offset=fact.log_start_offset,
                local_log_start_offset=seen.own_start_offset if limit.remote_storage else None,
                log_end_offset=seen.end_offset,
                high_watermark=_value(at.high_watermark),
                size_bytes=seen.size,
                segments=len(seen.segments),
                active_segment_size_bytes=int(seen.segments["size"][-1]),
                active_segment_first_timestamp_seconds=_seconds(seen.active_first_ms),
                segment_limit_seconds=limit.segment_ms / 1000,
                segment_limit_bytes=limit.segment_bytes,
                cleanup_policy=limit.cleanup_policy,
                limit_source=str(limit.source),
                oldest_record_timestamp_seconds=_seconds(seen.oldest_record_ms),
                retention_limit_seconds=_seconds(limit.retention_ms) if limit.deletes else None,
                retention_limit_bytes=_value(limit.retention_bytes) if limit.deletes else None,
                retention_lag_seconds=_seconds(int(retention.retention_lag[item])),
                retention_overdue_seconds=_seconds(int(retention.overdue[item])),
                retention_check_interval_seconds=limit.check_interval_ms / 1000,
                retention_reclaimable_bytes=_value(int(retention.reclaimable[item])),
                next_deletion_timestamp_seconds=_seconds(int(retention.next_deletion[item])),
                retention_blocked=BLOCKED[blocked] if blocked >= 0 else None,
                max_timestamp_ahead_seconds=_seconds(int(retention.ahead[item])),
                last_stable_offset=_value(fact.last_stable_offset) if compacts else None,
                dirty_bytes=_value(int(compaction.dirty_bytes[item])),
                dirty_ratio=None if compaction.dirty_ratio[item] < 0 else float(compaction.dirty_ratio[item]),
                uncleanable_bytes=(
                    {reason: int(held[item]) for reason, held in zip(UNCLEANABLE, compaction.uncleanable, strict=True)}
                    if compacts and compaction.dirty_bytes[item] >= 0
                    else None
                ),
                cleaner_checkpoint_offset=_value(seen.cleaner_checkpoint) if compacts else None,
            )
        )
    return found


def _facts(at: LogAtRest, limits: Limits) -> LogFacts:
    seen = at.inventory
    return LogFacts(
        segments=seen.segments,
        log_start_offset=seen.log_start_offset(remote_storage=limits.remote_storage),
        log_end_offset=seen.end_offset,
        high_watermark=at.high_watermark,
        last_stable_offset=last_stable_offset(at) if limits.compacts else at.high_watermark,
        cleaner_checkpoint=seen.cleaner_checkpoint,
        oldest_record_ms=seen.oldest_record_ms,
        limits=limits,
    )


def _value(number: int) -> int | None:
    return None if number < 0 else number


def _seconds(milliseconds: int) -> float | None:
    return None if milliseconds < 0 else milliseconds / 1000
