"""What the rows of events (`event_row`) and states (`state_row`) consist of: kinds, histograms, and packed values.

Units: offsets and positions are Kafka's own (a position is a byte in a ``.log``), times are Unix milliseconds, -1 means "none".
"""

from collections.abc import Mapping
from enum import IntEnum, StrEnum

import numpy as np
import pyarrow as pa

from streaming.common.arrow_streams import NOT_ARROW, check_buffers, refuse_compressed
from streaming.common.codecs import CODECS as CODECS

BATCH_BYTES_BOUNDS = tuple(4**n for n in range(4, 12))
"""Upper bounds (inclusive) of the batch size histogram: 256 B to 4 MiB; one more bucket takes the rest."""

BATCH_RECORDS_BOUNDS = tuple(4**n for n in range(8))
"""Upper bounds (inclusive) of the records-per-batch histogram: 1 to 16,384; one more bucket takes the rest."""

TRANSACTION_SECONDS_BOUNDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)
"""Upper bounds (inclusive) of the histogram of transactions' durations: 10 ms to 24 h; one more bucket takes the rest."""

APPEND_DELAY_SECONDS_BOUNDS = (30, 300, 3_600, 21_600, 86_400, 604_800, 2_592_000)
"""Upper bounds (inclusive) of the histogram of how late batches arrive: 30 s to 30 days; one more bucket takes the rest."""

SKIP_REASONS = ("deleted", "corrupt", "agent_lost")
"""The reasons why log bytes never reached the counters, in the order of the ``skipped_bytes`` list."""

SKIPPED_COPIES = ("exported", "follower")
"""Whose bytes these are: those of a replica that is exported, or of a follower's copy, whose leader's counters have them."""

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

EXPIRED = np.dtype(
    [
        ("batches", "<i8"),
        ("records", "<i8"),
        ("bytes", "<i8"),
        ("appended_ms", "<i8"),  # when the last of them was appended, at the earliest
        ("first_timestamp", "<i8"),  # largest record timestamp of the first of them
        ("last_timestamp", "<i8"),  # of the last of them
        ("last_offset", "<i8"),  # of the last of them
        ("first_offset", "<i8"),  # base offset of the first of them
    ]
)
"""One item: the data batches of a range that were past the retention of their topic when they were appended to its leader."""

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

TRANSACTION_ROWS = pa.schema(
    [
        ("broker", _INT),
        ("log_dir", _TEXT),
        ("topic", _TEXT),
        ("partition", _INT),
        ("topic_id", _TEXT),
        ("committed", _INT),  # 1 committed, 0 aborted, by its marker; -1 while it is open
        ("producer_id", _LONG),
        ("producer_epoch", _INT),
        ("first_offset", _LONG),  # -1 of a marker that ended nothing here
        ("next_offset", _LONG),  # after its last batch of data
        ("marker_offset", _LONG),  # -1 while it is open
        ("bytes", _LONG),  # of its data; -1 not known
        ("start_ms", _LONG),
        ("source", _INT),  # StartSource of start_ms; 0 of a marker that ended nothing here
        ("end_ms", _LONG),  # when the marker was appended; -1 while it is open
    ]
)
"""One row for each marker with its transaction in this log, and for each transaction that is open."""

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

PRODUCER_OWNERS = pa.schema(
    [
        ("broker", _INT),
        ("partition", _INT),  # of `__transaction_state`
        ("offset", _LONG),  # of a record that says so
        ("producer_id", _LONG),
        ("transactional_id", _TEXT),  # as it may leave the host
    ]
)
"""The transactional ids that producer ids were given to. A producer id is never given to another one, so a record says it for good."""

NONE_LATER: Mapping[str, object] = {}


def pack_rows(rows: pa.RecordBatch) -> bytes:
    """Pack rows of `EVENTS` or `STATES` into one value for `PACKED`."""
    packed: bytes = rows.serialize().to_pybytes()
    return packed


class Kind(StrEnum):
    """The kind of an event."""

    APPEARED = "appeared"  # a log is watched from next_offset on; coordinator, if set, has all entries before that
    APPENDED = "appended"  # whole batches were appended: [start_position, end_position) of segment
    TRUNCATED = "truncated"  # the log now ends at next_offset; bytes were cut off
    SKIPPED = "skipped"  # bytes (0: there never were any) between base_offset and next_offset will never be counted: reason
    CORRUPT = "corrupt"  # the log cannot be parsed at start_position of segment: reason in words
    GONE = "gone"  # the log left the log dirs that log_dir names, one a line; none: its topic is no more. Reason "deleted" or "moved"
    UNCLEAN = "unclean"  # an unclean election: leader_epoch begins at next_offset (-1 not known); reason: who was in sync, by commas
    FOUND = "found"  # the list of a log's segments and related values; it replaces what was known
    CENSUS = "census"  # one of the logs that an agent has: only its key and its log dir
    CENSUS_END = "census_end"  # closes a census: the log dirs ("broker:path") in log_dir have no other logs; reason: those not looked into
    ARRIVED = "arrived"  # the agent's rows were read up to seq; bytes is its total there. Added by who reads them
    RECALL = "recall"  # without agent and journal: a run of the query begins, and the shard has to hand out all its logs. From the source

    @classmethod
    def _missing_(cls, value: object) -> "Kind":
        """A kind of a later version: a `Kind` that is none of these."""
        later = str.__new__(cls, value)
        later._name_ = later._value_ = str(value)
        return later


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


class Change(StrEnum):
    """The kind of a state row."""

    LOG = "log"  # absolute values of one log
    DEPARTED = "departed"  # the log left this broker, its share of the topic's counters stays
    REMOVED = "removed"  # nothing is left of the log: drop every series
    RESIDUE = "residue"  # the remains of a broker's removed logs: skipped bytes only
    RECALLED = "recalled"  # a shard has handed out all its logs in the rows of this micro-batch
    ARRIVED = "arrived"  # an agent's journal, up to some point, is in the states of this micro-batch and earlier ones


def unpack_entries(packed: bytes) -> pa.RecordBatch:
    """Unpack rows of `COORDINATOR` from a value that an agent has sent; raises as `unpack_rows` does, also for damaged rows."""
    try:
        refuse_compressed(pa.ipc.read_message(packed))
    except NOT_ARROW as error:
        raise pa.ArrowInvalid(str(error)) from error
    entries = unpack_rows(packed, COORDINATOR)
    check_buffers(entries, len(packed))
    return entries


def unpack_rows(packed: bytes, schema: pa.Schema, later: Mapping[str, object] = NONE_LATER) -> pa.RecordBatch:
    """Unpack a value of `pack_rows`.

    Args:
        later: the columns at the end of the schema that an earlier version may not have had when it packed the rows, with their defaults.
            Columns that a later version has added after those of the schema are left out.

    Raises:
        pa.ArrowInvalid: the value is something else.
    """
    try:
        return pa.ipc.read_record_batch(pa.py_buffer(packed), schema)
    except (pa.ArrowInvalid, *NOT_ARROW) as error:
        last = schema.field(len(schema) - 1)
        if last.name not in later:
            raise pa.ArrowInvalid(str(error)) from error
        earlier = unpack_rows(packed, schema.remove(len(schema) - 1), later)
    return pa.RecordBatch.from_arrays([*earlier.columns, pa.array([later[last.name]] * len(earlier), last.type)], schema=schema)
