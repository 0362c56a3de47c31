"""The metadata log on a live node's disk against what the brokers tell their clients."""

from confluent_kafka.admin import AdminClient

from streaming.kafka.checkpoint_files import parse_leader_epochs
from streaming.kafka.cluster_image import ClusterImage
from tests.broker.clients import SECONDS, create_topic, producer, send
from tests.broker.kafka import Kafka

TOPIC = "metadata.live"
PARTITIONS = range(3)


def test_leaders_after_the_loss_of_a_node_are_on_the_disk_of_the_others(kafka_cluster: Kafka) -> None:
    create_topic(kafka_cluster.bootstrap, TOPIC, partitions=len(PARTITIONS))
    kafka_cluster.kill(3)
    client = producer(kafka_cluster.bootstrap)
    for partition in PARTITIONS:
        send(client, TOPIC, partition, 1, 1)  # comes back when each partition has a living leader
    admin = AdminClient({"bootstrap.servers": kafka_cluster.bootstrap})
    told = admin.list_topics(TOPIC, timeout=SECONDS).topics[TOPIC].partitions

    image = ClusterImage()  # with one node of three gone, nothing is decided that the other two do not have on disk
    image.apply(memoryview((kafka_cluster.nodes[0].log_dirs[0] / "__cluster_metadata-0" / f"{0:020}.log").read_bytes()))

    topic_id = image.topic_id(TOPIC)
    assert topic_id is not None
    for number in PARTITIONS:
        state = image.partition(topic_id, number)
        assert state is not None
        assert state.leader == told[number].leader
        assert state.leader_epoch == leader_epoch_on_disk(kafka_cluster, state.leader, number)
    assert 3 in {broker.broker_id for broker in image.brokers() if broker.fenced}


def leader_epoch_on_disk(kafka: Kafka, node_id: int, partition: int) -> int:
    """A new leader writes its epoch down before it takes the first record."""
    node = next(node for node in kafka.nodes if node.node_id == node_id)
    directory = next(path for path in (log_dir / f"{TOPIC}-{partition}" for log_dir in node.log_dirs) if path.is_dir())
    return parse_leader_epochs((directory / "leader-epoch-checkpoint").read_bytes())[-1].epoch
