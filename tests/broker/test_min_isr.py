"""High watermarks of brokers that have lost their followers, held against their own answers."""

import time
from collections.abc import Iterator
from functools import partial

import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from streaming.disk.logdirs import open_log_dirs, read_offset_checkpoint
from streaming.kafka.names import HIGH_WATERMARK_CHECKPOINT
from streaming.offline.partition_retention import Row, keep
from streaming.settings import Settings
from tests.broker.clients import SECONDS, create_topic, send
from tests.broker.kafka import Kafka

SETTINGS = Settings(broker_config={"log.retention.hours": "168"})  # what else a broker has is known to be Kafka's default
TOPICS = {"strict": {"min.insync.replicas": "2"}, "lax": {"min.insync.replicas": "1"}, "alone": {"min.insync.replicas": "2"}}


@pytest.fixture(scope="module")
def three(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Three brokers beside a controller of its own, so that two of them may die."""
    kafka = Kafka(tmp_path_factory.mktemp("min-isr"), nodes=3, controller=True)
    try:
        kafka.start()
        for topic, config in TOPICS.items():
            create_topic(kafka.bootstrap, topic, replicas=1 if topic == "alone" else 3, config=config)
        yield kafka
    finally:
        kafka.kill()


def told(kafka: Kafka, topic: str, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED) -> int:
    """The high watermark, or the last stable offset, as the leader tells it; -1 where it is too new a leader to know."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    asked = TopicPartition(topic, 0)
    try:
        return admin.list_offsets({asked: OffsetSpec.latest()}, isolation_level=isolation)[asked].result(SECONDS).offset  # type: ignore[no-untyped-call,no-any-return]
    except KafkaException as error:
        if error.args[0].code() == KafkaError.OFFSET_NOT_AVAILABLE:
            return -1
        raise


def leader_and_isr(kafka: Kafka, topic: str) -> tuple[int, set[int]]:
    state = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(topic, timeout=SECONDS).topics[topic].partitions[0]
    return state.leader, set(state.isrs)


def seen(kafka: Kafka, topic: str) -> Row:
    """The log that speaks for the partition, from the disks of all brokers."""
    (found,) = keep(open_log_dirs(kafka.log_dirs), topic, SETTINGS, time.time_ns() // 1_000_000).rows
    return found


def replicas_marks(kafka: Kafka, topic: str) -> list[int]:
    """The high watermark as each replica of a topic's only partition has written it down, the highest first."""
    entries = (
        entry for log_dir in open_log_dirs(kafka.log_dirs) for entry in read_offset_checkpoint(log_dir, HIGH_WATERMARK_CHECKPOINT) or ()
    )
    return sorted((entry.offset for entry in entries if entry.topic == topic), reverse=True)


def await_mark(kafka: Kafka, topic: str, mark: int) -> None:
    """Until the broker and its disk say the same high watermark."""
    kafka.until(
        lambda: seen(kafka, topic).high_watermark == told(kafka, topic) == mark,
        f"the high watermark of {topic} is {mark}",
        lambda: (seen(kafka, topic), told(kafka, topic)),
    )


def test_below_min_isr_a_leader_stands_and_what_is_appended_with_one_ack_is_not_replicated(three: Kafka) -> None:
    acks_1 = Producer({"bootstrap.servers": three.bootstrap, "acks": 1, "linger.ms": 30_000})
    for topic in TOPICS:
        send(acks_1, topic, 0, 2, 10)
    for topic in TOPICS:
        await_mark(three, topic, 20)
        # A follower that never heard of the mark and becomes the leader below min ISR has no answer until another replica is back.
        replicas = 1 if topic == "alone" else 3
        marks = partial(replicas_marks, three, topic)
        three.until(lambda marks=marks, each=[20] * replicas: marks() == each, f"each replica of {topic} knows its mark", marks)

    stays, _ = leader_and_isr(three, "alone")
    three.kill(*{1, 2, 3} - {stays})
    for topic in TOPICS:
        state = partial(leader_and_isr, three, topic)
        three.until(lambda state=state: state() == (stays, {stays}), f"{topic} is led by the one that is left, alone in sync", state)
    for topic in TOPICS:
        send(acks_1, topic, 0, 3, 10)

    for topic, high_watermark in (("strict", 20), ("lax", 50), ("alone", 50)):
        await_mark(three, topic, high_watermark)
        found = seen(three, topic)
        assert (found.log_end_offset, found.high_watermark) == (50, high_watermark)
        assert told(three, topic, IsolationLevel.READ_COMMITTED) == high_watermark

    three.start(*{1, 2, 3} - {stays})
    for topic in TOPICS:
        await_mark(three, topic, 50)
