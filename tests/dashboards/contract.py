"""The metrics that panels may name."""

import re

from streaming.metrics.definitions import METRICS, Metric, Type

TO_COME = frozenset(
    (
        "segtail_partition_high_watermark",
        "segtail_partition_last_stable_offset",
        "segtail_partition_last_stable_offset_lag",
        "segtail_partition_last_stable_offset_lag_bytes",
        "segtail_partition_replicas",
        "segtail_partition_in_sync_replicas",
        "segtail_partition_min_in_sync_replicas",
        "segtail_partition_replica_lag_offsets",
        "segtail_partitions_unobserved",
        "segtail_partition_open_transactions",
        "segtail_partition_oldest_open_transaction_start_timestamp_seconds",
        "segtail_partition_oldest_open_transaction_last_append_timestamp_seconds",
        "segtail_partition_committed_transactions_total",
        "segtail_partition_aborted_transactions_total",
        "segtail_partition_empty_transaction_markers_total",
        "segtail_partition_aborted_bytes_total",
        "segtail_topic_transaction_duration_seconds",
        "segtail_partition_hanging_transactions",
        "segtail_late_transaction_start_timestamp_seconds",
        "segtail_late_transaction_info",
        "segtail_late_transactions_omitted",
        "segtail_coordinator_transactions",
        "segtail_coordinator_partitions",
        "segtail_coordinator_partitions_readable",
        "segtail_partition_active_producers",
        "segtail_partition_sequence_gaps_total",
        "segtail_partition_size_bytes",
        "segtail_partition_segments",
        "segtail_partition_active_segment_size_bytes",
        "segtail_partition_active_segment_first_timestamp_seconds",
        "segtail_partition_segment_limit_seconds",
        "segtail_partition_oldest_record_timestamp_seconds",
        "segtail_partition_retention_limit_seconds",
        "segtail_partition_retention_limit_bytes",
        "segtail_partition_retention_lag_seconds",
        "segtail_partition_retention_overdue_seconds",
        "segtail_partition_retention_reclaimable_bytes",
        "segtail_partition_next_deletion_timestamp_seconds",
        "segtail_partition_retention_blocked",
        "segtail_partition_max_timestamp_ahead_seconds",
        "segtail_partition_dirty_bytes",
        "segtail_partition_dirty_ratio",
        "segtail_partition_uncleanable_bytes",
        "segtail_partition_segments_rolled_total",
        "segtail_partition_segments_deleted_total",
        "segtail_log_dir_size_bytes",
        "segtail_log_dir_free_bytes",
        "segtail_log_dir_capacity_bytes",
        "segtail_log_dir_topic_size_bytes",
        "segtail_log_dir_other_bytes",
        "segtail_log_dir_up",
        "segtail_broker_fenced",
        "segtail_partition_info",
    )
)
"""Metrics that dashboards show already and that are still to be defined."""

OF_PROMETHEUS = frozenset({"scrape_samples_scraped", "scrape_duration_seconds"})
"""What Prometheus itself tells of a scrape."""

_NAME = re.compile(r"\b(?:segtail|scrape)_\w+")


def named(expr: str) -> set[str]:
    """The metrics that PromQL names, or a sample of theirs such as a histogram's buckets."""
    return set(_NAME.findall(expr))


def samples(metric: Metric) -> set[str]:
    """The names under which Prometheus keeps a metric."""
    if metric.type == Type.HISTOGRAM:
        return {metric.name + suffix for suffix in ("_bucket", "_sum", "_count")}
    return {metric.name}


def known() -> set[str]:
    """Every name that may stand in a panel."""
    to_come = {name + suffix for name in TO_COME for suffix in ("", "_bucket", "_count")}
    return to_come | OF_PROMETHEUS | {name for metric in METRICS for name in samples(metric)}
