"""How fast a scrub goes: at most so many bytes a second, and at most so much of a core, over all log dirs together."""

import threading

CPU_SHARE = 0.03
"""Of one core. Small batches cost more for a byte than large ones, so that the rate alone would not bound it."""


class ScrubPace:
    """For several threads. All times are seconds of a clock that only goes forward.

    Args:
        rate: bytes a second.
    """

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._lock = threading.Lock()
        self._free_at = 0.0

    def spent(self, size: int, cpu_seconds: float, now: float) -> float:
        """So many bytes were read, with so much work. Returns for how long to rest."""
        with self._lock:
            self._free_at = max(now, self._free_at) + max(size / self._rate, cpu_seconds / CPU_SHARE)
            return self._free_at - now
