"""Transactions of partitions, those that are late, their coordinators, and producers."""

from streaming.common.definitions.metric import PARTITION, Metric, Total

OPEN_TRANSACTIONS = Metric(
    "segtail_partition_open_transactions",
    "Transactions with data on the partition and no marker yet.",
    column="open_transactions",
    total=Total.SHOWN,
)
OLDEST_OPEN_START = Metric(
    "segtail_partition_oldest_open_transaction_start_timestamp_seconds",
    "When the open transaction with the lowest first offset began.",
    column="oldest_open_start_ms",
)
OLDEST_OPEN_LAST_APPEND = Metric(
    "segtail_partition_oldest_open_transaction_last_append_timestamp_seconds",
    "When the producer of the open transaction with the lowest first offset last appended to it here.",
    column="oldest_open_last_append_ms",
)
COMMITTED = Metric(
    "segtail_partition_committed_transactions_total",
    "COMMIT markers that closed an open transaction.",
    column="committed_transactions",
    total=Total.SHOWN,
)
ABORTED = Metric(
    "segtail_partition_aborted_transactions_total",
    "ABORT markers that closed an open transaction.",
    column="aborted_transactions",
    total=Total.SHOWN,
)
EMPTY_MARKERS = Metric(
    "segtail_partition_empty_transaction_markers_total",
    "Markers that closed no open transaction on this partition.",
    column="empty_markers",
    total=Total.SHOWN,
)
ABORTED_BYTES = Metric(
    "segtail_partition_aborted_bytes_total", "Bytes of data in transactions that were aborted.", column="aborted_bytes", total=Total.SHOWN
)
TRANSACTION_DURATION = Metric(
    "segtail_topic_transaction_duration_seconds",
    "Time from the first batch of a transaction on a partition to its marker there, counted where this broker led.",
    ("broker", "topic"),
    histogram=True,
)
HANGING = Metric(
    "segtail_partition_hanging_transactions",
    "Open transactions, silent for longer than hanging_after, that no coordinator will end, as last known.",
    column="hanging_transactions",
    total=Total.SHOWN,
)
STUCK = Metric(
    "segtail_partition_stuck_transactions",
    "Open transactions, silent for longer than stuck_after, that are not hanging, overdue or in two-phase commit, as last known.",
    column="stuck_transactions",
    total=Total.SHOWN,
)
STALLED = Metric(
    "segtail_partition_last_stable_offset_stalled",
    "1 where records wait behind a transaction that has been open for longer than hanging_after.",
    column="stalled",
    total=Total.SHOWN,
)
LATE_START = Metric(
    "segtail_late_transaction_start_timestamp_seconds",
    "When a transaction began that has been open for longer than late_after: hanging ones first, then stuck ones, then the oldest.",
    (*PARTITION, "producer_id", "first_offset"),
)
LATE_TIMEOUT = Metric(
    "segtail_late_transaction_timeout_timestamp_seconds",
    "When the timeout of such a transaction has passed, and its coordinator ends it; absent if it has none, or if that is not known.",
    (*PARTITION, "producer_id", "first_offset"),
)
LATE_INFO = Metric(
    "segtail_late_transaction_info",
    "1 for each of those transactions, with its owner and its coordinator's state. groups: those whose offsets wait for a hanging one "
    "in __consumer_offsets.",
    (*PARTITION, "producer_id", "first_offset", "producer_epoch", "transactional_id", "coordinator_state", "verdict", "stuck", "groups"),
)
LATE_OMITTED = Metric(
    "segtail_late_transactions_omitted",
    "Late transactions that are not listed, because of late_limit or of many partitions of one producer.",
    (),
)
COORDINATOR_TRANSACTIONS = Metric(
    "segtail_coordinator_transactions", "Entries of __transaction_state by the state of their transaction.", ("broker", "state")
)
COORDINATOR_PARTITIONS = Metric("segtail_coordinator_partitions", "Partitions of __transaction_state.", ())
COORDINATOR_READABLE = Metric(
    "segtail_coordinator_partitions_readable",
    "Partitions of __transaction_state with a current replica that was read to its end within the last minute (or three triggers), "
    "without loss, and understood.",
    (),
)
COORDINATOR_NOT_UNDERSTOOD = Metric(
    "segtail_coordinator_entries_not_understood",
    "Entries of __transaction_state that are damaged or of an unknown version. While there are any, no transaction is reported as hanging.",
    (),
)
COORDINATOR_OVERDUE = Metric(
    "segtail_coordinator_overdue_transactions",
    "Transactions that the coordinator on this broker holds as Ongoing, more than a minute past their timeout.",
    ("broker",),
)
COORDINATOR_SHORTENED = Metric(
    "segtail_coordinator_ids_shortened",
    "Transactional ids with more than 250 characters: everywhere their beginning and a hash stand for the id.",
    (),
)
ACTIVE_PRODUCERS = Metric(
    "segtail_partition_active_producers",
    "Producer ids of which the log has state; absent where there are more than producers_limit.",
    column="active_producers",
    total=Total.SHOWN,
)
SEQUENCE_GAPS = Metric(
    "segtail_partition_sequence_gaps_total",
    "Batches whose sequence does not follow the last one of their producer in the same epoch.",
    column="sequence_gaps",
    total=Total.SHOWN,
)
