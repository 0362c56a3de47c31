"""How late the data batches of a range arrived, by the largest record timestamp of each, and which were past their retention then.

The time of an append is known between two limits only: the poll that did not find it, and the one that did. So a delay is the least that it
can be, and what counts as past its retention surely was. A batch counts whole, by its newest record: its other records are older, and other
batches may hold records past their retention beside newer ones, so records are a lower bound. A batch without a timestamp has no delay
(`LogSegment.largestTimestamp` takes the time of the file for it, and ignores negative ones).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.common.column_types import Count, Counts, plus
from streaming.common.rows import APPEND_DELAY_SECONDS_BOUNDS, EXPIRED
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.sums import Sums

AHEAD_MS = 30_000
"""A batch that is dated further ahead of its append has no delay, and is counted apart. Clocks that differ by less are usual."""

PROMPT_MS = 1000 * APPEND_DELAY_SECONDS_BOUNDS[0]
"""Up to so much before its append a batch is on time: its delay is 0."""

_BOUNDS_MS = np.array(APPEND_DELAY_SECONDS_BOUNDS, np.int64) * 1000
_BUCKETS = len(_BOUNDS_MS) + 1
_NO_OTHERS = (0,) * (_BUCKETS - 1)


@dataclass(frozen=True, slots=True)
class Appended:
    """When the batches of a range were appended: not before ``earliest_ms``, not after ``latest_ms`` (Unix milliseconds)."""

    earliest_ms: int
    latest_ms: int


@dataclass(frozen=True, slots=True)
class AppendDelays:
    """The columns of an event with the same names. ``expired``: an item of `streaming.common.rows.EXPIRED`, None for none."""

    append_delay_buckets: Counts = (0, *_NO_OTHERS)
    append_delay_ms: Count = 0
    ahead_batches: Count = 0
    expired: bytes | None = None


NO_ARRIVALS = AppendDelays()
"""Of a range whose time of append is not known, or that a follower copied."""


def arrivals(batches: Batches, sums: Sums, appended: Appended, retention_ms: int) -> AppendDelays:
    """How late the batches of a range arrived.

    Args:
        sums: of the same batches.
        retention_ms: how long a record is kept by its timestamp; -1 for ever, or not known.
    """
    prompt_ms = PROMPT_MS if retention_ms < 0 else min(PROMPT_MS, retention_ms)
    if _on_time(sums.least_timestamp, sums.max_timestamp, appended.earliest_ms, appended.latest_ms, prompt_ms):
        return AppendDelays((sums.batches, *_NO_OTHERS))
    timed = ~batches.control & (batches.max_timestamp >= 0)
    ahead = timed & (batches.max_timestamp > appended.latest_ms + AHEAD_MS)
    delays = np.maximum(appended.earliest_ms - batches.max_timestamp[timed & ~ahead], 0)
    buckets = np.bincount(np.searchsorted(_BOUNDS_MS, delays), minlength=_BUCKETS)
    late = retention_ms >= 0 and bool(len(delays)) and int(delays.max()) > retention_ms
    return AppendDelays(
        append_delay_buckets=tuple(buckets.tolist()),
        append_delay_ms=int(delays[delays > PROMPT_MS].sum()),
        ahead_batches=int(ahead.sum()),
        expired=_expired(batches, timed, appended.earliest_ms, retention_ms) if late else None,
    )


def on_time(sums: Mapping[str, Longs], earliest_ms: Longs, latest_ms: int, retention_ms: Longs) -> NDArray[np.bool_]:
    """Which of several ranges have no late batch and none that is ahead: all of them have a delay of 0.

    Args:
        sums: the columns of `streaming.kafka.scan.sums.sum_columns`.
        earliest_ms, retention_ms: as in `Appended` and for `arrivals`, of each range.
    """
    prompt_ms = np.where(retention_ms < 0, PROMPT_MS, np.minimum(PROMPT_MS, retention_ms))
    found: NDArray[np.bool_] = _on_time(sums["least_timestamp"], sums["max_timestamp"], earliest_ms, latest_ms, prompt_ms)
    return found


def _on_time(least: Any, newest: Any, earliest_ms: Any, latest_ms: int, prompt_ms: Any) -> Any:
    """The rule, for numbers and for columns."""
    return (least >= 0) & (least >= earliest_ms - prompt_ms) & (newest <= latest_ms + AHEAD_MS)


def _expired(batches: Batches, timed: np.ndarray, earliest_ms: int, retention_ms: int) -> bytes:
    """A batch stays at its limit, and goes a millisecond later (`UnifiedLog.deleteRetentionMsBreachedSegments`)."""
    those = np.flatnonzero(timed & (batches.max_timestamp < earliest_ms - retention_ms))
    first, last = int(those[0]), int(those[-1])
    found = (
        len(those),
        batches.records[those].sum(),
        batches.size[those].sum(),
        earliest_ms,
        batches.max_timestamp[first],
        batches.max_timestamp[last],
        batches.last_offset[last],
        batches.base_offset[first],
    )
    return np.array([found], EXPIRED).tobytes()


def merged_expired(first: bytes | None, later: bytes | None) -> bytes | None:
    """What was past its retention in two neighbouring ranges."""
    if first is None or later is None:
        return later if first is None else first
    before, after = np.frombuffer(first, EXPIRED)[0], np.frombuffer(later, EXPIRED)[0].copy()
    for name in ("batches", "records", "bytes"):
        after[name] = plus(int(before[name]), int(after[name]))
    for name in ("first_timestamp", "first_offset"):
        after[name] = before[name]
    return bytes(after.tobytes())
