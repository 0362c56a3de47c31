"""How long to wait before something is started again: longer each time it ends soon, and short again after it has run well."""

from collections.abc import Sequence


class BackOff:
    """The pauses of one thing that is started again and again.

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
