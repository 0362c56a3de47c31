"""The state of one log in the fold: absolute values, and how far its rows have been folded."""

from dataclasses import dataclass, fields, replace

from streaming.rows import BATCH_BYTES_BOUNDS, BATCH_RECORDS_BOUNDS, CODECS, SKIP_REASONS, TRANSACTION_SECONDS_BOUNDS, EventRow

_NO_SKIPS = (0,) * len(SKIP_REASONS)
_NO_CODECS = (0,) * len(CODECS)
_NO_BYTES_BUCKETS = (0,) * (len(BATCH_BYTES_BOUNDS) + 1)
_NO_RECORDS_BUCKETS = (0,) * (len(BATCH_RECORDS_BOUNDS) + 1)
_NO_TRANSACTIONS = (0,) * (len(TRANSACTION_SECONDS_BOUNDS) + 1)


@dataclass(frozen=True, slots=True, order=True)
class LogKey:
    """A replica of a partition, during the life of its topic. The key of the residue of removed logs has an empty topic."""

    broker: int
    topic: str
    partition: int
    topic_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """One log. Columns and units as in `streaming.rows.STATES`; besides:

    ``log_end_offset`` is the next offset to fold: everything before it has been counted. ``journal`` is the journal of the counted ranges.
    ``departed``: the log has left its broker, and only its share of the topic's counters counts. ``stopped_at`` is the offset of the last
    flaw after which the log was not read further, -1 none; the bytes after it are counted as skipped up to position ``stopped_end``.
    ``newest_segment`` is the highest base offset whose roll was counted; at first it is the segment in which reading began. Segments below
    the base offset ``deleted_below`` were deleted; -1 before the first inventory. If the log has come back to its broker, offsets below
    ``shared_upto`` of leader epochs up to ``shared_epoch`` were counted before it left.

    The next fields describe the last unclean election by which this log's broker became leader. ``unclean_epoch`` is its leader epoch,
    which begins at ``unclean_start``. ``unclean_last_upper`` and ``unclean_last_acknowledged`` are the numbers of offsets that it lost, -1
    not known. If this replica was in sync before such an election of another broker, ``superseded_epoch`` is the epoch of that election.

    The last fields describe the last truncation. ``cut_end`` is the end of the log before it, ``cut_epoch`` and ``cut_high_watermark`` are
    the values then. ``cut_next_epoch`` is the leader epoch of the first append after it; -1 none yet.
    """

    agent: str
    broker: int
    topic: str
    partition: int
    topic_id: str
    log_dir: str = ""
    journal: str = ""
    departed: bool = False
    settled: bool = False
    log_start_offset: int = -1
    log_end_offset: int = -1
    log_epoch: int = -1
    leader: int = -2
    leader_epoch: int = -1
    last_append_ms: int = -1
    max_timestamp_ms: int = -1
    appended_bytes: int = 0
    appended_batches: int = 0
    appended_records: int = 0
    old_format_batches: int = 0
    corrupt_batches: int = 0
    truncations: int = 0
    truncated_bytes: int = 0
    skipped_bytes: tuple[int, ...] = _NO_SKIPS
    share_codec_bytes: tuple[int, ...] = _NO_CODECS
    share_batch_bytes_buckets: tuple[int, ...] = _NO_BYTES_BUCKETS
    share_batch_records_buckets: tuple[int, ...] = _NO_RECORDS_BUCKETS
    share_records: int = 0
    high_watermark: int = -1
    transactional: bool = False
    committed_transactions: int = 0
    aborted_transactions: int = 0
    empty_markers: int = 0
    aborted_bytes: int = 0
    share_transaction_buckets: tuple[int, ...] = _NO_TRANSACTIONS
    share_transaction_ms: int = 0
    active_producers: int = -1
    sequence_gaps: int = 0
    segments_rolled: int = 0
    segments_deleted: int = 0
    active_segment: int = -1
    active_position: int = 0
    active_max_timestamp_ms: int = -1
    transactions: bytes | None = None
    coordinator: bytes | None = None
    segments: bytes | None = None
    local_log_start_offset: int = -1
    oldest_timestamp: int = -1
    active_first_timestamp: int = -1
    active_created_ms: int = -1
    coordinator_upto: int = -1
    stopped_at: int = -1
    stopped_end: int = -1
    newest_segment: int = -1
    deleted_below: int = -1
    shared_upto: int = -1
    shared_epoch: int = -1
    truncated_committed: int = 0
    unclean_elections: int = 0
    unclean_ms: int = -1
    unclean_from: int = -1
    unclean_lost_upper: int = -1
    unclean_lost_acknowledged: int = -1
    unclean_epoch: int = -1
    unclean_start: int = -1
    unclean_last_upper: int = -1
    unclean_last_acknowledged: int = -1
    superseded_epoch: int = -1
    cut_end: int = -1
    cut_epoch: int = -1
    cut_high_watermark: int = -1
    cut_next_epoch: int = -1

    @property
    def key(self) -> LogKey:
        """The key of the log."""
        return LogKey(self.broker, self.topic, self.partition, self.topic_id)

    def skipped(self, reason: str, size: int) -> "LogState":
        """The state with ``size`` more bytes that never reached the counters. A reason of a later version counts as the last known one."""
        at = SKIP_REASONS.index(reason) if reason in SKIP_REASONS else len(SKIP_REASONS) - 1
        return replace(self, skipped_bytes=(*self.skipped_bytes[:at], self.skipped_bytes[at] + size, *self.skipped_bytes[at + 1 :]))

    def left(self) -> "LogState":
        """The part of the state that remains when the log has left its broker while its topic still exists."""
        kept = {name: getattr(self, name) for name in _STAYS}
        shared = {"shared_upto": max(self.shared_upto, self.log_end_offset), "shared_epoch": max(self.shared_epoch, self.log_epoch)}
        return LogState(departed=True, settled=True, **{**kept, **shared})


_STAYS = (
    *("agent", "broker", "topic", "partition", "topic_id", "journal", "skipped_bytes"),
    *(field.name for field in fields(LogState) if field.name.startswith("unclean_")),
    *(field.name for field in fields(LogState) if field.name.startswith("share_")),
)


def new_log(row: EventRow, next_offset: int) -> LogState:
    """The state of a log that is seen for the first time. Nothing before ``next_offset`` is requested."""
    return LogState(
        agent=row.agent,
        broker=row.broker,
        topic=row.topic,
        partition=row.partition,
        topic_id=row.topic_id,
        log_dir=row.log_dir,
        log_end_offset=next_offset,
        log_epoch=row.log_epoch,
        settled=row.settled,
    )


def residue(agent: str, broker: int, shard: int) -> LogState:
    """The residue of a broker's removed logs in a shard: their skipped bytes."""
    return LogState(agent=agent, broker=broker, topic="", partition=shard, topic_id="")
