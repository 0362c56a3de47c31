"""How the disks of brokers fill: when log dirs are full, as it was reckoned last, and what takes space besides logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import NamedTuple

import numpy as np

from streaming.cluster.usage.reckoning import DirFacts, Fall
from streaming.rules.space_outlook import LASTS, MAY_LAST

AGAIN_MS, FILLING_MS = 60_000, 5_000
"""How long a forecast is shown before another one is made; the second while free bytes fall fast, or a disk is full within `SOON_MS`."""

SOON_MS = 1_800_000

ByDir = Mapping[tuple[int, str], float]
"""Unix seconds by broker and path."""

LEAST_MS, MOST_MS = 3_600_000, 86_400_000
"""It has grown for so long, at least, before a forecast goes by it: a package that is installed is no growth. A day is remembered."""

_APART_MS = 600_000

PACES_MS = (30_000, 60_000, 300_000, 1_800_000, 3_600_000)
"""Over so long the fall of free bytes is looked at: a flood is seen after seconds, and what fills a disk in hours after minutes."""

_READ_MS = 4_000  # agents read free bytes every five seconds
_FREED = 0.001  # so much of a disk becomes free at once only if something was deleted, or the disk is larger than it was


class DiskHistory:
    """What file systems were: how many bytes were free, and how many others took that no log dir has.

    It sees a file system as often as a caller asks about it. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._others: dict[int, list[tuple[int, int]]] = {}  # by device: when, and the bytes that others took
        self._free: dict[int, _Readings] = {}  # by device
        self._filling = False

    def within(self, dirs: Sequence[DirFacts], now_ms: int) -> list[DirFacts]:
        """The log dirs, with what others take of their file systems in a day, and how fast these fill now."""
        with self._lock:
            days = {each.device: self._day(each, dirs, now_ms) for each in dirs}
            known = space_of((each.device, each.free, each.capacity, each.lacks) for each in dirs if each.up and each.free >= 0)
            falls = {device: tuple(_falls(self._seen_free(device, each, now_ms))) for device, each in known.items()}
        return [replace(each, others_day=days[each.device], falls=falls.get(each.device, ())) for each in dirs]

    def _day(self, found: DirFacts, dirs: Sequence[DirFacts], now_ms: int) -> int:
        """How many bytes others take of its file system in a day, -1 if that is not known, 0 if they take less than they did."""
        sharing = [each for each in dirs if each.device == found.device]
        if not all(each.up and each.free >= 0 for each in sharing):
            return -1
        held = sum(taken for each in sharing for taken, _ in each.kinds.values())
        others = found.capacity - found.free - held
        seen = [each for each in self._others.get(found.device, []) if now_ms - MOST_MS <= each[0] <= now_ms]
        self._others[found.device] = seen if seen and now_ms - seen[-1][0] < _APART_MS else [*seen, (now_ms, others)]
        if not seen or now_ms - seen[0][0] < LEAST_MS:
            return -1
        return max(0, round((others - seen[0][1]) * MOST_MS / (now_ms - seen[0][0])))

    def look(self, found: Mapping[int, Space], now_ms: int) -> bool:
        """Remember what devices have. Whether one of them fills fast, or did at the last look."""
        with self._lock:
            before = self._filling
            seen = [self._seen_free(device, each, now_ms) for device, each in found.items()]
            self._filling = any(readings[-1].free <= LASTS * each.pace * each.over_ms for readings in seen for each in _falls(readings))
            return before or self._filling

    def _seen_free(self, device: int, space: Space, now_ms: int) -> _Readings:
        """What was free, up to now, without what was before bytes were freed: a pace is that of free bytes that fall."""
        seen = [each for each in self._free.get(device, []) if now_ms - PACES_MS[-1] - _READ_MS <= each.at_ms <= now_ms]
        if seen and space.free - seen[-1].free > _FREED * space.capacity:
            seen = []
        now = _Reading(now_ms, space.free, space.lacks)
        self._free[device] = seen if seen and now_ms - seen[-1].at_ms < _READ_MS else [*seen, now]
        return [*seen, now]


class _Reading(NamedTuple):
    at_ms: int
    free: int
    lacks: int


_Readings = Sequence[_Reading]


def space_of(dirs: Iterable[tuple[int, int, int, int]]) -> dict[int, Space]:
    """The space of each device. ``dirs``: the device of each log dir, and what `Space` has of it."""
    found: dict[int, Space] = {}
    for device, free, capacity, lacks in dirs:
        found[device] = Space(free, capacity, lacks + (found[device].lacks if device in found else 0))
    return found


class Space(NamedTuple):
    """Bytes of a file system. ``lacks``: what replicas there that are out of sync have still to copy."""

    free: int
    capacity: int
    lacks: int = 0


def _falls(seen: _Readings) -> Iterator[Fall]:
    """How free bytes fall, seen over longer and longer times: the paces by which the disk may be full as soon as `MAY_LAST` allows.

    A pace is that of the whole time and of its end: a flood that is over is none. Nor is what replicas copy that were away: it ends where
    they have what their leaders have, unless there is no room for that.
    """
    now, pace = seen[-1], np.inf
    for over_ms in PACES_MS:
        then = next(each for each in seen if each.at_ms >= now.at_ms - over_ms - _READ_MS)
        took_ms = now.at_ms - then.at_ms
        if 2 * took_ms < over_ms:
            continue
        copied = max(0, then.lacks - now.lacks) if now.lacks < now.free else 0
        pace = min(pace, (then.free - now.free - copied) / took_ms)
        if pace <= 0:
            return
        if now.free <= pace * MAY_LAST * took_ms:
            yield Fall(pace, took_ms)


class FullTimes:
    """When log dirs will be full: keeps the last forecast, and makes another one when it is too old. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._made_ms: int | None = None
        self._found: ByDir = {}

    def of(self, make: Callable[[], ByDir], now_ms: int, *, filling: bool = False) -> ByDir:
        """The forecast of the last minute, made now if there is none. One is made also when the clock was set back.

        Args:
            filling: free bytes fall fast, or have just ceased to.
        """
        with self._lock:
            soon = any(1000 * each < now_ms + SOON_MS for each in self._found.values())  # what was foretold comes, or it was averted
            again_ms = FILLING_MS if filling or soon else AGAIN_MS
            if self._made_ms is None or not self._made_ms <= now_ms < self._made_ms + again_ms:
                self._found, self._made_ms = make(), now_ms
            return self._found
