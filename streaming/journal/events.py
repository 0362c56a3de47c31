"""The events of the journal: one class for all kinds, with exactly the columns that are sent (`streaming.rows.EVENTS`)."""

from dataclasses import dataclass, replace
from enum import StrEnum

from streaming.journal.blobs import merged_entries, merged_steps
from streaming.rows import BATCH_BYTES_BOUNDS, BATCH_RECORDS_BOUNDS, CODECS, Kind
from streaming.scan.sums import together

Blob = bytes  # inside Event, `bytes` is the name of a column

MERGED_BYTES_MAX = 16 << 20
"""Neighbouring appends are merged up to this size, because a byte budget is kept only to within one event."""

MERGED_BLOBS_MAX = 256 << 10
"""The most bytes of transactions and coordinators up to which neighbouring appends are merged, because a merge writes them anew."""

_NO_CODECS = (0,) * len(CODECS)
_NO_BYTES_BUCKETS = (0,) * (len(BATCH_BYTES_BOUNDS) + 1)
_NO_RECORDS_BUCKETS = (0,) * (len(BATCH_RECORDS_BOUNDS) + 1)


@dataclass(frozen=True, slots=True, order=True)
class LogId:
    """One replica of one partition, for as long as its topic lives. It may move between the log dirs of its broker."""

    broker: int
    topic: str
    partition: int
    topic_id: str

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened to one log (or, for a census, to none). Columns and units: `streaming.rows.EVENTS`."""

    kind: Kind
    broker: int = -1
    log_dir: str = ""
    topic: str = ""
    partition: int = -1
    topic_id: str = ""
    segment: int = -1
    start_position: int = -1
    end_position: int = -1
    base_offset: int = -1
    next_offset: int = -1
    log_epoch: int = -1
    leads: int = -1
    settled: bool = False
    seen_at: int = -1
    max_timestamp: int = -1
    bytes: int = 0
    batches: int = 0
    records: int = 0
    old_format_batches: int = 0
    codec_bytes: tuple[int, ...] = _NO_CODECS
    batch_bytes_buckets: tuple[int, ...] = _NO_BYTES_BUCKETS
    batch_records_buckets: tuple[int, ...] = _NO_RECORDS_BUCKETS
    detail: Blob | None = None
    transactions: Blob | None = None
    active_producers: int = -1
    sequence_gaps: int = 0
    coordinator: Blob | None = None
    high_watermark: int = -1
    segments: Blob | None = None
    local_log_start_offset: int = -1
    oldest_timestamp: int = -1
    active_first_timestamp: int = -1
    active_created_ms: int = -1
    log_start_offset: int = -1
    leader: int = -2
    leader_epoch: int = -1
    reason: str = ""
    follows: int = -1

    @property
    def log(self) -> LogId:
        """The log of the event."""
        return LogId(self.broker, self.topic, self.partition, self.topic_id)

    def merged(self, later: "Event") -> "Event | None":
        """This append and the one right behind it as one event, or None if they must stay separate."""
        fits = (
            self.kind is Kind.APPENDED
            and later.kind is Kind.APPENDED
            and self.end_position == later.start_position
            and self.segment == later.segment
            and self.log_epoch == later.log_epoch
            and self.leads == later.leads
            and self.detail is None
            and later.detail is None
            and self.bytes + later.bytes <= MERGED_BYTES_MAX
            and _blobs(self) + _blobs(later) <= MERGED_BLOBS_MAX
            and self.log == later.log
            and self.log_dir == later.log_dir
        )
        if not fits:
            return None
        return replace(
            later,
            start_position=self.start_position,
            follows=self.follows,
            transactions=merged_steps(self.transactions, later.transactions, self.bytes),
            coordinator=merged_entries(self.coordinator, later.coordinator),
            sequence_gaps=self.sequence_gaps + later.sequence_gaps,
            **together(self, later),
        )


def merged_found(before: Event, event: Event) -> Event:
    """Two FOUND events of one log as one event: if the later one has no list of segments, the earlier list stays."""
    return replace(event, segments=before.segments) if event.segments is None else event


def _blobs(event: Event) -> int:
    return len(event.transactions or b"") + len(event.coordinator or b"")


TIMES_UNKNOWN = -2
"""In place of the timestamps of a segment that was only read in part."""


class Replays(StrEnum):
    """How the open transactions at a cursor will be found, if they are not known."""

    NOT = ""  # they are known, or were published
    FIRST = "first"  # by a replay before the log is read on; the log is not published yet
    ALONGSIDE = "alongside"  # by a replay while the log is read on; they are published at the cursor of that time


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How far a log has been read.

    Everything before ``position`` of ``segment`` is published, and ``next_offset`` is the first offset that is not. ``device`` and
    ``inode`` name the segment's file. The other fields:

    - ``log_epoch``: the latest leader epoch that was read; ``epochs``: all that were (`streaming.watcher.seen_epochs`).
    - ``anchor``: the header of the last batch read, at ``anchor_position`` of the same segment; b"" at its beginning.
    - ``frontier``: the largest next offset ever published. Events of the offsets before it have been published already.
    - ``stopped``: why the log is not read on, "" while it is read; ``skipped``: bytes behind ``position`` that count as skipped because
      of this.
    - ``backlog_segment``, ``backlog_position``: where the log's first backlog ends.
    - ``first_timestamp``, ``largest_timestamp``: of the segment's first batch, and of all batches before the cursor. Unix milliseconds,
      -1 none, `TIMES_UNKNOWN` where reading began inside the segment.
    - ``replay``: whether the log has to be replayed to know its open transactions.
    - ``wanted``: the beginning that new consumers want of a log that could not be read when they began
      (`streaming.watcher.registry.Beginning`), "" none.
    - ``entries_upto``: for a log of `__transaction_state`, the offset up to which the last event contains its entries; -1 not known.
    - ``reread``: such a log has to be read again from its first byte, because a consumer may lack entries from before the cursor.
    """

    log: LogId
    segment: int
    device: int
    inode: int
    position: int
    next_offset: int
    log_epoch: int
    anchor: bytes
    anchor_position: int
    frontier: int
    stopped: str
    skipped: int
    backlog_segment: int
    backlog_position: int
    first_timestamp: int
    largest_timestamp: int
    epochs: bytes = b""
    replay: str = ""
    wanted: str = ""
    entries_upto: int = -1
    reread: bool = False

    @property
    def held(self) -> bool:
        """Whether something else has to be done before the log is read on."""
        return self.replay == Replays.FIRST or bool(self.wanted)

    @property
    def settled(self) -> bool:
        """Whether the log's first backlog has been read."""
        return bool(self.stopped) or (self.segment, self.position) >= (self.backlog_segment, self.backlog_position)
