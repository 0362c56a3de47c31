"""A healthy cluster, and what is counted in it."""

from streaming.broker.protocol.cluster_messages import AffectedPartition, PartitionCounts, PartitionName, TopicCounts
from streaming.broker.protocol.status_messages import BrokerStatus
from tests.worlds.hosts import broker


def counting(
    number: int, offset: int, *topics: TopicCounts, affected: tuple[AffectedPartition, ...] = (), recovering: tuple[PartitionName, ...] = ()
) -> BrokerStatus:
    counts = PartitionCounts(list(topics), list(affected), list(recovering)).pack()
    return broker(number, metadata_offset=offset, counts=counts, counts_name="name")


ORDERS = TopicCounts(topic="orders", partitions=12, offline=2, under_min_isr=3, under_replicated=4)


HEALTHY = TopicCounts(topic="clicks", partitions=5)
