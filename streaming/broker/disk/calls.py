"""What a thread does with Kafka's files: which one it is using, and how many bytes of segments it has read.

A file system call may not return, and then only another thread can detect it.
"""

import threading
from os import PathLike
from pathlib import Path
from types import TracebackType


class ThreadCalls:
    """The file system calls of one thread. Only that thread writes; others may read.

    ``path`` is the file or directory that the thread is using, None if there is none. ``count`` grows with every call. So if the path stays
    and the count does not change, it is one call that has not returned.
    """

    __slots__ = ("count", "path")

    def __init__(self) -> None:
        self.path: str | PathLike[str] | None = None
        self.count = 0

    def go_on(self, path: str | PathLike[str]) -> None:
        """Record the next of many paths, within a `Calling` that ends after the last of them: for a call a microsecond long."""
        self.path = path
        self.count += 1


class _CallsOfThread(threading.local):
    def __init__(self) -> None:
        self.calls = ThreadCalls()


_of_thread = _CallsOfThread()


def calls_of_this_thread() -> ThreadCalls:
    """The calls of the current thread."""
    return _of_thread.calls


class Calling:
    """Records a path for the duration of a block. It is a class and no generator, because the calls inside may take only a microsecond."""

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


def written_ns(path: str | PathLike[str]) -> int:
    """When a file or directory was written last, Unix nanoseconds; -1 if it is not there or cannot be asked."""
    try:
        with Calling(path):
            return Path(path).stat().st_mtime_ns
    except OSError:
        return -1


class _Count(threading.local):
    size = 0


_count = _Count()


def note_read(size: int) -> None:
    """Note that this thread has read so many more bytes of a segment."""
    _count.size += size


def bytes_read() -> int:
    """The bytes of segments that this thread has read since it began. The difference of two values is what was read in between."""
    return _count.size
