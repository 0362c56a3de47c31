"""Background work that reads the log dirs: one thread for each, so that a log dir that does not answer holds up nothing else."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

log = logging.getLogger(__name__)

DEFECT_SECONDS = 60.0
"""How long a thread rests after an error of this program."""


class DirThreads:
    """One thread for each log dir, which does one step after another.

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
