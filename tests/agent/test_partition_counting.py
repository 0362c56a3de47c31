"""Partitions without a leader, with too few in-sync replicas, under-replicated: counted by topic from a copy of the metadata log."""

from typing import Any
from uuid import UUID

import pytest

from streaming.broker.agent.cluster_view import PartitionCounter
from streaming.broker.protocol.cluster_messages import AffectedPartition, PartitionCounts, PartitionName, Reassignment, TopicCounts
from streaming.kafka.formats.cluster_image import ClusterImage
from streaming.kafka.formats.wire import uuid_text
from streaming.rules.limits import KAFKA_3_7
from streaming.simulator.batch_writer import Batch, Record, encode
from streaming.simulator.metadata_writer import (
    Feature,
    Listener,
    ReplicaSet,
    partition_change_record,
    partition_record,
    register_broker_record,
    topic_record,
)
from tests.formats.real_clusters import CLUSTERS, expected, log_of
from tests.simulated import remove_topic_record
from tests.tables import each_row

ORDERS = UUID(int=1 << 70 | 1)
KAFKA_3_6 = KAFKA_3_7 - 1
ALL = (1, 2, 3)


class Metadata:
    """A metadata log of our own with three brokers, and what is counted of it."""

    def __init__(self, *, version: int = KAFKA_3_7, min_isr: int = 1) -> None:
        self.image = ClusterImage()
        self.min_isr = min_isr
        self.counter = PartitionCounter(lambda _: self.min_isr)
        for broker in ALL:
            features = [Feature("group.version", 0, 1), Feature("metadata.version", 1, version)]
            self.write(register_broker_record(broker, UUID(int=broker), 1, Listener("PLAINTEXT", "h", 9092), features, []))

    def write(self, *values: bytes) -> None:
        batch = Batch(records=tuple(Record(value=value, timestamp=1) for value in values))
        self.image.apply(memoryview(encode(batch, self.image.next_offset, 1)))

    def topic(self, partitions: int = 1, *, topic_id: UUID = ORDERS, name: str = "orders") -> None:
        self.write(topic_record(name, topic_id))
        for number in range(partitions):
            self.write(partition_record(ReplicaSet(partition=number, topic_id=topic_id, replicas=ALL, isr=ALL, leader=1)))

    def change(self, partition: int = 0, **values: Any) -> None:
        self.write(partition_change_record(partition, ORDERS, **values))

    @property
    def counts(self) -> PartitionCounts:
        return self.counter.count(self.image)

    @property
    def orders(self) -> tuple[int, int, int]:
        """Offline, under min ISR, under-replicated."""
        (counts,) = (each for each in self.counts.topics if each.topic == "orders")
        return counts.offline, counts.under_min_isr, counts.under_replicated


@pytest.fixture
def metadata() -> Metadata:
    made = Metadata()
    made.topic()
    return made


@each_row("cluster", CLUSTERS)
def test_of_real_clusters_they_are_what_kafka_s_tools_say(cluster: str) -> None:
    image = ClusterImage()
    image.apply(log_of(cluster))
    counts = PartitionCounter(lambda _: 1).count(image)
    for topic in counts.topics:
        partitions = [row for row in expected(cluster) if row[0] == topic.topic]
        short = sum(len(replicas.split(",")) > len(isr.split(",")) for *_, replicas, isr in partitions)
        offline = sum(leader < 0 for _, _, _, leader, *_ in partitions)
        assert (topic.partitions, topic.offline, topic.under_replicated) == (len(partitions), offline, short)
    assert {topic.topic for topic in counts.topics} == {row[0] for row in expected(cluster)}


def test_healthy_topics_are_counted_and_nothing_more_is_stated(metadata: Metadata) -> None:
    assert metadata.counts == PartitionCounts([TopicCounts(topic="orders", partitions=1, topic_id=uuid_text(ORDERS.bytes))], [])


def test_a_partition_that_nobody_leads_is_offline_and_whoever_was_in_sync_must_come_back(metadata: Metadata) -> None:
    metadata.change(isr=(2,), leader=-1)
    assert metadata.orders == (1, 0, 1)
    (affected,) = metadata.counts.affected
    assert affected == AffectedPartition(
        topic="orders", partition=0, problem="offline", leader=-1, in_sync=[2], out_of_sync=[1, 3], electable=[2]
    )


def test_an_eligible_leader_replica_may_lead_without_loss_and_the_last_known_one_where_there_is_none(metadata: Metadata) -> None:
    metadata.change(isr=(), leader=-1, eligible=(2, 3))
    assert metadata.counts.affected[0].electable == [2, 3]
    metadata.change(eligible=(), last_eligible=(3,))
    assert metadata.counts.affected[0].electable == [3]


