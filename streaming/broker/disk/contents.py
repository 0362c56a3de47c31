"""The sizes of everything in a log dir besides the segments of its partitions, and the free space."""

from __future__ import annotations

import os
import stat
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from streaming.broker.disk.logdirs import LogDir
from streaming.broker.disk.opening import Calling, written_ms
from streaming.kafka.formats.names import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARK_CHECKPOINT,
    METADATA_TOPIC,
    DirState,
    PartitionDir,
    parse_partition_dir,
)

_METADATA_DIR = f"{METADATA_TOPIC}-0"


class ContentsReader:
    """Reads a log dir, again and again: the names that were there the last time are not parsed again. Only one thread uses it."""

    def __init__(self, log_dir: Path) -> None:
        self._path = log_dir
        self._live: dict[str, tuple[str, int]] = {}  # by the name of its directory
        self._listed: tuple[tuple[str, int], ...] = ()

    def read(self, log_dir: LogDir) -> DirContents:
        """What is in it now, without the directories of live partitions.

        Args:
            log_dir: as it was identified last.

        Raises:
            OSError: it cannot be read at this moment.
        """
        with Calling(self._path):
            return self._read(log_dir)

    def _read(self, log_dir: LogDir) -> DirContents:
        others = self._list()
        taken, unlisted = Counter[DirState](), dict[str, str]()
        metadata, strays = 0, list[str]()
        for name in others:
            parsed = parse_partition_dir(name)
            size = sum(_files(f"{self._path}/{name}", unlisted, inside=parsed is not None))
            if parsed is None or name == _METADATA_DIR:
                metadata += size
            else:
                taken[parsed.state] += size
                strays += [name] if parsed.state is DirState.STRAY else []
        system = os.statvfs(self._path)
        return DirContents(
            log_dir=log_dir,
            free=system.f_bavail * system.f_frsize,
            capacity=system.f_blocks * system.f_frsize,
            device=self._path.stat().st_dev,
            checkpoint_ms=written_ms(self._path / HIGH_WATERMARK_CHECKPOINT),
            delete=taken[DirState.DELETE],
            stray=taken[DirState.STRAY],
            future=taken[DirState.FUTURE],
            metadata=metadata,
            live=self._listed,
            strays=tuple(sorted(strays)),
            unlisted=unlisted,
            clean=CLEAN_SHUTDOWN in others,
        )

    def _list(self) -> list[str]:
        """List the log dir; returns the names of what is no directory of a live partition.

        Its time would not tell that nothing has come or gone: a broker replaces a checkpoint in it every five seconds.
        """
        names, known = os.listdir(self._path), self._live
        others = [name for name in names if name not in known]
        if len(names) - len(others) < len(known):
            known = {name: known[name] for name in names if name in known}
        come = {sys.intern(name): (sys.intern(parsed.topic), parsed.partition) for name in others if (parsed := _live(name)) is not None}
        if come or known is not self._live:
            self._live = known | come
            self._listed = tuple(self._live.values())
        return [name for name in others if name not in come]


@dataclass(frozen=True, slots=True, kw_only=True)
class DirContents:
    """A log dir. Sizes in bytes; ``free`` and ``capacity`` are those of its file system, ``device`` its number.

    ``checkpoint_ms`` is when a broker last wrote its high watermarks, Unix milliseconds, -1 if it never did. It does so every 5 s while it
    runs and has a replica there (`ReplicaManager.checkpointHighWatermarks`).

    The other sizes are those of everything besides segments of partitions: directories being deleted, strays, copies of replicas that move
    here, and the metadata log with the files at the root. The other files inside a partition's directory are in its inventory. ``live``:
    topic and number of every directory of a live partition but the metadata log's. ``strays``: the names of strays. ``unlisted``:
    directories and files that could not be read, by path with the reason; they are not in the sizes. ``clean``: the broker's last stop
    was an orderly one, and it has not started since.
    """

    log_dir: LogDir
    free: int
    capacity: int
    device: int
    checkpoint_ms: int
    delete: int
    stray: int
    future: int
    metadata: int
    live: tuple[tuple[str, int], ...]
    strays: tuple[str, ...]
    unlisted: Mapping[str, str]
    clean: bool


def _files(path: str, unlisted: dict[str, str], *, inside: bool) -> Iterator[int]:
    """The bytes of a file; if ``inside``, of the files of a directory. Files that vanished after they were listed have none.

    If one directory may not be listed, the log dir as a whole is still usable.
    """
    try:
        found = os.stat(path)  # noqa: PTH116  # called for each file of what is being deleted
        if stat.S_ISREG(found.st_mode):
            yield bytes_taken(found)
        elif stat.S_ISDIR(found.st_mode) and inside:
            for name in os.listdir(path):
                yield from _files(f"{path}/{name}", unlisted, inside=True)
    except FileNotFoundError:
        return
    except OSError as error:
        unlisted[path] = str(error)


def bytes_taken(status: os.stat_result) -> int:
    """The most bytes that a file takes on disk: a preallocated index has holes."""
    return min(status.st_size, status.st_blocks * 512)


def _live(name: str) -> PartitionDir | None:
    parsed = None if name == _METADATA_DIR else parse_partition_dir(name)
    return parsed if parsed is not None and parsed.state is DirState.LIVE else None
