"""Slots for answers that take long: so many at the same time, and of these so many for one principal."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Slots:
    """Counts the slots in use, of each principal and of all. Thread-safe.

    Args:
        most: the most slots that are in use, of all principals.
        of_one: the most of them for one principal, so that no token keeps all of them.
    """

    def __init__(self, most: int, of_one: int) -> None:
        self._most = most
        self._of_one = of_one
        self._lock = threading.Lock()
        self._used: Counter[str] = Counter()

    @contextmanager
    def slot(self, principal: str) -> Iterator[bool]:
        """Use a slot for the duration of a block; whether one was free."""
        with self._lock:
            free = self._used[principal] < self._of_one and self._used.total() < self._most
            self._used[principal] += free
        try:
            yield free
        finally:
            with self._lock:
                self._used[principal] -= free

    def used(self) -> int:
        """How many slots are in use."""
        with self._lock:
            return self._used.total()
