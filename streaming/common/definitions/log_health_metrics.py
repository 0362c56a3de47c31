"""What is rolled, deleted, cut off or damaged in logs, and replicas with something to report."""

from streaming.common.definitions.metric import PARTITION, Metric, Total

REPLICA = (*PARTITION, "role")

SEGMENTS_ROLLED = Metric("segtail_partition_segments_rolled_total", "Segments that were begun.", column="segments_rolled", total=Total.LOGS)
SEGMENTS_DELETED = Metric(
    "segtail_partition_segments_deleted_total",
    "Segments that were deleted from the beginning of the log.",
    column="segments_deleted",
    total=Total.LOGS,
)
TRUNCATIONS = Metric("segtail_partition_truncations_total", "How often the log was cut back.", column="truncations", total=Total.LOGS)
TRUNCATED_COMMITTED = Metric(
    "segtail_partition_truncated_committed_offsets_total",
    "Offsets that were cut off though they were below the high watermark: acknowledged records are gone from this replica.",
    column="truncated_committed",
    total=Total.LOGS,
)
TRUNCATED_BYTES = Metric(
    "segtail_partition_truncated_bytes_total",
    "Bytes that were counted as appended and cut off later.",
    column="truncated_bytes",
    total=Total.LOGS,
)
CORRUPT_BATCHES = Metric(
    "segtail_partition_corrupt_batches_total",
    "Positions in the log with bytes that Kafka cannot have written as a batch; segtail stops reading the log there.",
    column="corrupt_batches",
    total=Total.LOGS,
)
REPLICA_CORRUPT = Metric(
    "segtail_replica_corrupt_batches",
    "Damaged positions in a replica, found_by the tail (bytes that are no batch; once found, they stay counted) or the scrub (closed "
    "segments, as of the last check). role: leader, follower, unknown. All segtail_replica_* metrics cover leaders and followers with "
    "something to report, regardless of replicas and series_limit.",
    (*REPLICA, "found_by"),
)
REPLICA_TRUNCATIONS = Metric("segtail_replica_truncations_total", "How often the log of a replica was cut off.")
REPLICA_TRUNCATED_COMMITTED = Metric(
    "segtail_replica_truncated_committed_offsets_total", "Offsets that were cut off a replica below its high watermark."
)
REPLICA_OVERDUE = Metric(
    "segtail_replica_retention_overdue_seconds",
    "segtail_partition_retention_overdue_seconds of any replica that keeps bytes for longer than two checks of its broker, where its "
    "limit is known.",
    REPLICA,
)
REPLICA_DIRTY = Metric(
    "segtail_replica_dirty_ratio",
    "segtail_partition_dirty_ratio of any replica that is above its limit (segtail_partition_dirty_limit_ratio).",
    REPLICA,
)
REPLICA_CLEANER_CHECKPOINT = Metric(
    "segtail_replica_cleaner_checkpoint_offset", "Offset up to which such a replica has been cleaned; absent where it never was.", REPLICA
)
TOPIC_OVERDUE = Metric(
    "segtail_topic_retention_overdue_partitions",
    "Partitions of which the broker's replica, leading or not, has been overdue for longer than overdue_after, and for longer than two "
    "checks of the broker (segtail_broker_retention_check_interval_seconds), where its limit is known and a check would delete "
    "something. Only topics that have any, regardless of series_limit.",
    ("broker", "topic"),
)
TOPIC_ARRIVES_EXPIRED = Metric(
    "segtail_topic_arrives_expired_records",
    "Records that were past retention.ms when they were appended, one after the other within the last hour, in partitions this broker "
    "leads where the next check of retention deletes the last of them or has deleted it; at least. looks: what they look like (no_time, "
    "seconds, replay, clock, old). A replay is left out while it goes on. Only topics that have any, regardless of series_limit.",
    ("broker", "topic", "looks"),
)
TOPIC_ARRIVES_EXPIRED_DELAY = Metric(
    "segtail_topic_arrives_expired_delay_seconds",
    "How old the last of these records was when it was appended, in the partition where that is furthest past the limit.",
    ("broker", "topic", "looks"),
)
TOPIC_BLOCKED = Metric(
    "segtail_topic_retention_blocked_partitions",
    "Partitions whose exported replica keeps data past a known limit, by the reason (active_segment excluded). Only topics that have any, "
    "regardless of series_limit.",
    ("broker", "topic", "reason"),
)
REPLICAS_OMITTED = Metric(
    "segtail_replicas_omitted",
    "Replicas with something to report that a metric of segtail_replica_* omits, beyond the 1,000 worst. Only where there are any.",
    ("metric",),
)
