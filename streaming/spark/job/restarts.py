"""Restarts: after which pause, and whether a query that is started again and again is well."""

from collections.abc import Callable, Sequence


class BackOff:
    """The pauses of one thing that is started again and again: longer each time it ends soon, short again after it has run well.

    Args:
        pauses: seconds, for the first end and those that follow soon; the last pause is used for all further ends.
        well_seconds: if it ran for so long it was well, and its end counts as a first one.
    """

    def __init__(self, pauses: Sequence[float], well_seconds: float) -> None:
        self._pauses = pauses
        self._well_seconds = well_seconds
        self._ends = 0

    def ended(self, ran_seconds: float) -> float:
        """It has ended after ``ran_seconds``; returns how many seconds to wait."""
        if ran_seconds >= self._well_seconds:
            self._ends = 0
        pause = self._pauses[min(self._ends, len(self._pauses) - 1)]
        self._ends += 1
        return pause


FAILURES = 5
"""A query that has failed so often without a check for work in between is not well, however soon it is started again."""


class Wellness:
    """Whether the query is well: it checks for work again and again, and its micro-batches succeed.

    The job updates it, the exporter reads it; safe from any thread.

    A check counts when its micro-batch is through, or when there was nothing to do. The start of a query does not count: a query that fails
    each time is started as often as it fails.

    Args:
        seconds: a query without a check for so long is not well.
        clock: seconds, of a clock that only goes forward.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._checked_at = clock()
        self._failures = 0

    def checked(self) -> None:
        """The query has checked for work, or there is no query yet."""
        self._checked_at = self._clock()
        self._failures = 0

    def failed(self) -> None:
        """The query has failed."""
        self._failures += 1

    @property
    def well(self) -> bool:
        """Whether the query is well."""
        return self._failures < FAILURES and self._clock() - self._checked_at < self._seconds
