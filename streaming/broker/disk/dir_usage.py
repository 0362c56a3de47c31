"""Everything that lies below a log dir, with what it takes on the disk: the same sum as that of ``du``, divided by use."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import stat as modes
import subprocess
import sys
from array import array
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from streaming.broker.disk.opening import Calling
from streaming.kafka.formats import names
from streaming.kafka.formats.names import METADATA_TOPIC, DirState, PartitionDir, parse_partition_dir

log = logging.getLogger(__name__)

_BESIDE = frozenset({names.LEADER_EPOCH_CHECKPOINT, names.PARTITION_METADATA})
_AT_ROOT = frozenset(
    {names.META_PROPERTIES, names.BOOTSTRAP_SNAPSHOT, names.BROKER_LOCK, names.CLEAN_SHUTDOWN, *names.OFFSET_CHECKPOINTS},
)

MOST_DEEP = 50
"""So deep directories are looked into, each of which takes a descriptor meanwhile: Kafka makes none in those at the root."""

SEGMENT_FILES = np.dtype([(name, "<i8") for name in ("directory", "base_offset", "size", "taken", "modified_ms")])
"""Live segments: the number of the directory, the size by the file's length and on the disk, both in bytes."""

_BLOCK = 512
_REGULAR, _TYPE, _DIRECTORY = modes.S_IFREG, 0o170000, modes.S_IFDIR
_DIGITS = 20
_HIDDEN_SWAP = ".log.swap"

_LARGE = 2_000
"""From so many directories on a second process saves more than its start costs."""


def read_log_dir(path: Path, large: int = _LARGE) -> DirUsage:
    """Read all names and sizes below a log dir, as `read_usage` does.

    Raises:
        OSError: the log dir itself cannot be read.
    """
    if len(os.listdir(path)) < large:
        return read_usage(path)
    with _second_reader(path) as reader:
        mine = read_usage(path, half=0)
        answer, _ = reader.communicate()
    if reader.returncode:
        log.warning("a second process could not read its half of a log dir", extra={"path": str(path), "status": reader.returncode})
        return joined(mine, read_usage(path, half=1))
    return joined(mine, pickle.loads(answer))


