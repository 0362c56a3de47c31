"""Does work only once that several threads request at the same moment."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Shared(Generic[K, V]):
    """Results by key, for as long as they are being computed; none is kept."""

    def __init__(self) -> None:
        self._lock = Lock()  # protects what follows
        self._under_way: dict[K, Future[V]] = {}

    def get(self, key: K, work: Callable[[], V]) -> V:
        """What ``work`` returns or raises. If another thread is doing the work for the same key, its result or error."""
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
            # Before any thread has the result: a thread that asks later must not get an older result.
            with self._lock:
                del self._under_way[key]
