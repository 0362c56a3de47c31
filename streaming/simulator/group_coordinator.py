"""The group coordinator: groups and their committed offsets in ``__consumer_offsets`` (`GroupCoordinatorShard`)."""

from collections.abc import Sequence
from dataclasses import dataclass

from streaming.simulator.batch_writer import Batch
from streaming.simulator.coordinator_records import StoredTransaction, offset_commit_record, partition_for
from streaming.simulator.group_writer import SimulatedMember, classic_group_record, consumer_group_records
from streaming.simulator.log import PartitionLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Who reads a topic together: so many members, by the classic protocol or the newer one."""

    name: str
    topic: str
    members: int = 1
    classic: bool = False


class GroupCoordinator:
    """Writes what happens to groups.

    Args:
        logs: the partitions of ``__consumer_offsets``.
    """

    def __init__(self, logs: Sequence[PartitionLog]) -> None:
        self._logs = logs

    def log_of(self, group: str) -> PartitionLog:
        """The log that holds a group."""
        return self._logs[partition_for(group, len(self._logs))]

    def join(self, group: Group, sources: Sequence[PartitionLog], now: int) -> None:
        """Let the members come, one after the other, and share the partitions of their topic."""
        log, topic_id = self.log_of(group.name), sources[0].topic_id
        for count in range(1, group.members + 1):
            members = _members(group, count, len(sources))
            if group.classic or topic_id is None:
                log.append(Batch(records=(classic_group_record(group.name, count, group.topic, members, now),)))
            else:
                log.append(Batch(records=tuple(consumer_group_records(group.name, count, group.topic, topic_id, members, now))))

    def commit(self, group: str, sources: Sequence[PartitionLog], offsets: Sequence[int], now: int) -> None:
        """Commit an offset for each partition of a topic."""
        records = tuple(
            offset_commit_record(group, log.topic, log.partition, offset, now, topic_id=log.topic_id, leader_epoch=0)
            for log, offset in zip(sources, offsets, strict=True)
        )
        self.log_of(group).append(Batch(records=records))

    def commit_in(
        self, transaction: StoredTransaction, group: str, sources: Sequence[PartitionLog], offsets: Sequence[int], now: int
    ) -> None:
        """The same in a transaction that has the group's log in it: the offsets count from its COMMIT marker on."""
        records = tuple(
            offset_commit_record(group, log.topic, log.partition, offset, now) for log, offset in zip(sources, offsets, strict=True)
        )
        self.log_of(group).append(
            Batch(
                records=records,
                producer_id=transaction.producer_id,
                producer_epoch=transaction.epoch,
                base_sequence=0,
                transactional=True,
            )
        )


def _members(group: Group, count: int, partitions: int) -> list[SimulatedMember]:
    """The first members of a group, with neighbouring partitions each."""
    shares = [tuple(number for number in range(partitions) if number * count // partitions == place) for place in range(count)]
    return [SimulatedMember(f"{group.name}-{place}", f"{group.name}-client", share) for place, share in enumerate(shares)]
