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

    def __init__(self, *log_dirs: Path, barred: Container[Path] = frozenset()) -> None:
        self.now = now_ms()
        self._come = threading.Event()
        self.structure = Structure(open_log_dirs(log_dirs), self._come.set, lambda: self.now, lambda: barred)
        self.first = self.structure.take()

    def hears(self, *log_dirs: Path) -> None:
        """Wait until inotify, which begins in threads of its own, names what happens in these log dirs."""
        for log_dir in log_dirs:
            eventually(lambda probe=log_dir / "probe-0": self._names(probe))  # type: ignore[misc]
        self.later()

    def _names(self, probe: Path) -> bool:
        probe.mkdir()
        probe.rmdir()
        self._come.wait(0.01)
        return probe.parent in self.structure.take()

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


def eventually(happens: Callable[[], bool], otherwise: Callable[[], object] = str) -> None:
    """Try until it happens."""
    deadline = time.monotonic() + SECONDS
    while not happens():
        assert time.monotonic() < deadline, otherwise()
