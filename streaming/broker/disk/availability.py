"""Decides which log dirs can be used now, and why the others cannot: a disk may fail, come back, or never answer a first read."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import overload

from streaming.broker.disk.opening import (
    NAMES_BYTES,
    PROPERTIES_BYTES,
    Calling,
    ThreadCalls,
    calls_of_this_thread,
    is_short,
    read_small,
    shortage,
)
from streaming.common.units import format_word
from streaming.errors import DescriptorsError, FormatError, LogDirError, UsageError
from streaming.kafka.formats import names
from streaming.kafka.formats.properties import ServerProperties, known_clusters, parse_meta_properties, parse_server_properties

log = logging.getLogger(__name__)

UNKNOWN_BROKER = -1
"""The broker of a log dir that was never readable, if the other log dirs do not determine it."""

_NAMED = 20

READ_SECONDS = 5.0
"""How long a first read of a log dir may take."""


def open_answering(paths: Iterable[Path]) -> tuple[LogDirs, list[FirstRead]]:
    """Open log dirs for the first time, without those that do not answer.

    Returns:
        The log dirs, and the reads without an answer; their log dirs are barred.

    Raises:
        LogDirError: as in `open_log_dirs`.
    """
    paths = list(paths)
    silent = find_silent(paths)
    return open_log_dirs(paths, {read.path: f"{read.at} does not answer" for read in silent}), silent


@dataclass(frozen=True, slots=True)
class LogDir:
    """One of a broker's ``log.dirs``; ``path`` is the user's path, made absolute; ``cluster_id``: "" not known; ``zookeeper``: its broker
    is of before KRaft.
    """

    path: Path
    broker: int
    cluster_id: str
    directory_id: str | None
    zookeeper: bool = field(default=False, compare=False)


class LogDirs(Sequence[LogDir]):
    """All log dirs in the order they were given. Unavailable ones are included, with their last identity.

    If a log dir was never readable, it counts as one of the broker that has all the others. If these belong to several brokers, it has none
    (`UNKNOWN_BROKER`). Any thread may read, `check` and `bar`.

    Args:
        identities: the identity that was found at each path, None if it is unavailable so far.
    """

    def __init__(self, identities: Mapping[Path, LogDir | None], unavailable: Mapping[Path, str], barred: Mapping[Path, str]) -> None:
        self._paths = tuple(identities)
        self._identities = {path: log_dir for path, log_dir in identities.items() if log_dir is not None}
        self._failed = dict(unavailable)
        self._barred = dict(barred)
        self._lock = threading.Lock()
        self._dirs: tuple[LogDir, ...] = ()
        self.cluster_id = next(iter(known_clusters(log_dir.cluster_id for log_dir in self._identities.values())), "")
        """The cluster that they belong to; "" is not known, as long as all are of brokers before 2.4."""
        self.unavailable: Mapping[Path, str] = {}
        """The log dirs that must not be used now, and why."""
        self.version = 0
        """A number that changes whenever a log dir has become unavailable, has come back, or was replaced."""
        self.searched = False
        """Whether they were found below a directory, so that there may be others of their brokers."""
        self.unsearched: tuple[Path, ...] = ()
        """What could not be looked into there (`streaming.broker.disk.log_dir_search`)."""
        self.beside: tuple[LogDir, ...] = ()
        """Other log dirs of these brokers, of which the metadata log alone is read."""
        self._logged: Mapping[Path, str] = {}
        self._recompute()

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
        """The log dirs that can be used."""
        unavailable = self.unavailable
        return tuple(log_dir for log_dir in self._dirs if log_dir.path not in unavailable)

    @property
    def known(self) -> tuple[LogDir, ...]:
        """The log dirs that were readable at least once."""
        return tuple(log_dir for log_dir in self._dirs if log_dir.path in self._identities)

    @property
    def named(self) -> list[str]:
        """Those, each as "broker:directory.id", which is the same name from every agent."""
        return [f"{each.broker}:{each.directory_id or each.path}" for each in self.known]

    @property
    def brokers(self) -> list[int]:
        """The brokers of the log dirs, as far as they are known."""
        return sorted({log_dir.broker for log_dir in self._dirs} - {UNKNOWN_BROKER})

    def of(self, broker: int) -> DirsOf:
        """The log dirs of a broker that are available; this is evaluated at each iteration."""
        return DirsOf(self, broker)

    # --- checking again

    def check(self, *paths: Path) -> None:
        """Check these log dirs again, all if none is given: which are available, which have come back, which were replaced.

        A log dir comes back if it belongs to the same cluster and broker. If its directory.id differs, it is a new disk in place of the old
        one. If no descriptor is free, a log dir is as it was.
        """
        short = False
        for path in paths or self._paths:
            if path not in self._barred:
                try:
                    found, failed = self._accepted(read_identity(path)), ""
                except DescriptorsError:
                    shortage.note()
                    short = True
                    continue
                except LogDirError as error:
                    found, failed = None, str(error)
                with self._lock:
                    self._note(path, found, failed)
        if not paths and not short:
            shortage.end()
        self._recompute()

    def bar(self, path: Path, reason: str) -> None:
        """Make no more calls into this log dir until `unbar`, because they do not return."""
        with self._lock:
            self._barred[path] = reason
        self._recompute()

    def unbar(self, path: Path) -> None:
        """Let the next `check` read the log dir again."""
        with self._lock:
            reason = self._barred.pop(path, "")
            if reason:
                self._failed[path] = reason
        self._recompute()

    @property
    def barred(self) -> Mapping[Path, str]:
        """The log dirs into which no call may be made, not even to check whether they are back; and why."""
        return dict(self._barred)

    def log_changes(self) -> None:
        """Log which log dirs have become unavailable and which have come back since the last call."""
        before, self._logged = self._logged, self.unavailable
        for path, reason in self._logged.items():
            if before.get(path) != reason:
                log.error("log dir cannot be read", extra={"log_dir": str(path), "error": reason})
        for path in before.keys() - self._logged.keys():
            log.warning("log dir can be read again", extra={"log_dir": str(path)})

    def _accepted(self, log_dir: LogDir) -> LogDir:
        """Return the log dir. Raises LogDirError if it is not the expected one."""
        path, known = log_dir.path, self._identities.get(log_dir.path)
        if len(known_clusters((log_dir.cluster_id, self.cluster_id))) > 1:
            raise LogDirError(f"{path} belongs to cluster {log_dir.cluster_id}, the others to {self.cluster_id}: it is not watched")
        expected = self._broker_of_others() if known is None else known.broker
        if expected not in (log_dir.broker, UNKNOWN_BROKER):
            raise LogDirError(
                f"{path} belongs to node {log_dir.broker}, this process watches it for node {expected}: "
                "restart segtail if the log dir has changed hands on purpose"
            )
        for other in self._identities if known is None else ():
            if other not in self._barred and _is_same(path, other):
                raise LogDirError(f"log dir {path} is given twice (also as {other}): name each one once")
        return log_dir

    def _broker_of_others(self) -> int:
        brokers = {log_dir.broker for log_dir in self._identities.values()}
        return next(iter(brokers)) if len(brokers) == 1 else UNKNOWN_BROKER

    def _note(self, path: Path, log_dir: LogDir | None, failed: str) -> None:
        if log_dir is None:
            self._failed[path] = failed
            return
        self._failed.pop(path, None)
        self.cluster_id = self.cluster_id or log_dir.cluster_id
        known = self._identities.get(path)
        if known != log_dir:
            self._identities[path] = log_dir
            self.version += 1
            if known is not None and known.directory_id is not None:
                log.warning(
                    "log dir was replaced by another",
                    extra={"log_dir": str(path), "directory_id": log_dir.directory_id, "was": known.directory_id},
                )

    def _recompute(self) -> None:
        with self._lock:
            unavailable = self._failed | self._barred
            if unavailable.keys() != self.unavailable.keys():
                self.version += 1
            self.unavailable = unavailable
            absent = LogDir(Path(), self._broker_of_others(), self.cluster_id, None)
            self._dirs = tuple(self._identities.get(path) or replace(absent, path=path) for path in self._paths)


class DirsOf(Iterable[LogDir]):
    """The log dirs of one broker that are available at the time of the iteration; ``metadata``: with those `LogDirs.beside`."""

    def __init__(self, log_dirs: LogDirs, broker: int, *, metadata: bool = False) -> None:
        self._log_dirs = log_dirs
        self._broker = broker
        self._metadata = metadata

    def __iter__(self) -> Iterator[LogDir]:
        read = (*self._log_dirs.available, *self._log_dirs.beside) if self._metadata else self._log_dirs.available
        return (log_dir for log_dir in read if log_dir.broker == self._broker)


def read_identity(path: Path) -> LogDir:
    """Read the identity of a log dir. Without ``meta.properties`` it is no log dir: it may be a mount point with nothing mounted.

    Raises:
        LogDirError: it does not exist, cannot be read or is not a log dir.
    """
    meta = path / names.META_PROPERTIES
    try:
        with Calling(meta):
            if not path.is_dir():
                raise LogDirError(f"log dir {path} {'is not a directory' if path.exists() else 'does not exist'}: {_several(path)}")
            with os.scandir(path) as entries:
                next(entries, None)
            identity = parse_meta_properties(read_small(meta, NAMES_BYTES))
    except FileNotFoundError as error:
        raise LogDirError(f"{path} is not a Kafka log dir: {_instead(path)}") from error
    except PermissionError as error:
        raise LogDirError(f"{error.filename} cannot be read: run as the broker's user, or as one of its group with read access") from error
    except OSError as error:
        kind = DescriptorsError if is_short(error) else LogDirError
        raise kind(f"log dir {path} cannot be read: {error}") from error
    except FormatError as error:
        raise LogDirError(f"{meta} is not valid: {error}") from error
    return LogDir(path, identity.node_id, identity.cluster_id, identity.directory_id, identity.zookeeper)


def _several(path: Path) -> str:
    """A hint for what is not there: it may be several, as a shell or a file of properties would have them."""
    words = str(path).split()
    if len(words) > 1 and all(Path(each).is_dir() for each in words):
        return "for several log dirs write a comma between them, or the option once for each"
    return "name a broker's log.dirs"


def _instead(path: Path) -> str:
    """Why a directory is no log dir, and a hint: the log dir that it is in, or those in it, if there are any."""
    none, inner = f"it has no {names.META_PROPERTIES}", names.parse_partition_dir(path.name)
    try:
        with Calling(path), os.scandir(path) as entries:
            if inner is not None and (path.parent / names.META_PROPERTIES).is_file():
                return f"it is the directory of partition {inner.partition} of topic {inner.topic}; its log dir is {path.parent}"
            inside = sorted(entry.path for entry in entries if (Path(entry.path) / names.META_PROPERTIES).is_file())
    except OSError:
        inside = []
    if not inside:
        return f"{none}; name a broker's log.dirs, mounted where they are mounts"
    return f"{none}; name the log {'dir' if len(inside) == 1 else 'dirs'} in it: {','.join(map(format_word, inside[:_NAMED]))}"


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # one of them has just disappeared
        return False


class FirstRead:
    """A first read of a log dir, which may never end. Its thread ends with the process at the latest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._calls = ThreadCalls()
        self._thread = threading.Thread(target=self._read, daemon=True, name=f"look at {path}")
        self._thread.start()

    def _read(self) -> None:
        self._calls = calls_of_this_thread()
        with contextlib.suppress(LogDirError):  # an error is an answer; the code that opens the log dir gets it too
            read_identity(self.path)

    @property
    def alive(self) -> bool:
        """Whether there is no answer yet."""
        return self._thread.is_alive()

    @property
    def at(self) -> str | PathLike[str]:
        """The file that is being read."""
        return self._calls.path or self.path

    def wait(self, seconds: float) -> None:
        """Wait for the answer, for at most so long."""
        self._thread.join(seconds)


