"""Every replica in some log dirs, of one broker or several: which one speaks for its partition, and how far it is replicated."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streaming.disk.logdirs import LogDir, Partition, list_partitions, read_offset_checkpoint
from streaming.disk.metadata_log import MetadataLog
from streaming.disk.segments import Segment, list_segments, log_start_offset, read_leader_epochs
from streaming.errors import FormatError
from streaming.kafka.metadata import ClusterImage
from streaming.kafka.metadata_partitions import PartitionState
from streaming.kafka.names import HIGH_WATERMARK_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT, METADATA_TOPIC, DirState
from streaming.kafka.walk import Bytes
from streaming.rules.leaders import LEADER_UNKNOWN, Replicas, assign_roles
from streaming.rules.offsets import Copies, high_watermarks
from streaming.watcher.locate import find_offset

_OLD_MS = 60_000

Report = Callable[[str], None]
"""Is told, in words with the file, what could not be read and was done without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One replica as it lies on disk; ``checkpoint`` is its entry in ``replication-offset-checkpoint``, -1 none.

    ``state`` is what the newest metadata says of its partition, None where none is readable. ``speaks``: of the replicas that are there
    it is the one to ask. ``current``: it leads or is in sync, so what it holds is what its partition holds.
    """

    partition: Partition
    log_start: int
    end_offset: int
    log_epoch: int
    checkpoint: int
    state: PartitionState | None
    speaks: bool = False
    current: bool = False

    @property
    def broker(self) -> int:
        """Whose it is."""
        return self.partition.log_dir.broker

    def __str__(self) -> str:
        return f"{self.partition.topic}-{self.partition.partition}"


@dataclass(frozen=True, slots=True, eq=False)
class Disk:
    """All replicas, and the newest image of the cluster that one of the brokers has, None where none is readable."""

    image: ClusterImage | None
    replicas: tuple[Replica, ...]
    unreadable: tuple[Partition, ...]


def look(log_dirs: Sequence[LogDir], wanted: Callable[[str], bool], now_ms: int, buffer: Bytes, report: Report) -> Disk:
    """Look at the replicas of all topics that are ``wanted``, and at nothing of what their logs hold but where it ends.

    A broker that is down does not know what the others did since. So where its metadata is old at ``now_ms``, a replica is only taken for
    current if all that were in sync are here.
    """
    found = [partition for log_dir in log_dirs for partition in _listed(log_dir, report) if wanted(partition.topic)]
    image, told_ms = _newest_image(log_dirs, report)
    here = {log_dir.broker for log_dir in log_dirs}
    fresh = now_ms - told_ms <= _OLD_MS
    starts, marks = (_checkpoints(log_dirs, name) for name in (LOG_START_OFFSET_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT))
    replicas, unreadable = [], []
    for partition in found:
        state = _state(image, partition)
        if image is not None and (state is None or partition.log_dir.broker not in state.replicas):
            continue  # its topic is deleted, or it has moved to another broker: a broker that starts here throws it away
        try:
            segments = listed_segments(partition.path)
            end_offset, log_epoch = _end(partition.path, segments, buffer)
            log_start = log_start_offset(partition.path, segments)
        except OSError as error:
            report(f"{partition.path}: {error.strerror or error}")
            unreadable.append(partition)
            continue
        key = (partition.log_dir.path, partition.topic, partition.partition)
        replicas.append(
            Replica(
                partition=partition,
                log_start=min(max(log_start, starts.get(key, -1)), end_offset),
                end_offset=end_offset,
                log_epoch=log_epoch,
                checkpoint=marks.get(key, -1),
                state=state,
                current=(
                    state is not None and partition.log_dir.broker in (state.leader, *state.isr) and (fresh or here.issuperset(state.isr))
                ),
            )
        )
    return Disk(image, _with_roles(replicas), tuple(unreadable))


def listed_segments(directory: Path) -> tuple[Segment, ...]:
    """The segments of a partition. Raises OSError, FileNotFoundError where there is none."""
    segments = list_segments(directory)
    if not segments:
        raise FileNotFoundError(f"no segment in {directory}")
    return segments


def high_watermarks_of(replicas: Sequence[Replica], *, assume_replicated: bool) -> NDArray[np.int64]:
    """The high watermark of each replica's partition, as far as its log reaches."""
    return high_watermarks(copies_of(replicas), assume_replicated=assume_replicated)


