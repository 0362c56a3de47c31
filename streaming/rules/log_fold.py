"""Applies one row to one log. Every byte is counted once, or counted as skipped.

The same bytes may come in another row, for example from a new journal, or for a second job that begins further back. Everything before
``log_end_offset`` has been counted. A row that comes again unchanged never gets here (`streaming.rules.fold.Mark`).
"""

import logging
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from streaming.common.column_types import plus
from streaming.common.event_row import EventRow, journal_file
from streaming.rules import coordinator_state, expired_arrivals, inventory_changes, log_transactions, unclean_losses, whereabouts
from streaming.rules.counters import SHARED, SUMMED, Cut, begins, followed, share_of
from streaming.rules.log_state import LogState, new_log

log = logging.getLogger(__name__)

_NO_ENTRY = -1  # of the high watermark: the row does not contain it

_SHARES = tuple(
    field.name for field in fields(LogState) if field.name.startswith(("share_", "shared_", "unclean_", "skipped_", "follower_"))
)

FOUND_COLUMNS = (
    *("leader", "leader_epoch", "log_start_offset", "start_after_crash", "local_log_start_offset"),
    *("oldest_timestamp", "active_first_timestamp", "active_created_ms"),
)
"""The columns of a log that stay as last published with its list of segments."""

BY = "\t"
"""Between an agent and its journal in ``LogState.counted_by``."""


def skipped(state: LogState, row: EventRow) -> LogState:
    """Count bytes that the agent will never deliver. Those before ``log_end_offset`` have been counted in this fold already."""
    if row.base_offset == row.next_offset:
        return _after_flaw(_noted(state, row), row)
    if row.next_offset <= state.log_end_offset:
        return _noted(state, row)
    missed = row.bytes if row.base_offset >= state.log_end_offset else _part(row, state.log_end_offset)
    after = replace(_noted(_with_hole(state, row), row), journal=row.journal, log_end_offset=row.next_offset, log_epoch=row.log_epoch)
    return _skip(log_transactions.found(after, row), row, row.reason, missed, state)


def _after_flaw(state: LogState, row: EventRow) -> LogState:
    """Count the bytes after a flaw. Their offsets are not known, so their positions show which of them have been counted."""
    before = state.stopped_end if row.next_offset == state.stopped_at else row.start_position
    new_bytes = max(0, row.end_position - before)
    return _skip(replace(state, stopped_at=row.next_offset, stopped_end=before + new_bytes), row, row.reason, new_bytes, state)


def _skip(after: LogState, row: EventRow, reason: str, size: int, before: LogState) -> LogState:
    return after.skipped(reason, size, size if followed(before, row) else 0)


def _noted(state: LogState, row: EventRow) -> LogState:
    noted = whereabouts.seen_at(state, row)
    if row.judges_expiry and not state.judges_expiry:
        noted = replace(noted, judges_expiry=True)
    return replace(noted, settled=True) if row.settled and not state.settled else noted


def _part(row: EventRow, offset: int) -> int:
    return row.bytes * (row.next_offset - offset) // max(1, row.next_offset - row.base_offset)


def _with_hole(state: LogState, row: EventRow) -> LogState:
    """Count a gap as lost if another journal begins after what was counted. Inside one journal, the agent publishes what it skips."""
    missing = row.base_offset - state.log_end_offset
    if missing <= 0 or row.journal == state.journal:
        return state
    if not row.bytes:  # the log began again further on: the offsets that the row passes over never existed and have no mean size
        size = _by_mean_record(state, missing)
    else:
        size = missing * row.bytes // max(1, row.next_offset - row.base_offset)
    return _skip(state, row, "agent_lost", size, state)