def find_silent(paths: Iterable[Path], seconds: float = READ_SECONDS) -> list[FirstRead]:
    """Read all log dirs at the same time; returns the reads without an answer within ``seconds``."""
    reads = [FirstRead(path.absolute()) for path in paths]
    silent = [read for read in reads if _is_silent(read, 0.0)]
    return [read for read in silent if _is_silent(read, seconds)]


def _is_silent(read: FirstRead, seconds: float) -> bool:
    read.wait(seconds)
    return read.alive


def open_log_dirs(paths: Iterable[Path], barred: Mapping[Path, str] | None = None) -> LogDirs:
    """Read log dirs for the first time; all must be of one cluster. Those that cannot be used are kept as unavailable.

    Reads files of properties: the identity of a log dir (``meta.properties``), and each ``server.properties`` that an option names.

    Args:
        barred: the log dirs into which no call may be made, and why.

    Raises:
        LogDirError: none of them can be used, one is given twice, or they belong to two clusters.
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
            if len(known_clusters((here.cluster_id, other.cluster_id))) > 1:
                raise LogDirError(
                    f"log dirs of two clusters: {other.path} belongs to {other.cluster_id}, {here.path} to {here.cluster_id}: "
                    "name those of one alone"
                )
        opened.append(here)
    if not found:
        raise LogDirError("no log dir is given: name the broker's log.dirs with --log-dirs A,B")
    if not opened:
        raise LogDirError("; ".join((failed | dict(barred)).values()))
    return LogDirs(found, failed, barred)


def read_server_properties(paths: Iterable[Path]) -> tuple[ServerProperties, ...]:
    """Read the files of several brokers.

    Raises:
        UsageError: one cannot be read or does not contain the node id, or two belong to one broker.
    """
    found: dict[int, Path] = {}
    read = []
    for path in paths:
        try:
            properties = parse_server_properties(read_small(path, PROPERTIES_BYTES, follows=True))
        except OSError as error:
            raise UsageError(f"server.properties {path} cannot be read: {error.strerror}") from error
        except FormatError as error:
            raise UsageError(f"{path} is no server.properties: {error}") from error
        other = found.setdefault(properties.node_id, path)
        if other != path:
            raise UsageError(f"{path} and {other} are both of node {properties.node_id}: name one for each broker")
        read.append(properties)
    return tuple(read)


def refuse_inside(path: Path, log_dirs: Iterable[LogDir], option: str) -> None:
    """Keep segtail's own files out of Kafka's: a broker refuses to load a log dir that has an unknown directory.

    Raises:
        LogDirError: ``path``, given by ``option``, is inside a log dir, in whichever spelling.
    """
    resolved = path.resolve()
    barred = log_dirs.barred if isinstance(log_dirs, LogDirs) else {}
    for log_dir in log_dirs:
        if log_dir.path not in barred and resolved.is_relative_to(log_dir.path.resolve()):
            raise LogDirError(
                f"{option} {path} lies in the log dir {log_dir.path}, where nothing but Kafka may write: name another directory"
            )
