"""How the disks of brokers fill: when log dirs are full, as it was reckoned last, and what takes space besides logs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Lock

from streaming.cluster.usage.reckoning import DirFacts

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


LEAST_MS, MOST_MS = 3_600_000, 86_400_000
"""It has grown for so long, at least, before a forecast goes by it: a package that is installed is no growth. A day is remembered."""

_APART_MS = 600_000


class OtherSpace:
    """For several threads. It sees a file system as often as somebody asks about it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._seen: dict[int, list[tuple[int, int]]] = {}  # by device: when, and the bytes that others took

    def within(self, dirs: Sequence[DirFacts], now_ms: int) -> list[DirFacts]:
        """The log dirs, with what others take of their file systems in a day."""
        with self._lock:
            days = {each.device: self._day(each, dirs, now_ms) for each in dirs}
        return [replace(each, others_day=days[each.device]) for each in dirs]

    def _day(self, found: DirFacts, dirs: Sequence[DirFacts], now_ms: int) -> int:
        """-1 if it is not known, 0 if they take less than they did."""
        sharing = [each for each in dirs if each.device == found.device]
        if not all(each.up and each.free >= 0 for each in sharing):
            return -1
        held = sum(taken for each in sharing for taken, _ in each.kinds.values())
        others = found.capacity - found.free - held
        seen = [each for each in self._seen.get(found.device, []) if now_ms - MOST_MS <= each[0] <= now_ms]
        self._seen[found.device] = seen if seen and now_ms - seen[-1][0] < _APART_MS else [*seen, (now_ms, others)]
        if not seen or now_ms - seen[0][0] < LEAST_MS:
            return -1
        return max(0, round((others - seen[0][1]) * MOST_MS / (now_ms - seen[0][0])))
