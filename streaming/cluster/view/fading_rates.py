"""Rates that fade: how much has passed a second lately, from counts at irregular times. A steady rate is shown as it is."""

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.rules.retention_rule import ABSENT

RATE_SECONDS = 120.0
"""What is this old counts for a third of what is new."""

Rates = NDArray[np.float64]


class FadingRates:
    """One rate for each of a number of items. Only items that something has passed cost anything.

    All times are of a monotonic clock. Only one thread uses it.

    Args:
        seconds: what is this old counts for a third of what is new.
    """

    def __init__(self, seconds: float = RATE_SECONDS) -> None:
        self._seconds = seconds
        self._rate: Rates = np.empty(0)
        self._at_ms: Longs = np.empty(0, np.int64)
        self._first_ms: Longs = np.empty(0, np.int64)
        self._round_ms = self._before_ms = -1

    def begin_round(self, steady_ms: int) -> None:
        """What passes from now on has passed since the round before."""
        self._before_ms, self._round_ms = self._round_ms, steady_ms

    def begin(self, former: Longs, there: Flags, steady_ms: int) -> None:
        """The items are others: each was the item ``former`` before, if it was ``there``."""
        self._rate = np.where(there, np.append(self._rate, 0.0)[former], 0.0)
        self._at_ms = np.where(there, np.append(self._at_ms, steady_ms)[former], steady_ms)
        self._first_ms = np.where(there, np.append(self._first_ms, steady_ms)[former], steady_ms)

    def restart(self, items: Longs, steady_ms: int) -> None:
        """What has passed these items so far says nothing of what will."""
        self._rate[items], self._at_ms[items], self._first_ms[items] = 0.0, steady_ms, steady_ms

    def passed(self, count: Longs, steady_ms: int) -> None:
        """So much has passed each item, evenly since the round before."""
        some = np.flatnonzero(count)
        took = max(steady_ms - self._before_ms, 0) / 1000 if self._before_ms >= 0 else 0.0
        weight = -np.expm1(-took / self._seconds) / took if took else 1 / self._seconds
        self._rate[some] = self._rate[some] * self._faded(steady_ms - self._at_ms[some]) + count[some] * weight
        self._at_ms[some] = steady_ms

    def now(self, steady_ms: int) -> Rates:
        """What passes a second; `ABSENT` for an item that is new."""
        share = 1 - self._faded(steady_ms - self._first_ms)  # of a mean over less time than it is meant for
        faded = self._rate * self._faded(steady_ms - self._at_ms)
        rates: Rates = np.where(share > 0, faded / np.where(share > 0, share, 1), float(ABSENT))
        return rates

    def steady(self, steady_ms: int, *, for_ms: int, silent_ms: int) -> Rates:
        """What passes a second; `ABSENT` for an item that is known for less than ``for_ms``, or that nothing passed for ``silent_ms``."""
        steady = (steady_ms - self._first_ms >= for_ms) & (steady_ms - self._at_ms <= silent_ms)
        return np.where(steady, self.now(steady_ms), float(ABSENT))

    def _faded(self, age_ms: Longs) -> Rates:
        """What is left of something that old."""
        left: Rates = np.exp(-np.maximum(age_ms, 0) / 1000 / self._seconds)
        return left
