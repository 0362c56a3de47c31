"""The group coordinator: groups and their committed offsets in ``__consumer_offsets`` (`GroupCoordinatorShard`)."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from streaming.simulator.batch_writer import Batch, Record, uvarint
from streaming.simulator.coordinator_records import StoredTransaction, offset_commit_record, partition_for, plain_string
from streaming.simulator.log import PartitionLog
from streaming.simulator.metadata_writer import string, tagged

# --- records about groups in ``__consumer_offsets``, of both protocols, as Kafka 4.3 writes them (`GroupCoordinatorRecordHelpers`).


SESSION_TIMEOUT_MS = 300_000
"""Longer than the default: a broker that starts on these logs removes no member while a test looks on."""

_HOST = "/127.0.0.1"
_REBALANCE_TIMEOUT_MS = 300_000
_NULL = struct.pack(">h", -1)
_NO_TAGS = b"\x00"
_STABLE = 0


@dataclass(frozen=True, slots=True)
class SimulatedMember:
    """A member of a group with the partitions of the group's topic that it is assigned."""

    member_id: str
    client_id: str
    partitions: tuple[int, ...]


def classic_group_record(group: str, generation: int, topic: str, members: Sequence[SimulatedMember], now: int) -> Record:
    """A generation of a group of the classic protocol; the first member leads. Without members the group is empty."""
    protocol, leader = (plain_string("range"), plain_string(members[0].member_id)) if members else (_NULL, _NULL)
    head = struct.pack(">h", 3) + plain_string("consumer") + struct.pack(">i", generation) + protocol + leader
    body = struct.pack(">qi", now, len(members)) + b"".join(_classic_member(member, topic) for member in members)
    return Record(struct.pack(">h", 2) + plain_string(group), head + body, now)


def _classic_member(member: SimulatedMember, topic: str) -> bytes:
    subscription = struct.pack(">hi", 3, 1) + plain_string(topic) + struct.pack(">iii", -1, 0, -1) + _NULL
    partitions = struct.pack(f">i{len(member.partitions)}i", len(member.partitions), *member.partitions)
    assignment = struct.pack(">hi", 3, 1) + plain_string(topic) + partitions + struct.pack(">i", -1)
    return (
        plain_string(member.member_id)
        + _NULL  # no static member
        + plain_string(member.client_id)
        + plain_string(_HOST)
        + struct.pack(">ii", _REBALANCE_TIMEOUT_MS, SESSION_TIMEOUT_MS)
        + _sized(subscription)
        + _sized(assignment)
    )


def consumer_group_records(
    group: str, epoch: int, topic: str, topic_id: UUID, members: Sequence[SimulatedMember], now: int
) -> list[Record]:
    """The records of one rebalance of a group of the newer protocol, the last member having joined.

    Members give back what they lose at once, so all of them are stable in the new epoch.
    """
    joined = members[-1]
    return [
        _record(5, group, joined.member_id, _described(joined, topic), now),
        _record(3, group, None, struct.pack(">i", epoch) + tagged([(0, topic_id.bytes[:8])]), now),
        *(_record(7, group, member.member_id, _target(topic_id, member), now) for member in members),
        _record(6, group, None, struct.pack(">i", epoch) + tagged([(0, struct.pack(">q", now))]), now),
        *(_record(8, group, member.member_id, _current(topic_id, member, epoch, member is joined), now) for member in members),
    ]


def _record(key_type: int, group: str, member_id: str | None, message: bytes, now: int) -> Record:
    key = struct.pack(">h", key_type) + plain_string(group) + (b"" if member_id is None else plain_string(member_id))
    return Record(key, struct.pack(">h", 0) + message, now)


def _described(member: SimulatedMember, topic: str) -> bytes:
    return (
        string(None)  # no static member
        + string(None)  # no rack
        + string(member.client_id)
        + string(_HOST)
        + uvarint(2)
        + string(topic)
        + string("")  # no regular expression
        + struct.pack(">i", _REBALANCE_TIMEOUT_MS)
        + string(None)  # the broker's assignor
        + _NO_TAGS
    )


def _target(topic_id: UUID, member: SimulatedMember) -> bytes:
    return uvarint(2) + topic_id.bytes + _compact_ints(member.partitions) + _NO_TAGS + _NO_TAGS


def _current(topic_id: UUID, member: SimulatedMember, epoch: int, is_new: bool) -> bytes:
    epochs = tagged([(0, _compact_ints([epoch] * len(member.partitions)))])
    assigned = uvarint(2) + topic_id.bytes + _compact_ints(member.partitions) + epochs
    head = struct.pack(">iib", epoch, 0 if is_new else epoch - 1, _STABLE)
    return head + assigned + uvarint(1) + _NO_TAGS


def _compact_ints(values: Sequence[int]) -> bytes:
    return uvarint(len(values) + 1) + struct.pack(f">{len(values)}i", *values)


def _sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


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
