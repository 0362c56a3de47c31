"""Whether the query is well: it checks for work again and again, and its micro-batches succeed."""

from collections.abc import Callable

FAILURES = 5
"""A query that has failed so often without a check for work in between is not well, however soon it is started again."""


class Wellness:
    """The job updates it, the exporter reads it; safe from any thread.

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
