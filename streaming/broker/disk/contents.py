"""The sizes of everything in a log dir besides the segments of its partitions, and the free space."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from streaming.broker.disk.calls import Calling
from streaming.broker.disk.logdirs import LogDir
from streaming.kafka.formats.names import CLEAN_SHUTDOWN, HIGH_WATERMARK_CHECKPOINT, METADATA_TOPIC, DirState, parse_partition_dir

_METADATA_DIR = f"{METADATA_TOPIC}-0"


@dataclass(frozen=True, slots=True, kw_only=True)
class DirContents:
    """A log dir. Sizes in bytes; ``free`` and ``capacity`` are those of its file system, ``device`` its number.

    ``checkpoint_ms`` is when a broker last wrote its high watermarks, Unix milliseconds, -1 if it never did. It does so every 5 s while it
    runs and has a replica there (`ReplicaManager.checkpointHighWatermarks`).

    The other sizes are those of everything besides segments of partitions: directories being deleted, strays, copies of replicas that move
    here, and the metadata log with the files at the root. The other files inside a partition's directory are in its inventory. ``live``:
    topic and number of every directory of a live partition. ``unlisted``: directories and files that could not be read, by path with the
    reason; they are not in the sizes. ``clean``: the broker's last stop was an orderly one, and it has not started since.
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
    unlisted: Mapping[str, str]
    clean: bool


def read_contents(log_dir: LogDir) -> DirContents:
    """Read a log dir, without the directories of live partitions.

    Raises:
        OSError: it cannot be read at this moment.
    """
    with Calling(log_dir.path):
        return _read_contents(log_dir)


def _read_contents(log_dir: LogDir) -> DirContents:
    taken = dict.fromkeys(DirState, 0)
    metadata = 0
    live: list[tuple[str, int]] = []
    unlisted: dict[str, str] = {}
    clean = False
    with os.scandir(log_dir.path) as entries:
        for entry in entries:
            name = parse_partition_dir(entry.name)
            clean |= entry.name == CLEAN_SHUTDOWN
            if name is None or entry.name == _METADATA_DIR:
                metadata += sum(_files(entry, unlisted)) if name is not None or entry.is_file() else 0
            elif name.state is DirState.LIVE:
                live.append((name.topic, name.partition))
            else:
                taken[name.state] += sum(_files(entry, unlisted))
    system = os.statvfs(log_dir.path)
    return DirContents(
        log_dir=log_dir,
        free=system.f_bavail * system.f_frsize,
        capacity=system.f_blocks * system.f_frsize,
        device=log_dir.path.stat().st_dev,
        checkpoint_ms=_modified_ms(log_dir.path / HIGH_WATERMARK_CHECKPOINT),
        delete=taken[DirState.DELETE],
        stray=taken[DirState.STRAY],
        future=taken[DirState.FUTURE],
        metadata=metadata,
        live=tuple(live),
        unlisted=unlisted,
        clean=clean,
    )


def was_shut_down_cleanly(log_dir: Path) -> bool:
    """Whether the broker's last stop was an orderly one: then it writes a file, which its next start removes (`LogManager.shutdown`)."""
    path = log_dir / CLEAN_SHUTDOWN
    try:
        with Calling(path):
            return path.exists()
    except OSError:  # the log dir as a whole is read elsewhere, and errors are reported there
        return False


def bytes_taken(stat: os.stat_result) -> int:
    """The most bytes that a file takes on disk: a preallocated index has holes."""
    return min(stat.st_size, stat.st_blocks * 512)


def _files(entry: os.DirEntry[str], unlisted: dict[str, str]) -> Iterator[int]:
    """The bytes of a file, or of the files of a directory. Files that vanished after they were listed have none.

    If one directory may not be listed, the log dir as a whole is still usable.
    """
    try:
        if entry.is_file():
            yield bytes_taken(entry.stat())
        elif entry.is_dir():
            with os.scandir(entry) as inner:
                for file in inner:
                    yield from _files(file, unlisted)
    except FileNotFoundError:
        return
    except OSError as error:
        unlisted[entry.path] = str(error)


def _modified_ms(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return -1
