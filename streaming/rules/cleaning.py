"""Computes how much the log cleaner has to clean, and what it may not clean yet: `LogCleanerManager.cleanableOffsets`, `LogToClean`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.common.catalog import UNREADABLE
from streaming.rules.retention_rule import ABSENT, SegmentColumns

UNCLEANABLE = ("open_transaction", "compaction_lag", "moving")
"""The reasons why closed segments cannot be cleaned yet. A segment counts for one of them only, the first that holds."""

LONG_MS = 3 * 3_600_000
"""The cleaner gets round to every log within less."""


class CompactionRule:
    """The rule for some logs. Everything that does not depend on the clock is computed once."""

    def __init__(self, logs: SegmentColumns) -> None:
        self._logs = logs
        self._decidable = (logs.limit("compacts") > 0) & (logs.high_watermark >= 0) & (logs.cleaner_checkpoint != UNREADABLE)
        self._lag = logs.limit("min_compaction_lag_ms")
        self._longest = logs.limit("max_compaction_lag_ms")
        self._least_ratio = logs.ratio_limit("min_cleanable_dirty_ratio")
        checkpoint = logs.cleaner_checkpoint
        valid = (checkpoint >= logs.log_start) & (checkpoint <= logs.log_end)
        self._dirty_from: Longs = np.where(valid, checkpoint, logs.log_start)
        self._active_base: Longs = logs.base[logs.last]
        # If the LSO is at the high watermark, only replication holds it back, and that ends in a moment.
        undecided = logs.last_stable < logs.high_watermark
        self._transaction = np.where(undecided, np.minimum(logs.holding(logs.last_stable), logs.last), logs.last)
        self._clean = logs.bytes_between(logs.first, logs.below(self._dirty_from))

    def at(self, now_ms: int) -> Compaction:
        """Compute the state of compaction at a point in time."""
        logs = self._logs
        young = self._first_young(now_ms)
        bound = np.minimum(
            np.minimum(logs.last_stable, self._active_base), np.where(young < logs.last, logs.base[young], self._active_base)
        )
        bound = np.maximum(bound, self._dirty_from)
        held = np.where(bound < self._active_base, logs.holding(bound), logs.last)  # the first segment that cannot be cleaned
        begin = np.minimum(logs.holding(self._dirty_from), held)
        dirty = np.where(self._dirty_from < logs.base[held], logs.bytes_between(begin, held), 0)
        moving = np.where(logs.moving, dirty, 0)
        dirty = dirty - moving
        ratio, long_ratio = self._ratio(dirty), self._ratio(np.where(logs.moving, 0, self._long_dirty(now_ms, begin, held)))
        transaction = np.clip(self._transaction, held, logs.last)
        uncleanable = (
            logs.bytes_between(transaction, logs.last),
            logs.bytes_between(np.clip(young, held, transaction), transaction),
            moving,
        )
        known = self._decidable & ~((self._lag > 0) & logs.any_of(logs.unknown))
        return Compaction(
            dirty_bytes=np.where(known, dirty, ABSENT),
            dirty_ratio=np.where(known, ratio, ABSENT),
            long_dirty_ratio=np.where(known, long_ratio, ABSENT),
            dirty_limit=np.where(known, np.where(self._waited_longest(now_ms, begin, dirty), 0.0, self._least_ratio), ABSENT),
            uncleanable=np.where(known, np.array(uncleanable), ABSENT),
        )

    def _ratio(self, dirty: Longs) -> NDArray[np.float64]:
        total = self._clean + dirty
        ratio: NDArray[np.float64] = np.divide(dirty, total, out=np.full(len(total), float(ABSENT)), where=total > 0)
        return ratio

    def _long_dirty(self, now_ms: int, begin: Longs, held: Longs) -> Longs:
        """The bytes of dirty segments that were written to last before `LONG_MS`."""
        logs = self._logs
        place = np.arange(len(logs.base))
        waits = (place >= begin[logs.owner]) & (place < held[logs.owner]) & (self._dirty_from < logs.base[held])[logs.owner]
        waits &= now_ms - logs.modified > LONG_MS
        return np.bincount(logs.owner[waits], logs.size[waits], len(logs.count)).astype(np.int64)

    def _waited_longest(self, now_ms: int, begin: Longs, dirty: Longs) -> Flags:
        """Whether the first dirty segment has waited for longer than ``max.compaction.lag.ms``.

        Kafka uses the first batch of the segment (`LogCleanerManager.maxCompactionDelay`). This rule uses its last one, so the result is
        later, but never too early.
        """
        logs = self._logs
        waited: Flags = (dirty > 0) & ~logs.unknown[begin] & (now_ms - logs.largest[begin] > self._longest)
        return waited

    def _first_young(self, now_ms: int) -> Longs:
        """The first closed dirty segment that is younger than ``min.compaction.lag.ms``; the active segment if there is none."""
        logs = self._logs
        lag = self._lag[logs.owner]
        old = (lag <= 0) | (now_ms - lag >= logs.largest)
        return logs.run(np.minimum(logs.holding(self._dirty_from), logs.last), old, logs.last)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compaction:
    """The state of compaction at a point in time, one item for each log.

    All fields are `ABSENT` if a log is not compacted, or if the time of a segment is needed and not known yet. The same holds if its high
    watermark or the cleaner's checkpoint is not known.

    ``dirty_ratio`` is `ABSENT` also if no segment is closed. ``dirty_limit`` is the ratio above which the cleaner starts: the topic's own,
    or 0 once the dirty part has waited for longer than ``max.compaction.lag.ms``. ``long_dirty_ratio`` is the ratio without the dirty
    segments that were written to within `LONG_MS`. ``uncleanable`` has one row for each of `UNCLEANABLE`.
    """

    dirty_bytes: Longs
    dirty_ratio: NDArray[np.float64]
    long_dirty_ratio: NDArray[np.float64]
    dirty_limit: NDArray[np.float64]
    uncleanable: Longs
