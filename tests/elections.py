"""A partition on two brokers that elect each other, with an agent beside each, one job that reads both, and a fold."""

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from streaming.rules.log_state import LogState
from streaming.simulator.batch_writer import Batch, encode
from streaming.simulator.log import PartitionLog
from streaming.simulator.metadata_writer import (
    METADATA_TOPIC_ID,
    ReplicaSet,
    metadata_batch,
    no_op_record,
    partition_change_record,
    partition_record,
    snapshot_footer_batch,
    snapshot_header_batch,
    topic_record,
)
from tests.agents import Agent, Reader
from tests.builders import NOW, batch, log_dir, partition
from tests.events import Shard

TOPIC_ID = UUID(int=1)


class MetadataCopy:
    """The metadata log on the disk of one broker."""

    def __init__(self, directory: Path) -> None:
        self.log = PartitionLog(directory / "__cluster_metadata-0", "__cluster_metadata", 0, METADATA_TOPIC_ID)

    def write(self, values: Sequence[bytes], at_ms: int = NOW) -> None:
        self.log.append(metadata_batch(values, at_ms), leader_epoch=1)

    def snapshot(self, values: Sequence[bytes]) -> None:
        """What stands at the end of this copy."""
        header, footer = encode(snapshot_header_batch(NOW), 0), encode(snapshot_footer_batch(NOW), 1 + len(values))
        path = self.log.directory / f"{self.log.log_end_offset:020d}-{1:010d}.checkpoint"
        path.write_bytes(header + encode(metadata_batch(values, NOW), 1) + footer)

    def forget_log(self) -> None:
        """Only the newest snapshot stays of what was."""
        self.log.roll()
        for path in self.log.directory.glob("*.log"):
            if path != self.log.active.path("log"):
                path.unlink()
        for path in sorted(self.log.directory.glob("*.checkpoint"))[:-1]:
            path.unlink()


class Broker:
    """One broker with its replica, its copy of the metadata, and its agent."""

    def __init__(self, root: Path, number: int) -> None:
        self.number = number
        self.directory = log_dir(root, f"b{number}", broker=number)
        self.log = partition(self.directory, "orders", topic_id=TOPIC_ID)
        self.metadata = MetadataCopy(self.directory.path)
        self.known = 0  # how many changes of the metadata have arrived
        self.copied = 0  # how many batches of the partition
        self.agent: Agent | None = None
        self._root = root
        self._reader: Reader | None = None

    @property
    def reader(self) -> Reader:
        assert self._reader is not None
        return self._reader

    def up(self) -> None:
        """Start the agent."""
        if self.agent is None:
            self.agent = Agent(self.directory.path, name=f"a{self.number}")
            before, self._reader = self._reader, Reader(self.agent)
            if before is not None:
                self._reader.counted = before.counted
            self._reader.register(resumed=before is not None)

    def down(self) -> None:
        """Stop it."""
        if self.agent is not None:
            self.agent.close()
            self.agent = None

    def restart(self) -> None:
        """The agent is another process, and knows nothing."""
        if self.agent is not None:
            self.agent.restart()
            self.reader.register(resumed=True)

    def look(self, passing_ms: int) -> None:
        if self.agent is not None:
            self.agent.now += passing_ms
            while self.agent.watcher.poll(set()):
                pass


