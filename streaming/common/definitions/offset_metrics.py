"""Offsets, leaders and replicas of partitions."""

from streaming.common.definitions.metric import PARTITION, Metric, Total

LOG_START_OFFSET = Metric("segtail_partition_log_start_offset", "First offset of the log that may be read.", column="log_start_offset")
LOG_END_OFFSET = Metric("segtail_partition_log_end_offset", "Next offset to be written.", column="log_end_offset")
RECORDS = Metric(
    "segtail_partition_records",
    "Records on the disk of the replica, from its log start to its end, by kind: data, of which aborted is the part that was in aborted "
    "transactions, and control. Exact also after compaction, "
    "as of the agent's last answer, which may be seconds older or newer than log_end_offset; absent until all segments are counted.",
    (*PARTITION, "kind"),
    total=Total.SHOWN,
)
HIGH_WATERMARK = Metric(
    "segtail_partition_high_watermark",
    "First offset that is not known to be replicated: the smallest log end offset of the in-sync replicas where all of them are "
    "observed, else, and from Kafka 3.7 on below min.insync.replicas, the leader's checkpoint. Never later than the broker's own; absent "
    "where that checkpoint cannot be read.",
    column="high_watermark",
)
HIGH_WATERMARK_CHECKPOINT = Metric(
    "segtail_partition_high_watermark_checkpoint",
    "High watermark as the file replication-offset-checkpoint has it, up to 5 seconds old.",
    column="high_watermark_checkpoint",
)
LAST_STABLE_OFFSET = Metric(
    "segtail_partition_last_stable_offset", "Offset up to which readers of committed data can read.", column="last_stable_offset"
)
LAST_STABLE_OFFSET_LAG = Metric(
    "segtail_partition_last_stable_offset_lag",
    "Offsets between the last stable offset and the high watermark; 0 when nothing is undecided.",
    column="unread_offsets",
    total=Total.LARGEST,
)
LAST_STABLE_OFFSET_LAG_BYTES = Metric(
    "segtail_partition_last_stable_offset_lag_bytes",
    "Bytes of log between the last stable offset and the high watermark.",
    column="unread_bytes",
    total=Total.SHOWN,
)
LEADER = Metric(
    "segtail_partition_leader",
    "1 if this replica leads its partition, 0 if it does not, by the newest metadata read on any watched broker; absent where that is "
    "not known.",
    column="leader",
)
LEADER_ID = Metric(
    "segtail_partition_leader_id",
    "Broker that leads the partition, watched or not, -1 if none does, by the newest metadata read on any watched broker; absent where "
    "that is not known.",
    column="leader_id",
    least=-1,
)
LEADER_EPOCH = Metric(
    "segtail_partition_leader_epoch",
    "The partition's leader epoch, by the newest metadata read on any watched broker.",
    column="leader_epoch",
)
REPLICAS = Metric(
    "segtail_partition_replicas",
    "Replicas of the partition, without those that a reassignment adds, by the metadata log.",
    column="replicas",
)
IN_SYNC_REPLICAS = Metric(
    "segtail_partition_in_sync_replicas",
    "In-sync replicas of the partition, by the metadata log: the copy of the leader's broker, or, where no observed broker leads, the one "
    "with the highest leader epoch among brokers that have a replica and whose agents are up. As last known where all of these are down.",
    column="in_sync_replicas",
)
MIN_IN_SYNC_REPLICAS = Metric(
    "segtail_partition_min_in_sync_replicas",
    "Effective min.insync.replicas: from Kafka 3.7 on at most the number of replicas, before that as it is configured.",
    column="min_in_sync_replicas",
)
REPLICA_LAG = Metric(
    "segtail_partition_replica_lag_offsets", "Offsets that an observed follower is behind the leader's log end offset, where it is behind."
)
