"""What the agent may not read in the log dirs, and what that costs: as a user of its own it says where its rights do not reach."""

import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from streaming.disk.availability import LogDirs
from streaming.disk.logdirs import LogDir
from streaming.kafka import names

log = logging.getLogger(__name__)

TOLD_AT_ONCE = 10
"""Of so many files each gets a line; of more their number is told."""

_WATCHED = "it is not watched: nothing of it is counted"
_METADATA = "leaders, topics and their settings are not known from this broker"
_CHECKPOINTS = {
    "replication-offset-checkpoint": "high watermarks are not known",
    names.LOG_START_OFFSET_CHECKPOINT: "a log's start is taken from its first segment",
    "cleaner-offset-checkpoint": "how far compaction has come is not known",
}


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file or directory that may not be read, and what cannot be told without it."""

    path: Path
    cost: str


def survey(log_dirs: Iterable[LogDir]) -> list[Unreadable]:
    """Everything in the log dirs that this process may not read; asks the system for each file, opens none."""
    return [found for log_dir in log_dirs for found in _of_log_dir(log_dir.path)]


def _of_log_dir(path: Path) -> Iterator[Unreadable]:
    if not os.access(path, os.R_OK | os.X_OK):
        if path.exists():  # else it is no matter of rights
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
    except FileNotFoundError:  # deleted since it was listed
        return
    for file in files:
        if not _readable(file):
            yield Unreadable(file, cost)


def _readable(path: Path) -> bool:
    """Also for a file that is not there: that is no matter of rights."""
    return os.access(path, os.R_OK) or not path.exists()


class Rights:
    """Tells what has become unreadable, each file once as long as it is. For one thread; ``count`` for any."""

    def __init__(self, log_dirs: LogDirs) -> None:
        self._log_dirs = log_dirs
        self._told: set[Path] = set()
        self.count = 0
        """How many files and directories could not be read at the last look."""

    def look(self) -> None:
        """Look at everything, and tell what is new."""
        try:
            barred = self._log_dirs.barred
            found = survey(log_dir for log_dir in self._log_dirs if log_dir.path not in barred)
        except OSError as error:  # a log dir that failed as a whole is told by those who read it
            log.debug("the rights could not be looked at", extra={"error": str(error)})
            return
        new = [each for each in found if each.path not in self._told]
        self._told = {each.path for each in found}
        self.count = len(found)
        for each in new[:TOLD_AT_ONCE]:
            log.warning("may not be read", extra={"path": str(each.path), "cost": each.cost})
        if len(new) > TOLD_AT_ONCE:
            log.warning("more files may not be read", extra={"files": len(new) - TOLD_AT_ONCE})
        if new:
            log.warning(
                "the agent's user needs a group that may read them: a broker with umask 027 lets its own",
                extra={"uid": os.getuid()},
            )