def _by_mean_record(state: LogState, offsets: int) -> int:
    return max(1, offsets * state.appended_bytes // max(1, state.appended_records))


def appeared(state: LogState | None, row: EventRow) -> LogState:
    """A log is watched from ``row.next_offset`` on. If it is known already, only its log dir and the like change."""
    if state is None:
        begun = replace(new_log(row, row.next_offset), journal=row.journal, newest_segment=row.segment)
        return log_transactions.found(begun, row)
    if state.departed:
        back = replace(new_log(row, row.next_offset), journal=row.journal)
        return log_transactions.found(replace(back, **{name: getattr(state, name) for name in _SHARES}), row)
    # If a journal begins after what was counted, it is not taken over yet: so its first append shows the gap before it.
    journal = row.journal if row.next_offset <= state.log_end_offset else state.journal
    # If the same journal restarts a log further on, it has already published the loss of what was before.
    end = row.next_offset if row.journal == state.journal else state.log_end_offset
    noted = replace(_noted(state, row), journal=journal, log_end_offset=max(state.log_end_offset, end))
    return log_transactions.found(noted, row) if row.next_offset >= state.log_end_offset else noted


def appended(state: LogState, row: EventRow, share_begins: int, cut: Cut) -> LogState:
    """Whole batches were appended: count those that are new. The row must not straddle ``log_end_offset``."""
    if row.next_offset <= state.log_end_offset:
        return _seen(state, row)
    return counted(_with_hole(state, row), row, share_begins, cut)


def _seen(state: LogState, row: EventRow) -> LogState:
    return replace(_noted(state, row), journal=row.journal, last_append_ms=max(state.last_append_ms, row.seen_at))


def counted(state: LogState, row: EventRow, share_begins: int, cut: Cut) -> LogState:
    """Count a row with new batches only. Before ``share_begins`` they do not count for the topic, whichever replica led."""
    after = replace(
        _seen(state, row),
        log_end_offset=row.next_offset,
        counted_by=f"{row.agent}{BY}{row.journal}",
        log_epoch=row.log_epoch if row.log_epoch >= 0 else state.log_epoch,
        max_timestamp_ms=max(state.max_timestamp_ms, row.max_timestamp),
        high_watermark=state.high_watermark if row.high_watermark == _NO_ENTRY else row.high_watermark,
        active_producers=row.active_producers,
        cut_next_epoch=row.log_epoch if state.cut_end >= 0 and state.cut_next_epoch < 0 else state.cut_next_epoch,
        active_segment=row.segment,
        active_position=row.end_position,
        active_max_timestamp_ms=max(row.max_timestamp, state.active_max_timestamp_ms if row.segment == state.active_segment else -1),
        **_added(SUMMED, state, row),
    )
    share = share_of(row, max(share_begins, begins(state, row)), cut)
    with_transactions = log_transactions.counted(after, row, state.appended_bytes, share=share is not None)
    after = log_transactions.drop_replicated(with_transactions)
    if share is None:
        return after
    return expired_arrivals.counted(replace(after, **_added(SHARED, state, share)), share)


def _added(counters: Mapping[str, str], state: LogState, row: EventRow) -> dict[str, Any]:
    return {kept: plus(getattr(state, kept), getattr(row, name)) for kept, name in counters.items()}


def straddles(state: LogState, row: EventRow) -> bool:
    """Whether some of the row's batches have been counted and some have not."""
    return row.base_offset < state.log_end_offset < row.next_offset


def lost(state: LogState, row: EventRow) -> LogState:
    """Count the later part of a row as missing, by the mean size of an offset: the row straddles ``log_end_offset`` and cannot be cut."""
    log.error(
        "a range contains offsets that were counted already and cannot be cut",
        extra={"log": f"{row.topic}-{row.partition}", "seq": row.seq},
    )
    missed = _part(row, state.log_end_offset)
    epoch = row.log_epoch if row.log_epoch >= 0 else state.log_epoch
    return replace(_seen(state, row), log_end_offset=row.next_offset, log_epoch=epoch).skipped("agent_lost", missed)


def uncut(state: LogState, row: EventRow) -> LogState:
    """Pass over a row that straddles ``log_end_offset`` and cannot be cut: the agent that has counted so far publishes the rest too.

    If it does not, the next row of the other one begins after a gap, whichever journal that is.
    """
    return replace(_noted(state, row), journal="")


def overwrites(state: LogState, row: EventRow) -> bool:
    """Whether the row replaces something that was counted: leader epochs only rise along a log.

    The event of that truncation was lost with another journal.
    """
    return row.base_offset < state.log_end_offset and 0 <= state.log_epoch < row.log_epoch


def overwritten(state: LogState, row: EventRow, offset: int) -> LogState:
    """The log was truncated at ``offset`` without an event. How many bytes were cut off is not known."""
    log.warning("log was truncated while it was not watched", extra={"log": f"{row.topic}-{row.partition}", "offset": offset})
    after = replace(unclean_losses.cut_off(state, offset), log_end_offset=offset, truncations=state.truncations + 1)
    return log_transactions.truncated(coordinator_state.cut(after, offset), offset, 0)


def truncated(state: LogState, row: EventRow) -> LogState:
    """The log was truncated at ``row.next_offset``. Counted bytes stay counted, and the bytes that replace them are counted again."""
    if row.next_offset < state.log_end_offset and is_of_another(state, row) and (not row.bytes or _is_behind(row, state)):
        return _noted(state, row)  # another agent has read further. If that is gone, the leader epoch of the next append will show it
    if not row.bytes and row.next_offset >= state.log_end_offset:  # only the end of a log, published again or cleaned
        return log_transactions.found(replace(_ended_unseen(state, row), log_end_offset=row.next_offset), row)
    # A follower may also drop everything and begin further on. Another journal may not have come as far as what was counted.
    end = row.next_offset if row.journal == state.journal else min(state.log_end_offset, row.next_offset)
    after = replace(
        unclean_losses.cut_off(_noted(state, row), end),
        log_end_offset=end,
        truncations=state.truncations + 1,
        truncated_bytes=plus(state.truncated_bytes, row.bytes),
        stopped_at=-1,
        newest_segment=min(state.newest_segment, end),
        active_segment=row.segment,
        active_position=row.end_position,
    )
    return log_transactions.found(log_transactions.truncated(coordinator_state.cut(after, end), end, row.bytes), row)


def is_of_another(state: LogState, row: EventRow) -> bool:
    """Whether another agent published the range that was counted last: two agents watch the log.

    An agent keeps its name or its journal: it may be renamed, or lose the journal. A journal has a name for each beginning of a job.
    """
    agent, _, journal = state.counted_by.partition(BY)
    return row.agent != (agent or state.agent) and (not journal or journal_file(row.journal) != journal_file(journal))


def _is_behind(row: EventRow, state: LogState) -> bool:
    """Whether what was counted last was appended in the epoch for which a truncation made way, or later: then this is known already."""
    return 0 <= row.leader_epoch <= state.log_epoch


def _ended_unseen(state: LogState, row: EventRow) -> LogState:
    """Count the offsets up to the row as lost, by the mean size of a record.

    Another journal has read the log to its end and found nothing after what was counted.
    """
    missing, noted = row.next_offset - state.log_end_offset, _noted(state, row)
    if missing <= 0 or row.journal == state.journal:
        return noted
    return replace(noted, journal=row.journal).skipped("agent_lost", _by_mean_record(state, missing))


def begun_anew(state: LogState, row: EventRow, offset: int) -> LogState:
    """A log that has come back gets its first batch of a later leader epoch at ``offset``: its history parts there from the one that left.

    Where its own broker leads, what was below the high watermark behind that is gone from the partition: its directory was lost, or is an
    older copy. A replica that is copied again gets the same offsets with the same epochs, and one that was led elsewhere meanwhile goes on
    behind them. Where another broker leads, that broker's log shows what is lost.
    """
    gone = state.shared_watermark - offset
    after = replace(state, shared_watermark=-1)
    if gone <= 0 or row.leads == 0:
        return after
    log.warning(
        "a log has begun again below its former high watermark",
        extra={"log": f"{row.topic}-{row.partition}", "broker": row.broker, "offset": offset, "gone": gone},
    )
    return replace(after, truncations=state.truncations + 1, truncated_committed=plus(state.truncated_committed, gone))


def corrupt(state: LogState, row: EventRow) -> LogState:
    """The log is not read further, so nothing more of its first backlog comes either. Another journal publishes the same flaw again."""
    after = replace(_noted(state, row), settled=True)
    if row.next_offset == state.stopped_at:
        return after
    return replace(after, corrupt_batches=state.corrupt_batches + 1, stopped_at=row.next_offset, stopped_end=row.start_position)


def listed(state: LogState, row: EventRow) -> LogState:
    """The facts about a log from other files than its segments. They never change counted bytes or offsets that are read.

    These files may be newer than what was read: the log start is kept as it is told, even if it is after the offsets that have been folded.
    No list comes again when these are read or skipped. Who shows it cuts it (`streaming.cluster.view.value_matrix.read_values`).
    """
    noted = _noted(state, row)
    if _is_of_a_former_place(noted, row):
        return noted
    after = replace(
        inventory_changes.listed(noted, row.segments),
        high_watermark=row.high_watermark,
        active_producers=row.active_producers,
        **{name: getattr(row, name) for name in FOUND_COLUMNS},
    )
    return log_transactions.drop_replicated(after)


def _is_of_a_former_place(state: LogState, row: EventRow) -> bool:
    """Whether another agent listed the log before it moved to the log dir in which it was counted last.

    The rows of two agents come in no order, and the list of the new place is not published again. A log's start and its segments only rise.
    """
    if not state.elsewhere or not is_of_another(state, row):
        return False
    return row.log_start_offset < state.log_start_offset or inventory_changes.ends_before(row.segments, state.newest_segment)
