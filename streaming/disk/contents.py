"""What takes the space of a log dir besides the segments of its partitions, and how much is left."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from streaming.disk.calls import Calling
from streaming.disk.logdirs import LogDir
from streaming.kafka.names import METADATA_TOPIC, DirState, parse_partition_dir

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"

_METADATA_DIR = f"{METADATA_TOPIC}-0"


@dataclass(frozen=True, slots=True, kw_only=True)
class DirContents:
    """A log dir. Sizes in bytes, ``free`` and ``capacity`` of its file system; ``checkpoint_ms`` is when a broker last wrote its high
    watermarks, Unix milliseconds, -1 where it never did: every 5 s while it runs and a replica is there
    (`ReplicaManager.checkpointHighWatermarks`).

    The others are what lies there besides segments of partitions: directories being deleted, strays, copies of replicas that move here,
    and the metadata log with the files at the root. What lies beside the segments inside a partition's directory is told by its inventory.
    ``live``: topic and number of every directory of a live partition. ``unlisted``: what could not be looked at, by path with the reason;
    it is not among the sizes.
    """

    log_dir: LogDir
    free: int
    capacity: int
    checkpoint_ms: int
    delete: int
    stray: int
    future: int
    metadata: int
    live: tuple[tuple[str, int], ...]
    unlisted: Mapping[str, str]


def look_into(log_dir: LogDir) -> DirContents:
    """Look into a log dir, not into the directories of live partitions.

    Raises:
        OSError: it cannot be read at this moment.
    """
    with Calling(log_dir.path):
        return _look_into(log_dir)


def _look_into(log_dir: LogDir) -> DirContents:
    taken = dict.fromkeys(DirState, 0)
    metadata = 0
    live: list[tuple[str, int]] = []
    unlisted: dict[str, str] = {}
    with os.scandir(log_dir.path) as entries:
        for entry in entries:
            name = parse_partition_dir(entry.name)
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
        checkpoint_ms=_modified_ms(log_dir.path / HIGH_WATERMARK_CHECKPOINT),
        delete=taken[DirState.DELETE],
        stray=taken[DirState.STRAY],
        future=taken[DirState.FUTURE],
        metadata=metadata,
        live=tuple(live),
        unlisted=unlisted,
    )


def was_shut_down_cleanly(log_dir: LogDir) -> bool:
    """Whether the broker's last end was an orderly one: it writes a file then, which its next start removes (`LogManager.shutdown`)."""
    path = log_dir.path / CLEAN_SHUTDOWN
    try:
        with Calling(path):
            return path.exists()
    except OSError:  # the log dir as a whole is looked into beside this, and what fails there is told
        return False


def bytes_taken(stat: os.stat_result) -> int:
    """What a file takes on disk at most: an index that is preallocated has holes."""
    return min(stat.st_size, stat.st_blocks * 512)


def _files(entry: os.DirEntry[str], unlisted: dict[str, str]) -> Iterator[int]:
    """The bytes of a file, or of the files of a directory; of what has vanished since it was listed there are none.

    One directory that may not be listed says nothing of the log dir as a whole.
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
