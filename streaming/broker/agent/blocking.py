"""Handles log dirs whose file system does not answer.

The sign of such a log dir is a call of the watcher that does not return. The log dir is not used until the call returns.

A call into a dead disk, or to a file server that is away, cannot be ended from outside. So another watcher replaces the one that waits in
the call. The new watcher leaves that log dir alone and continues from the journal, as after a crash. The old one may no longer write. If
its call returns after all, the log dir is used again.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from streaming.broker.agent.polling_thread import PollingThread
from streaming.broker.disk.logdirs import LogDir, LogDirs
from streaming.broker.disk.silence import FirstRead

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""How often the watcher's thread is checked."""

PATIENCE_POLLS = 5
"""After this many checks that find the same call, the call counts as one that does not return.

For a log dir that answered later after all, the number is doubled each time.
"""

MOST_PATIENCE_POLLS = 60


@dataclass(frozen=True, slots=True)
class BlockedCall:
    """A call that has not returned. ``path``: the file or directory; ``since``: seconds of a monotonic clock."""

    log_dir: LogDir
    path: Path
    since: float


class Blocking:
    """Checks the watcher's thread and replaces it. One thread calls `poll`; others read ``blocked`` and ``current``.

    Args:
        start: starts a watcher's thread.
        fence: stops a thread from writing into the journal from now on.
        silent: attempts to read log dirs that have not returned; these log dirs are barred already.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        start: Callable[[], PollingThread],
        fence: Callable[[threading.Thread], None],
        silent: Iterable[FirstRead] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log_dirs = log_dirs
        self._start = start
        self._fence = fence
        self._clock = clock
        self._waiting: dict[Path, tuple[BlockedCall, PollingThread | FirstRead]] = {}
        self._patience: dict[Path, int] = {}
        self._same = 0
        self._last_call: tuple[object, int] = (None, -1)  # the call that the last check found
        for read in silent:
            log_dir = self._log_dir_of(read.path)
            assert log_dir is not None
            self._waiting[read.path] = BlockedCall(log_dir, Path(read.at), clock()), read
        self.current = start()
        """The watcher's thread that is in use."""

    @property
    def blocked(self) -> list[BlockedCall]:
        """The calls that have not returned, one for each log dir."""
        return [call for call, _ in list(self._waiting.values())]  # a copy at once, because other threads read it

    def poll(self) -> None:
        """Check the thread once. Call it every `POLL_SECONDS`.

        Raises:
            Exception: the one that ended the watcher's thread.
        """
        if self._take_back():
            return
        if self.current.error is not None:
            raise self.current.error
        calls = self.current.calls
        path, count = calls.path, calls.count
        # checks are counted, not seconds: while the machine is suspended, no check runs
        self._same = self._same + 1 if path is not None and (path, count) == self._last_call else 0
        self._last_call = (path, count)
        log_dir = None if path is None else self._log_dir_of(Path(path))
        if path is not None and log_dir is not None and self._same >= self._patience.get(log_dir.path, PATIENCE_POLLS):
            self._leave(log_dir, Path(path))

    def blocked_for(self, call: BlockedCall) -> float:
        """The seconds for which the call has not returned."""
        return self._clock() - call.since

    def _log_dir_of(self, path: Path) -> LogDir | None:
        roots = {log_dir.path: log_dir for log_dir in self._log_dirs}
        return next((roots[root] for root in (path, *path.parents) if root in roots), None)

    def _leave(self, log_dir: LogDir, path: Path) -> None:
        log.error(
            "a call into a log dir does not return: the log dir is not watched until it does",
            extra={"log_dir": str(log_dir.path), "path": str(path)},
        )
        call = BlockedCall(log_dir, path, self._clock() - self._same * POLL_SECONDS)
        self._waiting[log_dir.path] = call, self.current
        self._log_dirs.bar(log_dir.path, f"{path} does not answer")
        self._start_anew()

    def _take_back(self) -> bool:
        """Use log dirs again after their call has returned. Returns whether there was one."""
        ended = [path for path, (_, thread) in self._waiting.items() if not thread.alive]  # a thread in its next call is alive, too
        for path in ended:
            del self._waiting[path]
            self._patience[path] = min(MOST_PATIENCE_POLLS, 2 * self._patience.get(path, PATIENCE_POLLS))
            log.warning("log dir answers again", extra={"log_dir": str(path)})
            self._log_dirs.unbar(path)
        if ended:
            self._start_anew()
        return bool(ended)

    def _start_anew(self) -> None:
        """Replace the current watcher by another one."""
        self.current.replace()
        self._fence(self.current.thread)
        self._same, self._last_call = 0, (None, -1)
        self.current = self._start()
