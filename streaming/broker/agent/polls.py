"""Requests for a poll, and whether it is done. The watcher rests for seconds, unless a poll is requested."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Polls:
    """Shared by the watcher's thread, which polls, and the threads that request a poll."""

    def __init__(self) -> None:
        self._wanted = threading.Event()
        self._changed = threading.Condition()  # protects the numbers
        self._begun = 0
        self._done = 0  # the last poll that has ended

    def want(self) -> None:
        """Request that the next poll begins at once."""
        self._wanted.set()

    def request(self, seconds: float) -> bool:
        """Wait for a poll that begins after this call. Returns whether it ended within so many seconds.

        Before the first poll it does not wait, because there may be no watcher to begin one.
        """
        with self._changed:
            wanted = self._begun + 1
            self.want()
            return self._begun > 0 and self._changed.wait_for(lambda: self._done >= wanted, seconds)

    def rest(self, seconds: float) -> None:
        """For the watcher's thread: wait so long, or until a poll is requested."""
        self._wanted.wait(seconds)

    @contextmanager
    def polling(self) -> Iterator[None]:
        """For the watcher's thread: the body is one poll. A thread and the one that replaces it may both be in a poll at the same time."""
        with self._changed:
            self._begun += 1
            number = self._begun
            self._wanted.clear()
        yield
        with self._changed:
            self._done = max(self._done, number)
            self._changed.notify_all()
