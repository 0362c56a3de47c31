"""The partition directories of a log dir, and whether one has changed: only a listing and a stat."""

import os
from pathlib import Path

from streaming.broker.disk.calls import Calling
from streaming.broker.disk.segment_files import Identity, Stamp, stamp_of
from streaming.kafka.formats.names import DirState, parse_partition_dir


def log_dir_stamp(path: Path, now_ms: int) -> tuple[Identity, Stamp | None]:
    """The identity of the directory at the path of a log dir, and its stamp, None if that is not reliable yet. Raises OSError."""
    with Calling(path):
        stat = path.stat()
    return Identity(stat.st_dev, stat.st_ino), stamp_of(stat, now_ms)


def partition_stamp(log_dir: Path, name: str, now_ms: int) -> Stamp | None:
    """The stamp of a partition directory, None if it is not reliable yet. Raises OSError."""
    path = f"{log_dir}/{name}"
    with Calling(path):
        stat = os.stat(path)  # noqa: PTH116  # called for very many directories
    return stamp_of(stat, now_ms)


def live_directories(log_dir: Path, known: dict[str, int]) -> dict[str, int]:
    """The inode of each live partition directory, by name.

    Args:
        known: the result of an earlier listing; its names are not parsed again.

    Raises:
        OSError: the log dir cannot be read at this moment.
    """
    with Calling(log_dir), os.scandir(log_dir) as entries:
        return {entry.name: entry.inode() for entry in entries if entry.name in known or _is_live(entry.name)}


def _is_live(name: str) -> bool:
    parsed = parse_partition_dir(name)
    return parsed is not None and parsed.state is DirState.LIVE
