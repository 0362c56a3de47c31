"""Whether the query is well: it looks for work again and again, and that leads to something."""

from collections.abc import Callable

FAILURES = 5
"""A query that has failed so often without having looked for work in between is not well, however soon it is started again."""


class Wellness:
    """Told by the job, asked by the exporter; safe from any thread.

    A look is a micro-batch that is through, or that there was nothing to do. That a query was started is none: one that fails each time is
    started as often as it fails.

    Args:
        seconds: one that has not looked for so long is not well.
        clock: seconds, of a clock that only goes forward.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._looked_at = clock()
        self._failures = 0

    def looked(self) -> None:
        """It has looked, or there is nothing yet that could."""
        self._looked_at = self._clock()
        self._failures = 0

    def failed(self) -> None:
        """It has failed."""
        self._failures += 1

    @property
    def well(self) -> bool:
        """Whether it is."""
        return self._failures < FAILURES and self._clock() - self._looked_at < self._seconds
