"""The hints of a real observer, and of comparisons by a clock that is set by hand."""

import threading
import time
from collections.abc import Callable, Container
from pathlib import Path

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.watcher.structure import LOOK_MS, Structure
from tests.limits import SECONDS


def now_ms() -> int:
    """The clock of the file system's times."""
    return time.time_ns() // 1_000_000


class Watched:
    """Log dirs under watch. The clock stands still until it is moved: comparisons belong to `later`, all else is inotify's."""

    def __init__(self, *log_dirs: Path, start: bool = True, barred: Container[Path] = frozenset()) -> None:
        self.now = now_ms()
        self._come = threading.Event()
        self.structure = Structure(open_log_dirs(log_dirs), self._come.set, lambda: self.now, lambda: barred)
        if start:
            self.structure.start()
            assert self.structure.take() == set()

    def until(self, *expected: Path) -> set[Path]:
        """Wait until inotify has reported all of these; returns all hints until then."""
        hints: set[Path] = set()

        def come() -> bool:
            self._come.wait(SECONDS)
            self._come.clear()
            hints.update(self.structure.take())
            return hints >= set(expected)

        eventually(come, lambda: f"{hints} of {expected}")
        return hints

    def later(self, looks: int = 1) -> set[Path]:
        """What is hinted at in so many seconds to come."""
        hints = set()
        for _ in range(looks):
            self.now += LOOK_MS
            hints |= self.structure.take()
        return hints

    def deaf(self) -> None:
        """End the threads that read from inotify."""
        for thread in threading.enumerate():
            if type(thread).__name__ in ("InotifyFD", "InotifyBuffer"):
                thread.stop()  # type: ignore[attr-defined]
                thread.join(SECONDS)


def eventually(happens: Callable[[], bool], otherwise: Callable[[], object] = str) -> None:
    """Try until it happens."""
    deadline = time.monotonic() + SECONDS
    while not happens():
        assert time.monotonic() < deadline, otherwise()
