"""What the fold keeps of a log of `__transaction_state`: the newest entry of each transactional id, as rows that travel on."""

import logging
from dataclasses import replace

import pyarrow as pa

from streaming.rows import COORDINATOR, EventRow, pack_rows, unpack_rows
from streaming.rules.coordinator import newest
from streaming.rules.log_state import LogState

log = logging.getLogger(__name__)


def learnt(state: LogState, row: EventRow) -> LogState:
    """With the entries of a range that was just counted.

    What a truncation cuts off stays: it was decided once, and an entry that is missing would let a live transaction seem to hang.
    """
    if row.coordinator is None:
        return state
    try:
        told = [unpack_rows(packed, COORDINATOR) for packed in (state.coordinator, row.coordinator) if packed is not None]
    except (pa.ArrowInvalid, OSError) as error:
        log.error(
            "coordinators' entries are not understood: is the agent of another version?",
            extra={"log": f"{row.topic}-{row.partition}", "seq": row.seq, "error": str(error)},
        )
        return state
    together = newest([pa.Table.from_batches([batch], COORDINATOR) for batch in told])
    (batch,) = together.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], COORDINATOR)]
    return replace(state, coordinator=pack_rows(batch))
