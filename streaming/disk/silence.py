"""Finds log dirs that do not answer a first read. Each one is read on a thread of its own."""

import contextlib
import threading
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from streaming.disk.availability import LogDirs, open_log_dirs
from streaming.disk.calls import Calls, calls_of_this_thread
from streaming.disk.identity import read_identity
from streaming.errors import LogDirError

LOOK_SECONDS = 5.0
"""How long a first read of a log dir may take."""


class Look:
    """A first read of a log dir, which may never end. Its thread ends with the process at the latest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._calls = Calls()
        self._thread = threading.Thread(target=self._look, daemon=True, name=f"look at {path}")
        self._thread.start()

    def _look(self) -> None:
        self._calls = calls_of_this_thread()
        with contextlib.suppress(LogDirError):  # an error is an answer; the code that opens the log dir gets it too
            read_identity(self.path)

    @property
    def alive(self) -> bool:
        """Whether there is no answer yet."""
        return self._thread.is_alive()

    @property
    def at(self) -> str | PathLike[str]:
        """The file that is being read."""
        return self._calls.path or self.path

    def wait(self, seconds: float) -> None:
        """Wait for the answer, for at most so long."""
        self._thread.join(seconds)


def open_answering(paths: Iterable[Path]) -> tuple[LogDirs, list[Look]]:
    """Open log dirs for the first time, without those that do not answer.

    Returns:
        The log dirs, and the reads without an answer; their log dirs are barred.

    Raises:
        LogDirError: as in `open_log_dirs`.
    """
    paths = list(paths)
    silent = find_silent(paths)
    return open_log_dirs(paths, {look.path: f"{look.at} does not answer" for look in silent}), silent


def find_silent(paths: Iterable[Path], seconds: float = LOOK_SECONDS) -> list[Look]:
    """Read all log dirs at the same time; returns the reads without an answer within ``seconds``."""
    looks = [Look(path.absolute()) for path in paths]
    silent = [look for look in looks if _is_silent(look, 0.0)]
    return [look for look in silent if _is_silent(look, seconds)]


def _is_silent(look: Look, seconds: float) -> bool:
    look.wait(seconds)
    return look.alive
