"""Calls into log dirs on behalf of requests: one thread for each log dir, so that a call that does not return holds up no other log dir."""

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from queue import SimpleQueue
from typing import Generic, TypeVar

R = TypeVar("R")


class DirCalls:
    """For several threads. The threads of the log dirs are started with the first call and end with the process."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._queues: dict[Path, SimpleQueue[_DirCall[object]]] = {path: SimpleQueue() for path in paths}
        self._started: set[Path] = set()
        self._lock = threading.Lock()

    def call(self, path: Path, what: Callable[[], R], seconds: float) -> R:
        """The result of ``what``, called on the thread of a log dir.

        Raises:
            TimeoutError: it did not return in time. If it was not begun by then, it is not made at all.
            Exception: what ``what`` raises.
        """
        with self._lock:
            if path not in self._started:
                self._started.add(path)
                threading.Thread(target=self._work, args=(path,), daemon=True, name=f"requests in {path}").start()
        made = _DirCall(what)
        self._queues[path].put(made)  # type: ignore[arg-type]
        return made.result(seconds)

    def _work(self, path: Path) -> None:
        while True:
            self._queues[path].get().make()


class _DirCall(Generic[R]):
    def __init__(self, what: Callable[[], R]) -> None:
        self._what = what
        self._done = threading.Event()
        self._given_up = False
        self._result: R
        self._error: Exception | None = None

    def make(self) -> None:
        if self._given_up:
            return
        try:
            self._result = self._what()
        except Exception as error:  # noqa: BLE001 - the one that waits raises it
            self._error = error
        self._done.set()

    def result(self, seconds: float) -> R:
        if not self._done.wait(seconds):
            self._given_up = True
            raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._result
