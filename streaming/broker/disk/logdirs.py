"""Log dirs and the partition directories in them: their identities, topic ids and offset checkpoints."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from streaming.broker.disk.availability import LogDir as LogDir
from streaming.broker.disk.availability import LogDirs as LogDirs
from streaming.broker.disk.availability import open_log_dirs as open_log_dirs
from streaming.broker.disk.availability import refuse_inside as refuse_inside
from streaming.broker.disk.opening import CHECKPOINT_BYTES, NAMES_BYTES, Calling, read_small
from streaming.broker.disk.segment_files import FileIdentity, Stamp, stamp_of
from streaming.common.catalog import UNREADABLE
from streaming.errors import FormatError
from streaming.kafka.formats import names
from streaming.kafka.formats.checkpoint_files import changed_entries, parse_offset_checkpoint, parse_partition_metadata
from streaming.kafka.formats.names import DirState, parse_partition_dir

log = logging.getLogger(__name__)

_Stamp = tuple[int, int, int]

_AT_ONCE = 20
"""Directories for each record of a call, which takes a third as long as to ask one. All answer long before a call counts as hung."""


def read_topic_id(directory: Path) -> str | None:
    """Return the same as `TopicIds.read`, for a single call."""
    return TopicIds().read(directory)


def list_partitions(log_dir: LogDir, topic_id_of: Callable[[Path], str | None] = read_topic_id) -> tuple[Partition, ...]:
    """All partition directories of a log dir, as `partitions_by_name` returns them."""
    return tuple(partitions_by_name(log_dir, topic_id_of).values())


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition directory. ``topic_id`` is "" if there is no ``partition.metadata`` (before Kafka 2.8)."""

    log_dir: LogDir
    path: Path
    topic: str
    partition: int
    topic_id: str
    state: DirState


_NONE: Mapping[str, Partition] = MappingProxyType({})


def partitions_by_name(
    log_dir: LogDir, topic_id_of: Callable[[Path], str | None], before: Mapping[str, Partition] = _NONE
) -> dict[str, Partition]:
    """List all partition directories of a log dir, whatever their state; everything else in it is ignored.

    Args:
        topic_id_of: returns a directory's topic id, as `read_topic_id` does.
        before: the result of an earlier listing: its names are not parsed again, and what is as it was then is the same object.

    Raises:
        OSError: the log dir cannot be read at this moment.
    """
    found: dict[str, Partition] = {}
    with Calling(log_dir.path), os.scandir(log_dir.path) as entries:
        for entry in entries:
            known = before.get(entry.name)
            name = known or parse_partition_dir(entry.name)
            if name is None or not entry.is_dir():
                continue
            path = Path(entry.path) if known is None else known.path
            topic_id = topic_id_of(path) if name.state is DirState.LIVE else ""
            if topic_id is None:
                continue
            if known is None or known.topic_id != topic_id or (known.log_dir is not log_dir and known.log_dir != log_dir):
                known = Partition(log_dir, path, sys.intern(name.topic), name.partition, topic_id, name.state)
            found[sys.intern(entry.name)] = known  # the name is kept in several places
    return found


class TopicIds:
    """The topic ids that were read. Each is kept as long as its file is the same. Only one thread uses it.

    ``unreadable``: directories whose topic id cannot be read, and why.
    """

    def __init__(self) -> None:
        self.unreadable: dict[Path, str] = {}
        self._read: dict[Path, tuple[_Stamp, str]] = {}

    def read(self, directory: Path) -> str | None:
        """The topic id of a partition directory, "" if there is none, or None if it cannot be read now."""
        try:
            stamp, stored = _stamp(directory), self._read.get(directory)
            if stored is None or stored[0] != stamp:
                stored = self._read[directory] = stamp, sys.intern(_parse(directory))
            topic_id = stored[1]
        except FileNotFoundError:
            # without it, a directory is either older than topic ids, or half created: a broker writes it before the first data
            self._read.pop(directory, None)
            topic_id = ""
        except (FormatError, OSError) as error:
            self._read.pop(directory, None)
            self._refuse(directory, str(error))
            return None
        if self.unreadable.pop(directory, None) is not None:
            log.info("partition.metadata can be read again", extra={"path": str(directory)})
        return topic_id

    def keep(self, directories: Collection[Path], unavailable: Collection[Path] = ()) -> None:
        """Forget all other directories. Of the unreadable ones, forget those that no longer exist.

        Args:
            unavailable: log dirs into which no call may be made.
        """
        self.unreadable = {path: why for path, why in self.unreadable.items() if path.parent in unavailable or _is_there(path)}
        if len(self._read) > len(directories):
            self._read = {path: known for path, known in self._read.items() if path in directories}

    def _refuse(self, directory: Path, why: str) -> None:
        """Log once why a directory is left alone."""
        if self.unreadable.get(directory) != why:
            self.unreadable[directory] = why
            log.warning("partition.metadata cannot be read: the directory is left as it is", extra={"path": str(directory), "error": why})


