"""Log dirs that give no answer to a first look, found by looking at each on a thread of its own."""

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
"""How long a log dir may take for a first look."""


class Look:
    """A first look at a log dir that may never end. Its thread ends with the process at the latest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._calls = Calls()
        self._thread = threading.Thread(target=self._look, daemon=True, name=f"look at {path}")
        self._thread.start()

    def _look(self) -> None:
        self._calls = calls_of_this_thread()
        with contextlib.suppress(LogDirError):  # an error is an answer; whoever opens the log dir gets it too
            read_identity(self.path)

    @property
    def alive(self) -> bool:
        """Whether there is no answer yet."""
        return self._thread.is_alive()

    @property
    def at(self) -> str | PathLike[str]:
        """The file at which it is."""
        return self._calls.path or self.path

    def wait(self, seconds: float) -> None:
        """Wait for the answer, for so long at most."""
        self._thread.join(seconds)


def open_answering(paths: Iterable[Path]) -> tuple[LogDirs, list[Look]]:
    """Look at log dirs for the first time, leaving alone those that do not answer.

    Returns:
        The log dirs, and the looks that have had no answer: theirs are barred.

    Raises:
        LogDirError: as `open_log_dirs`.
    """
    paths = list(paths)
    silent = find_silent(paths)
    return open_log_dirs(paths, {look.path: f"{look.at} does not answer" for look in silent}), silent


def find_silent(paths: Iterable[Path], seconds: float = LOOK_SECONDS) -> list[Look]:
    """Look at all log dirs at the same time; returns the looks that have got no answer within ``seconds``."""
    looks = [Look(path.absolute()) for path in paths]
    silent = [look for look in looks if _is_silent(look, 0.0)]
    return [look for look in silent if _is_silent(look, seconds)]


def _is_silent(look: Look, seconds: float) -> bool:
    look.wait(seconds)
    return look.alive
