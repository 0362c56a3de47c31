"""Which of Kafka's files a thread is at: a call into a file system may not come back, and only another thread can tell then."""

import threading
from os import PathLike
from types import TracebackType


class Calls:
    """The file system calls of one thread, which alone writes it; others may look.

    ``path`` is the file or directory that the thread is at, None while it is at none. ``count`` grows with every call, so that a path that
    stays while the count does not move is one call that has not come back.
    """

    __slots__ = ("count", "path")

    def __init__(self) -> None:
        self.path: str | PathLike[str] | None = None
        self.count = 0


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.calls = Calls()


_of_thread = _OfThread()


def calls_of_this_thread() -> Calls:
    """Those of the thread that asks."""
    return _of_thread.calls


class Calling:
    """The block is at a path. A class and no generator: it stands around calls that take a microsecond."""

    __slots__ = ("_calls", "_outer", "_path")

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = path

    def __enter__(self) -> None:
        calls = self._calls = _of_thread.calls
        self._outer = calls.path
        calls.path = self._path
        calls.count += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._calls.path = self._outer
        self._calls.count += 1
