"""Brokers on disk, as a cluster would leave them: replicas that follow and cut off, elections, moves, cleaning; no agent and no job.

Everything that adds to a log or takes from it is told to a `Witness`, so that what must be counted is known without reading a file.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from uuid import UUID

from streaming.common.log_key import LogKey
from streaming.simulator.batch_writer import Batch, BatchEntry, encode
from streaming.simulator.log import LogDir, PartitionLog, compact
from streaming.simulator.metadata_writer import (
    METADATA_TOPIC_ID,
    ReplicaSet,
    metadata_batch,
    partition_change_record,
    partition_record,
    topic_record,
)
from streaming.simulator.segment_writer import LogConfig, WrittenSegment, uuid_text
from tests.builders import NOW, batch, log_dir
from tests.model import coordinators
from tests.simulated import remove_topic_record, truncate_fully

BATCH_BYTES = len(encode(batch(), 0))
CONFIG = LogConfig(segment_bytes=5 * BATCH_BYTES, index_interval_bytes=BATCH_BYTES, retention_ms=-1)


@dataclass(frozen=True, slots=True)
class Written:
    """A batch as a log holds it. ``(base_offset, epoch)`` names it: a leader never gives an offset twice in its epoch."""

    base_offset: int
    next_offset: int
    epoch: int
    bytes: int
    batches: int
    records: int

    @property
    def name(self) -> tuple[int, int]:
        return self.base_offset, self.epoch


class Witness(Protocol):
    """Who keeps what must be true."""

    def created(self, log: LogKey) -> None: ...
    def appended(self, log: LogKey, written: Written) -> None: ...
    def truncated(self, log: LogKey, offset: int) -> None: ...
    def left(self, log: LogKey) -> None: ...
    def removed(self, log: LogKey) -> None: ...


@dataclass(frozen=True, slots=True)
class Copy:
    """A batch on its way to a follower, byte for byte."""

    entry: BatchEntry
    data: bytes

    def entries(self, base_offset: int, leader_epoch: int) -> Iterator[tuple[BatchEntry, bytes]]:
        assert base_offset == self.entry.base_offset
        del leader_epoch  # it stands in the bytes
        yield self.entry, self.data


@dataclass
class Disk:
    """One log dir. ``away``: "" where it is, "unmounted" with an empty directory in its place, "gone" with none."""

    directory: LogDir
    away: str = ""

    @property
    def _elsewhere(self) -> Path:
        return self.directory.path.with_name(f"{self.directory.path.name}.away")

    def lies_at(self, path: Path) -> Path:
        return self._elsewhere / path.relative_to(self.directory.path) if self.away else path

    def take_away(self, how: str) -> None:
        self.directory.path.rename(self._elsewhere)
        if how == "unmounted":
            self.directory.path.mkdir()
        self.away = how

    def bring_back(self) -> None:
        if self.away == "unmounted":
            self.directory.path.rmdir()
        self._elsewhere.rename(self.directory.path)
        self.away = ""


@dataclass
class Replica:
    """A partition on one broker: where its log is now."""

    disk: Disk
    log: PartitionLog

    def written(self) -> list[Written]:
        """Also if its disk is away."""
        return [
            written
            for segment in self.log.segments
            for written in _written_in(segment, self.disk.lies_at(segment.path("log")).read_bytes())
        ]

    def copies_from(self, offset: int) -> Iterator[tuple[Copy, int]]:
        """Batches from an offset on, the one included that holds it, each with its leader epoch."""
        for segment in self.log.segments:
            if segment.entries and segment.entries[-1].last_offset >= offset:
                content = segment.path("log").read_bytes()
                for entry, position in zip(segment.entries, segment.positions, strict=True):
                    if entry.last_offset >= offset:
                        yield Copy(entry, content[position : position + entry.size]), _epoch_at(content, position)


def _written_in(segment: WrittenSegment, content: bytes) -> Iterator[Written]:
    for entry, position in zip(segment.entries, segment.positions, strict=True):
        epoch, batches = _epoch_at(content, position), 0 if entry.control else 1
        yield Written(entry.base_offset, entry.last_offset + 1, epoch, entry.size, batches, entry.records)


def _epoch_at(content: bytes, position: int) -> int:
    """The leader epoch that stands in a batch: a log forgets those below its start."""
    return int.from_bytes(content[position + 12 : position + 16], "big", signed=True)


@dataclass
class Partition:
    topic: str
    number: int
    topic_id: UUID
    leader: int
    epoch: int = 0
    replicas: dict[int, Replica] = field(default_factory=dict)

    def log_id(self, broker: int) -> LogKey:
        return LogKey(broker, self.topic, self.number, uuid_text(self.topic_id))


class Broker:
    """One broker's disks; the first of them holds its copy of the metadata log."""

    def __init__(self, root: Path, number: int, dirs: int) -> None:
        self.number = number
        self.disks = [Disk(log_dir(root / f"broker-{number}", f"d{place}", broker=number)) for place in range(dirs)]
        home = self.disks[0].directory.path / "__cluster_metadata-0"
        self.metadata = PartitionLog(home, "__cluster_metadata", 0, METADATA_TOPIC_ID, LogConfig(retention_ms=-1))

    @property
    def whole(self) -> bool:
        return not any(disk.away for disk in self.disks)