def copies_of(replicas: Sequence[Replica]) -> Copies:
    """The replicas as columns."""
    states = [one.state for one in replicas]
    return Copies(
        partition=_numbered(replicas),
        broker=np.array([one.broker for one in replicas], np.int64),
        log_start=np.array([one.log_start for one in replicas], np.int64),
        end_offset=np.array([one.end_offset for one in replicas], np.int64),
        checkpoint=np.array([one.checkpoint for one in replicas], np.int64),
        leads=np.array([one.state is not None and one.state.leader == one.broker for one in replicas], np.bool_),
        in_sync=np.array([one.state is not None and one.broker in one.state.isr for one in replicas], np.bool_),
        isr=np.array([-1 if state is None else len(state.isr) for state in states], np.int64),
        silent=np.zeros(len(replicas), np.bool_),
    )


def _with_roles(replicas: Sequence[Replica]) -> tuple[Replica, ...]:
    states = [one.state for one in replicas]
    roles = assign_roles(
        Replicas(
            partition=_numbered(replicas),
            broker=np.array([one.broker for one in replicas], np.int64),
            leader=np.array([LEADER_UNKNOWN if state is None else state.leader for state in states], np.int64),
            leader_epoch=np.array([-1 if state is None else state.leader_epoch for state in states], np.int64),
            log_epoch=np.array([one.log_epoch for one in replicas], np.int64),
            end_offset=np.array([one.end_offset for one in replicas], np.int64),
            silent=np.zeros(len(replicas), np.bool_),
        )
    )
    return tuple(replace(one, speaks=speaks) for one, speaks in zip(replicas, roles.speaks.tolist(), strict=True))


def _numbered(replicas: Sequence[Replica]) -> NDArray[np.int64]:
    """The partitions as numbers; of a topic that was made anew under its old name those are others."""
    numbers: dict[tuple[str, str, int], int] = {}
    keys = ((one.partition.topic, one.partition.topic_id, one.partition.partition) for one in replicas)
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def _listed(log_dir: LogDir, report: Report) -> list[Partition]:
    try:
        partitions = list_partitions(log_dir)
    except OSError as error:
        report(f"{log_dir.path}: {error.strerror or error}")
        return []
    return [one for one in partitions if one.state is DirState.LIVE and one.topic != METADATA_TOPIC]


def _newest_image(log_dirs: Sequence[LogDir], report: Report) -> tuple[ClusterImage | None, int]:
    """The newest image of the cluster among all brokers', and when its log was last written to: a running one is, twice a second."""
    newest: ClusterImage | None = None
    told_ms = -1
    for broker in sorted({log_dir.broker for log_dir in log_dirs}):
        metadata_log = MetadataLog(log_dir for log_dir in log_dirs if log_dir.broker == broker)
        try:
            image = metadata_log.advance(None)
            if newest is None or image.next_offset > newest.next_offset:
                newest, told_ms = image, metadata_log.modified_ms()
        except (OSError, FormatError) as error:
            report(f"the metadata log of broker {broker} cannot be read: {error}")
        finally:
            metadata_log.restart()
    return newest, told_ms


def _state(image: ClusterImage | None, partition: Partition) -> PartitionState | None:
    if image is None:
        return None
    topic_id = partition.topic_id or image.topic_id(partition.topic)
    return None if topic_id is None else image.partition(topic_id, partition.partition)


def _checkpoints(log_dirs: Sequence[LogDir], name: str) -> dict[tuple[Path, str, int], int]:
    return {
        (log_dir.path, entry.topic, entry.partition): entry.offset
        for log_dir in log_dirs
        for entry in read_offset_checkpoint(log_dir, name)
    }


def _end(directory: Path, segments: Sequence[Segment], buffer: Bytes) -> tuple[int, int]:
    """Where a log ends, and the leader epoch of its last batch, -1 unknown."""
    end = find_offset(segments, None, buffer)
    if end.log_epoch >= 0:
        return end.next_offset, end.log_epoch
    return end.next_offset, max(
        (entry.epoch for entry in read_leader_epochs(directory) if entry.start_offset < end.next_offset), default=-1
    )
