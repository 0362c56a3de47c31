"""Every metric, one row each: the names, types, labels and meanings that alert rules, dashboards and the documentation rely on."""

from dataclasses import dataclass
from enum import StrEnum


class Type(StrEnum):
    """A metric's type, as the exposition formats spell it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Section(StrEnum):
    """The section of the documentation that describes a metric."""

    THROUGHPUT = "Throughput"
    OFFSETS = "Offsets and replicas"
    TRANSACTIONS = "Transactions"
    RETENTION = "Retention and log health"
    OBSERVER = "The observer itself"


class Total(StrEnum):
    """What a topic exports instead of the series of its partitions, if there would be too many of them."""

    LED = "led"  # sum of what was appended while each replica led: an election moves no history, so `rate` sees no jump
    LOGS = "logs"  # sum over the topic's logs on the broker: counted for each log by itself
    SHOWN = "shown"  # sum over the exported partitions
    LARGEST = "largest"  # the largest of the exported partitions
    NONE = "none"  # no total means anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. ``unit`` is "" for a plain number.

    ``column`` is the column that a partition's series shows, "" if it is no such series. It is a column of `streaming.rows.STATES`, or one
    that the exporter computes. ``only`` is a column that has to be above 0 for the series. ``least`` is the smallest number in ``column``
    that is a value.
    """

    name: str
    type: Type
    labels: tuple[str, ...]
    unit: str
    section: Section
    help: str
    column: str = ""
    total: Total = Total.NONE
    only: str = ""
    least: int = 0


PARTITION = ("broker", "topic", "partition")


def _throughput(
    name: str, type: Type, unit: str, help: str, *, column: str = "", total: Total, labels: tuple[str, ...] = PARTITION
) -> Metric:
    return Metric(name=name, type=type, labels=labels, unit=unit, section=Section.THROUGHPUT, help=help, column=column, total=total)


def _offsets(name: str, help: str, *, unit: str = "", column: str, total: Total = Total.NONE, least: int = 0) -> Metric:
    section = Section.OFFSETS
    return Metric(
        name=name, type=Type.GAUGE, labels=PARTITION, unit=unit, section=section, help=help, column=column, total=total, least=least
    )


def _unclean(name: str, type: Type, labels: tuple[str, ...], help: str, *, unit: str = "") -> Metric:
    return Metric(name=name, type=type, labels=labels, unit=unit, section=Section.OFFSETS, help=help)


def _topic(name: str, help: str) -> Metric:
    return Metric(name=name, type=Type.GAUGE, labels=("topic",), unit="", section=Section.OFFSETS, help=help)


def _transactions(
    name: str, type: Type, help: str, *, unit: str = "", column: str = "", total: Total = Total.NONE, labels: tuple[str, ...] = PARTITION
) -> Metric:
    only = "transactional" if column else ""
    section = Section.TRANSACTIONS
    return Metric(name=name, type=type, labels=labels, unit=unit, section=section, help=help, column=column, total=total, only=only)


def _health(name: str, unit: str, help: str, *, column: str) -> Metric:
    return Metric(
        name=name,
        type=Type.COUNTER,
        labels=PARTITION,
        unit=unit,
        section=Section.RETENTION,
        help=help,
        column=column,
        total=Total.LOGS,
    )


def _retention(
    name: str,
    help: str,
    *,
    unit: str = "",
    column: str = "",
    total: Total = Total.NONE,
    only: str = "",
    labels: tuple[str, ...] = PARTITION,
    type: Type = Type.GAUGE,
) -> Metric:
    section = Section.RETENTION
    return Metric(name=name, type=type, labels=labels, unit=unit, section=section, help=help, column=column, total=total, only=only)


def _broker(name: str, labels: tuple[str, ...], help: str, *, unit: str = "") -> Metric:
    return Metric(name=name, type=Type.GAUGE, labels=labels, unit=unit, section=Section.RETENTION, help=help)


def _observer(name: str, type: Type, labels: tuple[str, ...], unit: str, help: str) -> Metric:
    return Metric(name=name, type=type, labels=labels, unit=unit, section=Section.OBSERVER, help=help)


