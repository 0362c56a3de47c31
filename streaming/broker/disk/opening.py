"""Opens Kafka's files: read-only, nothing but regular files, and whole ones only up to a bound; and notes when no descriptor is free."""

import errno
import logging
import os
import resource
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike

from streaming.broker.disk.calls import Calling
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


@contextmanager
def opened(path: str | PathLike[str]) -> Iterator[int]:
    """The descriptor of a file for the duration of a block. Raises as `open_file`."""
    with Calling(path):
        fd = open_file(path)
    try:
        yield fd
    finally:
        os.close(fd)


def read_small(path: str | PathLike[str], limit: int) -> bytes:
    """The content of a file that is small by its nature.

    Raises:
        TooLargeError: it has more than ``limit`` bytes. They are not read.
        OSError: it cannot be read, or is no regular file.
    """
    with Calling(path):
        fd = open_file(path)
        try:
            size = os.fstat(fd).st_size
            data = _read(fd, size) if size <= limit else b""
        finally:
            os.close(fd)
    if max(size, len(data)) > limit:
        raise TooLargeError(f"larger than {limit} bytes: such a file of Kafka's is not")
    return data


def _read(fd: int, size: int) -> bytes:
    """As many bytes as the file had, and one more if it has grown."""
    data = os.read(fd, size + 1)
    while len(data) < size and (more := os.read(fd, size + 1 - len(data))):
        data += more
    return data


_SHORT = (errno.EMFILE, errno.ENFILE)


def is_short(error: OSError) -> bool:
    """Whether the process, or the host, has no descriptor left."""
    return error.errno in _SHORT


class Shortage:
    """For all threads. It is logged when it begins and when it ends."""

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
"""Of this process."""
