"""Which of the log dirs can be used now, and why the others cannot: a disk fails, comes back, or is replaced while all else goes on.

Nothing in a log dir that is unavailable is gone: a mount point with nothing mounted looks empty.
"""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import overload

from streaming.disk.identity import UNKNOWN_BROKER, LogDir, read_identity
from streaming.errors import LogDirError

log = logging.getLogger(__name__)


class LogDirs(Sequence[LogDir]):
    """All log dirs in the order they were given, also those that are unavailable: with the identity they had last.

    One that was never readable is taken for one of the broker to which all others belong; if they belong to several, it has none
    (`UNKNOWN_BROKER`). Any thread may ask, `check` and `bar`.

    Args:
        found: what was found at each path, None where it is unavailable so far.
    """

    def __init__(self, found: Mapping[Path, LogDir | None], unavailable: Mapping[Path, str], barred: Mapping[Path, str]) -> None:
        self._paths = tuple(found)
        self._known = {path: log_dir for path, log_dir in found.items() if log_dir is not None}
        self._failed = dict(unavailable)
        self._barred = dict(barred)
        self._lock = threading.Lock()
        self._dirs: tuple[LogDir, ...] = ()
        self.cluster_id = next((log_dir.cluster_id for log_dir in self._known.values()), "")
        self.unavailable: Mapping[Path, str] = {}
        """Those that must not be used now, and why."""
        self.version = 0
        """Another number whenever one has become unavailable, has come back, or is another one."""
        self._logged: Mapping[Path, str] = {}
        self._settle()

    @overload
    def __getitem__(self, index: int) -> LogDir: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[LogDir]: ...

    def __getitem__(self, index: int | slice) -> LogDir | Sequence[LogDir]:
        return self._dirs[index]

    def __len__(self) -> int:
        return len(self._dirs)

    @property
    def available(self) -> tuple[LogDir, ...]:
        """Those that can be used."""
        unavailable = self.unavailable
        return tuple(log_dir for log_dir in self._dirs if log_dir.path not in unavailable)

    @property
    def known(self) -> tuple[LogDir, ...]:
        """Those that were readable once."""
        return tuple(log_dir for log_dir in self._dirs if log_dir.path in self._known)

    @property
    def brokers(self) -> list[int]:
        """The brokers to which they belong, as far as that is known."""
        return sorted({log_dir.broker for log_dir in self._dirs} - {UNKNOWN_BROKER})

    def of(self, broker: int) -> "DirsOf":
        """Those of a broker that can be used whenever they are asked for."""
        return DirsOf(self, broker)

    # --- looking again

    def check(self, *paths: Path) -> None:
        """Look again at these, all if none is named: what is available, what has come back, what has been replaced.

        One comes back if it is of the same cluster and broker. With another directory.id it is a new disk in the place of the old one.
        """
        for path in paths or self._paths:
            if path not in self._barred:
                try:
                    found, failed = self._accepted(read_identity(path)), ""
                except LogDirError as error:
                    found, failed = None, str(error)
                with self._lock:
                    self._note(path, found, failed)
        self._settle()

    def bar(self, path: Path, reason: str) -> None:
        """Make no call into this log dir any more until `unbar`: calls into it do not come back."""
        with self._lock:
            self._barred[path] = reason
        self._settle()

    def unbar(self, path: Path) -> None:
        """The next `check` looks at it again."""
        with self._lock:
            reason = self._barred.pop(path, "")
            if reason:
                self._failed[path] = reason
        self._settle()

    @property
    def barred(self) -> Mapping[Path, str]:
        """Those into which no call may be made, not even to look whether they are back; and why."""
        return dict(self._barred)

    def log_changes(self) -> None:
        """Write to the log which have become unavailable and which have come back since the last call."""
        before, self._logged = self._logged, self.unavailable
        for path, reason in self._logged.items():
            if before.get(path) != reason:
                log.error("log dir cannot be read", extra={"log_dir": str(path), "error": reason})
        for path in before.keys() - self._logged.keys():
            log.warning("log dir can be read again", extra={"log_dir": str(path)})

    def _accepted(self, found: LogDir) -> LogDir:
        """Raises LogDirError for one that is not the one that was meant."""
        path, known = found.path, self._known.get(found.path)
        if self.cluster_id and found.cluster_id != self.cluster_id:
            raise LogDirError(f"{path} belongs to cluster {found.cluster_id}, the others to {self.cluster_id}: it is left out")
        expected = self._broker_of_others() if known is None else known.broker
        if expected not in (found.broker, UNKNOWN_BROKER):
            raise LogDirError(f"{path} belongs to node {found.broker}, it was taken for one of node {expected}: start anew if it is meant")
        for other in self._known if known is None else ():
            if other not in self._barred and _is_same(path, other):
                raise LogDirError(f"log dir {path} is given twice (also as {other}): name each one once")
        return found

    def _broker_of_others(self) -> int:
        brokers = {log_dir.broker for log_dir in self._known.values()}
        return next(iter(brokers)) if len(brokers) == 1 else UNKNOWN_BROKER

    def _note(self, path: Path, found: LogDir | None, failed: str) -> None:
        if found is None:
            self._failed[path] = failed
            return
        self._failed.pop(path, None)
        known = self._known.get(path)
        if known != found:
            self._known[path] = found
            self.version += 1
            if known is not None and known.directory_id is not None:
                log.warning(
                    "log dir was replaced by another",
                    extra={"log_dir": str(path), "directory_id": found.directory_id, "was": known.directory_id},
                )

    def _settle(self) -> None:
        with self._lock:
            unavailable = self._failed | self._barred
            if unavailable.keys() != self.unavailable.keys():
                self.version += 1
            self.unavailable = unavailable
            absent = LogDir(Path(), self._broker_of_others(), self.cluster_id, None)
            self._dirs = tuple(self._known.get(path) or replace(absent, path=path) for path in self._paths)


