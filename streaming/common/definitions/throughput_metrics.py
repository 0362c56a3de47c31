"""What is appended to partitions and topics."""

from streaming.common.definitions.metric import Metric, Total

APPENDED_BYTES = Metric(
    "segtail_partition_appended_bytes_total",
    "Bytes appended to the log, control batches included.",
    column="appended_bytes",
    total=Total.LED,
)
APPENDED_BATCHES = Metric(
    "segtail_partition_appended_batches_total",
    "Data batches appended to the log; a v0 or v1 wrapper counts as one.",
    column="appended_batches",
    total=Total.LED,
)
APPENDED_RECORDS = Metric(
    "segtail_partition_appended_records_total",
    "Data records appended to the log, by the headers of batches.",
    column="appended_records",
    total=Total.LED,
)
_EXPIRED = (
    "whose newest record was past retention.ms when they were appended to this replica as the leader. Counted where cleanup.policy has "
    "delete, and the limit and the time of the append are known; not a first backlog. Absent where no limit in time is known."
)
EXPIRED_BATCHES = Metric(
    "segtail_partition_appended_expired_batches_total",
    f"Data batches {_EXPIRED}",
    column="share_expired_batches",
    total=Total.LED,
)
EXPIRED_RECORDS = Metric(
    "segtail_partition_appended_expired_records_total",
    "Records of the batches in segtail_partition_appended_expired_batches_total. A lower bound: old records in a batch with a newer one "
    "are not counted.",
    column="share_expired_records",
    total=Total.LED,
)
EXPIRED_BYTES = Metric(
    "segtail_partition_appended_expired_bytes_total",
    "Bytes of the batches in segtail_partition_appended_expired_batches_total.",
    column="share_expired_bytes",
    total=Total.LED,
)
APPEND_DELAY = Metric(
    "segtail_topic_append_delay_seconds",
    "How long before its append the newest record of a data batch is dated; up to eight seconds more. Where this broker led and the "
    "append was seen. 0 within 30 s; batches without a timestamp are left out. Off with export.append_delays: false.",
    ("broker", "topic"),
    histogram=True,
)
APPEND_AHEAD = Metric(
    "segtail_topic_append_ahead_batches_total",
    "Data batches dated more than 30 s after their append, where this broker led and the append was seen. Off with "
    "export.append_delays: false.",
    ("broker", "topic"),
)
CODEC_BYTES = Metric(
    "segtail_topic_codec_bytes_total",
    "Bytes of data batches by compression codec, appended while this broker led.",
    ("broker", "topic", "codec"),
)
BATCH_SIZE = Metric(
    "segtail_topic_batch_size_bytes", "Size of a data batch on disk, appended while this broker led.", ("broker", "topic"), histogram=True
)
BATCH_RECORDS = Metric(
    "segtail_topic_batch_records", "Records in a data batch, appended while this broker led.", ("broker", "topic"), histogram=True
)
_SKEW = (
    "of the topic's largest partition against the mean of its partitions: 1 where all are alike, the number of partitions where one has "
    "everything. Absent for an empty topic, and where a partition has no log that is seen"
)
SIZE_SKEW = Metric("segtail_topic_size_skew_ratio", f"Bytes {_SKEW}, or its size is not known.", ("topic",))
RECORDS_SKEW = Metric(
    "segtail_topic_records_skew_ratio",
    f"Data records on disk {_SKEW}, or is not counted, as in segtail_partition_records.",
    ("topic",),
)
LAST_APPEND = Metric(
    "segtail_partition_last_append_timestamp_seconds",
    "When the log was last seen to grow; at first, the modification time of its newest segment with data.",
    column="last_append_ms",
    total=Total.LARGEST,
)
MAX_RECORD_TIMESTAMP = Metric(
    "segtail_partition_max_record_timestamp_seconds", "Largest record timestamp seen.", column="max_timestamp_ms", total=Total.LARGEST
)
OLD_FORMAT_BATCHES = Metric("segtail_partition_old_format_batches_total", "Batches of message format 0 or 1.", column="old_format_batches")
