"""Counts the batches that were past their retention when they were appended, and remembers the last of them that came one after the other.

How late the first and the last of such a run were tells what wrote them: what catches up gets less late, a clock stays as it is.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredRun:
    """Records that were past their retention when they were appended, one after the other; others may lie between them.

    ``since_ms``, ``last_ms``: when the first and the last of them were appended, at the earliest; ``since_timestamp``, ``last_timestamp``:
    their largest record timestamps. All are Unix milliseconds. ``first_offset``, ``last_offset``: of all of them, -1 if not known.
    ``records``: at least.
    """

    since_ms: int
    since_timestamp: int
    last_ms: int
    last_timestamp: int
    first_offset: int
    last_offset: int
    records: int

    @property
    def looks(self) -> LateLooks:
        """What they look like."""
        return looks_of((self.since_ms, self.since_timestamp), (self.last_ms, self.last_timestamp))

    def age_of(self, offset: int, timestamp_ms: int) -> int:
        """How old a record of the log was at least when it was appended, in milliseconds; -1 if it is not among these, or is undated."""
        return self.since_ms - timestamp_ms if timestamp_ms >= 0 and 0 <= self.first_offset <= offset <= self.last_offset else -1

    def is_all(self, first: int, end: int) -> bool:
        """Whether all offsets from ``first`` on and below ``end`` are of such records: nothing else lies among these."""
        alone = self.records == self.last_offset - self.first_offset + 1
        return alone and 0 <= self.first_offset <= first < end <= self.last_offset + 1


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
    batches, records, size, at_ms, first, last, offset, first_offset = np.frombuffer(row.expired, EXPIRED)[0].item()
    begins = state.expired_ms < 0 or at_ms - state.expired_ms > RUN_MS
    of_run = {
        "expired_since_ms": at_ms,
        "expired_since_timestamp": first,
        "expired_since_offset": first_offset,
        "expired_before": state.share_expired_records,
    }
    return replace(
        state,
        share_expired_batches=plus(state.share_expired_batches, batches),
        share_expired_records=plus(state.share_expired_records, records),
        share_expired_bytes=plus(state.share_expired_bytes, size),
        expired_ms=at_ms,
        expired_timestamp=last,
        expired_offset=offset,
        **(of_run if begins else {}),
    )
