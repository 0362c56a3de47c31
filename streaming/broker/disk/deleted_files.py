"""Files of log dirs that are deleted and that a process still holds open: their space is taken, and no directory shows them.

By the links in ``/proc/PID/fd`` (proc(5)): the name of a deleted file ends with `` (deleted)``. Of processes of other users only root may
read them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from streaming.broker.disk.broker_processes import process_directories

_DELETED = " (deleted)"


def deleted_open(log_dirs: Sequence[Path], proc: Path = Path("/proc")) -> Iterator[DeletedOpen]:
    """What other processes hold, as far as this user may see it."""
    within = tuple(f"{os.path.realpath(each)}/" for each in log_dirs)
    for process in process_directories(proc) if proc.is_dir() else ():
        held = dict(_held(process / "fd", within)) if process.name != str(os.getpid()) else {}
        if held:
            yield DeletedOpen(f"{process}/fd ({_name(process)})", sum(held.values()))


@dataclass(frozen=True, slots=True)
class DeletedOpen:
    """What one process holds of log dirs. ``path``: the directory in ``/proc`` that shows it, and the process' name. ``taken``: bytes."""

    path: str
    taken: int


def _held(descriptors: Path, within: tuple[str, ...]) -> Iterator[tuple[tuple[int, int], int]]:
    """What each file takes, by device and inode."""
    try:
        names = os.listdir(descriptors)
    except OSError:  # it has ended, or is another user's
        return
    for link in (descriptors / name for name in names):
        try:
            target = str(link.readlink())
            if target.endswith(_DELETED) and target.startswith(within):
                status = link.stat()
                yield (status.st_dev, status.st_ino), status.st_blocks * 512
        except OSError:  # it was closed meanwhile
            continue


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text(errors="replace").strip()
    except OSError:  # it has ended
        return "ended"
