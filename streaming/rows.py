"""The rows that agents, source and query exchange, column by column.

There are two tables. *Events* go from an agent's journal through Flight and Spark's source into the fold. *States* come out of the fold and
go into the metrics table. Both are declared once here as pyarrow schemas; the modules that need Spark's types derive them from these.

Units: offsets and positions are Kafka's own (a position is a byte in a ``.log``), times are Unix milliseconds, -1 means "none".
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

import numpy as np
import pyarrow as pa

from streaming.codecs import CODECS as CODECS

BATCH_BYTES_BOUNDS = tuple(4**n for n in range(4, 12))
"""Upper bounds (inclusive) of the batch size histogram: 256 B to 4 MiB; one more bucket takes the rest."""

BATCH_RECORDS_BOUNDS = tuple(4**n for n in range(8))
"""Upper bounds (inclusive) of the records-per-batch histogram: 1 to 16,384; one more bucket takes the rest."""

TRANSACTION_SECONDS_BOUNDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)
"""Upper bounds (inclusive) of the histogram of transactions' durations: 10 ms to 24 h; one more bucket takes the rest."""

SKIP_REASONS = ("deleted", "truncated", "corrupt", "journal_trimmed", "agent_lost")
"""The reasons why log bytes never reached the counters, in the order of the ``skipped_bytes`` list."""


class Kind(StrEnum):
    """The kind of an event."""

    APPEARED = "appeared"  # a log is watched from next_offset on; coordinator, if set, has all entries before that
    APPENDED = "appended"  # whole batches were appended: [start_position, end_position) of segment
    TRUNCATED = "truncated"  # the log now ends at next_offset; bytes were cut off
    SKIPPED = "skipped"  # bytes (0: there never were any) between base_offset and next_offset will never be counted: reason
    CORRUPT = "corrupt"  # the log cannot be parsed at start_position of segment: reason in words
    GONE = "gone"  # the log left: reason "deleted" (with its topic) or "moved"
    UNCLEAN = "unclean"  # an unclean election: leader_epoch begins at next_offset (-1 not known); reason: who was in sync, by commas
    FOUND = "found"  # the list of a log's segments and related values; it replaces what was known
    CENSUS = "census"  # one of the logs that an agent has: only its key and its log dir
    CENSUS_END = "census_end"  # closes a census: logs that it lacked are gone, except in the log dirs that reason names, one a line
    MISSED = "missed"  # a consumer missed a part of a coordinator's log: its entries are not known until they are sent again
    ARRIVED = "arrived"  # the agent's journal was read up to seq; bytes is its total there. Added by the reader of the journal
    RECALL = "recall"  # without agent and journal: a run of the query begins, and the shard has to hand out all its logs. From the source


class Step(IntEnum):
    """The kind of a row of `TRANSACTION_STEPS`."""

    DATA = 0  # transactional batches of one producer, without a marker of that producer among them
    COMMIT = 1  # a COMMIT marker
    ABORT = 2  # an ABORT marker
    ONGOING = 3  # open before the first byte that is read: from a producer snapshot


class StartSource(IntEnum):
    """The source of a transaction's start time, the most reliable first."""

    COORDINATOR = 1  # the coordinator's transactionStartTimestamp; known only where the metrics are rendered
    SEEN = 2  # the agent's clock, the range was seen within seconds of its append
    RECORDED = 3  # the first batch's timestamp, limited by the times of the files
    SNAPSHOT = 4  # the data is gone: the producer snapshot's timestamp, limited by the time of that file


TRANSACTION_STEPS = np.dtype(
    [
        ("step", "u1"),  # Step
        ("source", "u1"),  # StartSource of start_ms; 0 for markers
        ("producer_epoch", "<i2"),
        ("producer_id", "<i8"),
        ("first_offset", "<i8"),  # of the first batch; for a marker its offset
        ("next_offset", "<i8"),  # after the last batch, or the marker
        ("bytes", "<i8"),  # of its batches
        ("bytes_before", "<i8"),  # bytes of the range before first_offset; -1 for ONGOING
        ("start_ms", "<i8"),  # when the first batch was appended, by source; for a marker, when it was appended
        ("last_ms", "<i8"),  # when the last batch was appended, by the same clock
    ]
)
"""The steps of a range's transactions, sorted by ``first_offset``; ranges without transactional batches have none."""

