"""The pace of work in the background: it limits the bytes a second and the share of a core, for all log dirs together."""

import threading

CPU_SHARE = 0.03
"""The most of one core that a scrub uses. Small batches cost more for each byte than large ones, so the rate alone is not enough."""


class ScrubPace:
    """For several threads. All times are seconds of a clock that only goes forward.

    Args:
        rate: bytes a second.
        cpu_share: the most of one core that is used.
    """

    def __init__(self, rate: int, cpu_share: float = CPU_SHARE) -> None:
        self._rate = rate
        self._cpu_share = cpu_share
        self._lock = threading.Lock()
        self._free_at = 0.0

    def spent(self, size: int, cpu_seconds: float, now: float) -> float:
        """Note that ``size`` bytes were read and took ``cpu_seconds``. Returns for how many seconds to rest."""
        with self._lock:
            self._free_at = max(now, self._free_at) + max(size / self._rate, cpu_seconds / self._cpu_share)
            return self._free_at - now
