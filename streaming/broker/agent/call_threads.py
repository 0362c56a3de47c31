"""The threads that answer calls. Each is a daemon: an answer that waits for a disk does not keep the agent from ending."""

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

log = logging.getLogger(__name__)


class CallThreads(Executor):
    """At most ``most`` threads, each made when it is needed first. `ThreadPoolExecutor` waits for its threads when the process ends."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._waiting: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._threads = 0
        self._idle = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a function in one of the threads, as soon as one is free."""
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.put((future, lambda: fn(*args, **kwargs)))
            if self._idle:
                self._idle -= 1
            elif self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._work, daemon=True, name=f"calls-{self._threads}").start()
        return future

    def close(self) -> None:
        """Let the threads end as soon as they are idle. Nobody waits for them."""
        with self._lock:
            for _ in range(self._threads):
                self._waiting.put(None)

    def _work(self) -> None:
        while self._run_next():
            with self._lock:
                if self._waiting.empty():
                    self._idle += 1

    def _run_next(self) -> bool:
        """Run one; False if there are no more. No thread holds a call that has ended: its connection has a stream less."""
        waiting = self._waiting.get()
        if waiting is None:
            return False
        future, run = waiting
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(run())
            except Exception as error:
                log.exception("a thread of calls has failed")
                future.set_exception(error)
        return True
