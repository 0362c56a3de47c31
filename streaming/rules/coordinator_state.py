"""What the fold keeps of a log of `__transaction_state`: the newest entry of each transactional id, and up to where that is all of them.

The log is compacted, so its present content is its state. ``coordinator_upto`` is the offset up to which every entry from the first byte on
has been taken in. It goes on as long as each row begins where the one before it ended, whether or not the row's bytes have been counted
before; it is not known (-1) from the first gap, cut or flaw on. Then the agent reads the log again from its first byte, and what it finds
replaces what was kept: an id that has expired meanwhile may have left no tombstone.
"""

import logging
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from streaming.rows import COORDINATOR, EventRow, Kind, pack_rows, unpack_entries
from streaming.rules.coordinator import newest
from streaming.rules.log_state import LogState

log = logging.getLogger(__name__)

_MERGED = "journal_trimmed"
"""The reason of a loss that tells all the same what coordinators wrote in it."""

_LOST = -1


def taken(before: LogState | None, after: LogState, row: EventRow) -> LogState:
    """With what a row says of entries.

    Args:
        before: the log before the row, None where it was not known.
        after: the same with everything else that the row says.
    """
    if row.kind == Kind.APPEARED:
        return _appeared(before, after, row)
    if after.coordinator_upto < 0:
        return after if row.coordinator is None else _kept(after, [after.coordinator, row.coordinator], row, _LOST)
    if row.kind == Kind.CORRUPT or (row.kind == Kind.SKIPPED and row.reason != _MERGED):
        return replace(after, coordinator_upto=_LOST)
    if row.kind in (Kind.APPENDED, Kind.SKIPPED):
        return _learnt(after, row)
    return after


def cut(state: LogState, offset: int) -> LogState:
    """With what was cut off at ``offset`` taken back: which entries stood there before is not kept."""
    return replace(state, coordinator_upto=_LOST) if state.coordinator_upto > offset else state


def missed(state: LogState) -> LogState:
    """Something of the log never reached this fold."""
    return replace(state, coordinator_upto=_LOST) if state.coordinator_upto >= 0 else state


def _appeared(before: LogState | None, after: LogState, row: EventRow) -> LogState:
    if row.coordinator is not None:
        whole = before is not None and 0 <= before.log_end_offset <= before.coordinator_upto
        if whole and before is not None and before.journal == row.journal and row.next_offset <= before.coordinator_upto:
            return after  # it is told for somebody else
        return _kept(after, [row.coordinator], row, row.next_offset)
    goes_on = row.next_offset <= after.coordinator_upto or 0 <= row.follows <= after.coordinator_upto
    return after if goes_on else missed(after)


def _learnt(state: LogState, row: EventRow) -> LogState:
    """With the entries of a range; of one that was told before, those that are new."""
    upto = state.coordinator_upto
    if row.next_offset <= upto:
        return state
    goes_on = 0 <= row.follows <= upto
    if row.coordinator is None:
        return replace(state, coordinator_upto=row.next_offset if goes_on else _LOST)
    return _kept(state, [state.coordinator, row.coordinator], row, row.next_offset if goes_on else _LOST)


def _kept(state: LogState, packed: list[bytes | None], row: EventRow, upto: int) -> LogState:
    """With the newest of some entries; those of the last that lie before what is known count for nothing."""
    try:
        told = [pa.Table.from_batches([unpack_entries(each)], COORDINATOR) for each in packed if each is not None]
    except (pa.ArrowInvalid, OSError) as error:
        log.error(
            "coordinators' entries are not understood: is the agent of another version?",
            extra={"log": f"{row.topic}-{row.partition}", "seq": row.seq, "error": str(error)},
        )
        return replace(state, coordinator_upto=_LOST)
    if len(packed) > 1 and state.coordinator_upto >= 0:
        told[-1] = told[-1].filter(pc.greater_equal(told[-1]["offset"], state.coordinator_upto))
    together = newest(told)
    (batch,) = together.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], COORDINATOR)]
    return replace(state, coordinator=pack_rows(batch), coordinator_upto=upto)
