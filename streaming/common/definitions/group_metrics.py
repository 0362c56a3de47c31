"""Consumer groups: how far behind they are, what they are about to lose and have lost, and who is in them."""

from streaming.common.definitions.metric import Metric

BY_TOPIC = ("group", "topic")
BY_PARTITION = ("group", "topic", "partition")

LAG_OFFSETS = Metric(
    "segtail_group_lag_offsets",
    "Offsets between the group's committed ones and the high watermarks, as kafka-consumer-groups counts them, or kafka-share-groups.",
    BY_TOPIC,
)
LAG_RECORDS = Metric(
    "segtail_group_lag_records",
    "Records that a consumer of the group has yet to get, without markers, deleted and compacted ones. Isolation read_committed: up "
    "to the last stable offset without aborted ones; read_uncommitted: up to the high watermark with them.",
    (*BY_TOPIC, "isolation"),
)
UNREAD_RECORDS = Metric(
    "segtail_group_unread_records",
    "segtail_group_lag_records of the group's own isolation: read_uncommitted of a group that is known to read so, else read_committed.",
    BY_TOPIC,
)
LAG_BYTES = Metric(
    "segtail_group_lag_bytes",
    "Bytes of the batches from the one that the group reads next up to the high watermark, markers included.",
    BY_TOPIC,
)
LAG_SECONDS = Metric(
    "segtail_group_lag_seconds",
    "Age of the next record that is not read, the largest of the partitions; 0 if there is none. clock: append counts from when the "
    "record was appended, and is absent where that was not seen; record from its own timestamp.",
    (*BY_TOPIC, "clock"),
)
LOSS = Metric(
    "segtail_group_loss_timestamp_seconds",
    "When retention will delete the first record that the group has not read at the earliest, the soonest of the partitions; absent "
    "if it will not, where limits are assumed, and while the leading broker surely has no process.",
    BY_TOPIC,
)
ENDANGERED = Metric(
    "segtail_group_endangered_timestamp_seconds",
    "As segtail_group_loss_timestamp_seconds, of the partitions in danger: the group has stopped there, or is too slow, and less time "
    "is left than the record is old. The cause is transaction where an open transaction has held the group up there for 90 seconds, "
    "else group.",
    (*BY_TOPIC, "cause"),
)
BUFFERED_RECORDS = Metric(
    "segtail_group_buffered_records",
    "Records that were deleted after the group's commit and that its consumers may have in memory: a restart of these loses them. "
    "Where records are not counted, their offsets; absent if there are none.",
    BY_TOPIC,
)
LOST_RECORDS = Metric(
    "segtail_group_lost_records_total",
    "Records that were deleted before the group had read them, since the job started, once no consumer has them in memory; of a share "
    "group at least.",
    BY_TOPIC,
)
LOST_OFFSETS = Metric(
    "segtail_group_lost_offsets_total",
    "Offsets that were deleted before the group had read them and whose records were not counted: add both.",
    BY_TOPIC,
)
LAST_LOSS = Metric(
    "segtail_group_last_loss_timestamp_seconds",
    "When segtail last found that the group has lost records, or a topic was deleted with records that it had not read; absent if "
    "neither was within 24 hours.",
    BY_TOPIC,
)
DELETED_TOPIC_RECORDS = Metric(
    "segtail_group_deleted_topic_records",
    "Records of a topic that the group had still to read when the topic was deleted, at least, within 24 hours. Where records were not "
    "counted, their offsets.",
    BY_TOPIC,
)
REWOUND_RECORDS = Metric(
    "segtail_group_rewound_records_total",
    "Records that the group reads again because its committed offset was moved back, since the job started, three minutes after the "
    "move. kind: admin (by hand, without members), reset (from beyond the end of the log), consumer (by a member), external (by a "
    "program beside the group). Absent until the first move.",
    (*BY_TOPIC, "kind"),
)
REWOUND_OFFSETS = Metric(
    "segtail_group_rewound_offsets_total",
    "As segtail_group_rewound_records_total, of moves whose records were not counted: add both.",
    (*BY_TOPIC, "kind"),
)
SKIPPED_RECORDS = Metric(
    "segtail_group_skipped_records_total",
    "Records that the group does not read because its committed offset was moved forwards by hand (kind admin), since the job "
    "started, three minutes after the move. Absent until the first move.",
    (*BY_TOPIC, "kind"),
)
SKIPPED_OFFSETS = Metric(
    "segtail_group_skipped_offsets_total",
    "As segtail_group_skipped_records_total, of moves whose records were not counted: add both.",
    (*BY_TOPIC, "kind"),
)
LAST_SKIP = Metric(
    "segtail_group_last_skip_timestamp_seconds",
    "When the group's committed offset was last moved by hand over records that it had not read, by its coordinator; absent if it was not "
    "within 24 hours, and once it is set back.",
    BY_TOPIC,
)
COMMITTED_RECORDS = Metric(
    "segtail_group_committed_records_total",
    "Records that the group's committed offsets have passed since the job started, and what a share group is done with after them.",
    BY_TOPIC,
)
LAST_COMMIT = Metric(
    "segtail_group_last_commit_timestamp_seconds", "When the group last committed an offset, by its coordinator.", BY_TOPIC
)
OFFSET_EXPIRATION = Metric(
    "segtail_group_offset_expiration_timestamp_seconds",
    "When the coordinator may delete the first of the group's offsets; absent while the group is in use, and of topics to which none of "
    "its members subscribes.",
    BY_TOPIC,
)
PENDING_COMMITS = Metric(
    "segtail_group_pending_transactional_commits",
    "Offsets that were committed in transactions which are still open.",
    BY_TOPIC,
)
STOPPED = Metric(
    "segtail_group_stopped_partitions",
    "Partitions whose committed offset has not changed for group_stopped_after although a record was there to read all that time.",
    BY_TOPIC,
)
STANDING_OFFSET = Metric(
    "segtail_group_standing_offset",
    "The next offset of a partition that has stopped, or stands while the members of its group come and go: consumers perhaps fail at that "
    "record. Only of such partitions, five of a group and topic at most.",
    BY_PARTITION,
)
INVALID_OFFSETS = Metric(
    "segtail_group_invalid_offset_partitions",
    "Partitions whose committed offset is beyond the end of the log, or of a history of it that has ended.",
    BY_TOPIC,
)
HELD = Metric(
    "segtail_group_held_partitions",
    "Partitions in which the group has read everything up to the last stable offset, and records have waited behind an open transaction "
    "for ten seconds at least.",
    BY_TOPIC,
)
HELD_SINCE = Metric(
    "segtail_group_held_since_timestamp_seconds",
    "Since when the next record of a held partition waits, at the latest, the earliest of the partitions. Absent if none is held.",
    BY_TOPIC,
)
UNKNOWN = Metric(
    "segtail_group_lag_unknown_partitions",
    "Partitions whose lag is not known, by the reason. Where there are any, the group's sums are lower bounds; they are absent if no "
    "partition is known.",
    (*BY_TOPIC, "reason"),
)
MEMBERS = Metric("segtail_group_members", "Members of the group.", ("group",))
INFO = Metric("segtail_group_info", "1 for every group, with its type and protocol as in kafka-groups.", ("group", "type", "protocol"))
STATE = Metric(
    "segtail_group_state",
    "1 for the group's state. Of a classic group it is the state of its last generation: a rebalance is on disk once it has finished.",
    ("group", "state"),
)
REBALANCES = Metric(
    "segtail_group_rebalances_total",
    "Generations of a classic group, epochs of the others, since the group was made: all kinds together are Kafka's number. Kinds: "
    "metadata (only partitions or topics came or went), unfinished (members came or went before an assignment), else members.",
    ("group", "kind"),
)
LAST_REBALANCE = Metric(
    "segtail_group_last_rebalance_timestamp_seconds",
    "When the group last rebalanced, by its coordinator: of a classic group when all members had joined, of others when the epoch began.",
    ("group",),
)
REBALANCE_RATIO = Metric(
    "segtail_group_rebalance_ratio",
    "Rebalances within the last 30 minutes by which members interrupted each other, for each member, of the most that the group had "
    "then; absent if there were fewer than 10, or after a pause of 10 minutes.",
    ("group",),
)
USE = Metric(
    "segtail_group_use",
    "1 for who uses the group: in_use (it has members, or commits in its own rhythm), unattended, abandoned, throw_away, or unknown.",
    ("group", "use"),
)
PARTITION_COMMITTED = Metric("segtail_group_partition_committed_offset", "Next offset that the group reads.", BY_PARTITION)
PARTITION_LAG_OFFSETS = Metric(
    "segtail_group_partition_lag_offsets",
    "As segtail_group_lag_offsets, of one partition. By default only partitions that are later than group_late_after are listed.",
    BY_PARTITION,
)
PARTITION_LAG_RECORDS = Metric(
    "segtail_group_partition_lag_records", "As segtail_group_lag_records, of one partition.", (*BY_PARTITION, "isolation")
)
PARTITION_LAG_BYTES = Metric("segtail_group_partition_lag_bytes", "As segtail_group_lag_bytes, of one partition.", BY_PARTITION)
PARTITION_LAG_SECONDS = Metric(
    "segtail_group_partition_lag_seconds", "As segtail_group_lag_seconds, of one partition.", (*BY_PARTITION, "clock")
)
PARTITION_LOSS = Metric(
    "segtail_group_partition_loss_timestamp_seconds", "As segtail_group_loss_timestamp_seconds, of one partition.", BY_PARTITION
)
LATE_OMITTED = Metric(
    "segtail_group_late_partitions_omitted", "Partitions later than group_late_after that are not listed, because of group_late_limit.", ()
)
OMITTED = Metric("segtail_groups_omitted", "Consumer groups that are not followed, because of groups_limit.", ())
SHORTENED = Metric(
    "segtail_groups_shortened",
    "Consumer groups whose names have more than 250 characters: everywhere their beginning and a hash stand for the name.",
    (),
)
CHECKPOINTS_UNREAD = Metric(
    "segtail_group_checkpoints_unread",
    "Checkpoints of streaming queries (spark_checkpoints) that cannot be read: what these queries have read is not known.",
    (),
)
COORDINATORS_UNREAD = Metric(
    "segtail_group_coordinators_unread",
    "Partitions of the coordinators' topic that are not read from a current replica: groups of theirs are missing, or not known.",
    ("topic",),
)
NOT_UNDERSTOOD = Metric(
    "segtail_group_records_not_understood",
    "Records of the coordinators' topic that are damaged or of a later version, and say nothing of whose offsets they are.",
    ("topic",),
)
