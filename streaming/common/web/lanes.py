"""Threads that are kept for one kind of work, with a bound on what may wait for them: what is too much is refused at once."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

_Value = TypeVar("_Value")

_Work = tuple[Future[Any], Callable[[], Any]]


class BusyError(Exception):
    """Too much is being done already."""


class Lane:
    """For several threads. Its own end with the process: unlike those of an executor they hold up no end, whatever they wait for.

    The thread that ended its work last gets the next: the C library keeps memory for each thread that has made a large page.

    Args:
        most: how much may be done or wait.
    """

    def __init__(self, name: str, threads: int, most: int) -> None:
        self._most = most
        self._lock = Lock()  # protects what follows
        self._number = 0
        self._waiting: deque[_Work] = deque()
        self._idle: list[SimpleQueue[_Work | None]] = [SimpleQueue() for _ in range(threads)]
        self._closed = False
        for number, inbox in enumerate(self._idle):
            Thread(target=self._run, args=(inbox,), name=f"{name}-{number}", daemon=True).start()

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
            if future.set_running_or_notify_cancel():  # false: nobody waits for it any more
                _fill(future, work)
            del item, future, work  # an answer may be large
            self._go_on(inbox)

    def _go_on(self, inbox: "SimpleQueue[_Work | None]") -> None:
        with self._lock:
            self._number -= 1
            if self._waiting:
                inbox.put(self._waiting.popleft())
            elif self._closed:
                inbox.put(None)
            else:
                self._idle.append(inbox)


def _fill(future: "Future[_Value]", work: Callable[[], _Value]) -> None:
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - it is raised where the result is wanted
        future.set_exception(error)
    else:
        future.set_result(result)
