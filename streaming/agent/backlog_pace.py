"""Limits how fast a backlog is read: at most half of the time and at most a given rate. New data is read as usual."""

PAUSE_SECONDS = 0.5
"""The rest takes half of the time. No pause is longer than this."""


class Pace:
    """For one thread. All times are seconds of a monotonic clock.

    Args:
        rate: bytes per second.
        burst: the most bytes that are read without a pause.
    """

    def __init__(self, rate: int, burst: int) -> None:
        self._rate = rate
        self._burst = max(1, min(burst, rate // 2))
        self._again_at = 0.0

    def budget(self, now: float) -> int:
        """How many bytes of a backlog may be read now."""
        return self._burst if now >= self._again_at else 0

    def read(self, size: int, began: float, ended: float) -> None:
        """Note that this many bytes were read between the two times."""
        took = ended - began
        self._again_at = ended + max(min(took, PAUSE_SECONDS), size / self._rate - took)

    def rest(self, now: float) -> float:
        """Seconds until more of the backlog may be read."""
        return max(0.0, self._again_at - now)
