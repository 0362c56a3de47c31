"""Finds Kafka's files at a path that a user gives: one file, a partition directory, or a whole log dir."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from streaming.broker.disk.opening import CHECKPOINT_BYTES, EPOCHS_BYTES, INDEX_BYTES, NAMES_BYTES, PRODUCERS_BYTES, read_small
from streaming.errors import UsageError
from streaming.kafka.formats import names
from streaming.kafka.formats.names import FileKind, FileStage, PartitionDir


def find_files(path: Path) -> tuple[KafkaFile, ...]:
    """Find all of Kafka's files at a path: directories in the order of their names, files in the order of offsets.

    For a directory, these are the live files of the partition or, for a log dir, those of every partition directory and of its root.

    Raises:
        UsageError: there is nothing at the path, or nothing of Kafka's; the message contains what was expected.
        OSError: it cannot be read.
    """
    if not path.is_dir():
        return (_one(path),)
    found = _partition_files(path)
    directories = sorted(entry.path for entry in os.scandir(path) if entry.is_dir() and names.parse_partition_dir(entry.name) is not None)
    for directory in directories:
        found += _partition_files(Path(directory))
    if not found and names.parse_partition_dir(path.resolve().name) is None:
        raise UsageError(
            f"{path}: neither a partition directory nor a log dir: expected files such as {0:020}.log, "
            f"directories such as topic-0, or {names.META_PROPERTIES}"
        )
    return tuple(found)


class FileType(StrEnum):
    """The content of a file, by its name."""

    SEGMENT = "segment"
    OFFSET_INDEX = "index"
    TIME_INDEX = "timeindex"
    TRANSACTION_INDEX = "txnindex"
    PRODUCER_SNAPSHOT = "snapshot"
    METADATA_SNAPSHOT = "checkpoint"
    LEADER_EPOCHS = "leader-epoch-checkpoint"
    OFFSET_CHECKPOINT = "offset-checkpoint"
    PARTITION_METADATA = "partition.metadata"
    META_PROPERTIES = "meta.properties"
    QUORUM_STATE = "quorum-state"
    BROKER_LOCK = "lock"
    CLEAN_SHUTDOWN = "clean-shutdown"


@dataclass(frozen=True, slots=True)
class KafkaFile:
    """One file. ``partition`` is None if its directory is not a partition's; ``base_offset`` is 0 if its name has none.

    ``active``: no live segment of its directory has a larger base offset, so a broker may be writing here.
    """

    path: Path
    type: FileType
    partition: PartitionDir | None
    base_offset: int
    live: bool
    active: bool

    @property
    def topic(self) -> str:
        """The name of its topic, "" if there is none."""
        return "" if self.partition is None else self.partition.topic

    def beside(self, kind: FileKind) -> Path:
        """The path of another file of the same segment, in the same stage."""
        stage = self.path.name.partition(".")[2].partition(".")[2]
        return self.path.with_name(names.segment_file_name(self.base_offset, kind) + (f".{stage}" if stage else ""))


def _one(path: Path) -> KafkaFile:
    if not path.exists():
        raise UsageError(f"{path}: no such file or directory")
    if not path.is_file():  # reading a pipe would block, and it cannot be read at a position
        raise UsageError(f"{path}: expected a file, found a pipe, a socket or a device")
    last = max((base for base in map(_live_segment, os.listdir(path.absolute().parent)) if base is not None), default=0)
    found = _file(path, last)
    if found is None:
        raise UsageError(
            f"{path}: not a name that Kafka gives to a file: expected such as {0:020}.log, {0:020}.index, {names.LEADER_EPOCH_CHECKPOINT}"
        )
    return found


def _live_segment(name: str) -> int | None:
    parsed = names.parse_segment_file(name)
    return parsed.base_offset if parsed is not None and parsed.kind is FileKind.LOG and parsed.stage is FileStage.LIVE else None


def _file(path: Path, last_base_offset: int) -> KafkaFile | None:
    partition = names.parse_partition_dir(path.absolute().parent.name)
    segment = names.parse_segment_file(path.name)
    if segment is not None:
        live = segment.stage is FileStage.LIVE
        active = live and segment.base_offset >= last_base_offset
        return KafkaFile(path, _BY_KIND[segment.kind], partition, segment.base_offset, live, active)
    if names.parse_metadata_snapshot(path.name) is not None:
        return KafkaFile(path, FileType.METADATA_SNAPSHOT, partition, 0, live=True, active=False)
    by_name = _BY_NAME.get(path.name.removesuffix(names.TEMPORARY))
    live = not path.name.endswith(names.TEMPORARY) and by_name is not FileType.BROKER_LOCK  # which only its owner may read
    return None if by_name is None else KafkaFile(path, by_name, partition, 0, live, active=False)


_BY_KIND = {
    FileKind.LOG: FileType.SEGMENT,
    FileKind.INDEX: FileType.OFFSET_INDEX,
    FileKind.TIMEINDEX: FileType.TIME_INDEX,
    FileKind.TXNINDEX: FileType.TRANSACTION_INDEX,
    FileKind.SNAPSHOT: FileType.PRODUCER_SNAPSHOT,
}


_BY_NAME = {
    names.LEADER_EPOCH_CHECKPOINT: FileType.LEADER_EPOCHS,
    names.PARTITION_METADATA: FileType.PARTITION_METADATA,
    names.META_PROPERTIES: FileType.META_PROPERTIES,
    names.QUORUM_STATE: FileType.QUORUM_STATE,
    names.BROKER_LOCK: FileType.BROKER_LOCK,
    names.CLEAN_SHUTDOWN: FileType.CLEAN_SHUTDOWN,
    names.BOOTSTRAP_SNAPSHOT: FileType.METADATA_SNAPSHOT,
    **dict.fromkeys(names.OFFSET_CHECKPOINTS, FileType.OFFSET_CHECKPOINT),
}


def _partition_files(directory: Path) -> list[KafkaFile]:
    listed = sorted(os.listdir(directory))
    last = max((base for base in map(_live_segment, listed) if base is not None), default=0)
    found = (_file(directory / name, last) for name in listed)
    return [file for file in found if file is not None and file.live]


BATCHES = (FileType.SEGMENT, FileType.METADATA_SNAPSHOT)
"""The files that consist of batches."""


def read_file(file: KafkaFile, kind: FileKind | None = None) -> bytes:
    """Read a small file or an index, or that of a kind beside a file.

    Raises:
        OSError: it cannot be read.
        TooLargeError: it is larger than any of its type.
    """
    if kind is not None:
        return read_small(file.beside(kind), INDEX_BYTES)
    return read_small(file.path, _MOST_BYTES[file.type])


_MOST_BYTES = {
    FileType.OFFSET_INDEX: INDEX_BYTES,
    FileType.TIME_INDEX: INDEX_BYTES,
    FileType.TRANSACTION_INDEX: INDEX_BYTES,
    FileType.PRODUCER_SNAPSHOT: PRODUCERS_BYTES,
    FileType.LEADER_EPOCHS: EPOCHS_BYTES,
    FileType.OFFSET_CHECKPOINT: CHECKPOINT_BYTES,
    FileType.PARTITION_METADATA: NAMES_BYTES,
    FileType.META_PROPERTIES: NAMES_BYTES,
    FileType.QUORUM_STATE: NAMES_BYTES,
    FileType.BROKER_LOCK: NAMES_BYTES,
    FileType.CLEAN_SHUTDOWN: NAMES_BYTES,
}
