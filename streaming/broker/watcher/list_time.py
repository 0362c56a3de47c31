"""How long the lists of logs are looked at in one poll, so that other work goes on, and a start does not take the square of its logs.

Everything else that a poll does takes as long as there are logs. So where a start looked at lists for the same short time in each poll,
most of it would be that other work, poll after poll.
"""

from collections.abc import Callable
from time import monotonic

LOOK_SECONDS = 0.02
"""How long lists are looked at in one poll."""

FIRST_LOOK_SECONDS = 0.2
"""The same while there are logs of which no list is published; or as long as the rest of the poll takes."""

MOST_LOOK_SECONDS = 1.0
"""But no longer than that."""


class ListTime:
    """For one thread. ``clock``: seconds of a clock that only goes forward."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._ended = clock()
        self._until = 0.0

    def begin(self, *, first: bool) -> None:
        """Begin to look; ``first``: there are logs of which no list is published."""
        now = self._clock()
        rest = min(now - self._ended, MOST_LOOK_SECONDS)
        self._until = now + (max(FIRST_LOOK_SECONDS, rest) if first else LOOK_SECONDS)

    @property
    def left(self) -> bool:
        """Whether another list may be looked at in this poll."""
        return self._clock() < self._until

    def end(self) -> None:
        """Note that no more lists are looked at in this poll."""
        self._ended = self._clock()
