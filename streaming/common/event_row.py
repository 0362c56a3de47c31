"""The rows of events, which go from an agent's journal through HTTP and Spark's source into the fold. Each column is declared once: here.

Units: offsets and positions are Kafka's own (a position is a byte in a ``.log``), times are Unix milliseconds, -1 means "none".
"""

from dataclasses import dataclass
from typing import Annotated

import pyarrow as pa

from streaming.common.codecs import CODECS
from streaming.common.column_types import Blob, Count, Counts, Flag, Int, Long, Text, columns_of, later_of
from streaming.common.log_key import LogKey, key_of
from streaming.common.rows import APPEND_DELAY_SECONDS_BOUNDS, BATCH_BYTES_BOUNDS, BATCH_RECORDS_BOUNDS, Kind


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to one log (or, for a census, to none), as the watcher publishes it and a journal keeps it.

    Whole rows are made by position, which takes half the time; name the columns anywhere else.
    """

    kind: Annotated[Kind, pa.string()]
    broker: Int = -1
    log_dir: Text = ""
    topic: Text = ""
    partition: Int = -1
    topic_id: Text = ""  # "" if there is no partition.metadata
    segment: Long = -1  # base offset of the segment
    start_position: Long = -1
    end_position: Long = -1
    base_offset: Long = -1
    next_offset: Long = -1
    log_epoch: Int = -1  # partition leader epoch of the last batch, -1 unknown
    leads: Int = -1  # whether this replica led in the leader epoch of the range, which has one only: 1, 0, -1 not known
    settled: Flag = False  # the initial backlog of the log ends before this row
    seen_at: Long = -1  # when the bytes were seen (for bytes that existed before, the file's mtime)
    max_timestamp: Long = -1  # largest record timestamp
    bytes: Count = 0  # of all batches; for TRUNCATED and SKIPPED the bytes concerned
    batches: Count = 0  # data batches
    records: Count = 0  # data records
    old_format_batches: Count = 0
    codec_bytes: Counts = (0,) * len(CODECS)  # bytes of data batches by codec id
    batch_bytes_buckets: Counts = (0,) * (len(BATCH_BYTES_BOUNDS) + 1)
    batch_records_buckets: Counts = (0,) * (len(BATCH_RECORDS_BOUNDS) + 1)
    detail: Blob = None  # the batches one by one (see scan.detail), only of what is published again; b"": forgotten
    transactions: Blob = None  # TRANSACTION_STEPS of the range, or at its beginning; null for none
    active_producers: Int = -1  # producer ids with state at the end of the range, -1 not known
    sequence_gaps: Count = 0
    coordinator: Blob = None  # COORDINATOR, the newest entries of a range of `__transaction_state`; null for none
    high_watermark: Long = -1  # from the checkpoint file, -1 none: below it the fold keeps no closed transaction
    segments: Blob = None  # SEGMENTS of a log, all of them; null: as last published
    local_log_start_offset: Long = -1  # only with remote storage; -1 none, as for the next columns
    oldest_timestamp: Long = -1  # of the first batch at or after the log start that holds records
    active_first_timestamp: Long = -1  # of the first batch of the active segment
    active_created_ms: Long = -1  # when the active segment was created
    log_start_offset: Long = -1
    start_after_crash: Long = -1  # where the log begins again if its broker is killed now; -1: there
    leader: Int = -2  # by the metadata log; -1 none, -2 not known. Decides what counts if another agent reads no metadata
    leader_epoch: Int = -1  # by the metadata log; -1 not known
    reason: Text = ""
    follows: Long = -1  # of a coordinator's log: up to which offset the row before covers it; -1 not known
    topics: Blob = None  # of a census: which topics there are; null: not known (streaming.rules.whereabouts)
    # how late data batches arrived (streaming.kafka.scan.sums), of those whose time of append is known: none of a follower's
    append_delay_buckets: Counts = (0,) * (len(APPEND_DELAY_SECONDS_BOUNDS) + 1)
    append_delay_ms: Count = 0  # sum of the delays in those buckets
    ahead_batches: Count = 0  # data batches that are dated after their append
    expired: Blob = None  # the batches past their retention when they were appended (rows.EXPIRED); null for none
    judges_expiry: Flag = False  # a limit in time is known, so ``expired`` has what is past it

    @property
    def log(self) -> LogKey:
        """The log of the event."""
        return key_of(self)


def journal_file(journal: str) -> str:
    """The id of the file that a journal's name is of: behind a dot, the name has the beginning of a consumer."""
    return journal.partition(".")[0]


@dataclass(frozen=True, slots=True)
class EventRow(Event):
    """An event as it is sent: with its place among those of all agents."""

    agent: Text = ""  # name of the agent
    journal: Text = ""  # id of its journal
    seq: Long = -1  # position in the journal
    part: Int = 0  # order of rows with the same seq


EVENT = pa.schema(columns_of(Event))
"""The columns of an event."""


EVENTS = pa.schema([*(each for each in columns_of(EventRow) if each.name not in EVENT.names), *EVENT])
"""One row for each event, its place first; but a census becomes one row for every log and a closing one."""


MISSING = later_of(Event)
"""The columns that are `streaming.common.column_types.LATER`, with the default of each. Every other column has to be there."""
