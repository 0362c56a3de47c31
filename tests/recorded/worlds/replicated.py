"""Three brokers with a replicated topic, one of which was killed, missed records and came back; all of them are in sync and at rest."""

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict

from confluent_kafka.admin import AdminClient, TopicMetadata  # type: ignore[attr-defined]

from tests.broker.clients import create_topic, producer, send
from tests.broker.kafka import Kafka
from tests.broker.oracle import end_offsets, log_totals
from tests.limits import SECONDS
from tests.recorded.making import Making
from tests.recorded.worlds.resting import rest

TOPIC = "run.replicated"
PARTITIONS = 4
NODES = 3
_VICTIM = 3


def make(making: Making) -> None:
    """Totals are those of one broker's logs: every partition is on each of them."""
    kafka = Kafka(making.directory / "kafka", nodes=NODES, version=making.version)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        create_topic(kafka.bootstrap, TOPIC, partitions=PARTITIONS)
        client = producer(kafka.bootstrap, "gzip")
        kafka.kill(_VICTIM)
        for partition in range(PARTITIONS):
            send(client, TOPIC, partition, 2, 10 + partition)
        kafka.start(_VICTIM)

        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})

        def topics() -> Iterable[TopicMetadata]:
            return admin.list_topics(timeout=SECONDS).topics.values()

        def in_sync() -> list[int]:
            return [len(state.isrs) for topic in topics() for state in topic.partitions.values()]

        kafka.until(lambda: set(in_sync()) == {NODES}, "all replicas are in sync", in_sync)
        ends = end_offsets(kafka)
        rest(kafka, ends)
        leaders = [(number, state.leader) for topic in topics() if topic.topic == TOPIC for number, state in topic.partitions.items()]
        making.answer("leaders", leaders, by="a broker, to librdkafka")
        making.answer("ends", [(*place, offset) for place, offset in ends.items()], by="kafka-get-offsets --time -1")
        totals = log_totals(kafka.brokers[0].log_dirs)
        making.answer("totals", [(*place, asdict(found)) for place, found in totals.items()], by="kafka-dump-log")
        making.disk(kafka)
