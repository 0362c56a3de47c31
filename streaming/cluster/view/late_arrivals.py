"""Leaders' logs to which records came lately that were past their retention, and which Kafka deletes for that or has just deleted.

A lateness that only passes by is left out: as long as records get less late from one to the next, newer ones may come into the same
segment, and then it stays. Records that a segment holds beside newer ones are not due.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streaming.cluster.view.exported import Observed, RetentionResults
from streaming.rules.expired_arrivals import RUN_MS, ExpiredRun, LateLooks

_RUN = (
    "expired_since_ms",
    "expired_since_timestamp",
    "expired_ms",
    "expired_timestamp",
    "expired_since_offset",
    "expired_offset",
    "share_expired_records",
    "expired_before",
)

CATCHES_UP_MS = 60_000
"""If the last of records that get less late came so long ago, nothing newer follows."""


def late_arrivals(observed: Observed, retention: RetentionResults, now_ms: int) -> tuple[LateArrivals, ...]:
    """Those of the last hour, of logs whose limit is known."""
    columns, items = observed.columns, retention.items
    last_ms, offset = columns["expired_ms"][items], columns["expired_offset"][items]
    start = columns["log_start_offset"][items]
    gone = np.maximum(retention.columns["due_upto"], start) > offset
    some = gone & (last_ms >= 0) & (now_ms - last_ms < RUN_MS) & observed.roles.leads[items]
    found = (_of(observed, retention, place) for place in np.flatnonzero(some).tolist())
    return tuple(each for each in found if each is not None and not _passes_by(each, now_ms))


@dataclass(frozen=True, slots=True, kw_only=True)
class LateArrivals:
    """The records of one log that were past their retention one after the other, and that are due or deleted.

    ``since_ms``, ``last_ms``: when the first and the last of them were appended.
    """

    item: int  # its index in `Observed`
    topic: str
    since_ms: int
    last_ms: int
    delay_ms: int  # how old the last one was then
    limit_ms: int  # how old it might have been
    records: int  # at least
    looks: LateLooks
    deleted: bool  # they are gone


def _of(observed: Observed, retention: RetentionResults, place: int) -> LateArrivals | None:
    limits, item = retention.limits[place], int(retention.items[place])
    run = run_of(observed, item)
    if limits is None or not limits.judges_expiry or run is None:
        return None
    return LateArrivals(
        item=item,
        topic=observed.names[item],
        since_ms=run.since_ms,
        last_ms=run.last_ms,
        delay_ms=run.last_ms - run.last_timestamp,
        limit_ms=limits.expires_ms,
        records=run.records,
        looks=run.looks,
        deleted=int(observed.columns["log_start_offset"][item]) > run.last_offset,
    )


def run_of(observed: Observed, item: int) -> ExpiredRun | None:
    """The last of a log's records that came past their retention one after the other; None if none was seen."""
    if observed.columns["expired_ms"][item] < 0:
        return None
    since_ms, since_timestamp, last_ms, last_timestamp, first_offset, last_offset, records, before = (
        int(observed.columns[name][item]) for name in _RUN
    )
    return ExpiredRun(
        since_ms=since_ms,
        since_timestamp=since_timestamp,
        last_ms=last_ms,
        last_timestamp=last_timestamp,
        first_offset=first_offset,
        last_offset=last_offset,
        records=records - max(before, 0),
    )


def _passes_by(late: LateArrivals, now_ms: int) -> bool:
    return late.looks is LateLooks.REPLAY and now_ms - late.last_ms < CATCHES_UP_MS


def worst(logs: Sequence[LateArrivals]) -> LateArrivals:
    """The one that is furthest past its limit; what it looks like is said of all."""
    return max(logs, key=lambda late: late.delay_ms - late.limit_ms)
