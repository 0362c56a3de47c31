"""Asks the kernel who holds the lock of a log dir. It takes no lock, and answers at once.

A broker holds an exclusive lock on the whole of ``.lock`` in each log dir (`FileChannel.tryLock`, in
`org.apache.kafka.server.util.FileLock`, earlier `kafka.utils.FileLock`): in Linux a POSIX record lock. Two traps of these locks decide how
they are asked. A process does not see its own by ``F_GETLK``; ``F_OFD_GETLK`` asks for an open file instead, which holds nothing. And to
close any descriptor of a file ends all locks that the process has on it: so no process that reads log dirs may hold one of these.
"""

import fcntl
import os
import struct
from pathlib import Path

from streaming.broker.disk.calls import Calling
from streaming.broker.disk.contents import was_shut_down_cleanly
from streaming.broker.disk.opening import open_file
from streaming.broker.disk.shortage import is_short
from streaming.common.formatting import format_name
from streaming.kafka.formats.names import BROKER_LOCK, CLEAN_SHUTDOWN, METADATA_TOPIC, OFFSET_CHECKPOINTS
from streaming.rules.broker_process import DirLock, LockState

_FLOCK = struct.Struct("@hhqqi4x")  # struct flock of <fcntl.h>: type, whence, start, length (0: to the end), process
_NAME_LENGTH = 300
_ASKED = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


def ask_lock(log_dir: Path) -> DirLock:
    """Whether a process holds the lock of a log dir. In another container's file system it is seen too, if the kernel is the same.

    Raises:
        OSError: no descriptor is free. What else is in the way is part of the answer.
    """
    path = log_dir / BROKER_LOCK
    name = format_name(str(path), _NAME_LENGTH)
    try:
        with Calling(path):
            fd = open_file(path, os.O_NOFOLLOW)
            try:
                stat = os.fstat(fd)
                kind: int = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _ASKED))[0]
            finally:
                os.close(fd)
    except FileNotFoundError:
        deleted = was_shut_down_cleanly(log_dir)
        return DirLock(LockState.DELETED) if deleted else DirLock(LockState.MISSING, why=f"{name} does not exist")
    except PermissionError:
        return DirLock(LockState.UNKNOWN, why=f"{name} may not be read")
    except OSError as error:
        if is_short(error):
            raise
        return DirLock(LockState.UNKNOWN, why=f"{name} cannot be asked: {error.strerror}")
    file = (stat.st_dev, stat.st_ino)
    if kind == fcntl.F_RDLCK:
        return DirLock(LockState.UNKNOWN, file, f"{name} is held by a program that is no broker")
    return DirLock(LockState.FREE if kind == fcntl.F_UNLCK else LockState.LOCKED, file)


def last_write_ms(log_dir: Path) -> int:
    """When a broker last wrote one of the files that it writes while nothing happens, or when it ends, Unix milliseconds; -1 for never.

    Every five seconds it writes its high watermarks if it has a replica there, and twice a second its metadata log.
    """
    written = -1
    for name in (*OFFSET_CHECKPOINTS, CLEAN_SHUTDOWN):
        path = log_dir / name
        with Calling(path):
            written = max(written, _modified_ms(path))
    metadata = log_dir / f"{METADATA_TOPIC}-0"
    try:
        with Calling(metadata), os.scandir(metadata) as entries:
            return max([written, *(_modified_ms(entry) for entry in entries if entry.name.endswith(".log"))])
    except OSError:  # it is in another log dir, or this one cannot be listed, which is reported elsewhere
        return written


def _modified_ms(path: Path | os.DirEntry[str]) -> int:
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return -1
