"""Who holds a file's lock, by the list that the kernel has of all of them: to try it would take it."""

import os
import re
from pathlib import Path

_LOCKS = Path("/proc/locks")
_LINE = re.compile(r"^\d+: FLOCK +\S+ +\S+ +(-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) ", re.MULTILINE)


def holder_of(path: Path, locks: Path = _LOCKS) -> int | None:
    """The id of the process that holds a file's lock, 0 if nobody does, -1 if it is of another container.

    None if the kernel does not show it.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0
    except OSError:
        return None
    try:
        text = locks.read_text()
    except OSError:
        return None
    for pid, major, minor, inode in _LINE.findall(text):
        device = os.makedev(int(major, 16), int(minor, 16))
        if int(inode) == found.st_ino and device == found.st_dev:
            return int(pid) if int(pid) > 0 else -1
    return 0
