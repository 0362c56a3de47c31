"""Reads files of properties: the identity of a log dir (``meta.properties``), and each ``server.properties`` that an option names."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from streaming.broker.disk.calls import Calling
from streaming.broker.disk.opening import NAMES_BYTES, PROPERTIES_BYTES, read_small
from streaming.broker.disk.shortage import is_short
from streaming.common.formatting import format_word
from streaming.errors import DescriptorsError, FormatError, LogDirError, UsageError
from streaming.kafka.formats import names
from streaming.kafka.formats.properties import ServerProperties, parse_meta_properties, parse_server_properties

UNKNOWN_BROKER = -1
"""The broker of a log dir that was never readable, if the other log dirs do not determine it."""

_NAMED = 20


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


def read_identity(path: Path) -> LogDir:
    """Read the identity of a log dir. Without ``meta.properties`` it is no log dir: it may be a mount point with nothing mounted.

    Raises:
        LogDirError: it does not exist, cannot be read or is not a log dir.
    """
    meta = path / names.META_PROPERTIES
    try:
        with Calling(meta):
            if not path.is_dir():
                raise LogDirError(f"log dir {path} {'is not a directory' if path.exists() else 'does not exist'}: name a broker's log.dirs")
            with os.scandir(path) as entries:
                next(entries, None)
            identity = parse_meta_properties(read_small(meta, NAMES_BYTES))
    except FileNotFoundError as error:
        raise LogDirError(f"{path} is not a Kafka log dir: it has no {names.META_PROPERTIES}; {_instead(path)}") from error
    except PermissionError as error:
        raise LogDirError(f"{error.filename} cannot be read: run as the broker's user, or as one of its group with read access") from error
    except OSError as error:
        kind = DescriptorsError if is_short(error) else LogDirError
        raise kind(f"log dir {path} cannot be read: {error}") from error
    except FormatError as error:
        raise LogDirError(f"{meta} is not valid: {error}") from error
    return LogDir(path, identity.node_id, identity.cluster_id, identity.directory_id, identity.zookeeper)


def _instead(path: Path) -> str:
    """A hint for a directory that is no log dir: the log dirs in it, if there are any."""
    try:
        with Calling(path), os.scandir(path) as entries:
            inside = sorted(entry.path for entry in entries if (Path(entry.path) / names.META_PROPERTIES).is_file())
    except OSError:
        inside = []
    if not inside:
        return "name a broker's log.dirs, mounted where they are mounts"
    return f"name the log {'dir' if len(inside) == 1 else 'dirs'} in it: {','.join(map(format_word, inside[:_NAMED]))}"


def read_server_properties(paths: Iterable[Path]) -> tuple[ServerProperties, ...]:
    """Read the files of several brokers.

    Raises:
        UsageError: one cannot be read or does not contain the node id, or two belong to one broker.
    """
    found: dict[int, Path] = {}
    read = []
    for path in paths:
        try:
            properties = parse_server_properties(read_small(path, PROPERTIES_BYTES))
        except OSError as error:
            raise UsageError(f"server.properties {path} cannot be read: {error.strerror}") from error
        except FormatError as error:
            raise UsageError(f"{path} is no server.properties: {error}") from error
        other = found.setdefault(properties.node_id, path)
        if other != path:
            raise UsageError(f"{path} and {other} are both of node {properties.node_id}: name one for each broker")
        read.append(properties)
    return tuple(read)
