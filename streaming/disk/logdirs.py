"""Log dirs: whose they are, what lies directly in them, and the small text files at their root."""

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from streaming.disk.calls import Calling
from streaming.errors import FormatError, LogDirError
from streaming.kafka import names
from streaming.kafka.checkpoints import CheckpointEntry, parse_offset_checkpoint, parse_partition_metadata
from streaming.kafka.names import DirState
from streaming.kafka.properties import parse_meta_properties

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LogDir:
    """One of a broker's ``log.dirs``; ``path`` is as the user gave it, made absolute."""

    path: Path
    broker: int
    cluster_id: str
    directory_id: str | None


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition directory. ``topic_id`` is "" where there is no ``partition.metadata`` (before Kafka 2.8)."""

    log_dir: LogDir
    path: Path
    topic: str
    partition: int
    topic_id: str
    state: DirState


def open_log_dirs(paths: Iterable[Path]) -> tuple[LogDir, ...]:
    """Look at log dirs for the first time; all must be of one cluster.

    Raises:
        LogDirError: one does not exist, cannot be read or is not a log dir, is given twice, or two clusters are among them.
    """
    dirs: list[LogDir] = []
    for path in paths:
        found = _open(path.absolute())
        for other in dirs:
            if found.path.samefile(other.path):
                raise LogDirError(f"log dir {found.path} is given twice (also as {other.path}): name each one once")
            if found.cluster_id != other.cluster_id:
                raise LogDirError(
                    f"log dirs of two clusters: {other.path} belongs to {other.cluster_id}, {found.path} to {found.cluster_id}: "
                    "run one job per cluster"
                )
        dirs.append(found)
    if not dirs:
        raise LogDirError("no log dir is given: name the broker's log.dirs with --log-dirs A,B")
    return tuple(dirs)


def _open(path: Path) -> LogDir:
    meta = path / names.META_PROPERTIES
    try:
        if not path.is_dir():
            raise LogDirError(f"log dir {path} {'is not a directory' if path.exists() else 'does not exist'}: name a broker's log.dirs")
        os.listdir(path)
        with Calling(meta):
            identity = parse_meta_properties(meta.read_bytes())
    except FileNotFoundError as error:
        raise LogDirError(f"{path} is not a Kafka log dir: it has no {names.META_PROPERTIES}; name a broker's log.dirs") from error
    except PermissionError as error:
        raise LogDirError(f"{error.filename} cannot be read: run as the broker's user, or as one of its group with read access") from error
    except OSError as error:
        raise LogDirError(f"log dir {path} cannot be read: {error}") from error
    except FormatError as error:
        raise LogDirError(f"{meta} is not valid: {error}") from error
    return LogDir(path, identity.node_id, identity.cluster_id, identity.directory_id)


def refuse_inside(path: Path, log_dirs: Iterable[LogDir], option: str) -> None:
    """Keep our own files out of Kafka's: a broker refuses to load a log dir that holds a directory it does not know.

    Raises:
        LogDirError: ``path``, given by ``option``, lies in a log dir, whichever way it is spelt.
    """
    resolved = path.resolve()
    for log_dir in log_dirs:
        if resolved.is_relative_to(log_dir.path.resolve()):
            raise LogDirError(f"{option} {path} lies in the log dir {log_dir.path}, where nothing but Kafka may write: name another place")


def list_partitions(log_dir: LogDir) -> tuple[Partition, ...]:
    """All partition directories of a log dir, whatever their state; everything else in it is passed over.

    Raises:
        OSError: the log dir cannot be read at this moment.
    """
    found = []
    with Calling(log_dir.path), os.scandir(log_dir.path) as entries:
        for entry in entries:
            name = names.parse_partition_dir(entry.name)
            if name is None or not entry.is_dir():
                continue
            path = Path(entry.path)
            topic_id = read_topic_id(path) if name.state is DirState.LIVE else ""
            if topic_id is not None:
                found.append(Partition(log_dir, path, name.topic, name.partition, topic_id, name.state))
    return tuple(found)


def read_topic_id(directory: Path) -> str | None:
    """The topic id of a partition directory, "" where there is none, or None where the directory is not fit to be read now."""
    path = directory / names.PARTITION_METADATA
    try:
        with Calling(path):
            return parse_partition_metadata(path.read_bytes())
    except FileNotFoundError:
        # without it a directory is either older than topic ids, or half made: a broker writes it before the first data
        return ""
    except (FormatError, OSError) as error:
        log.warning(
            "partition.metadata cannot be read: the directory is left as it is", extra={"path": str(directory), "error": str(error)}
        )
    return None


def read_offset_checkpoint(log_dir: LogDir, name: str) -> tuple[CheckpointEntry, ...]:
    """An offset checkpoint at the root of a log dir; no entries where the broker has not written it yet, or where it cannot be read."""
    path = log_dir.path / name
    for last_try in (False, True):
        try:
            with Calling(path):
                return parse_offset_checkpoint(path.read_bytes())
        except FileNotFoundError:
            return ()
        except (FormatError, OSError) as error:  # replaced while we read it: the second look sees one version whole
            if last_try:
                log.warning("checkpoint cannot be read", extra={"path": str(path), "error": str(error)})
    return ()
