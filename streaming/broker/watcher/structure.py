"""Hints that something was created, renamed or removed below a log dir: which directory to check again, never what happened.

inotify reports them at once if it works. If it does not, directories are compared at each poll, at most once a second.
"""

import errno
import logging
import os
import threading
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from typing import Any

from streaming.broker.disk.logdirs import LogDir
from streaming.broker.watcher import log_dir_watch
from streaming.broker.watcher.log_dir_watch import LogDirWatch
from streaming.broker.watcher.timers import is_due

log = logging.getLogger(__name__)

LOOK_MS = 1_000
"""How often directories are checked for changes that inotify does not report."""

_ENOUGH_WATCHES = 1 << 20

_SHORT = frozenset(os.strerror(code) for code in (errno.EMFILE, errno.ENOSPC))
"""The errors of the kernel when a limit on instances or watches is reached."""

_STOP_SECONDS = 5.0
"""How long to wait for watchdog's threads at the end: one of them may hang on a disk that does not answer."""


class Structure:
    """Collects the partition directories in which something happened; a change directly in a log dir is a hint for the log dir.

    Args:
        wake: called, by a thread of watchdog's, when there is a hint to take.
        barred: the log dirs into which no call may be made now.
    """

    def __init__(
        self,
        log_dirs: Iterable[LogDir],
        wake: Callable[[], None],
        clock_ms: Callable[[], int],
        barred: Callable[[], Container[Path]] = frozenset,
    ) -> None:
        self._wake = wake
        self._clock_ms = clock_ms
        self._barred = barred
        self._watches = [LogDirWatch(log_dir.path, self._hint) for log_dir in log_dirs]
        self._alarm = _Alarm()
        self._lock = threading.Lock()
        self._hints: set[Path] = set()
        self._started = False
        self._next_look = 0
        self._errors: dict[Path, str] = {}  # of log dirs, as they were logged
        self._warned = False  # of directories without a watch

    @property
    def unwatched(self) -> int:
        """How many partition directories have no inotify watch that is known to work."""
        return sum(watch.unwatched for watch in self._watches)

    def start(self) -> None:
        """Let the next `take` begin to watch."""
        self._started = True
        logging.getLogger("watchdog").addHandler(self._alarm)

    def stop(self) -> None:
        """Stop watching."""
        self._started = False
        logging.getLogger("watchdog").removeHandler(self._alarm)
        for stopping in [watch.stop() for watch in self._watches]:
            if stopping is not None:
                stopping.join(_STOP_SECONDS)

    def take(self) -> set[Path]:
        """The hints since the last call. All calls into the log dirs are made here, in the caller's thread."""
        now = self._clock_ms()
        found: set[Path] = set()
        if self._started and is_due(now, self._next_look, LOOK_MS):
            self._next_look = now + LOOK_MS
            everything, barred = self._alarm.taken(), self._barred()
            for watch in self._watches:
                if watch.path not in barred:
                    found |= watch.look(now, everything=everything)
            self._report()
        with self._lock:
            hints, self._hints = self._hints, set()
        return hints | found

    def _hint(self, path: Path) -> None:
        with self._lock:
            self._hints.add(path)
        self._wake()

    def _report(self) -> None:
        """Log once what inotify cannot do, and what would correct it."""
        for watch in self._watches:
            if watch.error and watch.error != self._errors.get(watch.path):
                log.warning(
                    "inotify does not work here: directories are compared at each poll instead",
                    extra={"log_dir": str(watch.path), "error": watch.error, **_limits_reached(watch.error)},
                )
            self._errors[watch.path] = watch.error
        working = [watch for watch in self._watches if not watch.error]
        short = sum(watch.unwatched for watch in working)
        if short and not self._warned:
            _log_short(short, [directory for watch in working for directory in watch.denied])
        self._warned = short > 0


class _Alarm(logging.Handler):
    """Notices that watchdog has lost something: it reports an overflow of the kernel's queue only in its log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._raised = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:  # whatever it is, hints may be missing
        self._raised.set()

    def taken(self) -> bool:
        """Whether watchdog has logged something since the last call."""
        raised = self._raised.is_set()
        self._raised.clear()
        return raised


def _log_short(short: int, denied: list[Path]) -> None:
    """Log why directories have no watch: a higher limit does not help directories that may not be read."""
    if denied:
        log.warning(
            "directories may not be read and have no inotify watch: they are compared at each poll instead",
            extra={
                "directories": len(denied),
                "error": os.strerror(errno.EACCES),
                "first": str(denied[0]),
                "remedy": "let the agent's user read and enter them",
            },
        )
    if short > len(denied):
        bound = log_dir_watch.limit("watches")
        log.warning(
            "directories have no inotify watch: they are compared at each poll instead",
            extra={
                "directories": short - len(denied),
                **_limits("watches"),
                **({} if bound is None else {"remedy": f"sysctl -w {bound.sysctl}={max(_ENOUGH_WATCHES, 2 * bound.value)}"}),
            },
        )


def _limits_reached(error: str) -> dict[str, Any]:
    """The limits, if inotify has failed because of one of them."""
    return _limits("instances") | _limits("watches") if error in _SHORT else {}


def _limits(what: str) -> dict[str, Any]:
    bound = log_dir_watch.limit(what)
    return {} if bound is None else {f"limit_of_{what}": str(bound)}
