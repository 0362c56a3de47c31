"""How far what an agent has published is ahead of the metrics, in bytes and in time."""

from collections import deque
from typing import NamedTuple

_POINTS = 1024
"""Points in time kept for an agent, so that the time is exact for the first quarter of an hour and to 0.4 % of the lag after that."""


class _Point(NamedTuple):
    """By ``at`` the first of the bytes up to ``total`` that the point before does not have were published."""

    total: int
    at: float


class TailLag:
    """Follows one agent's published bytes, which only grow, and how many of them are in the metrics."""

    def __init__(self) -> None:
        self._published = 0
        self._processed: int | None = None  # not told yet: after a restart that is everything but 0
        self._waiting: deque[_Point] = deque()  # oldest first, each with bytes that are not processed
        self._apart = 0.0  # seconds: a point younger than this against the last one is joined to it

    def published(self, total: int, at: float) -> None:
        """Say that ``total`` bytes in all were published by ``at``. Fewer than before means a journal made anew."""
        if total < self._published:
            self._waiting.clear()
            self._processed = 0
        self._published = total
        if (self._processed is not None and total <= self._processed) or (self._waiting and total <= self._waiting[-1].total):
            return
        if self._waiting and at - self._waiting[-1].at < self._apart:
            self._waiting[-1] = _Point(total, self._waiting[-1].at)
        else:
            self._waiting.append(_Point(total, at))
            self._join_if_many()

    def processed(self, total: int) -> None:
        """Say that ``total`` of the bytes published are in the metrics."""
        self._processed = total
        while self._waiting and self._waiting[0].total <= total:
            self._waiting.popleft()
        if not self._waiting:
            self._apart = 0.0

    @property
    def known(self) -> bool:
        """Whether it was ever told what is processed: until then there is no lag to speak of."""
        return self._processed is not None

    @property
    def size(self) -> int:
        """Bytes published and not processed; all of them while nothing is told of that."""
        return max(0, self._published - (self._processed or 0))

    def seconds(self, now: float) -> float:
        """For how long the oldest of them have been waiting, 0 if there are none."""
        return max(0.0, now - self._waiting[0].at) if self._waiting else 0.0

    def _join_if_many(self) -> None:
        """Halve the points when there are too many, each two becoming one that is as old as the first."""
        if len(self._waiting) > _POINTS:
            points = list(self._waiting)
            points.append(points[-1])  # an odd last one goes with itself
            self._waiting = deque(_Point(second.total, first.at) for first, second in zip(points[::2], points[1::2], strict=False))
            self._apart = 2 * (points[-1].at - points[0].at) / _POINTS
