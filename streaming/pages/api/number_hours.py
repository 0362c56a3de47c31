"""The last hour of the numbers that only judged looks show, a number a minute: the history of logs does not see them."""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from streaming.pages.api.history import MINUTE_MS, MINUTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownNumbers:
    """The numbers of one time, -1 where one is not known.

    ``lag``: the largest. ``loss_left_ms``, ``full_left_ms``: how long it is until the next loss, and until the first log dir is full.
    """

    lag: int = -1
    loss_left_ms: int = -1
    full_left_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberHours:
    """The last hour of each of `ShownNumbers`, the oldest first; -1 in it is a minute without a number. Empty if there is none."""

    lag: Sequence[float] = ()
    loss_left_ms: Sequence[float] = ()
    full_left_ms: Sequence[float] = ()


_NOTHING = ShownNumbers()


class NumberMemory:
    """For several threads."""

    def __init__(self) -> None:
        self._lock = Lock()  # protects what follows
        self._minutes: dict[int, ShownNumbers] = {}  # by the number of the minute, by the Unix clock

    def record(self, at_ms: int, numbers: ShownNumbers) -> None:
        """The numbers at a time. Of a minute the last ones count."""
        minute = at_ms // MINUTE_MS
        with self._lock:
            kept = {number: each for number, each in self._minutes.items() if 0 <= minute - number < MINUTES}
            self._minutes = {**kept, minute: numbers}

    def hours(self, at_ms: int) -> NumberHours:
        """The hour until then."""
        minute = at_ms // MINUTE_MS
        with self._lock:
            found = [self._minutes.get(minute - MINUTES + 1 + each, _NOTHING) for each in range(MINUTES)]
        return NumberHours(
            lag=_known([each.lag for each in found]),
            loss_left_ms=_known([each.loss_left_ms for each in found]),
            full_left_ms=_known([each.full_left_ms for each in found]),
        )


def _known(values: Sequence[int]) -> Sequence[float]:
    return [float(each) for each in values] if max(values) >= 0 else ()
