"""A queue of logs that have more to read: a log that was read goes to the end."""

from collections import deque
from collections.abc import Callable, Iterable

from streaming.disk.locate import WINDOW_BYTES
from streaming.watcher.tail import Tail

SLICE_LOGS = 512
"""How many logs are read at most before the result is published."""


class Queue:
    """Each log is in it once.

    Args:
        may_be_read: whether a tail is still the current one of its log, and is not held, stopped, remembered or away. A queued tail for
            which this is false is removed when it becomes the first.
    """

    def __init__(self, may_be_read: Callable[[Tail], bool]) -> None:
        self._may_be_read = may_be_read
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
        """The next logs, at least one, until they have about ``size`` bytes to read; each counts for a window at most."""
        taken: list[Tail] = []
        while self._tails and size > 0 and len(taken) < SLICE_LOGS:
            tail = self._tails.popleft()
            self._queued.discard(tail)
            if self._may_be_read(tail):
                taken.append(tail)
                size -= min(WINDOW_BYTES, max(1, tail.unread_bytes(exact=False)))
        return taken
