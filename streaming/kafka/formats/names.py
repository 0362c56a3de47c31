"""The names of directories and files below a log dir, and the partition of a coordinator's topic that an id belongs to.

Rules: `LocalLog.parseTopicPartitionName`, `LogFileUtils`, `Topic.validate`, `Snapshots.parse`.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from enum import StrEnum

METADATA_TOPIC = "__cluster_metadata"
"""Topic of the KRaft metadata log; its only partition is 0."""

TRANSACTION_TOPIC = "__transaction_state"
"""The topic of the transaction coordinators' entries (`Topic.TRANSACTION_STATE_TOPIC_NAME`)."""

OFFSETS_TOPIC = "__consumer_offsets"

SHARE_STATE_TOPIC = "__share_group_state"
"""The topic of the share coordinators' entries (`Topic.SHARE_GROUP_STATE_TOPIC_NAME`)."""

INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTION_TOPIC, SHARE_STATE_TOPIC})
"""Topics that the broker itself writes as a coordinator (`Topic.INTERNAL_TOPICS`)."""

META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
BOOTSTRAP_SNAPSHOT = "bootstrap.checkpoint"
QUORUM_STATE = "quorum-state"
BROKER_LOCK = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

TEMPORARY = ".tmp"
"""The end of the name of a file that is written to take another's place (`CheckpointFile.write`); a crash leaves it."""

OFFSET_CHECKPOINTS = (HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT, CLEANER_CHECKPOINT)
"""The files in a log dir with an offset for each of its partitions."""

_MAX_PARTITION = 2**31 - 1
_MAX_OFFSET = 2**63 - 1

# Kafka itself accepts anything without spaces between the dot and the suffix, and writes 32 digits there. Here it has to print, too.
_MARKED = re.compile(r"(?P<name>\S+-\S+)\.[!-~]+-(?P<state>delete|future|stray)", re.ASCII)
_SUFFIXES = ("-delete", "-future", "-stray")
_TOPIC_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]{0,9})", re.ASCII)
_SEGMENT_FILE = re.compile(
    r"(?P<base>[0-9]{20})\.(?P<kind>log|index|timeindex|txnindex|snapshot)(?:\.(?P<stage>deleted|cleaned|swap))?", re.ASCII
)
_METADATA_SNAPSHOT = re.compile(r"(?P<end>[0-9]{20})-(?P<epoch>[0-9]{10})\.checkpoint", re.ASCII)

_UNIT = struct.Struct(">H")


def coordinator_partition(identity: str, partitions: int) -> int:
    """The partition of `__transaction_state` for a transactional id, or of `__consumer_offsets` for a group.

    Args:
        partitions: how many the topic has (50 unless the cluster was configured otherwise before the topic was created).
    """
    number = _java_hash(identity)
    return 0 if number == -(1 << 31) else abs(number) % partitions  # Utils.abs


def _java_hash(text: str) -> int:
    """`String.hashCode`: over UTF-16 units, in 32 bits, signed."""
    code = 0
    for (unit,) in _UNIT.iter_unpack(text.encode("utf-16-be")):
        code = (31 * code + unit) & 0xFFFFFFFF
    return code - (1 << 32) if code >> 31 else code


def parse_partition_dir(name: str) -> PartitionDir | None:
    """Parse the name of a partition directory; None if the name is not a partition's.

    A name ends with `-delete`, `-future` or `-stray` only if Kafka renamed the directory: a live one ends with the number.
    """
    state = DirState.LIVE
    if name.endswith(_SUFFIXES):
        marked = _MARKED.fullmatch(name)
        if marked is None:
            return None
        name, state = name[: name.rindex(".")], DirState(marked["state"])
    match = _TOPIC_PARTITION.fullmatch(name)
    if match is None or match["topic"] in (".", ".."):
        return None
    partition = int(match["partition"])
    return PartitionDir(match["topic"], partition, state) if partition <= _MAX_PARTITION else None


class DirState(StrEnum):
    """The state of the replica in a partition directory, by the directory's suffix."""

    LIVE = "live"
    DELETE = "delete"  # being deleted; the topic part of the name may be cut off
    FUTURE = "future"  # a second copy of a replica that moves to this log dir
    STRAY = "stray"  # not assigned to this broker by the metadata; the topic part may be cut off


@dataclass(frozen=True, slots=True)
class PartitionDir:
    """A partition directory, parsed from its name."""

    topic: str
    partition: int
    state: DirState


def parse_segment_file(name: str) -> SegmentFile | None:
    """Parse the name of a segment file inside a partition directory; None for every other file."""
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None or int(match["base"]) > _MAX_OFFSET:
        return None
    return SegmentFile(int(match["base"]), FileKind(match["kind"]), FileStage(match["stage"] or "live"))


class FileKind(StrEnum):
    """The content of a file that belongs to one segment."""

    LOG = "log"
    INDEX = "index"
    TIMEINDEX = "timeindex"
    TXNINDEX = "txnindex"
    SNAPSHOT = "snapshot"  # producer state before base_offset


class FileStage(StrEnum):
    """The stage of a segment's file."""

    LIVE = "live"
    DELETED = "deleted"  # renamed, unlinked a minute later
    CLEANED = "cleaned"  # output of compaction, not complete yet
    SWAP = "swap"  # complete, about to replace the live file


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A file of one segment, parsed from its name."""

    base_offset: int
    kind: FileKind
    stage: FileStage


def parse_metadata_snapshot(name: str) -> MetadataSnapshot | None:
    """Parse the name of a finished metadata snapshot; None otherwise (also for one that is being written or deleted)."""
    match = _METADATA_SNAPSHOT.fullmatch(name)
    if match is None or int(match["end"]) > _MAX_OFFSET:
        return None
    return MetadataSnapshot(int(match["end"]), int(match["epoch"]))


@dataclass(frozen=True, slots=True, order=True)
class MetadataSnapshot:
    """A finished snapshot of the metadata log: it covers the offsets below `end_offset`. Orders by age."""

    end_offset: int
    epoch: int

    @property
    def covers_nothing(self) -> bool:
        """Whether it is of before the log: what a node is formatted with (KIP-1170, KIP-853). The first leader appends its records."""
        return self.end_offset == 0

    @property
    def name(self) -> str:
        """Its file name."""
        return f"{self.end_offset:020}-{self.epoch:010}.checkpoint"


def segment_file_name(base_offset: int, kind: FileKind) -> str:
    """Name of a live file of the segment that begins at `base_offset`."""
    return f"{base_offset:020}.{kind}"
