"""A broker with one group and one topic, and what is read of the group from its disk."""

from pathlib import Path

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GroupPartition
from streaming.common.settings import Settings
from streaming.simulator.batch_writer import Batch
from streaming.simulator.coordinators import offset_commit_record
from streaming.simulator.log import LogDir, PartitionLog
from streaming.terminal.offline.group_reading import read_groups
from tests.builders import NOW, batch, log_dir, partition
from tests.group_answers import Groups, detailed

HOUR = 3_600_000


GROUP = "billing"


class Cluster:
    """A broker with one partition for the coordinator and one of `orders`, written an hour ago."""

    def __init__(self, path: Path) -> None:
        self.disk: LogDir = log_dir(path)
        self.coordinator = partition(self.disk, "__consumer_offsets", topic_id=7)
        self.orders = partition(self.disk, "orders", topic_id=8)

    def append(self, *batches: Batch, to: PartitionLog | None = None) -> None:
        (to or self.orders).append(*batches)

    def commit(self, offset: int, group: str = GROUP, *, topic: str = "orders", at: int = NOW - HOUR, producer: int = -1) -> None:
        """The group commits an offset, in a transaction if there is a producer."""
        record = offset_commit_record(group, topic, 0, offset, at)
        in_transaction = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
        self.coordinator.append(Batch(records=(record,), **(in_transaction if producer >= 0 else {})))

    def read(self, *names: str, limits: str = "604800000", now: int = NOW) -> Groups:
        self.disk.write_high_watermarks()
        self.disk.write_log_starts()
        return self.read_again(*names, limits=limits, now=now)

    def read_again(self, *names: str, limits: str = "604800000", now: int = NOW) -> Groups:
        """Without writing anything."""
        settings = Settings(broker_config={"log.retention.ms": limits})
        return detailed(read_groups(open_log_dirs([self.disk.path]), names, settings, now))

    def one(self, *names: str, limits: str = "604800000") -> GroupPartition:
        (group,) = self.read(*names, limits=limits).groups
        (found,) = group.partitions
        return found


def old(records: int = 1, **options: object) -> Batch:
    return batch(records, timestamp=NOW - HOUR, **options)  # type: ignore[arg-type]
