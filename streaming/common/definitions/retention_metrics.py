"""Sizes of logs, their limits, and what retention and the cleaner leave."""

from streaming.common.definitions.metric import PARTITION, Metric, Total

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
    "When the active segment was made: when it was rolled, by the producer snapshot beside it, or the log for its first one.",
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
    "Age of the oldest record beyond the limit, at least, by the first batch and by the newest record of each segment; it includes the "
    "time while its segment was active.",
    column="retention_lag_ms",
    total=Total.LARGEST,
)
RETENTION_OVERDUE = Metric(
    "segtail_partition_retention_overdue_seconds",
    "Time for which the first segment could have been deleted and is still there, as far as segtail has seen: since its limit, the high "
    "watermark and the leader allow its deletion. Up to one check interval is normal. 0 while its broker surely has no process.",
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
    "1 for every partition, with its topic id, its cleanup policy, and the level that sets its retention limit (topic, dynamic, static, "
    "assumed; where both a time and a size limit it, the stronger of their levels).",
    (*PARTITION, "topic_id", "cleanup_policy", "limit_source"),
)