class Cluster:
    """Three brokers, and the partitions on them by (topic, number)."""

    def __init__(self, root: Path, witness: Witness) -> None:
        self.brokers = {number: Broker(root, number, dirs) for number, dirs in ((1, 2), (2, 2), (3, 1))}
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.now = NOW
        self._witness = witness
        self._ids = 0

    def close(self) -> None:
        for partition in self.partitions.values():
            for replica in partition.replicas.values():
                replica.log.close()
        for broker in self.brokers.values():
            broker.metadata.close()
            for disk in broker.disks:
                disk.directory.release()

    def logs(self, broker: int, *, away: bool = False) -> dict[LogKey, Replica]:
        """What lies on a broker, in log dirs that are there; or also in those that are ``away``."""
        found = {each.log_id(broker): each.replicas[broker] for each in self.partitions.values() if broker in each.replicas}
        return {log: replica for log, replica in found.items() if away or not replica.disk.away}

    # --- topics

    def create(self, topic: str, number: int, on: list[int]) -> None:
        """A topic of one partition each: its number is only another name, so that a topic's id is the partition's."""
        self._ids += 1
        made = self.partitions[topic, number] = Partition(topic, number, UUID(int=self._ids), on[0])
        replicas = ReplicaSet(partition=number, topic_id=made.topic_id, replicas=tuple(on), isr=tuple(on), leader=on[0])
        self._write([topic_record(f"{topic}", made.topic_id), partition_record(replicas)])
        for broker in on:
            self._place(made, broker, 0, 0)

    def delete(self, partition: Partition) -> None:
        self._write([remove_topic_record(partition.topic_id)])
        del self.partitions[partition.topic, partition.number]
        for broker, replica in partition.replicas.items():
            _remove(replica)
            self._witness.removed(partition.log_id(broker))

    def _place(self, partition: Partition, broker: int, disk: int, base_offset: int) -> None:
        disks = [each for each in self.brokers[broker].disks if not each.away]
        chosen = disks[(disk + partition.topic_id.int) % len(disks)]
        log = chosen.directory.create(partition.topic, partition.number, partition.topic_id, CONFIG, base_offset=base_offset)
        partition.replicas[broker] = Replica(chosen, log)
        self._witness.created(partition.log_id(broker))

    def _write(self, values: list[bytes]) -> None:
        for broker in self.brokers.values():
            broker.metadata.append(metadata_batch(values, self.now), leader_epoch=1)

    # --- what is written

    def append(self, partition: Partition, batches: list[Batch]) -> None:
        """The leader takes them in one write."""
        replica = partition.replicas[partition.leader]
        if replica.disk.away:
            return
        before = replica.log.log_end_offset
        replica.log.append(*batches, leader_epoch=partition.epoch)
        self._publish_appended(partition, partition.leader, before)

    def replicate(self, partition: Partition, broker: int, count: int) -> None:
        """A follower fetches so many batches; first it cuts off what its leader does not have."""
        leader, follower = partition.replicas[partition.leader], partition.replicas[broker]
        if broker == partition.leader or leader.disk.away or follower.disk.away:
            return
        self._cut_off(partition, broker, leader.log, follower.log)
        for copy, epoch in list(leader.copies_from(follower.log.log_end_offset))[:count]:
            if copy.entry.base_offset < follower.log.log_end_offset:  # it begins in the middle of the batch: at its beginning then
                truncate_fully(follower.log, copy.entry.base_offset, self.now)
                self._witness.truncated(partition.log_id(broker), copy.entry.base_offset)
            before = follower.log.log_end_offset
            _put(follower.log, copy, epoch)
            self._publish_appended(partition, broker, before)

    def _cut_off(self, partition: Partition, broker: int, leader: PartitionLog, follower: PartitionLog) -> None:
        if follower.log_end_offset < leader.segments[0].base_offset:
            truncate_fully(follower, leader.segments[0].base_offset, self.now)  # what it would fetch is deleted
            return
        # without an epoch that it began as the leader and appended nothing in (`UnifiedLog.truncateTo`)
        follower._write_leader_epochs([item for item in follower.leader_epochs if item[1] < follower.log_end_offset])
        shared = divergence(leader, follower)
        if shared < follower.log_end_offset:
            if shared < follower.segments[0].base_offset:
                truncate_fully(follower, shared, self.now)
            else:
                follower.truncate(shared, self.now)
                follower.log_end_offset = shared  # also where the batches right before it were cleaned away
            self._witness.truncated(partition.log_id(broker), shared)

    def _publish_appended(self, partition: Partition, broker: int, before: int) -> None:
        replica, log = partition.replicas[broker], partition.log_id(broker)
        for segment in replica.log.segments[-2:]:
            for written in _written_in(segment, segment.path("log").read_bytes()):
                if written.base_offset >= before:
                    self._witness.appended(log, written)

    # --- who leads and who is where

    def elect(self, partition: Partition, broker: int) -> None:
        """Make a replica the leader, whatever it lacks; also the one that leads already."""
        log = partition.replicas[broker].log
        if partition.replicas[broker].disk.away:
            return
        partition.leader, partition.epoch = broker, partition.epoch + 1
        _begin_epoch(log, partition.epoch)
        isr = [each for each, replica in partition.replicas.items() if replica.log.log_end_offset >= log.log_end_offset]
        self._write([partition_change_record(partition.number, partition.topic_id, isr=isr, leader=broker)])

    def reassign(self, partition: Partition, leaves: int, comes: int) -> None:
        """A follower's replica goes to another broker: the new one begins where the leader's log begins."""
        replicas = [broker for broker in partition.replicas if broker != leaves] + [comes]
        self._write([partition_change_record(partition.number, partition.topic_id, replicas=replicas, isr=[partition.leader])])
        _remove(partition.replicas.pop(leaves))
        self._witness.left(partition.log_id(leaves))
        self._place(partition, comes, 0, partition.replicas[partition.leader].log.segments[0].base_offset)

    def clean(self, replica: Replica, which: int, keep: int) -> None:
        """The cleaner rewrites a closed segment below the last stable offset, without some of its batches; markers stay."""
        log = replica.log
        closed = [
            segment for segment in log.segments[:-1] if segment.entries and segment.entries[-1].last_offset < log.last_stable_offset()
        ]
        if closed and not replica.disk.away:
            segment = closed[which % len(closed)]
            kept = {entry.base_offset for place, entry in enumerate(segment.entries) if keep >> place & 1 or entry.control}
            if log.topic == coordinators.TOPIC:
                replaced = coordinators.superseded(log)
                kept |= {entry.base_offset for entry in segment.entries if entry.base_offset not in replaced}
            compact(log, segment.base_offset, kept, self.now)

    def move(self, partition: Partition, broker: int) -> None:
        """To another log dir of the same broker: a ``-future`` log catches up and takes the place of the current one."""
        replica, disks = partition.replicas[broker], self.brokers[broker].disks
        target = next((disk for disk in disks if disk is not replica.disk and not disk.away), None)
        if target is None or replica.disk.away:
            return
        name = f"{replica.log.name}.{self.now:032x}-future"
        base_offset = replica.log.segments[0].base_offset
        future = target.directory.create(partition.topic, partition.number, partition.topic_id, CONFIG, base_offset=base_offset, name=name)
        for copy, epoch in replica.copies_from(base_offset):
            _put(future, copy, epoch)
        if future.log_end_offset < replica.log.log_end_offset:  # what lay behind the last batch was cleaned away
            truncate_fully(future, replica.log.log_end_offset, self.now)
        if replica.log.leader_epochs and (not future.leader_epochs or future.leader_epochs[-1][0] < replica.log.leader_epochs[-1][0]):
            _begin_epoch(future, replica.log.leader_epochs[-1][0])
        if future.log_start_offset < replica.log.log_start_offset:  # the fetches of a future log tell it
            future.delete_records(replica.log.log_start_offset)
        _remove(replica)
        future.rename(future.name)
        partition.replicas[broker] = Replica(target, future)


