"""The rows of states, which go out of the fold into the metrics table. Each column is declared once: here.

Units as in `streaming.common.event_row`.
"""

from dataclasses import dataclass

import pyarrow as pa

from streaming.common.codecs import CODECS
from streaming.common.column_types import Blob, Count, Counts, Flag, Int, Long, Text, columns_of
from streaming.common.log_key import LogKey, key_of
from streaming.common.rows import (
    APPEND_DELAY_SECONDS_BOUNDS,
    BATCH_BYTES_BOUNDS,
    BATCH_RECORDS_BOUNDS,
    SKIP_REASONS,
    TRANSACTION_SECONDS_BOUNDS,
)

CHANGE = "change"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRow:
    """The values of one log, all of them absolute. A log that was just found has the defaults."""

    agent: Text
    broker: Int
    topic: Text
    partition: Int
    topic_id: Text
    log_dir: Text = ""
    settled: Flag = False
    log_start_offset: Long = -1
    start_after_crash: Long = -1  # where the log begins again if its broker is killed now; -1: there
    log_end_offset: Long = -1
    log_epoch: Int = -1
    high_watermark: Long = -1  # the last entry that was read: `transactions` has no closed one before it
    last_append_ms: Long = -1
    max_timestamp_ms: Long = -1
    appended_bytes: Count = 0
    appended_batches: Count = 0
    appended_records: Count = 0
    old_format_batches: Count = 0
    corrupt_batches: Count = 0
    truncations: Count = 0
    truncated_bytes: Count = 0
    skipped_bytes: Counts = (0,) * len(SKIP_REASONS)  # by SKIP_REASONS
    follower_skipped_bytes: Counts = (0,) * len(SKIP_REASONS)  # those of them that another broker led all the time
    share_codec_bytes: Counts = (0,) * len(CODECS)  # this log's share of its topic's counters: appended while it led
    share_batch_bytes_buckets: Counts = (0,) * (len(BATCH_BYTES_BOUNDS) + 1)
    share_batch_records_buckets: Counts = (0,) * (len(BATCH_RECORDS_BOUNDS) + 1)
    share_records: Count = 0
    transactional: Flag = False  # had a transactional batch
    committed_transactions: Count = 0
    aborted_transactions: Count = 0
    empty_markers: Count = 0
    aborted_bytes: Count = 0
    share_transaction_buckets: Counts = (0,) * (len(TRANSACTION_SECONDS_BOUNDS) + 1)  # by TRANSACTION_SECONDS_BOUNDS
    share_transaction_ms: Count = 0  # sum of the durations in those buckets
    active_producers: Int = -1
    sequence_gaps: Count = 0
    segments_rolled: Count = 0
    segments_deleted: Count = 0
    active_segment: Long = -1  # base offset of the segment that was last appended to, -1 none yet
    active_position: Long = 0  # up to which byte it has been read
    active_max_timestamp_ms: Long = -1  # largest record timestamp that was read in it
    truncated_committed: Count = 0  # offsets that were cut off although they were below the high watermark
    unclean_elections: Count = 0  # by which this log's broker became leader
    unclean_ms: Long = -1  # when the last of them was held, by the metadata log
    unclean_from: Long = -1  # the broker that had most of the offsets that the last one lost
    unclean_lost_upper: Long = -1  # offsets that all of them lost, at most; -1 not known
    unclean_lost_acknowledged: Long = -1  # lost offsets below the high watermark, at least; -1 not known
    transactions: Blob = None  # TRANSACTIONS of the log; null for none
    coordinator: Blob = None  # COORDINATOR of a log of `__transaction_state`; null: not changed
    segments: Blob = None  # SEGMENTS of the log; null: not changed
    local_log_start_offset: Long = -1
    oldest_timestamp: Long = -1
    active_first_timestamp: Long = -1
    active_created_ms: Long = -1
    coordinator_upto: Long = -1  # offset up to which `coordinator` holds all entries from the first byte on, -1 not known
    share_append_delay_buckets: Counts = (0,) * (len(APPEND_DELAY_SECONDS_BOUNDS) + 1)
    share_append_delay_ms: Count = 0
    share_ahead_batches: Count = 0
    judges_expiry: Flag = False  # batches past their retention when they were appended are counted, in the next columns
    share_expired_batches: Count = 0
    share_expired_records: Count = 0
    share_expired_bytes: Count = 0
    expired_since_ms: Long = -1  # when the first of those was appended that came one after the other (rules.expired_arrivals); -1 none
    expired_since_timestamp: Long = -1  # its largest record timestamp
    expired_before: Long = -1  # share_expired_records before it
    expired_ms: Long = -1  # when the last of them was appended
    expired_timestamp: Long = -1  # its largest record timestamp
    expired_offset: Long = -1  # its last offset
    expired_since_offset: Long = -1  # base offset of the first of them

    @property
    def key(self) -> LogKey:
        """The key of the log."""
        return key_of(self)


STATES = pa.schema([(CHANGE, pa.string()), *columns_of(StateRow)])
"""Rows out of the fold: what kind of change it is (`streaming.common.rows.Change`), and a `StateRow`. ``REMOVED`` rows fill only the key.

A ``RECALLED`` row has its shard in ``partition``, and closes everything that the shard has handed out. An ``ARRIVED`` row has the journal
in ``topic_id``, the seq of its point in ``log_end_offset``, and the total of its point in ``appended_bytes``.
"""
