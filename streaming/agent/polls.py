"""Who wants the watcher to look now, and whether it has: it rests for seconds, unless there is something to look for."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Polls:
    """Shared by the watcher's thread, which looks, and those who want a look."""

    def __init__(self) -> None:
        self._wanted = threading.Event()
        self._changed = threading.Condition()  # protects the numbers
        self._begun = 0
        self._done = 0  # the last look that is over

    def want(self) -> None:
        """Let the next look begin at once."""
        self._wanted.set()

    def look(self, seconds: float) -> bool:
        """Wait for a look that begins after this call; returns whether it was over within so many seconds.

        Before the first look nothing is waited for: nobody may be there to begin one.
        """
        with self._changed:
            wanted = self._begun + 1
            self.want()
            return self._begun > 0 and self._changed.wait_for(lambda: self._done >= wanted, seconds)

    def rest(self, seconds: float) -> None:
        """For the watcher's thread: wait so long, or until somebody wants a look."""
        self._wanted.wait(seconds)

    @contextmanager
    def looking(self) -> Iterator[None]:
        """For the watcher's thread: a look. Threads that take each other's place may be in one at the same time."""
        with self._changed:
            self._begun += 1
            number = self._begun
            self._wanted.clear()
        yield
        with self._changed:
            self._done = max(self._done, number)
            self._changed.notify_all()
