"""Three brokers, two of which are killed and come back, and how far their leaders say that topics are replicated."""

from contextlib import ExitStack

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from tests.broker.clients import create_topic, send
from tests.broker.kafka import Kafka
from tests.limits import SECONDS
from tests.recorded.making import Making
from tests.recorded.worlds.resting import rest, settle

TOPICS = {"strict": {"min.insync.replicas": "2"}, "lax": {"min.insync.replicas": "1"}, "alone": {"min.insync.replicas": "2"}}
NODES = 3
FIRST, THEN = 20, 30
"""How many records each topic is given before the loss, and below min ISR."""

_CHECKPOINT = "replication-offset-checkpoint"


def make(making: Making) -> None:
    """The states are `replicated`, `below` (min ISR) and `back`; of each the leaders' answers are kept."""
    kafka = Kafka(making.directory / "kafka", nodes=NODES, controller=True, version=making.version)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        for topic, config in TOPICS.items():
            create_topic(kafka.bootstrap, topic, replicas=_replicas(topic), config=config)
        acks_1 = Producer({"bootstrap.servers": kafka.bootstrap, "acks": 1, "linger.ms": 30_000})
        for topic in TOPICS:
            send(acks_1, topic, 0, 2, FIRST // 2)
        # A follower that never heard of the mark and becomes the leader below min ISR has no answer until another replica is back.
        wanted = {topic: [FIRST] * _replicas(topic) for topic in TOPICS}
        kafka.until(lambda: marks(kafka) == wanted, "each replica knows its mark", lambda: marks(kafka))
        _keep(making, kafka, "replicated")

        stays = leaders(kafka)["alone"][0]
        others = {node.node_id for node in kafka.brokers} - {stays}
        kafka.kill(*others)
        alone = {topic: (stays, {stays}) for topic in TOPICS}
        kafka.until(lambda: leaders(kafka) == alone, "all are led by the one that is left, alone in sync", lambda: leaders(kafka))
        for topic in TOPICS:
            send(acks_1, topic, 0, 3, THEN // 3)
        kafka.until(lambda: min(told(kafka).values()) >= 0, "the leader knows its marks", lambda: told(kafka))
        settle(kafka, lambda: told(kafka), "what the leader says")
        _keep(making, kafka, "below")

        kafka.start(*others)
        kafka.until(lambda: {*told(kafka).values()} == {FIRST + THEN}, "all of it is replicated", lambda: told(kafka))
        _keep(making, kafka, "back")


def _keep(making: Making, kafka: Kafka, state: str) -> None:
    answers = told(kafka)
    making.answer(f"{state}_uncommitted", answers, by="the leaders, to librdkafka's ListOffsets")
    making.answer(f"{state}_committed", told(kafka, IsolationLevel.READ_COMMITTED), by="the leaders, to librdkafka's ListOffsets")
    rest(kafka, {(topic, 0): offset for topic, offset in answers.items()})
    making.disk(kafka, state)


def told(kafka: Kafka, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED) -> dict[str, int]:
    """The high watermarks, or the last stable offsets, as the leaders tell them; -1 where one is too new a leader to know."""
    return {topic: _told(kafka, TopicPartition(topic, 0), isolation) for topic in TOPICS}


def _told(kafka: Kafka, asked: TopicPartition, isolation: IsolationLevel) -> int:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    try:
        return admin.list_offsets({asked: OffsetSpec.latest()}, isolation_level=isolation)[asked].result(SECONDS).offset  # type: ignore[no-untyped-call,no-any-return]
    except KafkaException as error:
        if error.args[0].code() == KafkaError.OFFSET_NOT_AVAILABLE:
            return -1
        raise


def leaders(kafka: Kafka) -> dict[str, tuple[int, set[int]]]:
    """Each topic's leader and in-sync replicas."""
    found = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=SECONDS).topics
    return {topic: (found[topic].partitions[0].leader, set(found[topic].partitions[0].isrs)) for topic in TOPICS}


def marks(kafka: Kafka) -> dict[str, list[int]]:
    """The high watermark as each replica of a topic's only partition has written it down."""
    lines = [line.split() for log_dir in kafka.log_dirs if (path := log_dir / _CHECKPOINT).exists() for line in path.open()]
    return {topic: [int(line[2]) for line in lines if line[:2] == [topic, "0"]] for topic in TOPICS}


def _replicas(topic: str) -> int:
    return 1 if topic == "alone" else NODES
