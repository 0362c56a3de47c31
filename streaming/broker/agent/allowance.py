"""How often a principal may ask for something that costs the agent work: so many at once, and one more each so many seconds."""

import threading
import time
from collections.abc import Callable


class Allowance:
    """A token bucket for each principal. For several threads.

    Args:
        most: how many at once.
        seconds: after so long one more is allowed.
        clock: seconds of a monotonic clock.
    """

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._lock = threading.Lock()
        self._full_at: dict[str, float] = {}  # when everything is allowed again

    def take(self, principal: str) -> bool:
        """Whether one more is allowed now."""
        now = self._clock()
        with self._lock:
            full_at = max(now, self._full_at.get(principal, now)) + self._seconds
            if full_at - now > self._most * self._seconds:
                return False
            self._full_at[principal] = full_at
            return True
