"""Finds what the agent may not read in the log dirs and logs the cost: the agent runs as its own user, so its rights may be too few."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.logdirs import LogDir
from streaming.kafka.formats import names

log = logging.getLogger(__name__)

LOGGED_AT_ONCE = 10
"""The most files that get a log line each. For the others, only their number is logged."""

_WATCHED = "it is not watched: nothing of it is counted"
_METADATA = "leaders, topics and their settings are not known from this broker"
_EPOCHS = "where its leader epochs begin is not known"
_SMALL_FILES = (names.PARTITION_METADATA, names.LEADER_EPOCH_CHECKPOINT)
_CHECKPOINTS = {
    names.HIGH_WATERMARK_CHECKPOINT: "high watermarks are not known",
    names.LOG_START_OFFSET_CHECKPOINT: "a log's start is taken from its first segment",
    names.CLEANER_CHECKPOINT: "how far compaction has come is not known",
}

_NO_RIGHT = "may not be read"
_RIGHTS = (
    "run the agent as the broker's own user, or with CAP_DAC_READ_SEARCH: no group may read snapshots of the metadata log (mode 0400); "
    "other files their group may read, where the broker's umask lets it"
)


class Rights:
    """Logs what has become unreadable, each file once while it stays so. Only one thread uses it; any may read ``count``."""

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
            log.warning(
                "may not be read" if each.may_not else "cannot be read", extra={"path": str(each.path), "cost": each.cost, "why": each.why}
            )
        if len(new) > LOGGED_AT_ONCE:
            log.warning("more files may not be read", extra={"files": len(new) - LOGGED_AT_ONCE})
        if any(each.may_not for each in new):
            log.warning(_RIGHTS, extra={"uid": os.getuid()})


def find_unreadable(log_dirs: Iterable[LogDir]) -> list[UnreadablePath]:
    """List everything in the log dirs that this process cannot read. It asks the system about each file and opens none."""
    return [found for log_dir in log_dirs for found in _of_log_dir(log_dir.path)]


@dataclass(frozen=True, slots=True)
class UnreadablePath:
    """A file or directory that cannot be read, what is not known because of it, and why."""

    path: Path
    cost: str
    why: str = _NO_RIGHT

    @property
    def may_not(self) -> bool:
        """Whether it is a right that is missing."""
        return self.why == _NO_RIGHT


def _of_log_dir(path: Path) -> Iterator[UnreadablePath]:
    if not os.access(path, os.R_OK | os.X_OK):
        if path.exists():  # otherwise the reason is not a missing right
            yield UnreadablePath(path, "no log in it is watched")
        return
    for name, cost in _CHECKPOINTS.items():
        yield from unreadable_file(path / name, cost)
    with os.scandir(path) as entries:
        directories = [Path(entry.path) for entry in entries if names.parse_partition_dir(entry.name) and entry.is_dir()]
    for directory in directories:
        yield from _of_partition(directory, _METADATA if directory.name == f"{names.METADATA_TOPIC}-0" else _WATCHED)


def unreadable_file(path: Path, cost: str) -> Iterator[UnreadablePath]:
    """Ask the system about a file; nothing if it can be read."""
    why = _what_hinders(path)
    if why:
        yield UnreadablePath(path, cost, why)


def _what_hinders(path: Path) -> str:
    """Why a file cannot be read; "" if it can, or does not exist: it may have been deleted since it was listed."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "leads nowhere" if path.is_symlink() else ""
    except PermissionError:
        return _NO_RIGHT
    except OSError as error:  # a link that leads to itself, a disk that fails
        return f"cannot be read ({error.strerror})"
    if not stat.S_ISREG(mode):
        return "is a directory" if stat.S_ISDIR(mode) else "is no file, but a pipe, a socket or a device"
    return "" if os.access(path, os.R_OK) else _NO_RIGHT


def _of_partition(path: Path, cost: str) -> Iterator[UnreadablePath]:
    if not os.access(path, os.R_OK | os.X_OK):
        yield UnreadablePath(path, cost)
        return
    try:
        files = [path / name for name in os.listdir(path) if _is_needed(name)]
    except FileNotFoundError:  # deleted after it was listed
        return
    for file in files:
        yield from unreadable_file(file, _EPOCHS if file.name == names.LEADER_EPOCH_CHECKPOINT else cost)


def _is_needed(name: str) -> bool:
    if (snapshot := names.parse_metadata_snapshot(name)) is not None:
        return not snapshot.covers_nothing
    return name.endswith(".log") or name in _SMALL_FILES
