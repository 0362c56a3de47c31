"""The largest lag of the last hour, a number a minute: judged looks show it, which the history of logs does not see."""

from collections.abc import Sequence
from threading import Lock

from streaming.pages.api.history import MINUTE_MS, MINUTES


class LagHour:
    """For several threads."""

    def __init__(self) -> None:
        self._lock = Lock()  # protects what follows
        self._lags: dict[int, float] = {}  # by the number of the minute, by the Unix clock

    def record(self, at_ms: int, lag: int) -> None:
        """The largest lag at a time; -1 is not known. Of a minute the last one counts."""
        minute = at_ms // MINUTE_MS
        with self._lock:
            kept = {number: each for number, each in self._lags.items() if 0 <= minute - number < MINUTES}
            self._lags = {**kept, minute: float(lag)}

    def hour(self, at_ms: int) -> Sequence[float]:
        """The last hour, the oldest first; -1 in it is a minute without a number. Empty if there is none."""
        minute = at_ms // MINUTE_MS
        with self._lock:
            found = [self._lags.get(minute - MINUTES + 1 + each, -1.0) for each in range(MINUTES)]
        return found if max(found) >= 0 else ()
