"""What logs keep and lose: retention, and what is rolled, deleted, cut off or damaged."""

from streaming.common.definitions.metric import PARTITION, Metric, Total

# --- what is rolled, deleted, cut off or damaged in logs, and replicas with something to report.

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
    "segments, as of the last check). role: leader, follower, unknown. segtail_replica_* cover all replicas with something to report, "
    "whatever replicas and series_limit leave out.",
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
    "Partitions of which the broker's replica, leading or not, has been overdue for longer than overdue_after and two checks of the "
    "broker. Only where the limit is known; only topics that have any, regardless of series_limit.",
    ("broker", "topic"),
)
TOPIC_ARRIVES_EXPIRED = Metric(
    "segtail_topic_arrives_expired_records",
    "Records that were past retention.ms when they were appended within the last hour; at least. Of partitions that this broker "
    "leads, where the next check of retention deletes them or has deleted them. looks: no_time, seconds, replay, clock, old. Only "
    "topics that have any.",
    ("broker", "topic", "looks"),
)
TOPIC_ARRIVES_EXPIRED_DELAY = Metric(
    "segtail_topic_arrives_expired_delay_seconds",
    "How old the last of these records was when it was appended, in the partition where that is furthest past the limit.",
    ("broker", "topic", "looks"),
)
TOPIC_BLOCKED = Metric(
    "segtail_topic_retention_blocked_partitions",
    "Partitions whose exported replica keeps data past a known limit, by the reason (active_segment excluded). Only topics that have any.",
    ("broker", "topic", "reason"),
)
REPLICAS_OMITTED = Metric(
    "segtail_replicas_omitted",
    "Replicas with something to report that a metric of segtail_replica_* omits, beyond the 1,000 worst. Only where there are any.",
    ("metric",),
)

# --- sizes of logs, their limits, and what retention and the cleaner leave.

SIZE = Metric(
    "segtail_partition_size_bytes",
    "Bytes of all segments, the active one included, without the zeros at the end of a preallocated file.",
    column="size_bytes",
    total=Total.SHOWN,
)
SEGMENT_COUNT = Metric("segtail_partition_segments", "Segments of the log, the active one included.", column="segments", total=Total.SHOWN)
ACTIVE_SIZE = Metric("segtail_partition_active_segment_size_bytes", "Bytes of the active segment.", column="active_segment_size_bytes")
ACTIVE_FIRST_TIMESTAMP = Metric(
    "segtail_partition_active_segment_first_timestamp_seconds",
    "Timestamp of the first batch of the active segment; rolling by time counts from it.",
    column="active_segment_first_timestamp_ms",
)
ACTIVE_CREATED = Metric(
    "segtail_partition_active_segment_created_timestamp_seconds",
    "When the active segment was rolled, by the producer snapshot beside it, or the log was made.",
    column="active_segment_created_ms",
)
SEGMENT_LIMIT_SECONDS = Metric(
    "segtail_partition_segment_limit_seconds",
    "Effective segment.ms, of a compacted topic at most max.compaction.lag.ms.",
    column="segment_limit_ms",
)
SEGMENT_LIMIT_BYTES = Metric("segtail_partition_segment_limit_bytes", "Effective segment.bytes.", column="segment_limit_bytes")
OLDEST_RECORD = Metric(
    "segtail_partition_oldest_record_timestamp_seconds",
    "Timestamp of the first batch at or after the log start that holds records.",
    column="oldest_record_ms",
)
RETENTION_LIMIT_SECONDS = Metric(
    "segtail_partition_retention_limit_seconds",
    "Effective retention.ms, or local.retention.ms where segments are copied to remote storage; absent when unlimited.",
    column="retention_limit_ms",
)
RETENTION_LIMIT_BYTES = Metric(
    "segtail_partition_retention_limit_bytes",
    "Effective retention.bytes, or local.retention.bytes where segments are copied to remote storage; absent when unlimited.",
    column="retention_limit_bytes",
)
RETENTION_LAG = Metric(
    "segtail_partition_retention_lag_seconds",
    "Age of the oldest record beyond the limit, at least; it includes the time while its segment was active.",
    column="retention_lag_ms",
    total=Total.LARGEST,
)
RETENTION_OVERDUE = Metric(
    "segtail_partition_retention_overdue_seconds",
    "Time for which the first segment could have been deleted and is still there, as far as segtail has seen. Up to one check "
    "interval is normal. 0 while its broker surely has no process.",
    column="retention_overdue_ms",
    total=Total.LARGEST,
)
RECLAIMABLE = Metric(
    "segtail_partition_retention_reclaimable_bytes",
    "Bytes of the segments that a check made now would delete; absent with remote storage.",
    column="retention_reclaimable_bytes",
    total=Total.SHOWN,
)
NEXT_DELETION = Metric(
    "segtail_partition_next_deletion_timestamp_seconds",
    "When the first segment may be deleted: by retention.ms, or by retention.bytes if the log grows on as it does, whichever comes first; "
    "absent while its broker surely has no process.",
    column="next_deletion_ms",
)
RETENTION_BLOCKED = Metric(
    "segtail_partition_retention_blocked", "1 where data stays past its limit, with the first reason that applies.", (*PARTITION, "reason")
)
MAX_TIMESTAMP_AHEAD = Metric(
    "segtail_partition_max_timestamp_ahead_seconds",
    "Time by which the largest record timestamp is ahead of the clock.",
    column="max_timestamp_ahead_ms",
    total=Total.LARGEST,
)
DIRTY_BYTES = Metric(
    "segtail_partition_dirty_bytes",
    "Bytes of closed segments of a compacted topic that the cleaner has yet to clean.",
    column="dirty_bytes",
    total=Total.SHOWN,
)
DIRTY_RATIO = Metric(
    "segtail_partition_dirty_ratio", "Dirty bytes as a share of clean and dirty bytes.", column="dirty_millionths", total=Total.LARGEST
)
DIRTY_LIMIT = Metric(
    "segtail_partition_dirty_limit_ratio",
    "Above this ratio the cleaner compacts: min.cleanable.dirty.ratio, 0 once dirty segments have waited for longer than "
    "max.compaction.lag.ms.",
    column="dirty_limit_millionths",
)
UNCLEANABLE = Metric(
    "segtail_partition_uncleanable_bytes",
    "Bytes of closed segments that the cleaner may not clean yet, by the reason (open_transaction, compaction_lag, moving).",
    (*PARTITION, "reason"),
)
CLEANER_CHECKPOINT = Metric(
    "segtail_partition_cleaner_checkpoint_offset",
    "Offset up to which the log has been cleaned, by the file cleaner-offset-checkpoint.",
    column="cleaner_checkpoint_offset",
)
LOCAL_LOG_START_OFFSET = Metric(
    "segtail_partition_local_log_start_offset",
    "First offset that is still on the broker's disk, where segments are copied to remote storage.",
    column="local_log_start_offset",
)
PARTITION_INFO = Metric(
    "segtail_partition_info",
    "1 for every partition: topic id, cleanup policy, and the level that sets its retention limit (topic, dynamic, static, assumed; "
    "of two limits the stronger level).",
    (*PARTITION, "topic_id", "cleanup_policy", "limit_source"),
)
