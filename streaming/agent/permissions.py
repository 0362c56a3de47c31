"""Finds what the agent may not read in the log dirs and logs the cost: the agent runs as its own user, so its rights may be too few."""

import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from streaming.disk.availability import LogDirs
from streaming.disk.logdirs import LogDir
from streaming.kafka import names

log = logging.getLogger(__name__)

LOGGED_AT_ONCE = 10
"""The most files that get a log line each. For the others, only their number is logged."""

_WATCHED = "it is not watched: nothing of it is counted"
_METADATA = "leaders, topics and their settings are not known from this broker"
_CHECKPOINTS = {
    names.HIGH_WATERMARK_CHECKPOINT: "high watermarks are not known",
    names.LOG_START_OFFSET_CHECKPOINT: "a log's start is taken from its first segment",
    names.CLEANER_CHECKPOINT: "how far compaction has come is not known",
}


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file or directory that may not be read, and what is not known because of it."""

    path: Path
    cost: str


def find_unreadable(log_dirs: Iterable[LogDir]) -> list[Unreadable]:
    """List everything in the log dirs that this process may not read. It asks the system about each file and opens none."""
    return [found for log_dir in log_dirs for found in _of_log_dir(log_dir.path)]


def _of_log_dir(path: Path) -> Iterator[Unreadable]:
    if not os.access(path, os.R_OK | os.X_OK):
        if path.exists():  # otherwise the reason is not a missing right
            yield Unreadable(path, "no log in it is watched")
        return
    for name, cost in _CHECKPOINTS.items():
        if not _readable(path / name):
            yield Unreadable(path / name, cost)
    with os.scandir(path) as entries:
        directories = [Path(entry.path) for entry in entries if names.parse_partition_dir(entry.name) and entry.is_dir()]
    for directory in directories:
        yield from _of_partition(directory, _METADATA if directory.name == f"{names.METADATA_TOPIC}-0" else _WATCHED)


def _of_partition(path: Path, cost: str) -> Iterator[Unreadable]:
    if not os.access(path, os.R_OK | os.X_OK):
        yield Unreadable(path, cost)
        return
    try:
        files = [path / name for name in os.listdir(path) if name.endswith((".log", ".checkpoint")) or name == names.PARTITION_METADATA]
    except FileNotFoundError:  # deleted after it was listed
        return
    for file in files:
        if not _readable(file):
            yield Unreadable(file, cost)


def _readable(path: Path) -> bool:
    """True also for a file that does not exist: then the reason is not a missing right."""
    return os.access(path, os.R_OK) or not path.exists()


class Rights:
    """Logs what has become unreadable, each file once while it stays so. For one thread; any thread may read ``count``."""

    def __init__(self, log_dirs: LogDirs) -> None:
        self._log_dirs = log_dirs
        self._logged: set[Path] = set()
        self.count = 0
        """The number of files and directories that could not be read at the last check."""

    def check(self) -> None:
        """Check everything, and log what is new."""
        try:
            barred = self._log_dirs.barred
            found = find_unreadable(log_dir for log_dir in self._log_dirs if log_dir.path not in barred)
        except OSError as error:  # if a log dir failed as a whole, the code that reads it reports that
            log.debug("permissions could not be checked", extra={"error": str(error)})
            return
        new = [each for each in found if each.path not in self._logged]
        self._logged = {each.path for each in found}
        self.count = len(found)
        for each in new[:LOGGED_AT_ONCE]:
            log.warning("may not be read", extra={"path": str(each.path), "cost": each.cost})
        if len(new) > LOGGED_AT_ONCE:
            log.warning("more files may not be read", extra={"files": len(new) - LOGGED_AT_ONCE})
        if new:
            log.warning(
                "the agent's user needs a group that may read them: with umask 027 a broker lets only its own group read its files",
                extra={"uid": os.getuid()},
            )
