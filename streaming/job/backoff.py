"""How long to wait before something that ended is started again: longer each time it ends soon, as at first once it has run well."""

from collections.abc import Sequence


class BackOff:
    """For one thing.

    Args:
        pauses: seconds, for the first end and those that follow soon; the last one stands for all that come after.
        well_seconds: one that ran for so long was well: its end is a first one.
    """

    def __init__(self, pauses: Sequence[float], well_seconds: float) -> None:
        self._pauses = pauses
        self._well_seconds = well_seconds
        self._ends = 0

    def ended(self, ran_seconds: float) -> float:
        """It has ended after so many seconds; returns for how many to wait."""
        if ran_seconds >= self._well_seconds:
            self._ends = 0
        pause = self._pauses[min(self._ends, len(self._pauses) - 1)]
        self._ends += 1
        return pause
