"""How fast a backlog is read: at most half of the time, and at most so many bytes a second, while what is new is looked at as ever."""

PAUSE_SECONDS = 0.5
"""The half of the time that is rest comes in pieces no longer than this."""


class Pace:
    """For one thread. All times are seconds of a clock that only goes forward.

    Args:
        rate: bytes a second.
        turn: most bytes that are read before there is a rest.
    """

    def __init__(self, rate: int, turn: int) -> None:
        self._rate = rate
        self._turn = max(1, min(turn, rate // 2))
        self._again_at = 0.0

    def budget(self, now: float) -> int:
        """How much of a backlog may be read now."""
        return self._turn if now >= self._again_at else 0

    def read(self, size: int, began: float, ended: float) -> None:
        """So many bytes were read in that time."""
        took = ended - began
        self._again_at = ended + max(min(took, PAUSE_SECONDS), size / self._rate - took)

    def rest(self, now: float) -> float:
        """How long until more of the backlog may be read."""
        return max(0.0, self._again_at - now)
