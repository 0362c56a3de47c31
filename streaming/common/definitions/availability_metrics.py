"""Partitions that are offline, short of replicas, reassigned, or came to an unclean leader."""

from streaming.common.definitions.metric import Metric

TOPIC_PARTITIONS = Metric(
    "segtail_topic_partitions",
    "Partitions of the topic, watched or not, by the newest copy of the metadata log among agents that are up.",
    ("topic",),
)
TOPIC_OFFLINE = Metric(
    "segtail_topic_offline_partitions",
    "Partitions of the topic without a leader, by the newest copy of the metadata log among agents that are up. Only where there are any.",
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
    "1 for some of those partitions, at most five of a topic for each problem: the worst problem (offline, under_min_isr, "
    "under_replicated), the leader (-1 if none), and the broker ids of replicas that are in sync, that are not, and of which one is needed "
    "to elect a leader without loss.",
    ("topic", "partition", "problem", "leader", "in_sync", "out_of_sync", "electable"),
)
REASSIGNING = Metric(
    "segtail_partition_reassigning_replicas",
    "Replicas that a reassignment is adding or removing, by the newest copy of the metadata log among agents that are up. Only where "
    "there are any, of at most a thousand partitions.",
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
    "Unclean leader elections that were seen: a replica became leader that was neither in sync nor eligible, or that was the last one in "
    "sync and lost the end of its log in a crash. Only where there were any, of at most a thousand partitions, those with "
    "the latest elections.",
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
    "watermark in its checkpoint, which is up to 5 seconds old. Absent where no such replica was seen; of the same partitions.",
    ("topic", "partition", "bound"),
)
RECOVERING = Metric(
    "segtail_partition_recovering",
    "1 from an unclean election until the new leader's recovery is recorded, by the newest copy of the metadata log among agents "
    "that are up. Only 1, of at most a thousand partitions.",
    ("topic", "partition"),
)
