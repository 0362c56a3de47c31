"""Consumer groups at work: how far they commit, and what they write about themselves."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from streaming.kafka.formats.consumer_offsets import OffsetCommit, OffsetCommitKey
from streaming.kafka.formats.stored_groups import ConsumerGroupKey, GroupMetadata, KeyType
from streaming.simulator.broker import COMMIT_MS, consumer_group
from streaming.simulator.coordinators import Group, GroupCoordinator
from streaming.simulator.log import PartitionLog
from streaming.simulator.workload import Reading
from tests.builders import NOW, batch, commit, log_dir, partition
from tests.formats.dumped import columns
from tests.formats.offsets_topic import read, records_of


@dataclass(frozen=True, slots=True)
class CoordinatedTopic:
    """A topic of two partitions, and the one log of the coordinator."""

    sources: tuple[PartitionLog, PartitionLog]
    log: PartitionLog

    def begin(self, reading: Reading) -> "Consumers":
        return Consumers(self, reading)

    def written(self) -> list[tuple[object, object]]:
        """All records of the coordinator, read as those of a real one."""
        data = self.log.active.path("log").read_bytes()
        return [read(record) for record in records_of(data, columns(data))]

    def committed(self) -> list[tuple[int, int]]:
        """The offsets of both partitions, commit after commit."""
        values = [value.offset for _, value in self.written() if isinstance(value, OffsetCommit)]
        return list(zip(values[::2], values[1::2], strict=True))


class Consumers:
    """A group, from its first commit interval on."""

    def __init__(self, world: CoordinatedTopic, reading: Reading) -> None:
        self._actor = consumer_group(reading, world.sources, GroupCoordinator([world.log]), NOW)
        self._due = self._actor.send(next(self._actor))

    def commit(self) -> None:
        self._due = self._actor.send(self._due)


@pytest.fixture
def world(tmp_path: Path) -> CoordinatedTopic:
    disk = log_dir(tmp_path)
    return CoordinatedTopic(
        (partition(disk, "t", 0, topic_id=7), partition(disk, "t", 1, topic_id=7)), partition(disk, "__consumer_offsets", 0)
    )


def test_a_group_that_keeps_up_commits_the_ends_every_five_seconds(world: CoordinatedTopic) -> None:
    first, second = world.sources
    consumers = world.begin(Reading(group=Group(name="g", topic="t", classic=True)))
    for records in (3, 4):
        first.append(batch(records))
        second.append(batch(1))
        consumers.commit()
    assert world.committed() == [(3, 1), (7, 2)]
    (_, metadata), (key, value), *_ = world.written()
    assert isinstance(metadata, GroupMetadata)
    assert [member.member_id for member in metadata.members] == ["g-0"]
    assert key == OffsetCommitKey("g", "t", 0)
    assert isinstance(value, OffsetCommit)
    assert (value.commit_timestamp, value.topic_id) == (NOW + COMMIT_MS, "AAAAAAAAAAAAAAAAAAAABw")


def test_a_slow_one_falls_behind_and_passes_over_what_was_deleted(world: CoordinatedTopic) -> None:
    first, _ = world.sources
    consumers = world.begin(Reading(group=Group(name="g", topic="t", classic=True), pace=0.5))
    first.append(batch(8))
    consumers.commit()
    first.append(batch(4))
    first.delete_records(10)
    consumers.commit()
    assert world.committed() == [(4, 0), (12, 0)]


def test_it_waits_behind_an_open_transaction(world: CoordinatedTopic) -> None:
    first, _ = world.sources
    consumers = world.begin(Reading(group=Group(name="g", topic="t", classic=True)))
    first.append(batch(2))
    first.append(batch(3, producer=7, transactional=True))
    first.append(batch(5))
    consumers.commit()
    first.append(commit(7))
    consumers.commit()
    consumers.commit()
    assert world.committed() == [(2, 0), (4, 0), (4, 0)]


def test_one_that_has_stopped_commits_the_same_offsets_again_and_again(world: CoordinatedTopic) -> None:
    first, _ = world.sources
    consumers = world.begin(Reading(group=Group(name="g", topic="t"), stops_after_ms=COMMIT_MS * 2))
    for _ in range(4):
        first.append(batch(2))
        consumers.commit()
    assert world.committed() == [(2, 0), (2, 0), (2, 0), (2, 0)]


def test_members_join_one_after_the_other_and_share_the_partitions(world: CoordinatedTopic) -> None:
    coordinator = GroupCoordinator([world.log])
    coordinator.join(Group(name="new", topic="t", members=2), world.sources, NOW)
    coordinator.join(Group(name="old", topic="t", members=2, classic=True), world.sources, NOW)
    epochs = [value for key, value in world.written() if key == ConsumerGroupKey(KeyType.CONSUMER_GROUP_METADATA, "new")]
    assert [getattr(epoch, "epoch", None) for epoch in epochs] == [1, 2]
    generations = [value for _, value in world.written() if isinstance(value, GroupMetadata)]
    assert [(each.generation, len(each.members)) for each in generations] == [(1, 1), (2, 2)]
