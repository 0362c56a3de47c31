"""What a group has left to read of one partition, from a log that was counted: records, bytes, the next one, what was lost."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from streaming.ladder.positions import Position, PositionState
from streaming.protocol.group_json import GroupPartition

_REASONS = {
    PositionState.FILLING: "filling",
    PositionState.BEYOND: "damaged",
    PositionState.BELOW: "remote_log_start",
    PositionState.DAMAGED: "damaged",
}
"""Why a lag is not known if the state of a position is this; the words are those of `streaming.verdicts.group_sentences`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The ends of a log that is read here; ``last_stable`` is at most ``high_watermark``.

    ``damaged``: after ``log_end`` there is something that is no batch, so that the log may have gone on.
    """

    log_start: int
    log_end: int
    high_watermark: int
    last_stable: int
    damaged: bool = False


PositionOf = Callable[[int], Position]
"""The position of an offset of a log."""


def offsets_of(of: GroupPartition, ends: Ends) -> Iterator[int]:
    """The offsets whose positions `with_lag` needs; none if nothing is left and nothing was lost."""
    begin = max(of.committed, ends.log_start)
    if begin < ends.high_watermark and of.committed <= ends.log_end:
        yield from (begin, max(begin, ends.last_stable), ends.high_watermark)
    if of.committed < ends.log_start:
        yield from (of.committed, ends.log_start)


def with_lag(of: GroupPartition, ends: Ends, position_of: PositionOf, delivered: int | None = None) -> GroupPartition:
    """The partition with its lag.

    Args:
        position_of: is called with `offsets_of` alone.
        delivered: of a share group, how many offsets from the committed one on it is done with, -1 not known. What its consumers hold is
            not stored, and which of the offsets are records is not looked up, so its lag is an upper bound.
    """
    of = replace(
        of,
        log_start=ends.log_start,
        high_watermark=ends.high_watermark,
        last_stable_offset=ends.last_stable,
        lag_offsets=max(0, ends.high_watermark - of.committed),
        lost_offsets=max(0, ends.log_start - of.committed),
    )
    if ends.damaged and of.committed >= ends.log_end:
        return replace(of, unknown="damaged", lag_offsets=-1)
    if of.committed > ends.log_end:
        return replace(of, unknown="beyond_end", lag_offsets=-1)
    of = _with_lost(of, position_of)
    begin = max(of.committed, ends.log_start)
    if begin >= ends.high_watermark:
        return replace(of, lag_records_read_committed=0, lag_records_read_uncommitted=0, lag_bytes=0)
    first, stable, last = (position_of(each) for each in (begin, max(begin, ends.last_stable), ends.high_watermark))
    states = [each.state for each in (first, stable, last) if each.state is not PositionState.KNOWN]
    if states:
        return replace(of, unknown=_REASONS[states[0]])
    committed, uncommitted = max(0, _readable(stable) - _readable(first)), max(0, last.data - first.data)
    if delivered is not None:  # offsets, of markers too; and it reads aborted records unless it is told otherwise
        committed = uncommitted = min(uncommitted, max(0, ends.high_watermark - of.committed - max(delivered, 0)))
    of = replace(of, lag_records_read_committed=committed, lag_records_read_uncommitted=uncommitted)
    if delivered is not None and not uncommitted:
        return replace(of, lag_bytes=last.bytes - first.bytes)  # no record after it is unread
    return replace(
        of,
        lag_bytes=last.bytes - first.bytes,
        next_offset=first.next_offset,
        next_timestamp_ms=first.next_timestamp_ms,
        next_append_ms=first.next_append_ms,
        next_batch_bytes=first.next_batch_bytes,
        next_segment=first.next_segment,
        next_position=first.next_position,
        held=delivered is None and first.next_offset >= ends.last_stable,
    )


def stake_offsets(of: GroupPartition, end_offset: int) -> tuple[int, int, int]:
    """The offsets whose positions `with_loss` needs: of the next record, and the ends of what is lost with it for both isolations."""
    end = min(end_offset, of.high_watermark)
    return of.next_offset, max(of.next_offset, min(end, of.last_stable_offset)), end


def with_loss(of: GroupPartition, at_ms: int, end_offset: int, position_of: PositionOf) -> GroupPartition:
    """The partition with what retention will delete of it: at ``at_ms`` everything below ``end_offset``."""
    first, stable, last = (position_of(each) for each in stake_offsets(of, end_offset))
    if any(each.state is not PositionState.KNOWN for each in (first, stable, last)):
        return replace(of, loss_ms=at_ms)
    undecided = last.data - stable.data  # of transactions that are open there: it would be lost, too
    return replace(of, loss_ms=at_ms, loss_records=_readable(stable) - _readable(first) + undecided, loss_bytes=last.bytes - first.bytes)


def _with_lost(of: GroupPartition, position_of: PositionOf) -> GroupPartition:
    """How many records were deleted unread, if they are on disk still: the log start may be inside a segment."""
    if not of.lost_offsets:
        return of
    first, last = position_of(of.committed), position_of(of.log_start)
    if any(each.state is not PositionState.KNOWN for each in (first, last)):
        return replace(of, lost_records=-1)
    return replace(of, lost_records=_readable(last) - _readable(first))


def _readable(position: Position) -> int:
    """The records before it that consumers of committed data get."""
    return position.data - position.aborted
