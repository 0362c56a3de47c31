"""What one row does to one log: every byte is counted once, or counted as skipped.

A row may come again (a read that died, a replayed micro-batch), and the same bytes may come in another row (a journal made anew, a second
job that begins further back). The first is known by (journal, seq), the second by the offset: what lies before ``log_end_offset`` has been
counted.
"""

import logging
from dataclasses import replace

from streaming.rows import EventRow
from streaming.rules.log_state import LogState, new_log

log = logging.getLogger(__name__)


def repeated(state: LogState, row: EventRow) -> bool:
    """Whether this very row has been folded before."""
    return row.journal == state.journal and row.seq <= state.seq


def appeared(state: LogState | None, row: EventRow) -> LogState:
    """A log is watched from ``row.next_offset`` on; for one that is known that changes nothing but where it lies."""
    if state is None:
        return replace(new_log(row, row.next_offset), journal=row.journal, seq=row.seq)
    if state.departed:
        back = replace(new_log(row, row.next_offset), journal=row.journal, seq=row.seq, skipped_bytes=state.skipped_bytes)
        return replace(back, **{name: getattr(state, name) for name in _SHARES})
    # journal and seq stay: by them the first append of another journal shows whether a hole lies before it
    return replace(state, agent=row.agent, log_dir=row.log_dir, settled=state.settled or row.settled)


_SHARES = ("share_codec_bytes", "share_batch_bytes_buckets", "share_batch_records_buckets", "share_records")


def appended(state: LogState, row: EventRow) -> LogState:
    """Whole batches were appended: count those that have not been. The row must not straddle ``log_end_offset``."""
    after = _seen(state, row)
    if row.next_offset <= state.log_end_offset:
        return after
    if row.base_offset > state.log_end_offset and row.journal != state.journal:
        # another journal begins behind what was counted; inside one journal the agent itself says what it skips
        after = after.skipped("agent_lost", _density(row) * (row.base_offset - state.log_end_offset))
    return _count(after, row)


def straddles(state: LogState, row: EventRow) -> bool:
    """Whether a part of the row's batches has been counted and a part has not."""
    return row.base_offset < state.log_end_offset < row.next_offset


def lost(state: LogState, row: EventRow) -> LogState:
    """The row straddles what was counted and cannot be cut: its later part is known to be missing, by the mean size of an offset."""
    log.error("a range that straddles what was counted cannot be cut", extra={"log": f"{row.topic}-{row.partition}", "seq": row.seq})
    return replace(_seen(state, row), log_end_offset=row.next_offset).skipped("agent_lost", _part(row, state.log_end_offset))


def _seen(state: LogState, row: EventRow) -> LogState:
    return replace(
        state,
        agent=row.agent,
        log_dir=row.log_dir,
        journal=row.journal,
        seq=row.seq,
        settled=state.settled or row.settled,
        last_append_ms=max(state.last_append_ms, row.seen_at),
    )


def _density(row: EventRow) -> int:
    return row.bytes // max(1, row.next_offset - row.base_offset)


def _part(row: EventRow, offset: int) -> int:
    return row.bytes * (row.next_offset - offset) // max(1, row.next_offset - row.base_offset)


def _count(state: LogState, row: EventRow) -> LogState:
    counted = replace(
        state,
        log_end_offset=row.next_offset,
        log_epoch=row.log_epoch if row.log_epoch >= 0 else state.log_epoch,
        max_timestamp_ms=max(state.max_timestamp_ms, row.max_timestamp),
        appended_bytes=state.appended_bytes + row.bytes,
        appended_batches=state.appended_batches + row.batches,
        appended_records=state.appended_records + row.records,
        old_format_batches=state.old_format_batches + row.old_format_batches,
    )
    if row.leads == 0:
        return counted
    return replace(
        counted,
        share_codec_bytes=_add(state.share_codec_bytes, row.codec_bytes),
        share_batch_bytes_buckets=_add(state.share_batch_bytes_buckets, row.batch_bytes_buckets),
        share_batch_records_buckets=_add(state.share_batch_records_buckets, row.batch_records_buckets),
        share_records=state.share_records + row.records,
    )


def _add(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def truncated(state: LogState, row: EventRow) -> LogState:
    """The log was cut off at ``row.next_offset``; what was counted stays counted, what comes in its place is counted anew."""
    return replace(
        _noted(state, row),
        log_end_offset=min(state.log_end_offset, row.next_offset),
        truncations=state.truncations + 1,
        truncated_bytes=state.truncated_bytes + row.bytes,
    )


def skipped(state: LogState, row: EventRow) -> LogState:
    """Bytes that the agent will never deliver; of those before ``log_end_offset`` this fold has had its own."""
    after = _noted(state, row)
    if row.next_offset < state.log_end_offset:
        return after
    missed = row.bytes if row.base_offset >= state.log_end_offset else _part(row, state.log_end_offset)
    return replace(after, log_end_offset=row.next_offset).skipped(row.reason, missed)


def corrupt(state: LogState, row: EventRow) -> LogState:
    """The log is not read on: nothing more will come of its first backlog either."""
    return replace(_noted(state, row), corrupt_batches=state.corrupt_batches + 1, settled=True)


def pictured(state: LogState, row: EventRow) -> LogState:
    """One log of a full picture: never counters, never offsets that are read."""
    return replace(
        state,
        agent=row.agent,
        log_dir=row.log_dir,
        settled=state.settled or row.settled,
        log_start_offset=row.log_start_offset,
        leader=row.leader,
        leader_epoch=row.leader_epoch,
    )


def _noted(state: LogState, row: EventRow) -> LogState:
    return replace(state, journal=row.journal, seq=row.seq)
