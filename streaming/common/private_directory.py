"""A directory for one user: what jobs and agents keep names topics, groups, clients and transactional ids."""

import logging
import os
from pathlib import Path

log = logging.getLogger(__name__)

UMASK = 0o077
"""Of processes that write into one."""


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
        # a volume's own directory is root's, and its rights are given by whoever mounts it
        if found.st_uid == os.geteuid() and found.st_mode & 0o077:
            log.warning("other users may enter a directory that names groups and clients: chmod go-rwx", extra={"path": str(path)})
