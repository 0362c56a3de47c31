"""Work that several threads ask for at the same moment is done once."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Shared(Generic[K, V]):
    """Results by key, for as long as they are being worked out; none is kept."""

    def __init__(self) -> None:
        self._lock = Lock()  # protects what follows
        self._under_way: dict[K, Future[V]] = {}

    def get(self, key: K, work: Callable[[], V]) -> V:
        """What ``work`` returns, or raises; where another thread is at it for the same key, what that gets."""
        with self._lock:
            theirs = self._under_way.get(key)
            if theirs is None:
                ours = self._under_way[key] = Future()
        if theirs is not None:
            return theirs.result()
        try:
            result = self._done(key, work)
        except BaseException as error:
            ours.set_exception(error)
            raise
        ours.set_result(result)
        return result

    def _done(self, key: K, work: Callable[[], V]) -> V:
        try:
            return work()
        finally:
            # Before anybody has the result: who asks after that must not get what was worked out before.
            with self._lock:
                del self._under_way[key]