class Election:
    """Broker 1 leads at first. ``appended`` are the records that leaders have appended."""

    def __init__(self, root: Path) -> None:
        self.brokers = (Broker(root, 1), Broker(root, 2))
        self.fold = Shard()
        self.appended = 0
        self.leader, self.epoch = 1, 0
        self._batches: list[tuple[Batch, int]] = []
        self._changes: list[list[bytes]] = []
        self._change(topic_record("orders", TOPIC_ID), partition_record(self._registration()))
        self.publish_metadata()

    def _registration(self, partition_epoch: int = 0) -> ReplicaSet:
        directories = (UUID(int=5), UUID(int=6))
        return ReplicaSet(
            partition=0,
            topic_id=TOPIC_ID,
            replicas=(1, 2),
            isr=(1, 2),
            leader=self.leader,
            leader_epoch=self.epoch,
            partition_epoch=partition_epoch,
            directories=directories,
        )

    def _change(self, *values: bytes) -> None:
        self._changes.append(list(values))

    def broker(self, number: int) -> Broker:
        return self.brokers[number - 1]

    def produce(self, records: int) -> None:
        """The leader appends."""
        self._batches.append((batch(records), self.epoch))
        self.appended += records
        self._copy(self.broker(self.leader))

    def replicate(self) -> None:
        """Everybody has everything."""
        for broker in self.brokers:
            self._copy(broker)

    def _copy(self, broker: Broker) -> None:
        for each, epoch in self._batches[broker.copied :]:
            broker.log.append(each, leader_epoch=epoch)
        broker.copied = len(self._batches)

    def elect(self, number: int, *, published: bool = True) -> None:
        """Another leader, or the same one in a new epoch; a clean election: the new one has everything."""
        self.replicate()
        self.leader, self.epoch = number, self.epoch + 1
        self._change(no_op_record())
        self._change(partition_change_record(0, TOPIC_ID, leader=number))
        if published:
            self.publish_metadata()

    def elect_uncleanly(self, number: int) -> None:
        """A broker that may lack what the others have. What it lacks is gone: they cut it off when they hear of it (`hear`)."""
        new = self.broker(number)
        self._batches = self._batches[: new.copied]
        self.leader, self.epoch = number, self.epoch + 1
        others = tuple(broker.number for broker in self.brokers if broker is not new)
        self._change(
            partition_change_record(0, TOPIC_ID, isr=others),
            partition_change_record(0, TOPIC_ID, isr=(number,), leader=number, recovering=True),
        )
        self.publish(new)

    def hear(self, number: int) -> None:
        """A broker that was away follows the new leader: it drops what that one does not have, and copies the rest."""
        broker, new = self.broker(number), self.broker(self.leader)
        self.publish(broker)
        broker.log.truncate(next(start for epoch, start in new.log.leader_epochs if epoch == self.epoch), NOW)
        broker.copied = sum(epoch < self.epoch for _, epoch in self._batches)
        self._copy(broker)

    def publish_metadata(self) -> None:
        for broker in self.brokers:
            self.publish(broker)

    @property
    def changes(self) -> int:
        """How many changes of the metadata there were."""
        return len(self._changes)

    def publish(self, broker: Broker) -> None:
        """The metadata arrives at a broker."""
        for values in self._changes[broker.known :]:
            broker.metadata.write(values)
        broker.known = len(self._changes)

    def snapshot(self, number: int, *, recovering: bool = False) -> None:
        """A broker writes down the metadata as it is."""
        broker = self.broker(number)
        self.publish(broker)
        broker.metadata.log.roll()
        values = [topic_record("orders", TOPIC_ID), partition_record(self._registration(self.epoch))]
        if recovering:
            values.append(partition_change_record(0, TOPIC_ID, recovering=True))
        broker.metadata.snapshot(values)

    def look(self, *numbers: int, passing_ms: int = 60_000) -> None:
        """The agents of these brokers look around."""
        for number in numbers or (1, 2):
            self.broker(number).look(passing_ms)

    def read(self, *numbers: int) -> None:
        """The job reads what they have published."""
        for number in numbers or (1, 2):
            broker = self.broker(number)
            if broker.agent is not None:
                plan = broker.reader.plan()
                if plan.seq >= 0:
                    self.fold.fold(*broker.reader.apply(plan))

    def finish(self) -> None:
        """Everything is up, and everything is read."""
        self.publish_metadata()
        self.replicate()
        for broker in self.brokers:
            broker.up()
        for _ in range(3):
            self.look()
            self.read()

    @property
    def counted(self) -> int:
        """Records in the topic's counters of both brokers."""
        return sum(state.share_records for state in self.replicas)

    @property
    def replicas(self) -> list[LogState]:
        """What is folded of them, by their brokers."""
        return sorted((state for state in self.fold.states.values() if state.topic == "orders"), key=lambda state: state.broker)

    def close(self) -> None:
        for broker in self.brokers:
            broker.down()
            broker.log.close()
            broker.metadata.log.close()
            broker.directory.release()