APPENDED_BYTES = _throughput(
    "segtail_partition_appended_bytes_total",
    Type.COUNTER,
    "bytes",
    "Bytes appended to the log, control batches included.",
    column="appended_bytes",
    total=Total.LED,
)
APPENDED_BATCHES = _throughput(
    "segtail_partition_appended_batches_total",
    Type.COUNTER,
    "",
    "Data batches appended to the log; control batches are not counted, a v0 or v1 wrapper is one.",
    column="appended_batches",
    total=Total.LED,
)
APPENDED_RECORDS = _throughput(
    "segtail_partition_appended_records_total",
    Type.COUNTER,
    "",
    "Data records appended to the log: the count in the batch header, not the offset delta.",
    column="appended_records",
    total=Total.LED,
)
CODEC_BYTES = _throughput(
    "segtail_topic_codec_bytes_total",
    Type.COUNTER,
    "bytes",
    "Bytes of data batches by compression codec, appended while this broker led.",
    labels=("broker", "topic", "codec"),
    total=Total.NONE,
)
BATCH_SIZE = _throughput(
    "segtail_topic_batch_size_bytes",
    Type.HISTOGRAM,
    "bytes",
    "Size of a data batch on disk, appended while this broker led.",
    labels=("broker", "topic"),
    total=Total.NONE,
)
BATCH_RECORDS = _throughput(
    "segtail_topic_batch_records",
    Type.HISTOGRAM,
    "",
    "Records in a data batch, appended while this broker led.",
    labels=("broker", "topic"),
    total=Total.NONE,
)
LAST_APPEND = _throughput(
    "segtail_partition_last_append_timestamp_seconds",
    Type.GAUGE,
    "seconds",
    "When the log was last seen to grow; at first sight the modification time of its newest segment that holds anything.",
    column="last_append_ms",
    total=Total.LARGEST,
)
MAX_RECORD_TIMESTAMP = _throughput(
    "segtail_partition_max_record_timestamp_seconds",
    Type.GAUGE,
    "seconds",
    "Largest record timestamp seen.",
    column="max_timestamp_ms",
    total=Total.LARGEST,
)
OLD_FORMAT_BATCHES = _throughput(
    "segtail_partition_old_format_batches_total",
    Type.COUNTER,
    "",
    "Batches of message format 0 or 1.",
    column="old_format_batches",
    total=Total.NONE,
)
LOG_START_OFFSET = _offsets(
    "segtail_partition_log_start_offset",
    "First offset of the log that may be read.",
    column="log_start_offset",
)
LOG_END_OFFSET = _offsets(
    "segtail_partition_log_end_offset",
    "Next offset to be written.",
    column="log_end_offset",
)
HIGH_WATERMARK = _offsets(
    "segtail_partition_high_watermark",
    "First offset that is not known to be replicated: the smallest log end offset of the in-sync replicas where all of them are observed, "
    "else, and from Kafka 3.7 on below min.insync.replicas, the leader's checkpoint. Never later than the broker's own; absent where that "
    "checkpoint cannot be read.",
    column="high_watermark",
)
HIGH_WATERMARK_CHECKPOINT = _offsets(
    "segtail_partition_high_watermark_checkpoint",
    "High watermark as the file replication-offset-checkpoint has it, up to 5 seconds old.",
    column="high_watermark_checkpoint",
)
LAST_STABLE_OFFSET = _offsets(
    "segtail_partition_last_stable_offset",
    "Offset up to which readers of committed data can read.",
    column="last_stable_offset",
)
LAST_STABLE_OFFSET_LAG = _offsets(
    "segtail_partition_last_stable_offset_lag",
    "Offsets between the last stable offset and the high watermark; 0 when nothing is undecided.",
    column="last_stable_offset_lag",
    total=Total.LARGEST,
)
LAST_STABLE_OFFSET_LAG_BYTES = _offsets(
    "segtail_partition_last_stable_offset_lag_bytes",
    "Bytes of log between the last stable offset and the high watermark.",
    unit="bytes",
    column="last_stable_offset_lag_bytes",
    total=Total.SHOWN,
)
LEADER = _offsets(
    "segtail_partition_leader",
    "1 if this replica leads its partition, 0 if it does not, by the newest metadata read on any watched broker; absent where that is not "
    "known.",
    column="leader",
)
LEADER_ID = _offsets(
    "segtail_partition_leader_id",
    "Broker that leads the partition, watched or not, -1 if none does, by the newest metadata read on any watched broker; absent where "
    "that is not known.",
    column="leader_id",
    least=-1,
)
LEADER_EPOCH = _offsets(
    "segtail_partition_leader_epoch",
    "The partition's leader epoch, by the newest metadata read on any watched broker.",
    column="leader_epoch",
)
REPLICAS = _offsets(
    "segtail_partition_replicas",
    "Replicas of the partition, without those that a reassignment adds, by the metadata log.",
    column="replicas",
)
IN_SYNC_REPLICAS = _offsets(
    "segtail_partition_in_sync_replicas",
    "In-sync replicas of the partition, by the metadata log: the copy of the leader's broker, or, where nobody observed leads, the one "
    "with the highest leader epoch among brokers that have a replica and whose agents are up. As last known where all of these are down.",
    column="in_sync_replicas",
    total=Total.NONE,
)
TOPIC_PARTITIONS = _topic(
    "segtail_topic_partitions",
    "Partitions of the topic, watched or not, by the newest copy of the metadata log among agents that are up.",
)
TOPIC_OFFLINE = _topic(
    "segtail_topic_offline_partitions",
    "Partitions of the topic that nobody leads, by the newest copy of the metadata log among agents that are up. Only where there are any.",
)
TOPIC_UNDER_MIN_ISR = _topic(
    "segtail_topic_under_min_isr_partitions",
    "Partitions of the topic with fewer in-sync replicas than min.insync.replicas asks for, by the same copy. Only where there are any.",
)
TOPIC_UNDER_REPLICATED = _topic(
    "segtail_topic_under_replicated_partitions",
    "Partitions of the topic with fewer in-sync replicas than replicas, without those that are being added, by the same copy. Only where "
    "there are any.",
)
AFFECTED_PARTITION = Metric(
    name="segtail_affected_partition_info",
    type=Type.GAUGE,
    labels=("topic", "partition", "problem", "leader", "in_sync", "out_of_sync", "electable"),
    unit="",
    section=Section.OFFSETS,
    help="1 for some of those partitions, at most five of a topic for each problem: the worst problem (offline, under_min_isr, "
    "under_replicated), the leader (-1 none), and by their brokers the replicas that are in sync, those that are not, and those of which "
    "one has to be there for a leader that lost nothing.",
)
OPEN_TRANSACTIONS = _transactions(
    "segtail_partition_open_transactions",
    Type.GAUGE,
    "Transactions with data on the partition and no marker yet.",
    column="open_transactions",
    total=Total.SHOWN,
)
OLDEST_OPEN_START = _transactions(
    "segtail_partition_oldest_open_transaction_start_timestamp_seconds",
    Type.GAUGE,
    "When the open transaction with the lowest first offset began.",
    unit="seconds",
    column="oldest_open_start_ms",
)
OLDEST_OPEN_LAST_APPEND = _transactions(
    "segtail_partition_oldest_open_transaction_last_append_timestamp_seconds",
    Type.GAUGE,
    "When the producer of the open transaction with the lowest first offset last appended to it here.",
    unit="seconds",
    column="oldest_open_last_append_ms",
)
COMMITTED = _transactions(
    "segtail_partition_committed_transactions_total",
    Type.COUNTER,
    "COMMIT markers that closed an open transaction.",
    column="committed_transactions",
    total=Total.SHOWN,
)
ABORTED = _transactions(
    "segtail_partition_aborted_transactions_total",
    Type.COUNTER,
    "ABORT markers that closed an open transaction.",
    column="aborted_transactions",
    total=Total.SHOWN,
)
EMPTY_MARKERS = _transactions(
    "segtail_partition_empty_transaction_markers_total",
    Type.COUNTER,
    "Markers that closed nothing on this partition.",
    column="empty_markers",
    total=Total.SHOWN,
)
ABORTED_BYTES = _transactions(
    "segtail_partition_aborted_bytes_total",
    Type.COUNTER,
    "Bytes of data that ended aborted.",
    unit="bytes",
    column="aborted_bytes",
    total=Total.SHOWN,
)
TRANSACTION_DURATION = _transactions(
    "segtail_topic_transaction_duration_seconds",
    Type.HISTOGRAM,
    "From the first batch of a transaction on a partition to its marker there, counted where this broker led.",
    unit="seconds",
    labels=("broker", "topic"),
)
HANGING = _transactions(
    "segtail_partition_hanging_transactions",
    Type.GAUGE,
    "Open transactions, silent for longer than hanging_after, that no coordinator will end; absent where that is not known.",
    column="hanging_transactions",
    total=Total.SHOWN,
)
STUCK = _transactions(
    "segtail_partition_stuck_transactions",
    Type.GAUGE,
    "Open transactions, silent for longer than stuck_after, that are not hanging, overdue or in two-phase commit; absent where that cannot "
    "be told.",
    column="stuck_transactions",
    total=Total.SHOWN,
)
STALLED = _transactions(
    "segtail_partition_last_stable_offset_stalled",
    Type.GAUGE,
    "1 where records wait behind a transaction that has been open for longer than hanging_after; absent where that is not known.",
    column="stalled",
    total=Total.SHOWN,
)
LATE_START = _transactions(
    "segtail_late_transaction_start_timestamp_seconds",
    Type.GAUGE,
    "When a transaction began that has been open for longer than late_after: hanging ones first, then stuck ones, then the oldest.",
    unit="seconds",
    labels=(*PARTITION, "producer_id", "first_offset"),
)
LATE_INFO = _transactions(
    "segtail_late_transaction_info",
    Type.GAUGE,
    "1 for each of those transactions, with its owner and its coordinator's state. groups: the consumer groups whose offsets wait for a "
    "hanging one in __consumer_offsets.",
    labels=(
        *PARTITION,
        "producer_id",
        "first_offset",
        "producer_epoch",
        "transactional_id",
        "coordinator_state",
        "verdict",
        "stuck",
        "groups",
    ),
)
LATE_OMITTED = _transactions(
    "segtail_late_transactions_omitted",
    Type.GAUGE,
    "Late transactions that are not listed, because of late_limit or of many partitions of one producer.",
    labels=(),
)
COORDINATOR_TRANSACTIONS = _transactions(
    "segtail_coordinator_transactions",
    Type.GAUGE,
    "Entries of __transaction_state by the state of their transaction.",
    labels=("broker", "state"),
)
COORDINATOR_PARTITIONS = _transactions(
    "segtail_coordinator_partitions",
    Type.GAUGE,
    "Partitions of __transaction_state.",
    labels=(),
)
COORDINATOR_READABLE = _transactions(
    "segtail_coordinator_partitions_readable",
    Type.GAUGE,
    "Partitions of __transaction_state that a current replica tells all of: read to its end within the last minute (or three "
    "triggers), without a loss, and understood.",
    labels=(),
)
COORDINATOR_OVERDUE = _transactions(
    "segtail_coordinator_overdue_transactions",
    Type.GAUGE,
    "Transactions that the coordinator on this broker holds as Ongoing, more than a minute past their timeout.",
    labels=("broker",),
)
COORDINATOR_NOT_UNDERSTOOD = _transactions(
    "segtail_coordinator_entries_not_understood",
    Type.GAUGE,
    "Entries of __transaction_state of a version that is not known, or damaged: as long as there are any, nothing can be called hanging.",
    labels=(),
)
ACTIVE_PRODUCERS = _transactions(
    "segtail_partition_active_producers",
    Type.GAUGE,
    "Producer ids of which the log has state; absent where there are more than producers_limit.",
    column="active_producers",
    total=Total.SHOWN,
)
SEQUENCE_GAPS = _transactions(
    "segtail_partition_sequence_gaps_total",
    Type.COUNTER,
    "Batches whose sequence does not follow the last one of their producer in the same epoch.",
    column="sequence_gaps",
    total=Total.SHOWN,
)
SEGMENTS_ROLLED = _health(
    "segtail_partition_segments_rolled_total",
    "",
    "Segments that were begun.",
    column="segments_rolled",
)
SEGMENTS_DELETED = _health(
    "segtail_partition_segments_deleted_total",
    "",
    "Segments that were deleted from the beginning of the log.",
    column="segments_deleted",
)
TRUNCATIONS = _health(
    "segtail_partition_truncations_total",
    "",
    "How often the log was cut back.",
    column="truncations",
)
TRUNCATED_COMMITTED = _health(
    "segtail_partition_truncated_committed_offsets_total",
    "",
    "Offsets that were cut off though they were below the high watermark: acknowledged records are gone from this replica.",
    column="truncated_committed",
)
TRUNCATED_BYTES = _health(
    "segtail_partition_truncated_bytes_total",
    "bytes",
    "Bytes that were counted as appended and cut off later.",
    column="truncated_bytes",
)
CORRUPT_BATCHES = _health(
    "segtail_partition_corrupt_batches_total",
    "",
    "Places in the log that are no batch Kafka could have written; reading the log stops there.",
    column="corrupt_batches",
)
SIZE = _retention(
    "segtail_partition_size_bytes",
    "Bytes of all segments, the active one included, without the zeros at the end of a preallocated file.",
    unit="bytes",
    column="size_bytes",
    total=Total.SHOWN,
)
SEGMENT_COUNT = _retention(
    "segtail_partition_segments",
    "Segments of the log, the active one included.",
    column="segments",
    total=Total.SHOWN,
)
ACTIVE_SIZE = _retention(
    "segtail_partition_active_segment_size_bytes",
    "Bytes of the active segment.",
    unit="bytes",
    column="active_segment_size_bytes",
)
ACTIVE_FIRST_TIMESTAMP = _retention(
    "segtail_partition_active_segment_first_timestamp_seconds",
    "Timestamp of the first batch of the active segment, from which rolling by time counts.",
    unit="seconds",
    column="active_segment_first_timestamp_ms",
)
ACTIVE_CREATED = _retention(
    "segtail_partition_active_segment_created_timestamp_seconds",
    "When the active segment was made: when it was rolled, by the producer snapshot beside it, or the log for its first one.",
    unit="seconds",
    column="active_segment_created_ms",
)
SEGMENT_LIMIT_SECONDS = _retention(
    "segtail_partition_segment_limit_seconds",
    "Effective segment.ms, of a compacted topic at most max.compaction.lag.ms.",
    unit="seconds",
    column="segment_limit_ms",
)
SEGMENT_LIMIT_BYTES = _retention(
    "segtail_partition_segment_limit_bytes",
    "Effective segment.bytes.",
    unit="bytes",
    column="segment_limit_bytes",
)
OLDEST_RECORD = _retention(
    "segtail_partition_oldest_record_timestamp_seconds",
    "Timestamp of the first batch at or after the log start that holds records.",
    unit="seconds",
    column="oldest_record_ms",
)
RETENTION_LIMIT_SECONDS = _retention(
    "segtail_partition_retention_limit_seconds",
    "Effective retention.ms, or local.retention.ms where segments are copied to remote storage; absent when unlimited.",
    unit="seconds",
    column="retention_limit_ms",
)
RETENTION_LIMIT_BYTES = _retention(
    "segtail_partition_retention_limit_bytes",
    "Effective retention.bytes, or local.retention.bytes where segments are copied to remote storage; absent when unlimited.",
    unit="bytes",
    column="retention_limit_bytes",
)
RETENTION_LAG = _retention(
    "segtail_partition_retention_lag_seconds",
    "How far the oldest record has outlived the limit; the time that its segment was active is part of it.",
    unit="seconds",
    column="retention_lag_ms",
    total=Total.LARGEST,
)
RETENTION_OVERDUE = _retention(
    "segtail_partition_retention_overdue_seconds",
    "For how long the first segment could have been deleted and is still there, as far as that was seen: since its limit, the high "
    "watermark and the leader allow it. Up to one check interval is normal.",
    unit="seconds",
    column="retention_overdue_ms",
    total=Total.LARGEST,
)
RECLAIMABLE = _retention(
    "segtail_partition_retention_reclaimable_bytes",
    "Bytes of the segments that a check made now would delete; absent with remote storage.",
    unit="bytes",
    column="retention_reclaimable_bytes",
    total=Total.SHOWN,
)
NEXT_DELETION = _retention(
    "segtail_partition_next_deletion_timestamp_seconds",
    "When the first segment may be deleted.",
    unit="seconds",
    column="next_deletion_ms",
)
RETENTION_BLOCKED = _retention(
    "segtail_partition_retention_blocked",
    "1 where data past its limit stays, and the first reason that holds.",
    labels=(*PARTITION, "reason"),
)
MAX_TIMESTAMP_AHEAD = _retention(
    "segtail_partition_max_timestamp_ahead_seconds",
    "How far the largest record timestamp lies ahead of the clock.",
    unit="seconds",
    column="max_timestamp_ahead_ms",
    total=Total.LARGEST,
)
DIRTY_BYTES = _retention(
    "segtail_partition_dirty_bytes",
    "Bytes of closed segments that the cleaner of a compacted topic has before it.",
    unit="bytes",
    column="dirty_bytes",
    total=Total.SHOWN,
)
DIRTY_RATIO = _retention(
    "segtail_partition_dirty_ratio",
    "Dirty bytes as a part of clean and dirty bytes.",
    unit="ratio",
    column="dirty_millionths",
    total=Total.LARGEST,
)
DIRTY_LIMIT = _retention(
    "segtail_partition_dirty_limit_ratio",
    "Above this ratio the cleaner compacts: min.cleanable.dirty.ratio, 0 once dirty segments have waited for longer than "
    "max.compaction.lag.ms.",
    unit="ratio",
    column="dirty_limit_millionths",
)
UNCLEANABLE = _retention(
    "segtail_partition_uncleanable_bytes",
    "Bytes of closed segments that the cleaner may not touch yet, and why.",
    unit="bytes",
    labels=(*PARTITION, "reason"),
)
CLEANER_CHECKPOINT = _retention(
    "segtail_partition_cleaner_checkpoint_offset",
    "Offset up to which the log has been cleaned, by the file cleaner-offset-checkpoint.",
    column="cleaner_checkpoint_offset",
)
LOCAL_LOG_START_OFFSET = _retention(
    "segtail_partition_local_log_start_offset",
    "First offset that is still on the broker's disk, where segments are copied to remote storage.",
    column="local_log_start_offset",
)
PARTITION_INFO = _retention(
    "segtail_partition_info",
    "1 for every partition: its topic id, cleanup policy, and which level sets its retention limit (topic, dynamic, static, assumed), "
    "of a time and a size that both limit the stronger.",
    labels=(*PARTITION, "topic_id", "cleanup_policy", "limit_source"),
)
MIN_IN_SYNC_REPLICAS = _offsets(
    "segtail_partition_min_in_sync_replicas",
    "Effective min.insync.replicas: from Kafka 3.7 on at most the number of replicas, before that as it is configured.",
    column="min_in_sync_replicas",
)
REPLICA_LAG = _offsets(
    "segtail_partition_replica_lag_offsets",
    "Offsets that an observed follower is behind the leader's log end offset, where it is behind.",
    column="",
)
REASSIGNING = Metric(
    name="segtail_partition_reassigning_replicas",
    type=Type.GAUGE,
    labels=("topic", "partition", "change"),
    unit="",
    section=Section.OFFSETS,
    help="Replicas that a reassignment is adding or removing, by the newest copy of the metadata log among agents that are up. Only where "
    "there are any, of at most a thousand partitions.",
)
REASSIGNMENT_BYTES = Metric(
    name="segtail_partition_reassignment_remaining_bytes",
    type=Type.GAUGE,
    labels=("topic", "partition", "broker"),
    unit="bytes",
    section=Section.OFFSETS,
    help="Bytes of the leader's log that a broker to which the partition is reassigned has not copied yet; absent where the leader's log "
    "is not watched.",
)
REASSIGNMENT_SECONDS = Metric(
    name="segtail_partition_reassignment_remaining_seconds",
    type=Type.GAUGE,
    labels=("topic", "partition", "broker"),
    unit="seconds",
    section=Section.OFFSETS,
    help="How long that takes, at the pace of the last five minutes; absent where nothing becomes less.",
)
TOPIC_UNCLEAN_ELECTIONS = _unclean(
    "segtail_topic_unclean_elections_total",
    Type.COUNTER,
    ("topic",),
    "Unclean leader elections of the topic's partitions that were seen. Only where there were any.",
)
TOPIC_LAST_UNCLEAN = _unclean(
    "segtail_topic_last_unclean_election_timestamp_seconds",
    Type.GAUGE,
    ("topic",),
    "When the last of them was held, by the metadata log.",
    unit="seconds",
)
UNCLEAN_ELECTIONS = _unclean(
    "segtail_partition_unclean_elections_total",
    Type.COUNTER,
    ("topic", "partition"),
    "Unclean leader elections that were seen: a replica that was neither in sync nor eligible came to lead, or the last one in sync, with "
    "a log that a crash made shorter. Only where there were any, of at most a thousand partitions, those of the last ones.",
)
LAST_UNCLEAN = _unclean(
    "segtail_partition_last_unclean_election_timestamp_seconds",
    Type.GAUGE,
    ("topic", "partition", "last_in_sync"),
    "When the last of them was held, by the metadata log, and the broker whose log had most of what it lost; of the same partitions.",
    unit="seconds",
)
UNCLEAN_LOST = _unclean(
    "segtail_partition_unclean_lost_offsets_total",
    Type.COUNTER,
    ("topic", "partition", "bound"),
    "Offsets that unclean elections lost: upper, all that a replica had which was in sync; acknowledged, what that had written down as its "
    "high watermark, up to 5 seconds before. Absent where no such replica was seen; of the same partitions.",
)
RECOVERING = _unclean(
    "segtail_partition_recovering",
    Type.GAUGE,
    ("topic", "partition"),
    "1 from an unclean election until the new leader's recovery is written down, by the newest copy of the metadata log among agents that "
    "are up. Only 1, of at most a thousand partitions.",
)
REPLICA = (*PARTITION, "role")
REPLICA_CORRUPT = _retention(
    "segtail_replica_corrupt_batches",
    "Damaged places in a replica, found_by the tail (places that are no batch, ever since) or the scrub (in closed segments, as known "
    "now). role: leader, follower, unknown. All segtail_replica_* metrics are exported for leaders and followers, whatever replicas and "
    "series_limit are, where there is something to report.",
    labels=(*REPLICA, "found_by"),
)
REPLICA_TRUNCATIONS = _retention(
    "segtail_replica_truncations_total",
    "How often the log of a replica was cut off.",
    type=Type.COUNTER,
)
REPLICA_TRUNCATED_COMMITTED = _retention(
    "segtail_replica_truncated_committed_offsets_total",
    "Offsets that were cut off a replica below its high watermark.",
    type=Type.COUNTER,
)
REPLICA_OVERDUE = _retention(
    "segtail_replica_retention_overdue_seconds",
    "segtail_partition_retention_overdue_seconds of any replica that keeps bytes for longer than two checks of its broker, where its limit "
    "is known.",
    unit="seconds",
    labels=REPLICA,
)
REPLICA_DIRTY = _retention(
    "segtail_replica_dirty_ratio",
    "segtail_partition_dirty_ratio of any replica that is above what the cleaner leaves (segtail_partition_dirty_limit_ratio).",
    unit="ratio",
    labels=REPLICA,
)
REPLICA_CLEANER_CHECKPOINT = _retention(
    "segtail_replica_cleaner_checkpoint_offset",
    "Offset up to which such a replica has been cleaned; absent where it never was.",
    labels=REPLICA,
)
TOPIC_OVERDUE = _retention(
    "segtail_topic_retention_overdue_partitions",
    "Partitions of which the broker's replica, leading or not, has been overdue for longer than overdue_after, and for longer than two "
    "checks of the broker (segtail_broker_retention_check_interval_seconds), where its limit is known and a check would delete something; "
    "only topics that have any, whatever series_limit says.",
    labels=("broker", "topic"),
)
TOPIC_BLOCKED = _retention(
    "segtail_topic_retention_blocked_partitions",
    "Partitions that keep data past a known limit, of the replica that is exported, and why (active_segment left out); only topics that "
    "have any, whatever series_limit says.",
    labels=("broker", "topic", "reason"),
)
REPLICAS_OMITTED = _retention(
    "segtail_replicas_omitted",
    "Replicas with something to report that a metric of segtail_replica_* leaves out, beyond the 1,000 worst. Only where there are any.",
    labels=("metric",),
)
CHECK_INTERVAL = _broker(
    "segtail_broker_retention_check_interval_seconds",
    ("broker",),
    "How often the broker checks what it may delete: log.retention.check.interval.ms, Kafka's default where it is not known.",
    unit="seconds",
)
UNOBSERVED = _broker("segtail_partitions_unobserved", ("broker",), "Partitions led by a broker that no agent watches.")
CONTROLLER = _broker("segtail_cluster_controller_id", (), "Node id of the active controller, by the quorum-state file.")
BROKER_FENCED = _broker("segtail_broker_fenced", ("broker",), "1 if the broker is fenced by the metadata log.")
BROKER_STATUS = _broker(
    "segtail_broker_status",
    ("broker", "status"),
    "1 for the status of a registered broker by the cluster's metadata, 0 for the others: running, starting (registered, not unfenced "
    "since), stopping (in controlled shutdown, ended by one, or away without any replica, however it ended), down (fenced although it "
    "served).",
)
BROKER_STATUS_SINCE = _broker(
    "segtail_broker_status_since_timestamp_seconds",
    ("broker",),
    "Since when at the latest the broker has that status, by the controller's clock.",
    unit="seconds",
)
METADATA_OFFSET = _broker(
    "segtail_broker_metadata_offset", ("broker",), "How far the broker's own copy of the metadata log reaches: the offset behind its end."
)
METADATA_LAST_APPEND = _broker(
    "segtail_broker_metadata_last_append_timestamp_seconds",
    ("broker",),
    "When the broker's own copy of the metadata log last grew; a running broker's does twice a second. Absent where an idle controller "
    "writes nothing: before Kafka 3.3, or where metadata.max.idle.interval.ms is 0 or above 5 seconds.",
    unit="seconds",
)
METADATA_SNAPSHOT_READABLE = _broker(
    "segtail_broker_metadata_snapshot_readable",
    ("broker",),
    "0 if the newest snapshot of the metadata log may not be read: after its next start the agent knows nothing of the cluster.",
)
UNWATCHED_LOG_DIRS = _broker(
    "segtail_broker_unwatched_log_dirs",
    ("broker",),
    "Log dirs that a watched broker is registered with and that no agent watches. Absent where that is not known: before Kafka 3.7.",
)
LOG_DIR_SIZE = _broker("segtail_log_dir_size_bytes", ("broker", "log_dir"), "Bytes of the logs in the log dir.", unit="bytes")
LOG_DIR_FREE = _broker("segtail_log_dir_free_bytes", ("broker", "log_dir"), "Bytes free in the file system of the log dir.", unit="bytes")
LOG_DIR_CAPACITY = _broker("segtail_log_dir_capacity_bytes", ("broker", "log_dir"), "Size of the file system of the log dir.", unit="bytes")
LOG_DIR_TOPIC_SIZE = _broker(
    "segtail_log_dir_topic_size_bytes",
    ("broker", "log_dir", "topic"),
    "Bytes of a topic's replicas in the log dir, whether they lead or not.",
    unit="bytes",
)
LOG_DIR_OTHER = _broker(
    "segtail_log_dir_other_bytes",
    ("broker", "log_dir", "kind"),
    "Bytes in the log dir that are no live log: logs that wait for deletion, move or are left over, indexes, metadata.",
    unit="bytes",
)
LOG_DIR_UP = _broker(
    "segtail_log_dir_up",
    ("broker", "log_dir"),
    "0 if the log dir cannot be read, or its broker no longer lists it among those it uses.",
)
LOG_DIR_BLOCKED = _broker(
    "segtail_log_dir_blocked_seconds",
    ("broker", "log_dir", "path"),
    "For how long a call to this file or directory has not come back. The log dir is not watched until it does. Absent where none waits.",
    unit="seconds",
)
LOG_DIR_CHECKPOINT = _broker(
    "segtail_log_dir_checkpoint_timestamp_seconds",
    ("broker", "log_dir"),
    "When the broker last wrote the high watermarks of the log dir; a running broker does every 5 seconds. Absent where no replica is in "
    "the log dir, or the broker no longer uses it: then it writes none.",
    unit="seconds",
)
LOG_DIR = ("broker", "log_dir")
SCRUB_CHECKED = Metric(
    name="segtail_scrub_checked_bytes_total",
    type=Type.COUNTER,
    labels=LOG_DIR,
    unit="bytes",
    section=Section.RETENTION,
    help="Bytes of closed segments that the scrub has checked. All of segtail_scrub_* is absent where the scrub is off.",
)
SCRUB_PASS_RATIO = _broker(
    "segtail_scrub_pass_ratio",
    LOG_DIR,
    "Logs of the log dir that the present pass of the scrub is through, as a part of all; 1 between passes.",
    unit="ratio",
)
SCRUB_PASS_START = _broker("segtail_scrub_pass_start_timestamp_seconds", LOG_DIR, "When the last pass of the scrub began.", unit="seconds")
SCRUB_LAST_PASS = _broker(
    "segtail_scrub_last_pass_timestamp_seconds",
    LOG_DIR,
    "When a pass of the scrub over the whole log dir ended last; absent before the first one.",
    unit="seconds",
)
SCRUB_CORRUPT = _broker(
    "segtail_scrub_corrupt_batches",
    LOG_DIR,
    "Damaged places that the scrub has found in closed segments of all replicas; those of segments that are gone or pass again do "
    "not count.",
)
SCRUB_CORRUPT_PLACE = _broker(
    "segtail_scrub_corrupt_batch_position_bytes",
    (*LOG_DIR, "topic", "partition", "segment", "offset", "fault"),
    "Byte of the segment at which a damaged batch begins, its offset, and what is wrong (framing, crc, offset, epoch); at most 50 a "
    "log dir.",
    unit="bytes",
)
SCRUB_UNREADABLE = _broker(
    "segtail_scrub_unreadable_files", LOG_DIR, "Files that the scrub could not read at the last try: I/O errors, missing permissions."
)
SCRUB_BLOCKED = _broker(
    "segtail_scrub_blocked_seconds",
    (*LOG_DIR, "path"),
    "For how long a call of the scrub to this file has not come back. Absent where none waits.",
    unit="seconds",
)
BROKER_INFO = _broker("segtail_broker_info", ("broker", "cluster_id", "agent"), "1 for every watched broker: its cluster and its agent.")
UNREADABLE_LOGS = _broker(
    "segtail_unreadable_logs",
    ("broker",),
    "Logs that could not be read at the last try: an I/O error, a missing permission, no file descriptor left. They do not go on.",
)
METADATA_READABLE = _broker(
    "segtail_broker_metadata_readable",
    ("broker",),
    "1 if the broker's own copy of the metadata log could be read. Absent for a broker of before KRaft, which has none.",
)
BUILD_INFO = _observer(
    "segtail_build_info",
    Type.GAUGE,
    ("version", "spark_version", "python_version"),
    "",
    "1: the versions that run.",
)
STARTED = _observer("segtail_start_timestamp_seconds", Type.GAUGE, (), "seconds", "When this process of the job began.")
AGENT_UP = _observer("segtail_agent_up", Type.GAUGE, ("broker", "agent"), "", "1 if the agent answered the last poll and takes part.")
AGENT_PROBLEM = _observer(
    "segtail_agent_problem",
    Type.GAUGE,
    ("agent", "reason"),
    "",
    "1: what keeps an agent away (refused, silent, unresolved, untrusted, unauthorized, protocol, failed, other_cluster, same_name) or "
    "needs somebody's care (shared_log_dir, clock, blocked, twin_consumer, stuck). Only 1.",
)
AGENT_DOUBTS = _observer(
    "segtail_agent_doubts_total",
    Type.COUNTER,
    ("agent", "kind"),
    "",
    "Files or values that an agent could not use, so that it used something else: a producer_snapshot (an older one, or the log itself), a "
    "time_index (its segment was scanned), the value of a configuration (the next level counts); or a checkpoint, whose offsets are not "
    "known then.",
)
AGENT_CLOCK_AHEAD = _observer(
    "segtail_agent_clock_ahead_seconds",
    Type.GAUGE,
    ("agent",),
    "seconds",
    "How far the agent's clock is ahead of the job's; ages are wrong by as much.",
)
CATCHING_UP = _observer(
    "segtail_broker_catching_up",
    Type.GAUGE,
    ("broker",),
    "",
    "1 while the metrics are further behind the broker's logs than the pace and a few seconds: rates are backlog then, not traffic.",
)
TAIL_LAG_BYTES = _observer(
    "segtail_tail_lag_bytes",
    Type.GAUGE,
    ("broker",),
    "bytes",
    "Bytes that the broker's agent has published and that are not yet in the metrics; absent until the job has had something of the agent.",
)
TAIL_LAG_SECONDS = _observer(
    "segtail_tail_lag_seconds",
    Type.GAUGE,
    ("broker",),
    "seconds",
    "For how long the oldest bytes that are not yet in the metrics have been waiting, as far as the job has seen since it started.",
)
SKIPPED_BYTES = _observer(
    "segtail_skipped_bytes_total",
    Type.COUNTER,
    ("broker", "reason"),
    "bytes",
    "Log bytes that never reached the metrics, and why.",
)
LOGS_PER_SHARD = _observer(
    "segtail_query_logs_per_shard",
    Type.GAUGE,
    ("query",),
    "",
    "Logs of all agents, also of those that are down, over the shards of the job's state. Above 5,000 the checkpoint is outgrown: each "
    "micro-batch writes megabytes a shard. Only a new checkpoint has more shards.",
)
LAST_LOOK = _observer(
    "segtail_query_last_look_timestamp_seconds",
    Type.GAUGE,
    ("query",),
    "seconds",
    "When the query last looked for work, idle or not.",
)
BATCH_DURATION = _observer(
    "segtail_query_batch_duration_seconds",
    Type.HISTOGRAM,
    ("query",),
    "seconds",
    "How long a micro-batch took, without the look for work before it.",
)
PACE = _observer(
    "segtail_query_pace_seconds",
    Type.GAUGE,
    ("query", "reason"),
    "seconds",
    "The longest pause between two looks of the query for work as things are, and why: fixed (trigger is a duration), first_minute (of the "
    "query), live (a person looks at a page), scrape (it looks right before each scrape), fallback (not of everybody who scrapes is known "
    "when). Only the reason that counts.",
)
SCRAPE_AGE = _observer(
    "segtail_scrape_data_age_seconds",
    Type.HISTOGRAM,
    ("query",),
    "seconds",
    "How old the newest data was at each scrape: the time since the last look for work of which everything was in the metrics.",
)
RESTARTS = _observer(
    "segtail_query_restarts_total",
    Type.COUNTER,
    ("query",),
    "",
    "How often the query was started again after a failure.",
)
SERIES_DROPPED = _observer(
    "segtail_series_dropped_total",
    Type.COUNTER,
    ("reason",),
    "",
    "Series left out of a page because of series_limit, counted at every page: "
    "partition_series had topic sums take their place, topic_series had nothing.",
)
THRESHOLD_SECONDS = _observer(
    "segtail_config_threshold_seconds",
    Type.GAUGE,
    ("name",),
    "seconds",
    "A duration of the configuration, so that alert rules need no templates.",
)
THRESHOLD_RATIO = _observer(
    "segtail_config_threshold_ratio",
    Type.GAUGE,
    ("name",),
    "ratio",
    "A ratio of the configuration, so that alert rules need no templates.",
)
THRESHOLD_BYTES = _observer(
    "segtail_config_threshold_bytes",
    Type.GAUGE,
    ("name",),
    "bytes",
    "A size of the configuration, so that alert rules need no templates.",
)

