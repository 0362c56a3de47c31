"""The state of a log of `__transaction_state`: the newest entry of each transactional id, and the offset up to which this is complete.

The log is compacted, so its present content is its state. ``coordinator_upto`` is the offset up to which every entry since the first byte
has been folded. It advances as long as each row begins where the one before it ended, whether or not the row's bytes have been counted
before. After the first gap, truncation or flaw it is not known (-1). Then the agent reads the log again from its first byte, and the
entries that it finds replace the kept ones. They have to be replaced, because an id that has expired meanwhile may have left no tombstone.
"""

import logging
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from streaming.common.event_row import EventRow
from streaming.common.rows import COORDINATOR, Kind, pack_rows, unpack_entries
from streaming.rules.coordinator_join import newest
from streaming.rules.log_state import LogState

log = logging.getLogger(__name__)

_MERGED = "journal_trimmed"
"""The reason of a loss whose row still contains the coordinators' entries."""

_LOST = -1


def taken(before: LogState | None, after: LogState, row: EventRow) -> LogState:
    """The log with a row's entries added.

    Args:
        before: the log before the row, None where it was not known.
        after: the log with all other changes of the row.
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
    """The log after a truncation at ``offset``: entries that were overwritten there are not kept, so completeness is lost."""
    return replace(state, coordinator_upto=_LOST) if state.coordinator_upto > offset else state


def missed(state: LogState) -> LogState:
    """The log after a part of it never reached this fold."""
    return replace(state, coordinator_upto=_LOST) if state.coordinator_upto >= 0 else state


def _appeared(before: LogState | None, after: LogState, row: EventRow) -> LogState:
    if row.coordinator is not None:
        whole = before is not None and 0 <= before.log_end_offset <= before.coordinator_upto
        if whole and before is not None and before.journal == row.journal and row.next_offset <= before.coordinator_upto:
            return after  # it is sent for another consumer
        return _kept(after, [row.coordinator], row, row.next_offset)
    goes_on = row.next_offset <= after.coordinator_upto or 0 <= row.follows <= after.coordinator_upto
    return after if goes_on else missed(after)


def _learnt(state: LogState, row: EventRow) -> LogState:
    """The log with the entries of a range. If the range was sent before, only its new entries are added."""
    upto = state.coordinator_upto
    if row.next_offset <= upto:
        return state
    goes_on = 0 <= row.follows <= upto
    if row.coordinator is None:
        return replace(state, coordinator_upto=row.next_offset if goes_on else _LOST)
    return _kept(state, [state.coordinator, row.coordinator], row, row.next_offset if goes_on else _LOST)


def _kept(state: LogState, packed: list[bytes | None], row: EventRow, upto: int) -> LogState:
    """The log with the newest of some entries. Of the last pack, entries before ``coordinator_upto`` are ignored."""
    try:
        tables = [pa.Table.from_batches([unpack_entries(each)], COORDINATOR) for each in packed if each is not None]
    except pa.ArrowInvalid as error:
        log.error(
            "coordinators' entries are not understood: is the agent of another version?",
            extra={"log": f"{row.topic}-{row.partition}", "seq": row.seq, "error": str(error)},
        )
        return replace(state, coordinator_upto=_LOST)
    if len(packed) > 1 and state.coordinator_upto >= 0:
        tables[-1] = tables[-1].filter(pc.greater_equal(tables[-1]["offset"], state.coordinator_upto))
    together = newest(tables)
    (batch,) = together.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], COORDINATOR)]
    return replace(state, coordinator=pack_rows(batch), coordinator_upto=upto)
