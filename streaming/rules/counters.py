"""Which columns of an append are added to which counters, for the fold by rows and the one by columns."""

SUMMED = {
    "appended_bytes": "bytes",
    "appended_batches": "batches",
    "appended_records": "records",
    "old_format_batches": "old_format_batches",
    "sequence_gaps": "sequence_gaps",
}
"""The counters of a log to which each append adds a column."""

SHARED = {
    "share_codec_bytes": "codec_bytes",
    "share_batch_bytes_buckets": "batch_bytes_buckets",
    "share_batch_records_buckets": "batch_records_buckets",
    "share_records": "records",
    "share_append_delay_buckets": "append_delay_buckets",
    "share_append_delay_ms": "append_delay_ms",
    "share_ahead_batches": "ahead_batches",
}
"""The counters of a log's topic to which each append adds a column, if its replica led."""
