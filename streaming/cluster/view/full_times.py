"""When log dirs are full, as it was reckoned in the last minute: it costs a tenth of a second for 10,000 logs of 20 segments."""

from collections.abc import Callable, Mapping
from threading import Lock

AGAIN_MS = 60_000
"""How long a forecast is shown before it is made anew."""

ByDir = Mapping[tuple[int, str], float]
"""Unix seconds by broker and path."""


class FullTimes:
    """For several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._made_ms: int | None = None
        self._found: ByDir = {}

    def of(self, make: Callable[[], ByDir], now_ms: int) -> ByDir:
        """The forecast of the last minute, made anew if there is none. A clock that was set back begins anew, too."""
        with self._lock:
            if self._made_ms is None or not self._made_ms <= now_ms < self._made_ms + AGAIN_MS:
                self._found, self._made_ms = make(), now_ms
            return self._found
