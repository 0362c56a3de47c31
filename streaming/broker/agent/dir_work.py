"""Work that reads the log dirs, in the background and on behalf of requests: threads for each, and which of the watched logs are there.

So a log dir that does not answer holds up nothing else. A watcher that replaces another one lists the logs one after the other. So a log
that no watcher has is gone only after a while.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from streaming.broker.disk.availability import LogDirs
from streaming.broker.watcher.tail import Tail
from streaming.common.log_key import LogKey

log = logging.getLogger(__name__)

DEFECT_SECONDS = 60.0
"""How long a thread rests after an error of this program."""

GONE_SECONDS = 120.0
"""After so long a log that no watcher has is gone: it is more than a new watcher needs to list everything."""

R = TypeVar("R")


class UnderTail(Protocol):
    """What some work keeps of a log, under its tail."""

    @property
    def tail(self) -> Tail:
        """The tail under which it goes on."""

    def adopt(self, tail: Tail) -> bool:
        """Go on under the tail of another watcher; False if it found another log there."""


W = TypeVar("W", bound=UnderTail)


class DirLogs(Generic[W]):
    """What some work keeps of each log in one log dir. Only the thread of the log dir changes it; others may read ``all`` and ``failures``.

    Args:
        tails: the logs that are watched at this moment, in all log dirs, as `streaming.broker.watcher.departures.WatchedLogs.all` returns
            them.
        wants: whether a log of this topic matters.
        new: what is kept of a log that has come.
        let_go: is called with what was kept of a log, and whether its log is gone: else its files are still there, or may be.
        clock: seconds.
    """

    def __init__(
        self,
        path: Path,
        log_dirs: LogDirs,
        tails: Callable[[], list[Tail]],
        *,
        wants: Callable[[str], bool],
        new: Callable[[Tail], W],
        let_go: Callable[[W, bool], None],
        clock: Callable[[], float],
    ) -> None:
        self.all: dict[LogKey, W] = {}
        self.failures: dict[LogKey, Failure] = {}
        self._path = path
        self._log_dirs = log_dirs
        self._tails = tails
        self._wants = wants
        self._new = new
        self._let_go = let_go
        self._clock = clock
        self._missing: dict[LogKey, float] = {}  # since when no watcher has a log
        self._last: list[Tail] | None = None  # at the last call, if no log was missing

    def meet(self) -> None:
        """Take up the logs that have come, and let go of those that are not there any more, or not under a tail that goes on.

        An unavailable log dir has none.
        """
        if self._path in self._log_dirs.unavailable:
            self._missing, self._last = {}, None
            self._forget(set(self.all), gone=False)
            return
        tails = self._tails()
        if self._last is tails:
            return
        watched = {tail.cursor.log: tail for tail in tails if self._wants(tail.cursor.log.topic)}
        here = {
            key: tail
            for key, tail in watched.items()
            if tail.partition.log_dir.path == self._path and tail.resumed and not (tail.away or tail.leaving)
        }
        now = self._clock()
        self._missing = {key: self._missing.get(key, now) for key in self.all if key not in watched}
        self._last = None if self._missing else tails
        self._forget({key for key in self.all if key in watched and key not in here}, gone=True)
        self._forget({key for key, since in self._missing.items() if now - since >= GONE_SECONDS}, gone=True)
        for key, tail in here.items():
            kept = self.all.get(key)
            if kept is not None and kept.tail is not tail and not kept.adopt(tail):
                self._forget({key}, gone=False)
            if key not in self.all:
                self.all[key] = self._new(tail)

    def _forget(self, keys: Iterable[LogKey], *, gone: bool) -> None:
        for key in keys:
            self.failures.pop(key, None)
            self._let_go(self.all.pop(key), gone)

    def waits(self, key: LogKey, now: float) -> bool:
        """Whether a log is left alone because work at it has failed."""
        failure = self.failures.get(key)
        return failure is not None and failure.again_at > now

    def failed(self, key: LogKey, error: Exception, now: float, rest: float, most: float) -> float:
        """Leave a log alone for ``rest`` seconds, each time in a row twice as long, ``most`` at most. Returns for how long."""
        before = self.failures.get(key)
        tries = 0 if before is None else before.tries
        seconds = min(most, rest * (1 << min(tries, 32)))
        self.failures[key] = Failure(tries + 1, str(error) or type(error).__name__, now + seconds)
        return seconds

    def succeeded(self, key: LogKey) -> None:
        """Work at a log has come to its end: another failure is the first one."""
        self.failures.pop(key, None)


@dataclass(frozen=True, slots=True)
class Failure:
    """Work at a log has failed so many times in a row: why the last time, and when it is tried again (seconds of the work's clock)."""

    tries: int
    error: str
    again_at: float


class DirThreads:
    """Threads, one for each log dir, of which each does one step after another.

    Args:
        what: the work, as a part of the threads' names.
        step: does one thing in a log dir, and returns for how many seconds to rest.
    """

    def __init__(self, what: str, paths: Iterable[Path], step: Callable[[Path], float]) -> None:
        self._what = what
        self._paths = tuple(paths)
        self._step = step
        self._threads: list[threading.Thread] = []

    def start(self, stop: threading.Event) -> None:
        """Work until ``stop`` is set."""
        self._threads = [
            threading.Thread(target=self._run, args=(path, stop), daemon=True, name=f"{self._what} of {path}") for path in self._paths
        ]
        for thread in self._threads:
            thread.start()

    def join(self, seconds: float) -> None:
        """Wait at most so long until all have ended. A thread that waits in a call ends with the process."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self, path: Path, stop: threading.Event) -> None:
        rest = 0.0
        while not stop.wait(rest):
            try:
                rest = self._step(path)
            except Exception:
                log.exception("background work in a log dir failed", extra={"work": self._what, "log_dir": str(path)})
                rest = DEFECT_SECONDS


class DirCalls:
    """Makes calls into log dirs on a thread for each, which starts with the first call and ends with the process. Thread-safe."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._queues: dict[Path, SimpleQueue[tuple[Future[Any], Callable[[], Any]]]] = {path: SimpleQueue() for path in paths}
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
        made: Future[R] = Future()
        self._queues[path].put((made, what))
        try:
            return made.result(seconds)
        finally:
            made.cancel()

    def _work(self, path: Path) -> None:
        while True:
            made, what = self._queues[path].get()
            if made.set_running_or_notify_cancel():
                try:
                    made.set_result(what())
                except Exception as error:  # noqa: BLE001 - the one that waits raises it
                    made.set_exception(error)
