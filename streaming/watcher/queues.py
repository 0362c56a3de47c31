"""Logs that have more to read, in turns: whoever has been read goes to the end."""

from collections import deque
from collections.abc import Callable, Iterable

from streaming.watcher.locate import WINDOW_BYTES
from streaming.watcher.tail import Tail

SLICE_LOGS = 512
"""Of how many logs something is read before it is published."""


class Queue:
    """Each log stands in it once. One that is not watched any more falls out when its turn comes.

    Args:
        is_watched: whether this tail is the one of its log still.
    """

    def __init__(self, is_watched: Callable[[Tail], bool]) -> None:
        self._is_watched = is_watched
        self._tails: deque[Tail] = deque()
        self._queued: set[Tail] = set()

    def __len__(self) -> int:
        return len(self._tails)

    def __contains__(self, tail: Tail) -> bool:
        return tail in self._queued

    def put(self, tails: Iterable[Tail]) -> None:
        """Append those that are not queued yet."""
        for tail in tails:
            if tail not in self._queued:
                self._tails.append(tail)
                self._queued.add(tail)

    def take(self, size: int) -> list[Tail]:
        """The next logs, at least one, until they have about ``size`` bytes to read, a window of each at most."""
        taken: list[Tail] = []
        while self._tails and size > 0 and len(taken) < SLICE_LOGS:
            tail = self._tails.popleft()
            self._queued.discard(tail)
            if self._is_watched(tail):
                taken.append(tail)
                size -= min(WINDOW_BYTES, max(1, unread_bytes(tail)))
        return taken


def unread_bytes(tail: Tail) -> int:
    """How many bytes of a log lie behind its place, by its open file and the last listing."""
    sizes = {segment.base_offset: segment.size for segment in tail.segments if segment.base_offset >= tail.place.segment}
    if tail.size >= 0:
        sizes[tail.place.segment] = tail.size
    return max(0, sum(sizes.values()) - tail.place.position)