class DiskFileKind(IntEnum):
    """The use of a file. Every file and directory below a log dir is of exactly one kind."""

    SEGMENT = 0  # a live .log, of whatever replica
    INDEX = 1  # .index, .timeindex, .txnindex of live segments
    SNAPSHOT = 2  # producer states
    CHECKPOINT = 3  # the other small files that Kafka keeps beside logs and at the root
    METADATA = 4  # the log of the cluster's metadata with its snapshots
    FUTURE = 5  # a copy of a replica that moves to this log dir
    DELETED = 6  # segments that are deleted and not unlinked yet
    DELETE = 7  # directories that are being deleted
    CLEANER = 8  # what compaction has not finished
    STRAY = 9  # directories that the cluster's metadata does not assign to the broker
    DIRECTORY = 10  # the directories themselves
    OTHER = 11  # nothing that Kafka makes, or nothing that is known here

    @property
    def word(self) -> str:
        """Its name for people and programs."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Leftover:
    """Files that should go by themselves, or that Kafka does not use: bytes on the disk, and when the newest of them last changed."""

    path: str
    kind: DiskFileKind
    taken: int
    changed_ms: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DirUsage:
    """A log dir. Sizes in bytes.

    ``names`` are its directories, as parsed; the first is the root, None as every directory that is no replica's. ``apparent`` (the lengths
    of the files) and ``taken`` (on the disk) have a row for each of them, and a column for each `DiskFileKind`. ``segments`` are
    `SEGMENT_FILES` of live replicas, by directory and offset. ``unread``: what could not be read, by path with the reason; it is not in
    the sizes. ``links``: symbolic links. ``free`` and ``capacity``: of its file system, ``device`` the number of that. ``counted``: where
    each file that has several names was counted, by device and inode.
    """

    path: Path
    device: int
    free: int
    capacity: int
    names: tuple[PartitionDir | None, ...]
    apparent: NDArray[np.int64]
    taken: NDArray[np.int64]
    segments: NDArray[np.void]
    leftovers: tuple[Leftover, ...]
    unread: Mapping[str, str]
    links: tuple[str, ...]
    counted: Mapping[tuple[int, int], CountedFile]


@dataclass(frozen=True, slots=True)
class CountedFile:
    """Where a file was counted, and with how many bytes."""

    row: int
    kind: DiskFileKind
    apparent: int
    taken: int


def read_usage(path: Path, half: int | None = None) -> DirUsage:
    """Read all names and sizes below a log dir. What vanishes meanwhile is left out.

    The uses of the files below a log dir, by the names of their directories and their own.

    Args:
        half: 0 or 1 for one half of what lies in it, to be `joined` with the other half.

    Raises:
        OSError: the log dir itself cannot be read.
    """
    return _Walk(path, half).usage()


class _Walk:
    """One reading of a log dir, or of one half of it. Only one thread uses it."""

    def __init__(self, path: Path, half: int | None) -> None:
        self._path = path
        self._half = half
        self._apparent, self._taken = array("q"), array("q")
        self._segments = array("q")
        self._names: list[PartitionDir | None] = []
        self._leftovers: dict[tuple[str, DiskFileKind], Leftover] = {}
        self._unread: dict[str, str] = {}
        self._links: list[str] = []
        self._counted: dict[tuple[int, int], CountedFile] = {}
        self._row = 0

    def usage(self) -> DirUsage:
        root = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            system, stat = os.fstatvfs(root), os.fstat(root)
            self._begin(None)
            if not self._half:
                self._add(DiskFileKind.DIRECTORY, stat)
            with Calling(self._path), os.scandir(root) as entries:
                found = [entry for entry in entries if self._half in (None, crc32(os.fsencode(entry.name)) & 1)]
            for entry in found:
                self._at_root(root, entry)
        finally:
            os.close(root)
        segments = np.frombuffer(self._segments, SEGMENT_FILES).copy()
        segments["modified_ms"] //= 1_000_000
        return DirUsage(
            path=self._path,
            device=stat.st_dev,
            free=system.f_bavail * system.f_frsize,
            capacity=system.f_blocks * system.f_frsize,
            names=tuple(self._names),
            apparent=np.array(self._apparent, np.int64).reshape(-1, len(DiskFileKind)),
            taken=np.array(self._taken, np.int64).reshape(-1, len(DiskFileKind)),
            segments=segments[np.lexsort((segments["base_offset"], segments["directory"]))],
            leftovers=tuple(self._leftovers.values()),
            unread=self._unread,
            links=tuple(self._links),
            counted=self._counted,
        )

    def _begin(self, name: PartitionDir | None) -> None:
        self._names.append(name)
        self._row = len(self._apparent)
        self._apparent.extend(_NO_BYTES)
        self._taken.extend(_NO_BYTES)

    def _add(self, kind: DiskFileKind, stat: os.stat_result, path: str = "") -> None:
        """Count a file, or a directory without its content."""
        taken = stat.st_blocks * _BLOCK
        if stat.st_nlink > 1 and not modes.S_ISDIR(stat.st_mode):
            if (stat.st_dev, stat.st_ino) in self._counted:
                return
            self._counted[stat.st_dev, stat.st_ino] = CountedFile(self._row // len(DiskFileKind), kind, stat.st_size, taken)
        self._apparent[self._row + kind] += stat.st_size
        self._taken[self._row + kind] += taken
        if path and kind in LEFTOVERS:
            self._leave(path, kind, taken, max(stat.st_mtime_ns, stat.st_ctime_ns) // 1_000_000)

    def _leave(self, path: str, kind: DiskFileKind, taken: int, changed_ms: int) -> None:
        leftover = self._leftovers.get((path, kind), Leftover(path, kind, 0, 0))
        self._leftovers[path, kind] = Leftover(path, kind, leftover.taken + taken, max(leftover.changed_ms, changed_ms))

    @contextlib.contextmanager
    def _tried(self, path: str) -> Iterator[None]:
        """Record a path that cannot be read. One that has vanished counts as not there."""
        try:
            with Calling(path):
                yield
        except FileNotFoundError:
            return
        except OSError as error:
            self._unread[path] = error.strerror or str(error)

    def _at_root(self, root: int, entry: os.DirEntry[str]) -> None:
        path = f"{self._path}/{entry.name}"
        with self._tried(path):
            stat = entry.stat(follow_symlinks=False)
            if (stat.st_mode & _TYPE) != _DIRECTORY:
                if entry.is_symlink():
                    self._links.append(path)
                row, self._row = self._row, 0
                self._add(_beside_segments(entry.name, _AT_ROOT), stat)
                self._row = row
                return
            name = parse_partition_dir(entry.name)
            within = kind_within(name)
            self._begin(name)
            self._add(DiskFileKind.DIRECTORY, stat)
            fd = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root)
            try:
                if within is None:
                    self._replica(fd, path)
                else:
                    if within in LEFTOVERS:
                        self._leave(path, within, 0, max(stat.st_mtime_ns, stat.st_ctime_ns) // 1_000_000)
                    self._all_of(fd, path, path, within)
            finally:
                os.close(fd)

    def _replica(self, fd: int, path: str) -> None:
        """The files of a live replica: the inner loop, of a million files."""
        directory, kinds, segments = len(self._names) - 1, _QUICKLY, self._segments.extend
        apparent, blocks = [0, 0, 0], [0, 0, 0]
        rest: list[tuple[os.DirEntry[str], os.stat_result]] = []
        with os.scandir(fd) as entries:
            for entry in entries:
                name = entry.name
                try:
                    stat = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # it has been deleted or renamed since
                    continue
                kind = kinds.get(name[_DIGITS:], -1)
                if kind < 0 or stat.st_nlink > 1 or stat.st_mode & _TYPE != _REGULAR:
                    rest.append((entry, stat))
                    continue
                if kind == 0:
                    if not name[:_DIGITS].isdecimal():
                        rest.append((entry, stat))
                        continue
                    segments((directory, int(name[:_DIGITS]), stat.st_size, stat.st_blocks * _BLOCK, stat.st_mtime_ns))
                apparent[kind] += stat.st_size
                blocks[kind] += stat.st_blocks
        for kind, (size, count) in enumerate(zip(apparent, blocks, strict=True)):
            self._apparent[self._row + kind] += size
            self._taken[self._row + kind] += count * _BLOCK
        for entry, stat in rest:
            self._unusual(fd, path, entry, stat)

    def _unusual(self, fd: int, path: str, entry: os.DirEntry[str], stat: os.stat_result) -> None:
        """A file of a replica that is no live file of a segment, or that has several names; or a directory, which Kafka makes none of."""
        name = entry.name
        if modes.S_ISDIR(stat.st_mode):
            self._add(DiskFileKind.DIRECTORY, stat)
            with self._tried(f"{path}/{name}"):
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
                try:
                    self._all_of(inner, f"{path}/{name}", path, DiskFileKind.OTHER)
                finally:
                    os.close(inner)
            return
        if modes.S_ISLNK(stat.st_mode):
            self._links.append(f"{path}/{name}")
            self._add(DiskFileKind.OTHER, stat)
            return
        kind = BY_ENDING.get(name[_DIGITS:]) if name[:_DIGITS].isdecimal() and name.isascii() else None
        if kind is DiskFileKind.CLEANER and name.endswith(_HIDDEN_SWAP) and not _is_there(fd, name.removesuffix(".swap")):
            kind = DiskFileKind.SEGMENT  # between the renames of a compaction a segment has no other name
        if kind is DiskFileKind.SEGMENT:
            self._segments.extend(
                (len(self._names) - 1, int(name[:_DIGITS]), stat.st_size, stat.st_blocks * _BLOCK, stat.st_mtime_ns),
            )
        self._add(_beside_segments(name, _BESIDE) if kind is None else kind, stat, path)

    def _all_of(self, fd: int, path: str, whose: str, kind: DiskFileKind, depth: int = 1) -> None:
        """Count all files below a directory for one use. A directory deeper than `MOST_DEEP` is named as not read."""
        if depth > MOST_DEEP:
            self._unread[path] = f"it lies in {MOST_DEEP} directories, and what is in it is not counted"
            return
        with os.scandir(fd) as entries:
            found = list(entries)
        for entry in found:
            inside = f"{path}/{entry.name}"
            with self._tried(inside):
                stat = entry.stat(follow_symlinks=False)
                if not modes.S_ISDIR(stat.st_mode):
                    if modes.S_ISLNK(stat.st_mode):
                        self._links.append(inside)
                    self._add(kind, stat, whose)
                    continue
                self._add(DiskFileKind.DIRECTORY, stat)
                inner = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
                try:
                    self._all_of(inner, inside, whose, kind, depth + 1)
                finally:
                    os.close(inner)


_NO_BYTES = (0,) * len(DiskFileKind)


LEFTOVERS = frozenset({DiskFileKind.FUTURE, DiskFileKind.DELETED, DiskFileKind.DELETE, DiskFileKind.CLEANER, DiskFileKind.STRAY})
"""The kinds of files that go by themselves after some time, if all is well; a stray never does."""


def _beside_segments(name: str, checkpoints: Container[str]) -> DiskFileKind:
    """The use of a file at the root of a log dir, or in a live replica and of no segment, by the names of the checkpoints there."""
    return DiskFileKind.CHECKPOINT if name in checkpoints or name.removesuffix(".tmp") in checkpoints else DiskFileKind.OTHER


def kind_within(directory: PartitionDir | None) -> DiskFileKind | None:
    """The use of everything in a directory at the root of a log dir; None if it depends on the file: the replica is live."""
    if directory is None:
        return DiskFileKind.OTHER
    if directory.topic == METADATA_TOPIC and directory.state is DirState.LIVE:
        return DiskFileKind.METADATA
    return OF_STATE.get(directory.state)


OF_STATE = {DirState.DELETE: DiskFileKind.DELETE, DirState.FUTURE: DiskFileKind.FUTURE, DirState.STRAY: DiskFileKind.STRAY}


_SEGMENT_FILES = {
    "log": DiskFileKind.SEGMENT,
    "index": DiskFileKind.INDEX,
    "timeindex": DiskFileKind.INDEX,
    "txnindex": DiskFileKind.INDEX,
    "snapshot": DiskFileKind.SNAPSHOT,
}


_STAGES = {"deleted": DiskFileKind.DELETED, "cleaned": DiskFileKind.CLEANER, "swap": DiskFileKind.CLEANER}


BY_ENDING = {f".{kind}": use for kind, use in _SEGMENT_FILES.items()} | {
    f".{kind}.{stage}": use for kind in _SEGMENT_FILES for stage, use in _STAGES.items()
}
"""The use of a file whose name begins with the 20 digits of a base offset, by the rest of the name."""


_QUICKLY = {ending: int(kind) for ending, kind in BY_ENDING.items() if kind <= DiskFileKind.SNAPSHOT}


def _is_there(fd: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return False
    return True


@contextmanager
def _second_reader(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    # -P: modules come from where this program is installed, never from the directory that it is started in
    command = [sys.executable, "-P", "-c", f"from {__name__} import write_half; write_half()", str(path)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as reader:
        try:
            yield reader
        finally:
            reader.kill()  # nothing happens if it has ended


def joined(first: DirUsage, second: DirUsage) -> DirUsage:
    """Join the halves 0 and 1 of a log dir."""
    apparent, taken = second.apparent.copy(), second.taken.copy()
    for file, once in second.counted.items():
        if file in first.counted:
            apparent[once.row, once.kind] -= once.apparent
            taken[once.row, once.kind] -= once.taken
    for whole, more in ((first.apparent, apparent), (first.taken, taken)):
        whole[0] += more[0]
    segments = second.segments.copy()
    segments["directory"] += len(first.names) - 1
    return replace(
        first,
        names=first.names + second.names[1:],
        apparent=np.concatenate([first.apparent, apparent[1:]]),
        taken=np.concatenate([first.taken, taken[1:]]),
        segments=np.concatenate([first.segments, segments]),
        leftovers=first.leftovers + second.leftovers,
        unread={**first.unread, **second.unread},
        links=first.links + second.links,
        counted={**second.counted, **first.counted},
    )


def write_half() -> None:
    """What the second process does: it writes its half of the log dir that its argument names.

    A large log dir is read with a second process: nearly all of the time is one call a file, and a thread would wait for the others.
    """
    sys.stdout.buffer.write(pickle.dumps(read_usage(Path(sys.argv[1]), half=1)))
