"""The topic ids of partition directories from ``partition.metadata``. Each file is read once, because it is written once."""

import logging
import os
import sys
from collections.abc import Collection
from pathlib import Path

from streaming.broker.disk.calls import Calling
from streaming.broker.disk.opening import NAMES_BYTES, read_small
from streaming.errors import FormatError
from streaming.kafka.formats import names
from streaming.kafka.formats.checkpoint_files import parse_partition_metadata

log = logging.getLogger(__name__)

_Stamp = tuple[int, int, int]


class TopicIds:
    """The topic ids that were read. Each is kept as long as its file is the same. For one thread.

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


def read_topic_id(directory: Path) -> str | None:
    """Return the same as `TopicIds.read`, for a single call."""
    return TopicIds().read(directory)


def _is_there(directory: Path) -> bool:
    with Calling(directory):
        return os.path.lexists(directory)


def _stamp(directory: Path) -> _Stamp:
    path = f"{directory}/{names.PARTITION_METADATA}"
    with Calling(path):
        stat = os.stat(path)  # noqa: PTH116  # called for every directory at each listing
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def _parse(directory: Path) -> str:
    path = directory / names.PARTITION_METADATA
    return parse_partition_metadata(read_small(path, NAMES_BYTES))
