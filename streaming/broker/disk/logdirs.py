"""Lists the partition directories of a log dir, and reads the small text files at its root."""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from streaming.broker.disk.availability import LogDirs as LogDirs
from streaming.broker.disk.availability import open_log_dirs as open_log_dirs
from streaming.broker.disk.availability import refuse_inside as refuse_inside
from streaming.broker.disk.calls import Calling
from streaming.broker.disk.identity import LogDir as LogDir
from streaming.broker.disk.opening import CHECKPOINT_BYTES, read_small
from streaming.broker.disk.topic_ids import read_topic_id as read_topic_id
from streaming.errors import FormatError
from streaming.kafka.formats import names
from streaming.kafka.formats.checkpoint_files import CheckpointEntry, parse_offset_checkpoint
from streaming.kafka.formats.names import DirState

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition directory. ``topic_id`` is "" if there is no ``partition.metadata`` (before Kafka 2.8)."""

    log_dir: LogDir
    path: Path
    topic: str
    partition: int
    topic_id: str
    state: DirState


def list_partitions(log_dir: LogDir, topic_id_of: Callable[[Path], str | None] = read_topic_id) -> tuple[Partition, ...]:
    """List all partition directories of a log dir, whatever their state; everything else in it is ignored.

    Args:
        topic_id_of: returns a directory's topic id, as `read_topic_id` does.

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
            topic_id = topic_id_of(path) if name.state is DirState.LIVE else ""
            if topic_id is not None:
                found.append(Partition(log_dir, path, name.topic, name.partition, topic_id, name.state))
    return tuple(found)


def read_offset_checkpoint(log_dir: LogDir, name: str) -> tuple[CheckpointEntry, ...] | None:
    """Read an offset checkpoint at the root of a log dir.

    It has no entries if the broker has not written it yet. None if it cannot be read, is damaged or of a version that is not known.
    """
    path = log_dir.path / name
    for last_try in (False, True):
        try:
            return parse_offset_checkpoint(read_small(path, CHECKPOINT_BYTES))
        except FileNotFoundError:
            return ()
        except (FormatError, OSError) as error:  # replaced during the read: the second read gets one complete version
            if last_try:
                log.warning("checkpoint cannot be read: its offsets are not known", extra={"path": str(path), "error": str(error)})
    return None
