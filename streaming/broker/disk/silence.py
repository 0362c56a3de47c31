"""Finds log dirs that do not answer a first read. Each one is read on a thread of its own."""

import contextlib
import threading
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from streaming.broker.disk.availability import LogDirs, open_log_dirs
from streaming.broker.disk.calls import ThreadCalls, calls_of_this_thread
from streaming.broker.disk.identity import read_identity
from streaming.errors import LogDirError

READ_SECONDS = 5.0
"""How long a first read of a log dir may take."""


class FirstRead:
    """A first read of a log dir, which may never end. Its thread ends with the process at the latest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._calls = ThreadCalls()
        self._thread = threading.Thread(target=self._read, daemon=True, name=f"look at {path}")
        self._thread.start()

    def _read(self) -> None:
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


def open_answering(paths: Iterable[Path]) -> tuple[LogDirs, list[FirstRead]]:
    """Open log dirs for the first time, without those that do not answer.

    Returns:
        The log dirs, and the reads without an answer; their log dirs are barred.

    Raises:
        LogDirError: as in `open_log_dirs`.
    """
    paths = list(paths)
    silent = find_silent(paths)
    return open_log_dirs(paths, {read.path: f"{read.at} does not answer" for read in silent}), silent


def find_silent(paths: Iterable[Path], seconds: float = READ_SECONDS) -> list[FirstRead]:
    """Read all log dirs at the same time; returns the reads without an answer within ``seconds``."""
    reads = [FirstRead(path.absolute()) for path in paths]
    silent = [read for read in reads if _is_silent(read, 0.0)]
    return [read for read in silent if _is_silent(read, seconds)]


def _is_silent(read: FirstRead, seconds: float) -> bool:
    read.wait(seconds)
    return read.alive
