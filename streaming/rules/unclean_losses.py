"""Computes how many offsets an unclean election lost: those that in-sync replicas had after the start of the new leader's epoch.

The upper bound is everything up to their log end, the lower bound everything up to their high watermark, which they had stored as
replicated. All replicas of a partition are folded in one shard. The old leader's appends may be read before or after the event of the
election, and before or after they were cut off.

With eligible leader replicas (Kafka 4), the last in-sync replica is also elected in this way if its broker crashed: no other replica has
more. This counts as an unclean election only if its own log was seen to be longer before, because a power failure took what was not
flushed.
"""

from collections.abc import Iterable
from dataclasses import replace

from streaming.common.column_types import plus
from streaming.common.event_row import EventRow
from streaming.rules.log_state import LogState


def elected(state: LogState, row: EventRow, others: Iterable[LogState]) -> list[LogState]:
    """The new leader's log, and those of ``others`` that have changed.

    Two kinds of election change nothing: one that was counted before, and one in which the last in-sync replica leads again and has
    everything that was seen of it.
    """
    if row.leader_epoch <= state.unclean_epoch:
        return [state]
    in_sync = {int(broker) for broker in row.reason.split(",") if broker}
    after = replace(
        state,
        unclean_elections=state.unclean_elections + 1,
        unclean_epoch=row.leader_epoch,
        unclean_start=row.next_offset,
        unclean_ms=row.seen_at,
        unclean_from=min(in_sync, default=-1),
        unclean_last_upper=-1,
        unclean_last_acknowledged=-1,
    )
    if row.broker in in_sync:
        itself = _with_lost(after, state)
        return [itself if itself.unclean_last_upper > 0 else state]
    superseded = []
    for other in others:
        if other.broker in in_sync and not other.departed:
            superseded.append(replace(other, superseded_epoch=max(other.superseded_epoch, row.leader_epoch)))
            after = _with_lost(after, other)
    return [after, *superseded]


def _with_lost(leader: LogState, other: LogState) -> LogState:
    """The leader's log with the losses that follow from a replica that was in sync."""
    if leader.unclean_start < 0:
        return leader
    ends, watermarks = zip(*_before(other, leader.unclean_epoch), (-1, -1), strict=True)
    upper, acknowledged = _beyond(leader.unclean_start, ends), _beyond(leader.unclean_start, watermarks)
    after = leader
    if upper > leader.unclean_last_upper:
        after = replace(
            after,
            unclean_from=other.broker,
            unclean_last_upper=upper,
            unclean_lost_upper=_more(leader.unclean_lost_upper, leader.unclean_last_upper, upper),
        )
    if acknowledged > leader.unclean_last_acknowledged:
        after = replace(
            after,
            unclean_last_acknowledged=acknowledged,
            unclean_lost_acknowledged=_more(leader.unclean_lost_acknowledged, leader.unclean_last_acknowledged, acknowledged),
        )
    return after


def _before(other: LogState, epoch: int) -> list[tuple[int, int]]:
    """(log end offset, high watermark) of a replica in earlier leader epochs, as far as they are known."""
    found = []
    if other.log_epoch < epoch:
        found.append((other.log_end_offset, other.high_watermark))
    if other.cut_end >= 0 and other.cut_epoch < epoch and (other.cut_next_epoch < 0 or other.cut_next_epoch >= epoch):
        found.append((other.cut_end, other.cut_high_watermark))
    return found


def _beyond(start: int, offsets: Iterable[int]) -> int:
    """How far the largest of some offsets is after ``start``, -1 if none is known."""
    largest = max(offsets)
    return max(largest - start, 0) if largest >= 0 else -1


def _more(total: int, last: int, now: int) -> int:
    """The new sum over all elections: the last one is now known to have lost ``now`` instead of ``last``; -1 not known."""
    more: int = plus(max(total, 0) - max(last, 0), now)
    return more


def is_late(state: LogState) -> bool:
    """Whether a replica, as far as it was read, ends before an unclean election that has been counted."""
    return state.log_epoch < state.superseded_epoch


def learnt(other: LogState, leaders: Iterable[LogState]) -> list[LogState]:
    """The logs that became leader by an unclean election, updated with what is known about ``other`` now."""
    return [_with_lost(leader, other) for leader in leaders if leader.unclean_epoch == other.superseded_epoch >= 0]


def cut_off(state: LogState, offset: int) -> LogState:
    """A log that is about to be truncated at ``offset``. It keeps its values before the truncation until the next append.

    A clean election cuts off nothing below the high watermark. A log without a topic id may belong to another topic of the same name.
    """
    committed = min(state.high_watermark, state.log_end_offset) - max(offset, state.log_start_offset, 0) if state.topic_id else 0
    truncated_committed = plus(state.truncated_committed, max(0, committed))
    after = replace(state, truncated_committed=truncated_committed, high_watermark=min(state.high_watermark, offset))
    if state.cut_end >= 0 and state.cut_next_epoch < 0:
        return after
    return replace(
        after, cut_end=state.log_end_offset, cut_epoch=state.log_epoch, cut_high_watermark=state.high_watermark, cut_next_epoch=-1
    )
