"""Every metric, one row each: the names, types, labels and meanings that alert rules, dashboards and the documentation rely on."""

from dataclasses import dataclass
from enum import StrEnum


class Type(StrEnum):
    """A metric's type, as the exposition formats spell it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Section(StrEnum):
    """Where the documentation tells of a metric."""

    THROUGHPUT = "Throughput"
    OFFSETS = "Offsets and replicas"
    TRANSACTIONS = "Transactions"
    RETENTION = "Retention and log health"
    OBSERVER = "The observer itself"


class Total(StrEnum):
    """What stands for a partition's series in its topic's when there would be too many."""

    LED = "led"  # sum of what was appended while each replica led: an election moves no history, so `rate` sees no jump
    LOGS = "logs"  # sum over the topic's logs on the broker: what befell each log by itself
    SHOWN = "shown"  # sum over the exported partitions
    LARGEST = "largest"  # the largest of the exported partitions
    NONE = "none"  # no total means anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. ``unit`` is "" where a plain number is counted.

    ``column`` is the column of `streaming.rows.STATES`, or of those that the exporter works out, that a partition's series shows, "" where
    it is no such series. ``only`` is one that has to be above 0 for it.
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


PARTITION = ("broker", "topic", "partition")


def _throughput(
    name: str, type: Type, unit: str, help: str, *, column: str = "", total: Total, labels: tuple[str, ...] = PARTITION
) -> Metric:
    return Metric(name=name, type=type, labels=labels, unit=unit, section=Section.THROUGHPUT, help=help, column=column, total=total)


def _offsets(name: str, help: str, *, unit: str = "", column: str, total: Total = Total.NONE) -> Metric:
    return Metric(name=name, type=Type.GAUGE, labels=PARTITION, unit=unit, section=Section.OFFSETS, help=help, column=column, total=total)


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
) -> Metric:
    section = Section.RETENTION
    return Metric(name=name, type=Type.GAUGE, labels=labels, unit=unit, section=section, help=help, column=column, total=total, only=only)


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
    "else the leader's checkpoint.",
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
    "1 if this replica is known to lead its partition, by the newest metadata read on any watched broker.",
    column="leader",
)
LEADER_EPOCH = _offsets(
    "segtail_partition_leader_epoch",
    "The partition's leader epoch, by the newest metadata read on any watched broker.",
    column="leader_epoch",
)
REPLICAS = _offsets(
    "segtail_partition_replicas",
    "Replicas of the partition, by the metadata log.",
    column="replicas",
)
IN_SYNC_REPLICAS = _offsets(
    "segtail_partition_in_sync_replicas",
    "In-sync replicas of the partition, by the metadata log.",
    column="in_sync_replicas",
    total=Total.NONE,
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
    "Open transactions, silent for longer than hanging_after, that no coordinator knows; absent where that cannot be told.",
    column="hanging_transactions",
    total=Total.SHOWN,
)
LATE_START = _transactions(
    "segtail_late_transaction_start_timestamp_seconds",
    Type.GAUGE,
    "When a transaction began that has been open for longer than late_after: hanging ones first, then the oldest.",
    unit="seconds",
    labels=(*PARTITION, "producer_id", "first_offset"),
)
LATE_INFO = _transactions(
    "segtail_late_transaction_info",
    Type.GAUGE,
    "1 for each of those transactions: whose it is, and what its coordinator says.",
    labels=(*PARTITION, "producer_id", "first_offset", "producer_epoch", "transactional_id", "coordinator_state", "verdict"),
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
    "Partitions of __transaction_state that could be read from a current replica.",
    labels=(),
)
COORDINATOR_NOT_UNDERSTOOD = _transactions(
    "segtail_coordinator_entries_not_understood",
    Type.GAUGE,
    "Entries of __transaction_state of a version that is not known, or damaged: as long as there are any, no verdict is certain.",
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
SEGMENT_LIMIT_SECONDS = _retention(
    "segtail_partition_segment_limit_seconds",
    "Effective segment.ms.",
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
    "For how long the first segment could have been deleted and is still there; up to one check interval is normal.",
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
    "1 for every partition: its topic id, cleanup policy, and where its retention limit comes from.",
    labels=(*PARTITION, "topic_id", "cleanup_policy", "limit_source"),
)
MIN_IN_SYNC_REPLICAS = _offsets(
    "segtail_partition_min_in_sync_replicas",
    "Effective min.insync.replicas.",
    column="min_in_sync_replicas",
)
REPLICA_LAG = _offsets(
    "segtail_partition_replica_lag_offsets",
    "Offsets that an observed follower is behind the leader's log end offset, where it is behind.",
    column="",
)
UNOBSERVED = _broker("segtail_partitions_unobserved", ("broker",), "Partitions led by a broker that no agent watches.")
CONTROLLER = _broker("segtail_cluster_controller_id", (), "Node id of the active controller, by the quorum-state file.")
BROKER_FENCED = _broker("segtail_broker_fenced", ("broker",), "1 if the metadata log says that the broker is fenced.")
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
    "Bytes in the log dir that are no live log: what waits for its deletion, moves, is left over, indexes, metadata.",
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
    "When the broker last wrote the high watermarks of the log dir; a running broker does every 5 seconds.",
    unit="seconds",
)
BROKER_INFO = _broker("segtail_broker_info", ("broker", "cluster_id", "agent"), "1 for every watched broker: its cluster and its agent.")
UNREADABLE_LOGS = _broker(
    "segtail_unreadable_logs",
    ("broker",),
    "Logs that could not be read at the last try: an I/O error, a missing permission, no file descriptor left. They stand still.",
)
METADATA_READABLE = _broker(
    "segtail_broker_metadata_readable", ("broker",), "1 if the broker's own copy of the metadata log could be read."
)
BUILD_INFO = _observer(
    "segtail_build_info",
    Type.GAUGE,
    ("version", "spark_version", "python_version"),
    "",
    "1: the versions that run.",
)
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
    "What an agent could not believe, so that something else stood in for it: a producer_snapshot (an older one, or the log itself), a "
    "time_index (its segment was scanned), the value of a configuration (the next level counts).",
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
    "1 while the metrics are more than a few seconds behind the broker's logs: rates are backlog then, not traffic.",
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
    "How long a micro-batch took.",
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
    LEADER_EPOCH,
    REPLICAS,
    IN_SYNC_REPLICAS,
    MIN_IN_SYNC_REPLICAS,
    REPLICA_LAG,
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
    LATE_START,
    LATE_INFO,
    LATE_OMITTED,
    COORDINATOR_TRANSACTIONS,
    COORDINATOR_PARTITIONS,
    COORDINATOR_READABLE,
    COORDINATOR_NOT_UNDERSTOOD,
    ACTIVE_PRODUCERS,
    SEQUENCE_GAPS,
    SEGMENTS_ROLLED,
    SEGMENTS_DELETED,
    TRUNCATIONS,
    TRUNCATED_BYTES,
    CORRUPT_BATCHES,
    SIZE,
    SEGMENT_COUNT,
    ACTIVE_SIZE,
    ACTIVE_FIRST_TIMESTAMP,
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
    BROKER_FENCED,
    BROKER_INFO,
    UNREADABLE_LOGS,
    METADATA_READABLE,
    BUILD_INFO,
    AGENT_UP,
    AGENT_PROBLEM,
    AGENT_DOUBTS,
    AGENT_CLOCK_AHEAD,
    CATCHING_UP,
    TAIL_LAG_BYTES,
    TAIL_LAG_SECONDS,
    SKIPPED_BYTES,
    LAST_LOOK,
    BATCH_DURATION,
    RESTARTS,
    SERIES_DROPPED,
    THRESHOLD_SECONDS,
    THRESHOLD_RATIO,
    THRESHOLD_BYTES,
)
"""All of them, in the order of the page."""
