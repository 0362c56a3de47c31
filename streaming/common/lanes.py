"""Threads that are kept for one kind of work, with a bound on what may wait for them: what is too much is refused at once."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

_Value = TypeVar("_Value")

_Work = tuple[Future[Any], Callable[[], Any]]


class Lane:
    """Does work on threads of its own, which end with the process: unlike those of an executor they delay no end, whatever they wait for.
    A thread is made when there is work for it. The one that ended its work last gets the next: the C library keeps memory for each thread
    that has made a large page. Thread-safe.

    Args:
        most: how much may be done or wait.
    """

    def __init__(self, name: str, threads: int, most: int) -> None:
        self._most = most
        self._lock = Lock()  # protects what follows
        self._number = 0
        self._waiting: deque[_Work] = deque()
        self._idle: list[SimpleQueue[_Work | None]] = []
        self._name, self._threads, self._made = name, threads, 0
        self._closed = False

    def do(self, work: Callable[[], _Value]) -> "Future[_Value]":
        """The result that ``work`` will return or raise.

        Raises:
            BusyError: it is not done.
        """
        future: Future[_Value] = Future()
        with self._lock:
            if self._closed or self._number >= self._most:
                raise BusyError
            self._number += 1
            if self._idle:
                self._idle.pop().put((future, work))
            elif self._made < self._threads:
                inbox: SimpleQueue[_Work | None] = SimpleQueue()
                inbox.put((future, work))
                Thread(target=self._run, args=(inbox,), name=f"{self._name}-{self._made}", daemon=True).start()
                self._made += 1
            else:
                self._waiting.append((future, work))
        return future

    def close(self) -> None:
        """Let the threads end once they have done what waits."""
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle.pop().put(None)

    def _run(self, inbox: "SimpleQueue[_Work | None]") -> None:
        while (item := inbox.get()) is not None:
            future, work = item
            tell = _done(future, work) if future.set_running_or_notify_cancel() else None  # false: its caller has given it up
            self._go_on(inbox)  # before its outcome is told, so that a caller that asks next finds this thread
            if tell is not None:
                tell()
            del item, future, work, tell  # an answer may be large

    def _go_on(self, inbox: "SimpleQueue[_Work | None]") -> None:
        with self._lock:
            self._number -= 1
            if self._waiting:
                inbox.put(self._waiting.popleft())
            elif self._closed:
                inbox.put(None)
            else:
                self._idle.append(inbox)


class BusyError(Exception):
    """Too much is being done already."""


def _done(future: "Future[_Value]", work: Callable[[], _Value]) -> Callable[[], None]:
    """Do it; returns what tells the outcome."""
    try:
        return partial(future.set_result, work())
    except BaseException as error:  # noqa: BLE001 - it is raised where the result is wanted
        return partial(future.set_exception, error)