def _stamp(directory: Path) -> _Stamp:
    path = f"{directory}/{names.PARTITION_METADATA}"
    with Calling(path):
        stat = os.stat(path)  # noqa: PTH116  # called for every directory at each listing
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def _parse(directory: Path) -> str:
    path = directory / names.PARTITION_METADATA
    return parse_partition_metadata(read_small(path, NAMES_BYTES))


def _is_there(directory: Path) -> bool:
    with Calling(directory):
        return os.path.lexists(directory)


def log_dir_stamp(path: Path, now_ms: int) -> tuple[FileIdentity, Stamp | None]:
    """The identity of the directory at the path of a log dir, and its stamp, None if that is not reliable yet. Raises OSError."""
    with Calling(path):
        stat = path.stat()
    return FileIdentity(stat.st_dev, stat.st_ino), stamp_of(stat, now_ms)


def written_times(log_dir: Path, names: Iterable[str]) -> dict[str, int]:
    """When something was last created, renamed or removed in these partition directories, Unix nanoseconds, by name.

    Those that are gone, or cannot be asked, are left out.
    """
    found, root, left = dict[str, int](), os.fspath(log_dir), iter(names)
    while some := list(islice(left, _AT_ONCE)):
        with Calling(log_dir):
            for name in some:
                try:
                    found[name] = os.stat(f"{root}/{name}").st_mtime_ns  # noqa: PTH116  # called for very many directories
                except OSError:
                    continue
    return found


def live_directories(log_dir: Path, before: dict[str, int]) -> dict[str, int]:
    """The inode of each live partition directory, by name.

    Args:
        before: the result of an earlier listing; its names are not parsed again.

    Raises:
        OSError: the log dir cannot be read at this moment.
    """
    with Calling(log_dir), os.scandir(log_dir) as entries:
        return {sys.intern(entry.name): entry.inode() for entry in entries if entry.name in before or _is_live(entry.name)}


def _is_live(name: str) -> bool:
    parsed = parse_partition_dir(name)
    return parsed is not None and parsed.state is DirState.LIVE


@dataclass(frozen=True, slots=True)
class OffsetCheckpoint:
    """``offsets`` by topic and partition, and the content of the file that has them; None if it cannot be read or is not understood."""

    offsets: Mapping[tuple[str, int], int] | None
    data: bytes | None = None

    @property
    def readable(self) -> bool:
        """Whether the file was understood, or is not written yet."""
        return self.offsets is not None

    def of(self, partition: Partition) -> int:
        """The offset of a partition, as `of_all` has it."""
        return self.of_all([partition])[0]

    def of_all(self, partitions: Iterable[Partition]) -> list[int]:
        """The offset of each partition, -1 if there is none, `UNREADABLE` if the file cannot be read or is not understood."""
        if self.offsets is None:
            return [UNREADABLE for _ in partitions]
        get = self.offsets.get
        return [get((each.topic, each.partition), -1) for each in partitions]

    def differing(self, before: OffsetCheckpoint) -> Collection[tuple[str, int]] | None:
        """Topic and partition of whatever has another offset than before, None for all there are."""
        if self is before:
            return ()
        if self.offsets is None or before.offsets is None:
            return None
        gone = before.offsets.keys() - self.offsets.keys()
        return gone | {key for key, offset in self.offsets.items() if before.offsets.get(key) != offset}


NOTHING_WRITTEN = OffsetCheckpoint(MappingProxyType({}), b"")
"""The checkpoint of a log dir whose broker has not written one yet."""


def load_offset_checkpoint(log_dir: LogDir, name: str, before: OffsetCheckpoint = NOTHING_WRITTEN) -> OffsetCheckpoint:
    """Read the checkpoint ``name`` at the root of a log dir, as it is now.

    It has no entries if the broker has not written it yet, and no offsets if it cannot be read, is damaged or of a version that is not
    known. An idle broker writes the same again and again: then it is ``before``, an earlier result.
    """
    path = log_dir.path / name
    for last_try in (False, True):
        try:
            data = read_small(path, CHECKPOINT_BYTES)
            return before if data == before.data else OffsetCheckpoint(_offsets(data, before), data)
        except FileNotFoundError:
            return NOTHING_WRITTEN
        except (FormatError, OSError) as error:  # replaced during the read: the second read gets one complete version
            if last_try:
                log.warning("checkpoint cannot be read: its offsets are not known", extra={"path": str(path), "error": str(error)})
    return OffsetCheckpoint(None)


def _offsets(data: bytes, before: OffsetCheckpoint) -> Mapping[tuple[str, int], int]:
    """Raises FormatError."""
    entries = None
    if before.offsets and before.data is not None and len(before.offsets) == before.data.count(b"\n") - 2:  # each has a line of its own
        with contextlib.suppress(FormatError):  # the whole of it shows in which line
            entries = changed_entries(data, before.data)
    known = {} if entries is None or before.offsets is None else before.offsets
    found = parse_offset_checkpoint(data) if entries is None else entries
    return {**known, **{(entry.topic, entry.partition): entry.offset for entry in found}}
