"""How much a replica has to copy still: what the leader's log holds from the replica's end on, and how long that takes at the pace seen."""

from collections import deque
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

PACE_MS = 300_000
"""The pace is that of so long a time at most."""

LEAST_MS = 10_000
"""The pace of less than this says nothing."""


def bytes_behind(segments: NDArray[np.void], size: int, offset: int, end_offset: int) -> int:
    """Bytes of a log from ``offset`` on; inside a segment by the mean size of an offset there.

    Args:
        segments: of the log (`streaming.rows.SEGMENTS`).
        size: bytes of all of them together, with what the last one has grown since.
        end_offset: of the log.
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


class Pace:
    """How fast what remains becomes less: bytes a second over the last minutes."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, int]] = deque()  # Unix milliseconds, bytes that remained

    def saw(self, now_ms: int, remaining: int) -> None:
        """So much remained at a time."""
        if self._seen and now_ms <= self._seen[-1][0]:
            return  # several read the page at the same moment
        self._seen.append((now_ms, remaining))
        while now_ms - self._seen[0][0] > PACE_MS:
            self._seen.popleft()

    @property
    def milliseconds_left(self) -> int:
        """How long the rest takes, -1 where that is not known: nothing became less, or it has not been seen for long enough."""
        if not self._seen:
            return -1
        (began, first), (now, remaining) = self._seen[0], self._seen[-1]
        if not remaining:
            return 0
        if now - began < LEAST_MS or first <= remaining:
            return -1
        return remaining * (now - began) // (first - remaining)


class Paces:
    """Of many replicas, each by its topic, partition and broker; remembered from page to page. One page is made at a time."""

    def __init__(self) -> None:
        self._paces: dict[tuple[str, int, int], Pace] = {}

    def keep(self, replicas: Iterable[tuple[str, int, int]]) -> None:
        """Forget all others."""
        wanted = set(replicas)
        self._paces = {replica: pace for replica, pace in self._paces.items() if replica in wanted}

    def of(self, replica: tuple[str, int, int]) -> Pace:
        """That of one."""
        return self._paces.setdefault(replica, Pace())