TRANSACTIONS = np.dtype(
    [
        ("source", "u1"),  # StartSource of start_ms
        ("committed", "i1"),  # 1 committed, 0 aborted, by its marker; -1 while it is open
        ("producer_epoch", "<i2"),  # of its data
        ("producer_id", "<i8"),
        ("first_offset", "<i8"),
        ("next_offset", "<i8"),  # after its last batch of data
        ("marker_offset", "<i8"),  # -1 while it is open
        ("bytes", "<i8"),  # of data seen
        ("bytes_at", "<i8"),  # appended_bytes of the log when its first batch was appended; -1 if that is not known
        ("start_ms", "<i8"),
        ("last_ms", "<i8"),
    ]
)
"""The transactions of one log that are open, or closed by a marker that may not be replicated yet; sorted by ``first_offset``."""

TIME_UNKNOWN = -2
"""``largest_timestamp`` of a segment that was not scanned for it yet: values that depend on it are not known either."""

SEGMENTS = np.dtype(
    [
        ("base_offset", "<i8"),
        ("size", "<i8"),  # bytes, without the zero tail of a preallocated file
        ("largest_timestamp", "<i8"),  # of its records, -1 none, TIME_UNKNOWN
        ("modified_ms", "<i8"),  # of the file: Kafka uses it if there is no timestamp
    ]
)
"""The segments of one log in order, the active one last."""

_TEXT, _INT, _LONG = pa.string(), pa.int32(), pa.int64()
_LONGS = pa.list_(pa.int64())

EVENTS = pa.schema(
    [
        ("agent", _TEXT),  # name of the agent
        ("journal", _TEXT),  # id of its journal
        ("seq", _LONG),  # position in the journal
        ("part", _INT),  # order of rows with the same seq
        ("kind", _TEXT),
        ("broker", _INT),
        ("log_dir", _TEXT),
        ("topic", _TEXT),
        ("partition", _INT),
        ("topic_id", _TEXT),  # "" if there is no partition.metadata
        ("segment", _LONG),  # base offset of the segment
        ("start_position", _LONG),
        ("end_position", _LONG),
        ("base_offset", _LONG),
        ("next_offset", _LONG),
        ("log_epoch", _INT),  # partition leader epoch of the last batch, -1 unknown
        ("leads", _INT),  # whether this replica led in the leader epoch of the range, which has one only: 1, 0, -1 not known
        ("settled", pa.bool_()),  # the initial backlog of the log ends before this row
        ("seen_at", _LONG),  # when the bytes were seen (for bytes that existed before, the file's mtime)
        ("max_timestamp", _LONG),  # largest record timestamp
        ("bytes", _LONG),  # of all batches; for TRUNCATED and SKIPPED the bytes concerned
        ("batches", _LONG),  # data batches
        ("records", _LONG),  # data records
        ("old_format_batches", _LONG),
        ("codec_bytes", _LONGS),  # bytes of data batches by codec id
        ("batch_bytes_buckets", _LONGS),
        ("batch_records_buckets", _LONGS),
        ("detail", pa.binary()),  # the batches one by one (see kafka.detail), only in ranges that are published again
        ("transactions", pa.binary()),  # TRANSACTION_STEPS of the range, or at its beginning; null for none
        ("active_producers", _INT),  # producer ids with state at the end of the range, -1 not known
        ("sequence_gaps", _LONG),
        ("coordinator", pa.binary()),  # COORDINATOR, the newest entries of a range of `__transaction_state`; null for none
        ("high_watermark", _LONG),  # from the checkpoint file, -1 none: below it the fold keeps no closed transaction
        ("segments", pa.binary()),  # SEGMENTS of a log, all of them; null: as last published
        ("local_log_start_offset", _LONG),  # only with remote storage; -1 none, as for the next columns
        ("oldest_timestamp", _LONG),  # of the first batch at or after the log start that holds records
        ("active_first_timestamp", _LONG),  # of the first batch of the active segment
        ("active_created_ms", _LONG),  # when the active segment was created
        ("log_start_offset", _LONG),
        ("leader", _INT),  # by the metadata log; -1 none, -2 not known. Decides whose ranges count if another agent can read no metadata
        ("leader_epoch", _INT),  # by the metadata log; -1 not known
        ("reason", _TEXT),
        ("follows", _LONG),  # in a log of `__transaction_state`: the offset up to which the row before covers the log; -1 not known
    ]
)
"""One row for each event, except a census: it becomes one row for every log and a closing one."""

