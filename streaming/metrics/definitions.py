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
    RETENTION = "Retention and log health"
    OBSERVER = "The observer itself"


class Total(StrEnum):
    """What stands for a partition's series in its topic's when there would be too many."""

    LED = "led"  # sum of what was appended while each replica led: an election moves no history, so `rate` sees no jump
    LOGS = "logs"  # sum over the topic's logs on the broker: what befell each log by itself
    LARGEST = "largest"  # the largest of the exported partitions
    NONE = "none"  # no total means anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. ``unit`` is "" where a plain number is counted.

    ``column`` is the column of `streaming.rows.STATES` that a partition's series shows, "" where it is no such series.
    """

    name: str
    type: Type
    labels: tuple[str, ...]
    unit: str
    section: Section
    help: str
    column: str = ""
    total: Total = Total.NONE


PARTITION = ("broker", "topic", "partition")


def _throughput(
    name: str, type: Type, unit: str, help: str, *, column: str = "", total: Total, labels: tuple[str, ...] = PARTITION
) -> Metric:
    return Metric(name=name, type=type, labels=labels, unit=unit, section=Section.THROUGHPUT, help=help, column=column, total=total)


def _offsets(name: str, help: str, *, column: str) -> Metric:
    return Metric(name=name, type=Type.GAUGE, labels=PARTITION, unit="", section=Section.OFFSETS, help=help, column=column)


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


def _broker(name: str, labels: tuple[str, ...], help: str) -> Metric:
    return Metric(name=name, type=Type.GAUGE, labels=labels, unit="", section=Section.RETENTION, help=help)


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
BROKER_INFO = _broker("segtail_broker_info", ("broker", "cluster_id", "agent"), "1 for every watched broker: its cluster and its agent.")
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
AGENT_UP = _observer("segtail_agent_up", Type.GAUGE, ("broker", "agent"), "", "1 if the agent answered the last poll.")
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
    "Bytes that the broker's agent has published and that are not yet in the metrics.",
)
TAIL_LAG_SECONDS = _observer(
    "segtail_tail_lag_seconds",
    Type.GAUGE,
    ("broker",),
    "seconds",
    "For how long the oldest of the bytes behind segtail_tail_lag_bytes have been waiting.",
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
    LEADER,
    LEADER_EPOCH,
    TRUNCATIONS,
    TRUNCATED_BYTES,
    CORRUPT_BATCHES,
    BROKER_INFO,
    METADATA_READABLE,
    BUILD_INFO,
    AGENT_UP,
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
