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
    "Data batches appended to the log; control batches are not counted, a v0 or v1 wrapper counts as one.",
    column="appended_batches",
    total=Total.LED,
)
APPENDED_RECORDS = Metric(
    "segtail_partition_appended_records_total",
    "Data records appended to the log: the count in the batch header, not the offset delta.",
    column="appended_records",
    total=Total.LED,
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
LAST_APPEND = Metric(
    "segtail_partition_last_append_timestamp_seconds",
    "When the log was last seen to grow; for a log seen for the first time, the modification time of its newest segment with data.",
    column="last_append_ms",
    total=Total.LARGEST,
)
MAX_RECORD_TIMESTAMP = Metric(
    "segtail_partition_max_record_timestamp_seconds", "Largest record timestamp seen.", column="max_timestamp_ms", total=Total.LARGEST
)
OLD_FORMAT_BATCHES = Metric("segtail_partition_old_format_batches_total", "Batches of message format 0 or 1.", column="old_format_batches")
