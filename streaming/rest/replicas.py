"""Every replica in some log dirs, of one broker or several: which one speaks for its partition, and how far it is replicated."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from streaming.disk.logdirs import LogDir, Partition, list_partitions
from streaming.disk.offset_checkpoint import NOTHING_WRITTEN, load_offset_checkpoint
from streaming.disk.segments import Segment, list_segments, log_start_offset, read_leader_epochs
from streaming.kafka.metadata import ClusterImage
from streaming.kafka.metadata_partitions import PartitionState
from streaming.kafka.names import HIGH_WATERMARK_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT, METADATA_TOPIC, DirState
from streaming.kafka.walk import Bytes
from streaming.rest.metadata import Report, read_metadata
from streaming.rules.leaders import LEADER_UNKNOWN, Replicas, assign_roles
from streaming.rules.limits import Configs, Source, broker_configs, effective_limits, topic_configs
from streaming.rules.min_isr import may_stand
from streaming.rules.offsets import Copies, high_watermarks
from streaming.watcher.locate import find_offset

log = logging.getLogger(__name__)

_OLD_MS = 60_000

Static = Mapping[int, Configs]
"""What the ``server.properties`` of brokers set, by node id; none of those that are not known."""

NOTHING_STATIC: Static = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One replica as it lies on disk; ``checkpoint`` is its entry in ``replication-offset-checkpoint``, -1 none,
    `streaming.facts.UNREADABLE` where that cannot be read.

    ``log_epoch`` is the leader epoch of its last batch, -1 unknown. ``state`` is what the newest metadata says of its partition, None where
    none is readable. ``leader_metadata_version`` is the highest that the leader's registration supports, -1 where it names none or that
    is not known; ``stands``: the leader may not move its high watermark on; ``fenced``: the replica's broker is fenced. ``speaks``: of
    the replicas that are there it is the one to ask. ``current``: it leads or is in sync, so what it holds is what its partition holds.
    """

    partition: Partition
    log_start: int
    end_offset: int
    log_epoch: int
    checkpoint: int
    state: PartitionState | None
    leader_metadata_version: int = -1
    stands: bool = False
    fenced: bool = False
    speaks: bool = False
    current: bool = False

    @property
    def broker(self) -> int:
        """Whose it is."""
        return self.partition.log_dir.broker

    @property
    def leads(self) -> bool:
        """Whether it is known to lead."""
        return self.state is not None and self.state.leader == self.broker

    def __str__(self) -> str:
        return f"{self.partition.topic}-{self.partition.partition}"


@dataclass(frozen=True, slots=True, eq=False)
class Disk:
    """All replicas, and the newest image of the cluster that one of the brokers has, None where none is readable."""

    image: ClusterImage | None
    replicas: tuple[Replica, ...]
    unreadable: tuple[Partition, ...]


def look(
    log_dirs: Sequence[LogDir], wanted: Callable[[str], bool], now_ms: int, buffer: Bytes, report: Report, static: Static = NOTHING_STATIC
) -> Disk:
    """Look at the replicas of all topics that are ``wanted``, and at nothing of what their logs hold but where it ends.

    A broker that is down does not know what the others did since. So where its metadata is old at ``now_ms``, a replica is only taken for
    current if all that were in sync are here.
    """
    metadata = read_metadata(log_dirs, report)
    here = {log_dir.broker for log_dir in log_dirs}
    fresh = now_ms - metadata.told_ms <= _OLD_MS
    starts, marks = (Checkpoints(log_dirs, name) for name in (LOG_START_OFFSET_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT))
    replicas, unreadable = [], []
    for partition in _listed(log_dirs, wanted, report):
        broker, state = partition.log_dir.broker, metadata.state(partition)
        if metadata.newest is not None and (state is None or broker not in state.replicas):
            continue  # its topic is deleted, or it has moved to another broker: a broker that starts here throws it away
        try:
            segments = listed_segments(partition.path)
            end = find_offset(segments, None, buffer)
            log_start = log_start_offset(partition.path, segments)
            log_epoch = end.log_epoch if end.log_epoch >= 0 else last_epoch(partition, end.next_offset)
        except OSError as error:
            if not partition.path.is_dir():  # deleted or moved away since it was listed
                continue
            report(f"{partition.path}: {error.strerror or error}")
            unreadable.append(partition)
            continue
        replicas.append(
            Replica(
                partition=partition,
                log_start=min(max(log_start, starts.of(partition)), end.next_offset),
                end_offset=end.next_offset,
                log_epoch=log_epoch,
                checkpoint=marks.of(partition),
                state=state,
                leader_metadata_version=metadata_version_of_leader(metadata.newest, state),
                stands=leader_may_stand(metadata.newest, partition.topic, state, static),
                fenced=is_fenced(metadata.newest, broker),
                current=state is not None and broker in (state.leader, *state.isr) and (fresh or here.issuperset(state.isr)),
            )
        )
    return Disk(metadata.newest, with_roles(replicas), tuple(unreadable))