class DirsOf(Iterable[LogDir]):
    """The log dirs of one broker that are available at the moment of asking."""

    def __init__(self, log_dirs: LogDirs, broker: int) -> None:
        self._log_dirs = log_dirs
        self._broker = broker

    def __iter__(self) -> Iterator[LogDir]:
        return (log_dir for log_dir in self._log_dirs.available if log_dir.broker == self._broker)


def open_log_dirs(paths: Iterable[Path], barred: Mapping[Path, str] | None = None) -> LogDirs:
    """Look at log dirs for the first time; all must be of one cluster. Those that cannot be used are kept as unavailable.

    Args:
        barred: those into which no call may be made, and why.

    Raises:
        LogDirError: none of them can be used, one is given twice, or two clusters are among them.
    """
    found: dict[Path, LogDir | None] = {}
    failed: dict[Path, str] = {}
    barred = barred or {}
    opened: list[LogDir] = []
    for path in map(Path.absolute, paths):
        if path in found:
            raise LogDirError(f"log dir {path} is given twice: name each one once")
        found[path] = None
        if path in barred:
            continue
        try:
            found[path] = here = read_identity(path)
        except LogDirError as error:
            failed[path] = str(error)
            continue
        for other in opened:
            if _is_same(here.path, other.path):
                raise LogDirError(f"log dir {here.path} is given twice (also as {other.path}): name each one once")
            if here.cluster_id != other.cluster_id:
                raise LogDirError(
                    f"log dirs of two clusters: {other.path} belongs to {other.cluster_id}, {here.path} to {here.cluster_id}: "
                    "run one job per cluster"
                )
        opened.append(here)
    if not found:
        raise LogDirError("no log dir is given: name the broker's log.dirs with --log-dirs A,B")
    if not opened:
        raise LogDirError("; ".join((failed | dict(barred)).values()))
    return LogDirs(found, failed, barred)


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # one of them has just gone away
        return False


def refuse_inside(path: Path, log_dirs: Iterable[LogDir], option: str) -> None:
    """Keep our own files out of Kafka's: a broker refuses to load a log dir that holds a directory it does not know.

    Raises:
        LogDirError: ``path``, given by ``option``, lies in a log dir, whichever way it is spelt.
    """
    resolved = path.resolve()
    barred = log_dirs.barred if isinstance(log_dirs, LogDirs) else {}
    for log_dir in log_dirs:
        if log_dir.path not in barred and resolved.is_relative_to(log_dir.path.resolve()):
            raise LogDirError(f"{option} {path} lies in the log dir {log_dir.path}, where nothing but Kafka may write: name another place")