SHARD, ROWS = "shard", "rows"

PACKED = pa.schema([(SHARD, _INT), (ROWS, pa.binary())])
"""Rows in the form in which they pass through Spark: all rows of one shard in one value. Spark only reads the key of the fold.

``rows`` is one Arrow record batch without its schema (`pack_rows`). Spark does not parse it, so its content costs Spark nothing.
"""

BATCHES = pa.schema(
    [
        ("broker", _INT),
        ("log_dir", _TEXT),
        ("topic", _TEXT),
        ("partition", _INT),
        ("topic_id", _TEXT),
        ("segment", _LONG),
        ("position", _LONG),
        ("size", _INT),
        ("base_offset", _LONG),
        ("last_offset", _LONG),
        ("records", _INT),
        ("leader_epoch", _INT),
        ("magic", _INT),
        ("codec", _TEXT),
        ("transactional", pa.bool_()),
        ("control", pa.bool_()),
        ("log_append_time", pa.bool_()),
        ("max_timestamp", pa.timestamp("us", "UTC")),  # null where there is none
        ("producer_id", _LONG),  # -1 none, as for all that follow
        ("producer_epoch", _INT),
        ("base_sequence", _INT),
    ]
)
"""One row for each record batch, scanned when it is read, for people who explore. Fields that magic 0 and 1 lack are -1."""


TOMBSTONE = ""
"""Used instead of a state: the transactional id has expired."""

NOT_UNDERSTOOD = "?"
"""Used instead of a state: an entry of a later version, or a damaged one. Its producer and its state are not known."""

COORDINATOR = pa.schema(
    [
        ("transactional_id", _TEXT),
        ("offset", _LONG),  # of the record in its `__transaction_state` partition
        ("state", _TEXT),  # as in `segtail_coordinator_transactions`; or TOMBSTONE, or NOT_UNDERSTOOD
        ("producer_id", _LONG),
        ("producer_epoch", _INT),
        ("timeout_ms", _INT),
        ("start_ms", _LONG),  # transactionStartTimestamp, -1 none
        ("last_update_ms", _LONG),
        ("partitions", pa.list_(pa.string())),  # "topic-partition"
        ("previous_producer_id", _LONG),  # the producer id before it, whose epochs were used up; -1 none
    ]
)
"""Newest entries of `__transaction_state`, at most one for each transactional.id."""


class Change(StrEnum):
    """The kind of a state row."""

    LOG = "log"  # absolute values of one log
    DEPARTED = "departed"  # the log left this broker, its share of the topic's counters stays
    REMOVED = "removed"  # nothing is left of the log: drop every series
    RESIDUE = "residue"  # the remains of a broker's removed logs: skipped bytes only
    RECALLED = "recalled"  # a shard has handed out all its logs in the rows of this micro-batch
    ARRIVED = "arrived"  # an agent's journal, up to some point, is in the states of this micro-batch and earlier ones