def divergence(leader: PartitionLog, follower: PartitionLog) -> int:
    """The first offset of the follower's log that the leader's log does not have alike.

    A log that moved begins its first epoch at its first batch, and what lay before that was cleaned away: that is no difference.
    """
    low = max(leader.segments[0].base_offset, follower.segments[0].base_offset)
    high = min(leader.log_end_offset, follower.log_end_offset)
    for offset in sorted({low, *(start for _, start in (*leader.leader_epochs, *follower.leader_epochs) if low <= start < high)}):
        epochs = {leader.leader_epoch_at(offset), follower.leader_epoch_at(offset)} - {-1}
        if offset < high and len(epochs) > 1:
            return offset
    return high


def _put(log: PartitionLog, copy: Copy, epoch: int) -> None:
    if log.leader_epochs and log.leader_epochs[-1][0] != epoch:
        _begin_epoch(log, epoch, copy.entry.base_offset)
    log.append(copy, leader_epoch=epoch, base_offset=copy.entry.base_offset)


def _begin_epoch(log: PartitionLog, epoch: int, offset: int | None = None) -> None:
    """As `LeaderEpochFileCache.assign` does it: epochs that are not before it, by number or by offset, make room."""
    start = log.log_end_offset if offset is None else offset
    if epoch >= 0:
        log._write_leader_epochs([*(item for item in log.leader_epochs if item[0] < epoch and item[1] < start), (epoch, start)])


def _remove(replica: Replica) -> None:
    """The directory is renamed and then removed, as a broker does with what it deletes."""
    log = replica.log
    log.rename(f"{log.name}.{0:032x}-delete")
    replica.disk.directory.forget(log)
    log.remove()