def test_replicas_that_a_reassignment_adds_are_not_missing_and_those_that_it_removes_are_until_it_is_through(metadata: Metadata) -> None:
    metadata.change(replicas=(1, 2, 3, 4, 5, 6), adding=(4, 5, 6), removing=(1, 2, 3))
    assert metadata.orders == (0, 0, 0)
    moving = Reassignment(topic="orders", partition=0, leader=1, adding=[4, 5, 6], removing=[1, 2, 3])
    assert metadata.counts.reassignments == [moving]
    metadata.change(isr=(1, 2))  # an original one falls out of sync
    assert metadata.orders == (0, 0, 1)
    assert metadata.counts.affected[0].out_of_sync == [3]
    metadata.change(isr=(1, 2, 4))  # as Kafka counts: so many in sync as there were replicas
    assert metadata.orders == (0, 0, 0)
    metadata.change(replicas=(4, 5, 6), adding=(), removing=(), isr=(4, 5, 6), leader=4)
    assert metadata.counts.reassignments == []


@pytest.mark.parametrize(("version", "under"), [(KAFKA_3_6, 1), (KAFKA_3_7, 0)])
def test_brokers_before_3_7_ask_for_min_insync_replicas_however_few_there_are(version: int, under: int) -> None:
    metadata = Metadata(version=version, min_isr=2)
    metadata.topic()
    metadata.change(replicas=(1,), isr=(1,))
    assert metadata.orders == (0, under, 0)


def test_fewer_in_sync_than_asked_for_is_under_min_isr_and_a_change_of_what_is_asked_for_counts(metadata: Metadata) -> None:
    metadata.change(isr=(1,))
    assert metadata.orders == (0, 0, 1)
    metadata.min_isr = 2
    assert metadata.orders == (0, 1, 1)
    assert [each.problem for each in metadata.counts.affected] == ["under_min_isr"]


def test_partitions_that_recover_from_an_unclean_election_are_named_until_they_have(metadata: Metadata) -> None:
    metadata.change(isr=(2,), leader=2, recovering=True)
    assert metadata.counts.recovering == [PartitionName("orders", 0)]
    metadata.change(isr=(2, 3), recovering=False)
    assert metadata.counts.recovering == []


@pytest.mark.parametrize(("version", "in_sync"), [(KAFKA_3_6, {"3/": 1, "1/": 1}), (KAFKA_3_7, {"3/3": 1, "1/3": 1})])
def test_where_no_metadata_sets_min_isr_how_many_are_in_sync_is_reported_for_the_job_to_judge(
    version: int, in_sync: dict[str, int]
) -> None:
    metadata = Metadata(version=version, min_isr=0)
    metadata.topic(2)
    metadata.change(isr=(1,))
    (counts,) = metadata.counts.topics
    assert (counts.in_sync, counts.under_min_isr, counts.under_replicated) == (in_sync, 0, 1)


def test_a_topic_that_is_gone_is_counted_no_more(metadata: Metadata) -> None:
    metadata.change(isr=(2,), leader=-1)
    assert metadata.orders == (1, 0, 1)
    metadata.write(remove_topic_record(ORDERS))
    assert metadata.counts == PartitionCounts([], [])


def test_another_image_is_counted_anew(metadata: Metadata) -> None:
    assert metadata.orders == (0, 0, 0)
    other = Metadata()
    other.topic()
    other.change(leader=-1)
    healthy = Metadata()
    healthy.topic()
    healthy.change(leader=2)
    assert [metadata.counter.count(each.image).topics[0].offline for each in (other, healthy)] == [1, 0]


def test_every_partition_is_named_the_worst_first_and_those_that_are_alike_once() -> None:
    metadata = Metadata(min_isr=2)
    metadata.topic(40, topic_id=UUID(int=1 << 70 | 2), name="clicks")
    metadata.topic(4_000)
    for partition in range(40):
        metadata.write(partition_change_record(partition, UUID(int=1 << 70 | 2), isr=(3, 2), leader=2 if partition < 39 else -1))
    for partition in range(4_000):
        metadata.change(partition, isr=(2, 3) if partition % 2 else (3, 2), leader=2)
    affected = metadata.counts.affected
    assert [(each.problem, each.topic, each.partitions) for each in affected] == [
        ("offline", "clicks", [39]),
        ("under_replicated", "clicks", [*range(39)]),
        ("under_replicated", "orders", [*range(4_000)]),
    ]
    assert len(metadata.counts.pack()) < 20_000
