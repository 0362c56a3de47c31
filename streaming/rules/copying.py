"""Computes how much a replica still has to copy, and how long that takes.

The rest to copy is the leader's log from the replica's end on. The time follows from the speed observed so far.
"""

from collections import deque
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

PACE_MS = 300_000
"""The speed is measured over at most this time."""

LEAST_MS = 10_000
"""A speed that is measured over less time than this is not used."""


class CopyingPace:
    """The speed at which the rest shrinks: bytes per second over the last minutes."""

    def __init__(self) -> None:
        self._points: deque[tuple[int, int]] = deque()  # Unix milliseconds, bytes that remained

    def saw(self, now_ms: int, remaining: int) -> None:
        """Note how much remained at a point in time."""
        if self._points and now_ms == self._points[-1][0]:
            return  # the page was read several times at the same moment
        if self._points and now_ms < self._points[-1][0]:
            self._points.clear()  # the clock was set back
        self._points.append((now_ms, remaining))
        while now_ms - self._points[0][0] > PACE_MS:
            self._points.popleft()

    @property
    def milliseconds_left(self) -> int:
        """The time that the rest takes, -1 if it is not known: the rest did not shrink, or was not observed for long enough."""
        if not self._points:
            return -1
        (began, first), (now, remaining) = self._points[0], self._points[-1]
        if not remaining:
            return 0
        if now - began < LEAST_MS or first <= remaining:
            return -1
        return remaining * (now - began) // (first - remaining)


def bytes_behind(segments: NDArray[np.void], size: int, offset: int, end_offset: int) -> int:
    """The bytes of a log from ``offset`` on. Inside a segment they are estimated by the mean size of an offset there.

    Args:
        segments: of the log (`streaming.common.rows.SEGMENTS`).
        size: the bytes of all segments together, including what the last one has grown since.
        end_offset: the end of the log.
    """
    if offset >= end_offset:
        return 0
    before = 0
    for place, segment in enumerate(segments):
        base, held = int(segment["base_offset"]), int(segment["size"])
        last = place == len(segments) - 1
        following = end_offset if last else int(segments["base_offset"][place + 1])
        held = size - before if last else held
        if offset < following:
            part = max(0, offset - base) / max(1, following - base)
            return max(0, size - before - int(held * part))
        before += held
    return max(0, size - before)


class Paces:
    """The speeds of many replicas, each by its topic, partition and broker, kept from page to page. One page is made at a time."""

    def __init__(self) -> None:
        self._paces: dict[tuple[str, int, int], CopyingPace] = {}

    def keep(self, replicas: Iterable[tuple[str, int, int]]) -> None:
        """Forget all other replicas."""
        wanted = set(replicas)
        self._paces = {replica: pace for replica, pace in self._paces.items() if replica in wanted}

    def of(self, replica: tuple[str, int, int]) -> CopyingPace:
        """The speed of one replica."""
        return self._paces.setdefault(replica, CopyingPace())
