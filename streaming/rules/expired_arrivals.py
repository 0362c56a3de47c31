"""Counts the batches that were past their retention when they were appended, and remembers the last of them that came one after the other.

How late the first and the last of such a run were tells what wrote them: what catches up gets less late, a clock stays as it is.
"""

import logging
from dataclasses import replace
from enum import StrEnum

import numpy as np

from streaming.common.column_types import plus
from streaming.common.event_row import EventRow
from streaming.common.rows import EXPIRED
from streaming.rules.log_state import LogState

log = logging.getLogger(__name__)

RUN_MS = 3_600_000
"""What comes after so long a pause begins another run."""

DAY_MS = 86_400_000
_YEAR_MS = 366 * DAY_MS
_SECONDS = 10**9, 4 * 10**9  # of the years 2001 to 2096, if they are taken for milliseconds
_LEAST_CHANGE_MS = 60_000


class LateLooks(StrEnum):
    """What records look like that were past their retention when they were appended."""

    NO_TIME = "no_time"
    """They are dated near 1970: no time was set."""
    SECONDS = "seconds"
    """They are dated in January or February 1970: seconds are taken for milliseconds."""
    REPLAY = "replay"
    """They get less late: a copy or a replay that catches up."""
    CLOCK = "clock"
    """They stay as late as they are: a clock."""
    OLD = "old"
    """Neither: so far one of them, or times in no order."""


def looks_of(first: tuple[int, int], last: tuple[int, int]) -> LateLooks:
    """What a run looks like, by the append and the timestamp of its first and its last batch, all Unix milliseconds."""
    (began_ms, first_timestamp), (ended_ms, last_timestamp) = first, last
    if last_timestamp < _YEAR_MS:
        return LateLooks.SECONDS if _SECONDS[0] <= last_timestamp <= _SECONDS[1] else LateLooks.NO_TIME
    took_ms = max(ended_ms - began_ms, 0)
    change_ms = last_timestamp - first_timestamp - took_ms
    if change_ms > max(_LEAST_CHANGE_MS, took_ms // 2):
        return LateLooks.REPLAY
    return LateLooks.CLOCK if took_ms and abs(change_ms) <= max(_LEAST_CHANGE_MS, took_ms // 10) else LateLooks.OLD


def counted(state: LogState, row: EventRow) -> LogState:
    """The state with what was past its retention in a range that counts for its topic."""
    if not row.expired:
        return state
    if len(row.expired) != EXPIRED.itemsize:
        log.error(
            "what was past its retention in a range is not understood: is the agent of another version?",
            extra={"log": f"{row.topic}-{row.partition}", "seq": row.seq},
        )
        return state
    batches, records, size, at_ms, first, last, offset = np.frombuffer(row.expired, EXPIRED)[0].item()
    begins = state.expired_ms < 0 or at_ms - state.expired_ms > RUN_MS
    run = {"expired_since_ms": at_ms, "expired_since_timestamp": first, "expired_before": state.share_expired_records} if begins else {}
    return replace(
        state,
        share_expired_batches=plus(state.share_expired_batches, batches),
        share_expired_records=plus(state.share_expired_records, records),
        share_expired_bytes=plus(state.share_expired_bytes, size),
        expired_ms=at_ms,
        expired_timestamp=last,
        expired_offset=offset,
        **run,
    )
