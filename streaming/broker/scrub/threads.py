"""The scrub of an agent: a thread for each log dir, so that a call that does not return stops only that log dir."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.calls import ThreadCalls, bytes_read, calls_of_this_thread
from streaming.broker.disk.identity import LogDir
from streaming.broker.scrub.passes import IDLE_SECONDS, LogDirScrub, PassProgress
from streaming.broker.scrub.scrub_pace import ScrubPace
from streaming.broker.scrub.scrub_progress import ScrubProgress, file_of, load, store
from streaming.broker.scrub.segment_check import WINDOW_BYTES

log = logging.getLogger(__name__)

KEEP_EVERY_SECONDS = 10.0

UNAVAILABLE_SECONDS = 5.0
"""How long to wait before an unavailable log dir is tried again."""


@dataclass(frozen=True, slots=True)
class ScrubOptions:
    """``rate``: bytes a second, 0 for no scrub; ``every_ms``: a pass begins this long after the previous one began."""

    rate: int
    every_ms: int


@dataclass(frozen=True, slots=True)
class ScrubReport:
    """The scrub of one log dir; ``waits_at``: the file of a call that has not returned for ``waiting`` seconds."""

    log_dir: LogDir
    progress: PassProgress
    waits_at: str
    waiting: float


class DirThread:
    """The thread of one log dir.

    Args:
        keep_in: the file for its progress.
    """

    def __init__(
        self, path: Path, log_dirs: LogDirs, options: ScrubOptions, pace: ScrubPace, keep_in: Path, clock_ms: Callable[[], int]
    ) -> None:
        self.path = path
        self._log_dirs = log_dirs
        self._options = options
        self._pace = pace
        self._keep_in = keep_in
        self._clock_ms = clock_ms
        self._scrub: LogDirScrub | None = None
        self._log_dir: LogDir | None = None
        self._calls = ThreadCalls()
        self._last_call: tuple[object, int, float] = (None, -1, 0.0)
        self._kept_at = time.monotonic()
        self._buffer = np.empty(WINDOW_BYTES, np.uint8)
        self.progress: PassProgress | None = None

    def run(self, stop: threading.Event) -> None:
        """Scrub until ``stop`` is set."""
        self._calls = calls_of_this_thread()
        rest = 0.0
        while not stop.wait(rest):
            rest = self.step()
        self._keep()

    def step(self) -> float:
        """Do one thing. Returns for how many seconds to rest."""
        log_dir = next((each for each in self._log_dirs.available if each.path == self.path), None)
        if log_dir is None:
            return UNAVAILABLE_SECONDS
        scrub = self._scrub_of(log_dir)
        read, spent = bytes_read(), time.thread_time()
        idle = 0.0
        try:
            idle = scrub.step(self._buffer)
        except OSError as error:
            log.debug("scrub waits for a log dir that cannot be listed", extra={"log_dir": str(self.path), "error": str(error)})
            idle = IDLE_SECONDS
        except Exception as error:  # a defect of the scrub at one file: the other files are still checked
            log.exception("scrub skips what it cannot check", extra={"log_dir": str(self.path)})
            scrub.pass_over(error)
        self.progress = scrub.progress
        if time.monotonic() - self._kept_at >= KEEP_EVERY_SECONDS:
            self._keep()
        return max(idle, self._pace.spent(bytes_read() - read, time.thread_time() - spent, time.monotonic()))

    def _scrub_of(self, log_dir: LogDir) -> LogDirScrub:
        """The scrub of the log dir; a new one if another disk has replaced the previous disk."""
        if self._scrub is None or self._log_dir != log_dir:
            progress = load(self._keep_in)
            if progress.directory_id != log_dir.directory_id:
                progress = ScrubProgress(directory_id=log_dir.directory_id)
            self._scrub, self._log_dir = LogDirScrub(log_dir.path, self._options.every_ms, self._clock_ms, progress), log_dir
        return self._scrub

    def _keep(self) -> None:
        self._kept_at = time.monotonic()
        if self._scrub is None:
            return
        try:
            store(self._keep_in, self._scrub.kept)
        except OSError as error:
            log.warning("progress of the scrub cannot be saved", extra={"path": str(self._keep_in), "error": str(error)})

    def waits(self, now: float) -> tuple[str, float]:
        """The file of the current call, and for how many seconds this method has seen that call; "" if there is none. For one thread."""
        path, count = self._calls.path, self._calls.count
        if path is None or (path, count) != self._last_call[:2]:
            self._last_call = (path, count, now)
        return ("", 0.0) if path is None else (str(path), now - self._last_call[2])


class Scrub:
    """All threads of an agent.

    Args:
        directory: where they store their progress.
    """

    def __init__(self, log_dirs: LogDirs, options: ScrubOptions, directory: Path, clock_ms: Callable[[], int]) -> None:
        self.options = options
        self._log_dirs = log_dirs
        pace = ScrubPace(options.rate)
        paths = [log_dir.path for log_dir in log_dirs]
        self._dirs = [DirThread(path, log_dirs, options, pace, file_of(directory, path), clock_ms) for path in paths]
        self._threads: list[threading.Thread] = []
        self._asking = threading.Lock()

    def start(self, stop: threading.Event) -> None:
        """Scrub until ``stop`` is set."""
        self._threads = [threading.Thread(target=each.run, args=(stop,), daemon=True, name=f"scrub of {each.path}") for each in self._dirs]
        for thread in self._threads:
            thread.start()

    def join(self, seconds: float) -> None:
        """Wait at most ``seconds`` until all threads have stored their progress. A thread that waits in a call ends with the process."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def reports(self) -> list[ScrubReport]:
        """How far the scrub of each log dir has come. For any thread."""
        log_dirs = {log_dir.path: log_dir for log_dir in self._log_dirs}
        with self._asking:
            now = time.monotonic()
            return [
                ScrubReport(log_dirs[each.path], each.progress, *each.waits(now))
                for each in self._dirs
                if each.progress is not None and each.path in log_dirs
            ]
