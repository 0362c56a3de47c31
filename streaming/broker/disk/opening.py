"""Opens Kafka's files: read-only, regular ones, to a bound; what a thread does with them, how many stay open, how fast they are read."""

import errno
import logging
import os
import resource
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from types import TracebackType

from streaming.errors import TooLargeError

log = logging.getLogger(__name__)

NAMES_BYTES = 64 << 10
"""The most bytes of `meta.properties`, `partition.metadata` and `quorum-state`, which have some hundred."""

EPOCHS_BYTES = 8 << 20
"""The most bytes of a `leader-epoch-checkpoint`: some 400,000 epochs."""

CHECKPOINT_BYTES = 16 << 20
"""The most bytes of an offset checkpoint: 60,000 partitions in one log dir with the longest names, 350,000 with usual ones."""

PRODUCERS_BYTES = 64 << 20
"""The most bytes of a producer snapshot: 1.4 million producers of one partition."""

INDEX_BYTES = 64 << 20
"""The most bytes of an index that is read whole: a broker preallocates 10 MiB; of a `.txnindex`, two million aborted transactions."""

PROPERTIES_BYTES = 4 << 20
"""The most bytes of a `server.properties`."""

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK

_open = os.open

_SHORT = (errno.EMFILE, errno.ENFILE)

RESERVED = 1280
"""How many descriptors are left for everything but logs, which is the connections of two ports above all; half of all if there are few."""


def read_small(path: str | PathLike[str], limit: int, *, follows: bool = False) -> bytes:
    """The content of a file that is small by its nature.

    Args:
        follows: a symbolic link, too, as for files that operators make. A broker makes none: one in a copied log dir leads to a file of
            this host, whose first bytes a message about it would show.

    Raises:
        TooLargeError: it has more than ``limit`` bytes. They are not read.
        OSError: it cannot be read, or is no regular file.
    """
    with Calling(path):
        try:
            fd = open_file(path, 0 if follows else os.O_NOFOLLOW)
        except OSError as error:
            if error.errno != errno.ELOOP or follows:
                raise
            raise OSError(errno.ELOOP, "a symbolic link, which is not followed", str(path)) from error
        try:
            size = os.fstat(fd).st_size
            data = _read(fd, size) if size <= limit else b""
        finally:
            os.close(fd)
    if max(size, len(data)) > limit:
        raise TooLargeError(f"larger than {limit} bytes: such a file of Kafka's is not")
    return data


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


class ThreadCalls:
    """The file system calls of one thread. Only that thread writes; others may read.

    ``path`` is the file or directory that the thread is using, None if there is none. ``count`` grows with every call. So if the path stays
    and the count does not change, it is one call that has not returned. ``size``: the bytes of segments that it has read.
    """

    __slots__ = ("count", "path", "size")

    def __init__(self) -> None:
        self.path: str | PathLike[str] | None = None
        self.count = self.size = 0

    def go_on(self, path: str | PathLike[str]) -> None:
        """Record the next of many paths, within a `Calling` that ends after the last of them: for a call a microsecond long."""
        self.path = path
        self.count += 1


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.calls = ThreadCalls()


_of_thread = _OfThread()


def open_file(path: str | PathLike[str], flags: int = 0) -> int:
    """Open a file for reading; returns its descriptor, which the caller closes.

    Args:
        flags: of `os.open`, besides those of every file here.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    fd = _open(path, _FLAGS | flags)
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(
                errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, "no regular file, but a directory, pipe or device", str(path)
            )
    except OSError:
        os.close(fd)
        raise
    return fd


def _read(fd: int, size: int) -> bytes:
    """As many bytes as the file had, and one more if it has grown."""
    data = os.read(fd, size + 1)
    while len(data) < size and (more := os.read(fd, size + 1 - len(data))):
        data += more
    return data


def calls_of_this_thread() -> ThreadCalls:
    """The calls of the current thread."""
    return _of_thread.calls


def written_ms(path: str | PathLike[str]) -> int:
    """The same in Unix milliseconds, rounded down; -1, too."""
    return written_ns(path) // 1_000_000


def written_ns(path: str | PathLike[str]) -> int:
    """When a file or directory was written last, Unix nanoseconds; -1 if it is not there or cannot be asked."""
    try:
        with Calling(path):
            return Path(path).stat().st_mtime_ns
    except OSError:
        return -1


def note_read(size: int) -> None:
    """Note that this thread has read so many more bytes of a segment."""
    _of_thread.calls.size += size


def bytes_read() -> int:
    """The bytes of segments that this thread has read since it began. The difference of two values is what was read in between."""
    return _of_thread.calls.size


def is_short(error: OSError) -> bool:
    """Whether the process, or the host, has no descriptor left."""
    return error.errno in _SHORT


@contextmanager
def opened(path: str | PathLike[str]) -> Iterator[int]:
    """The descriptor of a file for the duration of a block. Raises as `open_file`."""
    with Calling(path):
        fd = open_file(path)
    try:
        yield fd
    finally:
        os.close(fd)


class Shortage:
    """Whether the process lacks descriptors. It is logged when that begins and when it ends. Thread-safe.

    What a thread does with Kafka's files: which one it is using, and how many bytes of segments it has read. A file system call may
    not return, and then only another thread can detect it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.lasts = False
        """Whether a file of a log dir could not be opened at the last check for want of a descriptor."""
        self.count = 0
        """How often that was so."""

    def note(self) -> None:
        """No descriptor was free."""
        with self._lock:
            begins, self.lasts = not self.lasts, True
            self.count += 1
        if begins:
            log.error(
                "too many open files: log dirs cannot be checked now, they count as they were; "
                "raise LimitNOFILE (ulimit -Hn), or close what is connected to this process",
                extra={"limit": resource.getrlimit(resource.RLIMIT_NOFILE)[0]},
            )

    def end(self) -> None:
        """A check of all log dirs found descriptors."""
        with self._lock:
            ends, self.lasts = self.lasts, False
        if ends:
            log.warning("files can be opened again")


shortage = Shortage()
"""The shortage of this process."""


def check_may_stay(fd: int, path: str) -> None:
    """Check that there are descriptors left if a log's file stays open: a process gets the lowest number that is free.

    Raises:
        OSError: there are not. The caller closes the file.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if fd >= limit - min(RESERVED, limit // 2):
        raise OSError(
            errno.EMFILE, f"too many open files: raise LimitNOFILE (ulimit -Hn), which is {limit}, above the number of logs", path
        )


class ReadingPace:
    """How long to rest from reading in the background. All times are seconds of a clock that only goes forward. Thread-safe.

    Args:
        rate: bytes a second.
        cpu_share: the most of one core that is used.
    """

    def __init__(self, rate: int, cpu_share: float) -> None:
        self._rate = rate
        self._cpu_share = cpu_share
        self._lock = threading.Lock()
        self._free_at = 0.0

    def spent(self, size: int, cpu_seconds: float, now: float) -> float:
        """Note that ``size`` bytes were read and took ``cpu_seconds``. Returns for how many seconds to rest."""
        with self._lock:
            self._free_at = max(now, self._free_at) + max(size / self._rate, cpu_seconds / self._cpu_share)
            return self._free_at - now