METRICS = (
    APPENDED_BYTES,
    APPENDED_BATCHES,
    APPENDED_RECORDS,
    CODEC_BYTES,
    BATCH_SIZE,
    BATCH_RECORDS,
    LAST_APPEND,
    MAX_RECORD_TIMESTAMP,
    OLD_FORMAT_BATCHES,
    LOG_START_OFFSET,
    LOG_END_OFFSET,
    HIGH_WATERMARK,
    HIGH_WATERMARK_CHECKPOINT,
    LAST_STABLE_OFFSET,
    LAST_STABLE_OFFSET_LAG,
    LAST_STABLE_OFFSET_LAG_BYTES,
    LEADER,
    LEADER_ID,
    LEADER_EPOCH,
    REPLICAS,
    IN_SYNC_REPLICAS,
    MIN_IN_SYNC_REPLICAS,
    REPLICA_LAG,
    TOPIC_PARTITIONS,
    TOPIC_OFFLINE,
    TOPIC_UNDER_MIN_ISR,
    TOPIC_UNDER_REPLICATED,
    AFFECTED_PARTITION,
    REASSIGNING,
    REASSIGNMENT_BYTES,
    REASSIGNMENT_SECONDS,
    TOPIC_UNCLEAN_ELECTIONS,
    TOPIC_LAST_UNCLEAN,
    UNCLEAN_ELECTIONS,
    LAST_UNCLEAN,
    UNCLEAN_LOST,
    RECOVERING,
    CHECK_INTERVAL,
    UNOBSERVED,
    CONTROLLER,
    OPEN_TRANSACTIONS,
    OLDEST_OPEN_START,
    OLDEST_OPEN_LAST_APPEND,
    COMMITTED,
    ABORTED,
    EMPTY_MARKERS,
    ABORTED_BYTES,
    TRANSACTION_DURATION,
    HANGING,
    STUCK,
    STALLED,
    LATE_START,
    LATE_INFO,
    LATE_OMITTED,
    COORDINATOR_TRANSACTIONS,
    COORDINATOR_PARTITIONS,
    COORDINATOR_READABLE,
    COORDINATOR_NOT_UNDERSTOOD,
    COORDINATOR_OVERDUE,
    ACTIVE_PRODUCERS,
    SEQUENCE_GAPS,
    SEGMENTS_ROLLED,
    SEGMENTS_DELETED,
    TRUNCATIONS,
    TRUNCATED_COMMITTED,
    TRUNCATED_BYTES,
    CORRUPT_BATCHES,
    REPLICA_CORRUPT,
    REPLICA_TRUNCATIONS,
    REPLICA_TRUNCATED_COMMITTED,
    REPLICA_OVERDUE,
    REPLICA_DIRTY,
    REPLICA_CLEANER_CHECKPOINT,
    TOPIC_OVERDUE,
    TOPIC_BLOCKED,
    REPLICAS_OMITTED,
    SIZE,
    SEGMENT_COUNT,
    ACTIVE_SIZE,
    ACTIVE_FIRST_TIMESTAMP,
    ACTIVE_CREATED,
    SEGMENT_LIMIT_SECONDS,
    SEGMENT_LIMIT_BYTES,
    OLDEST_RECORD,
    RETENTION_LIMIT_SECONDS,
    RETENTION_LIMIT_BYTES,
    RETENTION_LAG,
    RETENTION_OVERDUE,
    RECLAIMABLE,
    NEXT_DELETION,
    RETENTION_BLOCKED,
    MAX_TIMESTAMP_AHEAD,
    DIRTY_BYTES,
    DIRTY_RATIO,
    DIRTY_LIMIT,
    UNCLEANABLE,
    CLEANER_CHECKPOINT,
    LOCAL_LOG_START_OFFSET,
    PARTITION_INFO,
    LOG_DIR_SIZE,
    LOG_DIR_FREE,
    LOG_DIR_CAPACITY,
    LOG_DIR_TOPIC_SIZE,
    LOG_DIR_OTHER,
    LOG_DIR_UP,
    LOG_DIR_BLOCKED,
    LOG_DIR_CHECKPOINT,
    SCRUB_CHECKED,
    SCRUB_PASS_RATIO,
    SCRUB_PASS_START,
    SCRUB_LAST_PASS,
    SCRUB_CORRUPT,
    SCRUB_CORRUPT_PLACE,
    SCRUB_UNREADABLE,
    SCRUB_BLOCKED,
    BROKER_FENCED,
    BROKER_STATUS,
    BROKER_STATUS_SINCE,
    METADATA_OFFSET,
    METADATA_LAST_APPEND,
    METADATA_SNAPSHOT_READABLE,
    UNWATCHED_LOG_DIRS,
    BROKER_INFO,
    UNREADABLE_LOGS,
    METADATA_READABLE,
    BUILD_INFO,
    STARTED,
    AGENT_UP,
    AGENT_PROBLEM,
    AGENT_DOUBTS,
    AGENT_CLOCK_AHEAD,
    CATCHING_UP,
    TAIL_LAG_BYTES,
    TAIL_LAG_SECONDS,
    SKIPPED_BYTES,
    LOGS_PER_SHARD,
    LAST_LOOK,
    BATCH_DURATION,
    PACE,
    SCRAPE_AGE,
    RESTARTS,
    SERIES_DROPPED,
    THRESHOLD_SECONDS,
    THRESHOLD_RATIO,
    THRESHOLD_BYTES,
)
"""All metrics, in the order of the page."""