STATES = pa.schema(
    [
        ("change", _TEXT),
        ("agent", _TEXT),
        ("broker", _INT),
        ("topic", _TEXT),
        ("partition", _INT),
        ("topic_id", _TEXT),
        ("log_dir", _TEXT),
        ("settled", pa.bool_()),
        ("log_start_offset", _LONG),
        ("log_end_offset", _LONG),
        ("log_epoch", _INT),
        ("last_append_ms", _LONG),
        ("max_timestamp_ms", _LONG),
        ("appended_bytes", _LONG),
        ("appended_batches", _LONG),
        ("appended_records", _LONG),
        ("old_format_batches", _LONG),
        ("corrupt_batches", _LONG),
        ("truncations", _LONG),
        ("truncated_bytes", _LONG),
        ("skipped_bytes", _LONGS),  # by SKIP_REASONS
        ("share_codec_bytes", _LONGS),  # this log's share of its topic's counters: appended while it led
        ("share_batch_bytes_buckets", _LONGS),
        ("share_batch_records_buckets", _LONGS),
        ("share_records", _LONG),
        ("transactional", pa.bool_()),  # had a transactional batch
        ("committed_transactions", _LONG),
        ("aborted_transactions", _LONG),
        ("empty_markers", _LONG),
        ("aborted_bytes", _LONG),
        ("share_transaction_buckets", _LONGS),  # by TRANSACTION_SECONDS_BOUNDS
        ("share_transaction_ms", _LONG),  # sum of the durations in those buckets
        ("active_producers", _INT),
        ("sequence_gaps", _LONG),
        ("segments_rolled", _LONG),
        ("segments_deleted", _LONG),
        ("active_segment", _LONG),  # base offset of the segment that was last appended to, -1 none yet
        ("active_position", _LONG),  # up to which byte it has been read
        ("active_max_timestamp_ms", _LONG),  # largest record timestamp that was read in it
        ("truncated_committed", _LONG),  # offsets that were cut off although they were below the high watermark
        ("unclean_elections", _LONG),  # by which this log's broker became leader
        ("unclean_ms", _LONG),  # when the last of them was held, by the metadata log
        ("unclean_from", _LONG),  # the broker that had most of the offsets that the last one lost
        ("unclean_lost_upper", _LONG),  # offsets that all of them lost, at most; -1 not known
        ("unclean_lost_acknowledged", _LONG),  # lost offsets below the high watermark, at least; -1 not known
        ("transactions", pa.binary()),  # TRANSACTIONS of the log; null for none
        ("coordinator", pa.binary()),  # COORDINATOR of a log of `__transaction_state`; null: not changed
        ("segments", pa.binary()),  # SEGMENTS of the log; null: not changed
        ("local_log_start_offset", _LONG),
        ("oldest_timestamp", _LONG),
        ("active_first_timestamp", _LONG),
        ("active_created_ms", _LONG),
        ("coordinator_upto", _LONG),  # offset up to which `coordinator` holds all entries from the first byte on, -1 not known
    ]
)
"""Rows out of the fold. ``REMOVED`` rows fill only the identifying columns.

A ``RECALLED`` row has its shard in ``partition``, and closes everything that the shard has handed out. An ``ARRIVED`` row has the journal
in ``topic_id``, the seq of its point in ``log_end_offset``, and the total of its point in ``appended_bytes``.
"""


def pack_rows(rows: pa.RecordBatch) -> bytes:
    """Pack rows of `EVENTS` or `STATES` into one value for `PACKED`."""
    packed: bytes = rows.serialize().to_pybytes()
    return packed


def unpack_rows(packed: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """Unpack a value of `pack_rows`."""
    return pa.ipc.read_record_batch(pa.py_buffer(packed), schema)


def unpack_entries(packed: bytes) -> pa.RecordBatch:
    """Unpack rows of `COORDINATOR` from a value of `pack_rows`, also of an earlier version, which had fewer columns.

    Raises:
        pa.ArrowInvalid, OSError: the value is something else.
    """
    try:
        return unpack_rows(packed, COORDINATOR)
    except (pa.ArrowInvalid, OSError):
        earlier = unpack_rows(packed, COORDINATOR.remove(COORDINATOR.get_field_index("previous_producer_id")))
        none = pa.array([-1] * len(earlier), pa.int64())
        return pa.RecordBatch.from_arrays([*earlier.columns, none], schema=COORDINATOR)


@dataclass(frozen=True, slots=True)
class EventRow:
    """A row of `EVENTS` as a value. The fields are its columns, in its order."""

    agent: str
    journal: str
    seq: int
    part: int
    kind: str
    broker: int
    log_dir: str
    topic: str
    partition: int
    topic_id: str
    segment: int
    start_position: int
    end_position: int
    base_offset: int
    next_offset: int
    log_epoch: int
    leads: int
    settled: bool
    seen_at: int
    max_timestamp: int
    bytes: int
    batches: int
    records: int
    old_format_batches: int
    codec_bytes: tuple[int, ...]
    batch_bytes_buckets: tuple[int, ...]
    batch_records_buckets: tuple[int, ...]
    detail: "Blob | None"
    transactions: "Blob | None"
    active_producers: int
    sequence_gaps: int
    coordinator: "Blob | None"
    high_watermark: int
    segments: "Blob | None"
    local_log_start_offset: int
    oldest_timestamp: int
    active_first_timestamp: int
    active_created_ms: int
    log_start_offset: int
    leader: int
    leader_epoch: int
    reason: str
    follows: int = -1


Blob = bytes
"""The type `bytes`, for a class in which that name is a column."""
