"""The uses of the files below a log dir, by the names of their directories and their own."""

from enum import IntEnum

from streaming.kafka.formats import names
from streaming.kafka.formats.names import METADATA_TOPIC, DirState, PartitionDir


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


LEFTOVERS = frozenset({DiskFileKind.FUTURE, DiskFileKind.DELETED, DiskFileKind.DELETE, DiskFileKind.CLEANER, DiskFileKind.STRAY})
"""The kinds of files that go by themselves after some time, if all is well; a stray never does."""

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

_BESIDE = frozenset({names.LEADER_EPOCH_CHECKPOINT, names.PARTITION_METADATA})
_AT_ROOT = frozenset(
    {names.META_PROPERTIES, names.BOOTSTRAP_SNAPSHOT, names.BROKER_LOCK, names.CLEAN_SHUTDOWN, *names.OFFSET_CHECKPOINTS},
)


def kind_beside(name: str) -> DiskFileKind:
    """The use of a file in the directory of a live replica that belongs to no segment."""
    return DiskFileKind.CHECKPOINT if name in _BESIDE or name.removesuffix(".tmp") in _BESIDE else DiskFileKind.OTHER


def kind_at_root(name: str) -> DiskFileKind:
    """The use of a file at the root of a log dir."""
    return DiskFileKind.CHECKPOINT if name in _AT_ROOT or name.removesuffix(".tmp") in _AT_ROOT else DiskFileKind.OTHER


def kind_within(directory: PartitionDir | None) -> DiskFileKind | None:
    """The use of everything in a directory at the root of a log dir; None if it depends on the file: the replica is live."""
    if directory is None:
        return DiskFileKind.OTHER
    if directory.topic == METADATA_TOPIC and directory.state is DirState.LIVE:
        return DiskFileKind.METADATA
    return OF_STATE.get(directory.state)
