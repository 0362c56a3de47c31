"""How fast groups move through their logs, by the times of the records that they read next: deletion by time moves a second a second."""

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_places import padded
from streaming.cluster.consumers.group_rates import Rates
from streaming.common.arrays import Flags, Longs

MARK_MS = 150_000
"""A mark is that old before the next one: speeds are over one to two of these, so that a group may commit every minute or two."""

LEAST_MS = 30_000
"""A speed over less time is not known."""

_COLUMNS = ("start", "first_ms", "first_at", "mark_ms", "mark_at")


class Speeds:
    """One speed for each of a number of items. For one thread; ``steady_ms`` is of a clock that nobody sets."""

    def __init__(self) -> None:
        self._columns: dict[str, Longs] = {name: np.empty(0, np.int64) for name in _COLUMNS}

    def begin(self, former: Longs, there: Flags) -> None:
        """The items are others: each was the item ``former`` before, if it was ``there``."""
        self._columns = {name: np.where(there, padded(column)[former], ABSENT) for name, column in self._columns.items()}

    def now(self, start: Longs, next_ms: Longs, steady_ms: int) -> Rates:
        """Seconds of the log a second, over the last minutes; `ABSENT` where that is not known.

        Args:
            start: from which offset each item reads; one that goes back begins anew.
            next_ms: the time of the next record, `ABSENT` for none.
        """
        at = self._columns
        anew = (next_ms < 0) | (at["first_ms"] == ABSENT) | (start < at["start"])
        due = ~anew & (steady_ms - at["mark_at"] >= MARK_MS)
        for first, mark, value in (("first_ms", "mark_ms", next_ms), ("first_at", "mark_at", np.full(len(start), steady_ms))):
            at[first] = np.where(anew, value, np.where(due, at[mark], at[first]))
            at[mark] = np.where(anew | due, value, at[mark])
        at["start"] = start
        span = steady_ms - at["first_at"]
        known = ~anew & (span >= LEAST_MS)
        passed: Rates = np.where(known, (next_ms - at["first_ms"]) / np.where(known, span, 1), float(ABSENT))
        return passed
