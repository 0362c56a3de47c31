"""The state of one log in the fold: absolute values, and how far its rows have been folded."""

from dataclasses import dataclass, fields, replace

from streaming.common.column_types import Flag, Int, Long, Text, plus
from streaming.common.event_row import EventRow
from streaming.common.log_key import KEY
from streaming.common.rows import SKIP_REASONS
from streaming.common.state_row import StateRow


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState(StateRow):
    """One log. Besides the columns that are handed out it has those that only the fold needs. They are described here.

    ``log_end_offset`` is the next offset to fold: everything before it has been counted. ``journal`` is the journal of the counted
    ranges, and ``counted_by`` agent and journal that published the last of them, "" those of the state. ``elsewhere``: other agents and
    log dirs with which the log was seen before, and not as gone (`streaming.rules.whereabouts`). ``departed``: the log has left its
    broker, and only its share of the topic's counters counts. ``stopped_at`` is the offset of the last flaw after which the log was not
    read further, -1 none; the bytes after it are counted as skipped up to position ``stopped_end``. ``newest_segment`` is the highest
    base offset whose roll was counted; at first it is the segment in which reading began. Segments below the base offset
    ``deleted_below`` were deleted; -1 before the first inventory. If the log has come back to its broker, offsets below ``shared_upto``
    of leader epochs up to ``shared_epoch`` were counted before it left, and ``shared_watermark`` was its high watermark then; -1 once a
    later epoch has shown what became of these offsets. The next fields describe the last unclean election by which
    this log's broker became leader. ``unclean_epoch`` is its leader epoch, which begins at ``unclean_start``. ``unclean_last_upper``
    and ``unclean_last_acknowledged`` are the numbers of offsets that it lost, -1 not known. If this replica was in sync before such an
    election of another broker, ``superseded_epoch`` is the epoch of that election. The last fields describe the last truncation.
    ``cut_end`` is the end of the log before it, ``cut_epoch`` and ``cut_high_watermark`` are the values then. ``cut_next_epoch`` is the
    leader epoch of the first append after it; -1 none yet.
    """

    leader: Int = -2
    leader_epoch: Int = -1
    journal: Text = ""
    departed: Flag = False
    stopped_at: Long = -1
    stopped_end: Long = -1
    newest_segment: Long = -1
    deleted_below: Long = -1
    shared_upto: Long = -1
    shared_epoch: Long = -1
    shared_watermark: Long = -1
    unclean_epoch: Long = -1
    unclean_start: Long = -1
    unclean_last_upper: Long = -1
    unclean_last_acknowledged: Long = -1
    superseded_epoch: Long = -1
    cut_end: Long = -1
    cut_epoch: Long = -1
    cut_high_watermark: Long = -1
    cut_next_epoch: Long = -1
    elsewhere: Text = ""
    counted_by: Text = ""

    def skipped(self, reason: str, size: int, followed: int = 0) -> "LogState":
        """The state with ``size`` more bytes that never reached the counters, ``followed`` of them while another broker led.

        A reason of a later version counts as the last known one.
        """
        at = SKIP_REASONS.index(reason) if reason in SKIP_REASONS else len(SKIP_REASONS) - 1
        return replace(
            self,
            skipped_bytes=_added_at(at, self.skipped_bytes, size),
            follower_skipped_bytes=_added_at(at, self.follower_skipped_bytes, followed),
        )

    def left(self) -> "LogState":
        """The part of the state that remains when the log has left its broker while its topic still exists."""
        columns = {name: getattr(self, name) for name in _STAYS}
        shared = {
            "shared_upto": max(self.shared_upto, self.log_end_offset),
            "shared_epoch": max(self.shared_epoch, self.log_epoch),
            "shared_watermark": max(self.shared_watermark, min(self.high_watermark, self.log_end_offset)),
        }
        return LogState(departed=True, settled=True, **{**columns, **shared})


def _added_at(at: int, values: tuple[int, ...], more: int) -> tuple[int, ...]:
    return (*values[:at], plus(values[at], more), *values[at + 1 :])


_STAYS = (
    *("agent", *KEY, "journal", "skipped_bytes", "follower_skipped_bytes"),
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
    """The residue of a broker's removed logs in a shard: their skipped bytes. Its key has an empty topic."""
    return LogState(agent=agent, broker=broker, topic="", partition=shard, topic_id="")
