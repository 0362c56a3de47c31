"""Small files that are written whole: a reader finds the old content or the new one. Directories for one user."""

import logging
import os
from pathlib import Path

log = logging.getLogger(__name__)

UMASK = 0o077
"""The umask of processes that write into such a directory."""


def write_whole(path: Path, content: bytes, *, lasting: bool = True, mode: int = 0o600) -> None:
    """Replace a file: one beside it, with ``.new`` behind its name, is written and then renamed.

    Args:
        lasting: the content survives a loss of power. Otherwise nothing waits for the disk.
        mode: the rights of the new file, before the process' umask; by default no other user may read it.

    Raises:
        OSError: it cannot be written. The old file is still there, and no other.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        new.unlink(missing_ok=True)  # an unfinished one may have other rights
        with open(new, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(content)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    if lasting:
        # make the rename itself survive a loss of power
        descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make(path: Path) -> None:
    """Make a directory that only its user may enter. One that is there keeps its mode; if others may enter it, that is logged.

    Raises:
        OSError: it cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if not path.is_dir():
            raise
        found = path.stat()
        # a volume's own directory is root's, and its rights are given by what mounts it
        if found.st_uid == os.geteuid() and found.st_mode & 0o077:
            log.warning("other users may enter a directory that names groups and clients: chmod go-rwx", extra={"path": str(path)})
