"""Partitions: offsets, leaders and replicas, and which partitions are offline, short of replicas or moved."""

from streaming.common.definitions.metric import PARTITION, Metric, Total

# --- partitions: offsets, leaders and replicas, and which partitions are offline, short of replicas or moved.


LOG_START_OFFSET = Metric("segtail_partition_log_start_offset", "First offset of the log that may be read.", column="log_start_offset")
LOG_END_OFFSET = Metric("segtail_partition_log_end_offset", "Next offset to be written.", column="log_end_offset")
RECORDS = Metric(
    "segtail_partition_records",
    "Records on the disk of the replica, from its log start to its end, by kind: data, aborted (a part of data) and control. Exact "
    "also after compaction, as of the agent's last answer; absent until all segments are counted.",
    (*PARTITION, "kind"),
    total=Total.SHOWN,
)
HIGH_WATERMARK = Metric(
    "segtail_partition_high_watermark",
    "First offset that is not known to be replicated: the smallest log end offset of the in-sync replicas where all of them are "
    "observed. Else, and from Kafka 3.7 on below min.insync.replicas, the leader's checkpoint; absent where that cannot be read. "
    "Never later than the broker's own.",
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
    "Offsets between the last stable offset and the high watermark; 0 when nothing is undecided. At least, while no controller is active.",
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
    "1 if this replica leads its partition, 0 if it does not, by the newest metadata.",
    column="leader",
)
LEADER_ID = Metric(
    "segtail_partition_leader_id",
    "Broker that leads the partition, watched or not, -1 if none does, by the newest metadata.",
    column="leader_id",
    least=-1,
)
LEADER_EPOCH = Metric(
    "segtail_partition_leader_epoch",
    "The partition's leader epoch, by the newest metadata.",
    column="leader_epoch",
)
REPLICAS = Metric(
    "segtail_partition_replicas",
    "Replicas of the partition, without those that a reassignment adds, by the metadata log.",
    column="replicas",
)
IN_SYNC_REPLICAS = Metric(
    "segtail_partition_in_sync_replicas",
    "In-sync replicas of the partition, by the metadata log of the leader's broker, else of the broker with the highest leader epoch; "
    "as last known where all agents are down.",
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


# --- partitions that are offline, short of replicas, reassigned, or came to an unclean leader.


TOPIC_PARTITIONS = Metric(
    "segtail_topic_partitions",
    "Partitions of the topic, watched or not, by the newest metadata.",
    ("topic",),
)
TOPIC_OFFLINE = Metric(
    "segtail_topic_offline_partitions",
    "Partitions of the topic without a leader, by the newest metadata. Only where there are any.",
    ("topic",),
)
TOPIC_UNDER_MIN_ISR = Metric(
    "segtail_topic_under_min_isr_partitions",
    "Partitions of the topic with fewer in-sync replicas than min.insync.replicas requires, by the same copy. Only where there are any.",
    ("topic",),
)
TOPIC_UNDER_REPLICATED = Metric(
    "segtail_topic_under_replicated_partitions",
    "Partitions of the topic with fewer in-sync replicas than replicas, without those that are being added, by the same copy. Only where "
    "there are any.",
    ("topic",),
)
AFFECTED_PARTITION = Metric(
    "segtail_affected_partition_info",
    "1 for at most five of those partitions of a topic, for each problem (offline, under_min_isr, under_replicated). leader: -1 if "
    "none; in_sync, out_of_sync: broker ids of replicas; electable: one of these is needed to elect a leader without loss.",
    ("topic", "partition", "problem", "leader", "in_sync", "out_of_sync", "electable"),
)
REASSIGNING = Metric(
    "segtail_partition_reassigning_replicas",
    "Replicas that a reassignment is adding or removing, by the newest metadata. Only where there are any, of at most a thousand "
    "partitions.",
    ("topic", "partition", "change"),
)
REASSIGNMENT_BYTES = Metric(
    "segtail_partition_reassignment_remaining_bytes",
    "Bytes of the leader's log that a broker to which the partition is reassigned has not copied yet; absent where the leader's log is "
    "not watched.",
    ("topic", "partition", "broker"),
)
REASSIGNMENT_SECONDS = Metric(
    "segtail_partition_reassignment_remaining_seconds",
    "Time until those bytes are copied, at the rate of the last five minutes; absent where they do not become fewer.",
    ("topic", "partition", "broker"),
)
TOPIC_UNCLEAN_ELECTIONS = Metric(
    "segtail_topic_unclean_elections_total",
    "Unclean leader elections of the topic's partitions that were seen. Only where there were any.",
    ("topic",),
)
TOPIC_LAST_UNCLEAN = Metric(
    "segtail_topic_last_unclean_election_timestamp_seconds", "When the last of them was held, by the metadata log.", ("topic",)
)
UNCLEAN_ELECTIONS = Metric(
    "segtail_partition_unclean_elections_total",
    "Unclean leader elections that were seen. A replica became leader that was neither in sync nor eligible, or that was the last one "
    "in sync and lost the end of its log in a crash. Only of the thousand partitions with the latest ones.",
    ("topic", "partition"),
)
LAST_UNCLEAN = Metric(
    "segtail_partition_last_unclean_election_timestamp_seconds",
    "When the last of them was held, by the metadata log, and the broker whose log had most of the lost records; of the same partitions.",
    ("topic", "partition", "last_in_sync"),
)
UNCLEAN_LOST = Metric(
    "segtail_partition_unclean_lost_offsets_total",
    "Offsets that unclean elections lost. bound upper: up to the log end of a replica that was in sync; acknowledged: up to the high "
    "watermark in its checkpoint, up to 5 seconds old. Absent where no such replica was seen.",
    ("topic", "partition", "bound"),
)
RECOVERING = Metric(
    "segtail_partition_recovering",
    "1 from an unclean election until the new leader's recovery is recorded, by the newest metadata. Only 1, of at most a thousand "
    "partitions.",
    ("topic", "partition"),
)
