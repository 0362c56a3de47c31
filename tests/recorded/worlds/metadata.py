"""Three nodes of which one was killed: the metadata log of another one, and the leaders that it tells its clients."""

from contextlib import ExitStack

from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

from tests.broker.clients import create_topic, producer, send
from tests.broker.kafka import Kafka
from tests.limits import SECONDS
from tests.recorded.making import Making

TOPIC = "metadata.live"
PARTITIONS = 3
VICTIM = 3


def make(making: Making) -> None:
    """Leaders are rows of a partition and a broker."""
    kafka = Kafka(making.directory / "kafka", nodes=3, version=making.version)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        create_topic(kafka.bootstrap, TOPIC, partitions=PARTITIONS)
        kafka.kill(VICTIM)
        client = producer(kafka.bootstrap)
        for partition in range(PARTITIONS):
            send(client, TOPIC, partition, 1, 1)  # comes back when each partition has a living leader
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        told = admin.list_topics(TOPIC, timeout=SECONDS).topics[TOPIC].partitions
        making.answer("leaders", [(number, state.leader) for number, state in told.items()], by="a broker, to librdkafka")
        making.disk(kafka)