def listed_segments(directory: Path) -> tuple[Segment, ...]:
    """The segments of a partition. Raises OSError, FileNotFoundError where there is none."""
    segments = list_segments(directory)
    if not segments:
        raise FileNotFoundError(f"no segment in {directory}")
    return segments


def last_epoch(partition: Partition, end_offset: int) -> int:
    """The leader epoch of the last batch before an offset, as ``leader-epoch-checkpoint`` has it; -1 unknown."""
    try:
        epochs = read_leader_epochs(partition.path)
    except OSError as error:
        log.warning("leader epochs cannot be read", extra={"path": str(partition.path), "error": str(error)})
        return -1
    return max((entry.epoch for entry in epochs if entry.start_offset < end_offset), default=-1)


class Checkpoints:
    """The entries of a checkpoint file in all log dirs."""

    def __init__(self, log_dirs: Sequence[LogDir], name: str) -> None:
        self._read = {log_dir.path: load_offset_checkpoint(log_dir, name) for log_dir in log_dirs}

    def of(self, partition: Partition) -> int:
        """The offset of a replica, as `OffsetCheckpoint.of`."""
        return self._read.get(partition.log_dir.path, NOTHING_WRITTEN).of(partition)


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
        leads=np.array([one.leads for one in replicas], np.bool_),
        in_sync=np.array([one.state is not None and one.broker in one.state.isr for one in replicas], np.bool_),
        isr=np.array([-1 if state is None else len(state.isr) for state in states], np.int64),
        stands=np.array([one.stands for one in replicas], np.bool_),
        fenced=np.array([one.fenced for one in replicas], np.bool_),
        silent=np.zeros(len(replicas), np.bool_),
    )


def is_fenced(image: ClusterImage | None, broker: int) -> bool:
    """Whether the controller has fenced a broker."""
    state = None if image is None else image.broker(broker)
    return state is not None and state.fenced


def leader_may_stand(image: ClusterImage | None, topic: str, state: PartitionState | None, static: Static) -> bool:
    """Whether the leader of a partition may not move its high watermark on."""
    if image is None or state is None or len(state.isr) >= len(state.replicas):
        return False
    levels = (image.broker_configs(state.leader), image.default_broker_configs())
    configs = topic_configs(image.topic_configs(topic))
    for pairs in levels:
        configs = configs.over(broker_configs(pairs, Source.DYNAMIC))
    configs = configs.over(static.get(state.leader, Configs()))
    version = metadata_version_of_leader(image, state)
    return may_stand(effective_limits(topic, configs), len(state.isr), len(state.replicas), version)


def metadata_version_of_leader(image: ClusterImage | None, state: PartitionState | None) -> int:
    """The highest metadata.version that the leader of a partition supports, -1 where it names none or that is not known."""
    return -1 if image is None or state is None else image.metadata_version(state.leader)


def with_roles(replicas: Sequence[Replica]) -> tuple[Replica, ...]:
    """The same, one of each partition to speak for it."""
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


def _listed(log_dirs: Sequence[LogDir], wanted: Callable[[str], bool], report: Report) -> Iterator[Partition]:
    for log_dir in log_dirs:
        try:
            partitions = list_partitions(log_dir)
        except OSError as error:
            report(f"{log_dir.path}: {error.strerror or error}")
            continue
        for each in partitions:
            if each.state is DirState.LIVE and each.topic != METADATA_TOPIC and wanted(each.topic):
                yield each
