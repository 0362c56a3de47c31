"""Dangers of commits whose logs nobody reads now: what was known when somebody did stays, for as long as the offset does."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming.cluster.consumers.group_lag import CODES, LagReason
from streaming.cluster.consumers.group_past import AppendedNext
from streaming.cluster.consumers.group_places import carried, padded
from streaming.cluster.consumers.group_sums import CommitFacts
from streaming.common.arrays import Longs
from streaming.kafka.groups.commit_table import CommitRows

_Column = TypeVar("_Column", bound=NDArray[Any])

_UNREAD = [CODES[each] for each in (LagReason.NOT_OBSERVED, LagReason.UNREAD, LagReason.CHECKPOINT, LagReason.LEADER, LagReason.UNREADABLE)]
"""Why something is not known that was known while an agent read it, or a log could be read."""

_FACTS = ("stopped", "loss_ms", "loss_pace", "loss_start_of", "loss_at_start", "assumed")


class LastKnown:
    """What commits stood in when it was last certain. For one thread."""

    def __init__(self) -> None:
        self._last: tuple[CommitRows, CommitFacts, Longs] | None = None

    def within(self, rows: CommitRows, found: CommitFacts, since_ms: Longs) -> tuple[CommitFacts, Longs]:
        """What a round has found, and since when commits stand, with what was known of those that nobody reads now."""
        unread = np.isin(found.lags.reason, _UNREAD) & ~found.left_over
        if self._last is not None and unread.any():
            rows_before, last, last_since_ms = self._last
            before, there = carried(rows_before.key, rows.key)
            there &= unread & (padded(rows_before.offset)[before] == rows.offset)
            some, before = np.flatnonzero(there), before[there]
            facts = {name: _put(getattr(found, name), some, getattr(last, name)[before]) for name in _FACTS}
            appended = AppendedNext(
                earliest_ms=_put(found.appended.earliest_ms, some, last.appended.earliest_ms[before]),
                latest_ms=_put(found.appended.latest_ms, some, last.appended.latest_ms[before]),
            )
            found = replace(found, appended=appended, **facts)
            since_ms = _put(since_ms, some, last_since_ms[before])
        self._last = rows, found, since_ms
        return found, since_ms


def _put(column: _Column, some: Longs, values: _Column) -> _Column:
    changed = column.copy()
    changed[some] = values
    return changed
