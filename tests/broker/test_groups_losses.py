"""When a group that stands still loses its first unread record: what is predicted, held against the broker that deletes it."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from tests.broker.clients import SECONDS, create_topic
from tests.broker.group_comparing import Told, told_offline
from tests.broker.kafka import Kafka
from tests.broker.retention_checks import LOGGER, disproved
from tests.processes import until

CHECK_MS = 2_000
_BROKER = {"log.initial.task.delay.ms": 500, "log.retention.check.interval.ms": CHECK_MS}
_BATCH = (10, 90)  # records, bytes of each
_EVERY_SECONDS = 0.25
_SMALL = {"internal.segment.bytes": "6000"}
TOPICS = {
    "by-time": {**_SMALL, "retention.ms": "32000"},
    "by-size": {**_SMALL, "retention.ms": "-1", "retention.bytes": "120000"},  # of some 4 KB a second
}
_GROUP = "stands-still"
_COMMITTED = 75
"""In the middle of a batch of the second segment."""


@pytest.fixture(scope="module")
def kafka_that_deletes(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    kafka = Kafka(tmp_path_factory.mktemp("kafka-that-deletes"), settings=_BROKER, tells=[LOGGER])
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.kill()


@dataclass(slots=True)
class Appender:
    """``latest_seconds`` is the most by which a batch came after its time: a machine that is busy keeps no rate."""

    latest_seconds: float = 0.0


@contextmanager
def appending(kafka: Kafka) -> Iterator[Appender]:
    """A batch for each topic at equal distances, until the block ends."""
    over = threading.Event()
    client = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 30_000})
    records, size = _BATCH
    appender = Appender()

    def append() -> None:
        at = time.monotonic()
        while not over.wait(max(0.0, at - time.monotonic())):
            for topic in TOPICS:
                for _ in range(records):
                    client.produce(topic, b"x" * size, partition=0)
            assert client.flush(SECONDS) == 0
            appender.latest_seconds = max(appender.latest_seconds, time.monotonic() - at)
            at += _EVERY_SECONDS

    with ThreadPoolExecutor(1) as threads:
        appends = threads.submit(append)
        try:
            yield appender
        finally:
            over.set()
        appends.result()


def ends(admin: AdminClient, which: OffsetSpec) -> dict[str, int]:
    asked = {Partition(topic, 0): which for topic in TOPICS}
    return {partition.topic: answer.result(SECONDS).offset for partition, answer in admin.list_offsets(asked).items()}  # type: ignore[no-untyped-call]


def commit(kafka: Kafka, offset: int) -> None:
    """A group without members, which stands still after that."""
    client = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": _GROUP})
    client.commit(offsets=[Partition(topic, 0, offset) for topic in TOPICS], asynchronous=False)
    client.close()


def bases(kafka: Kafka, topic: str) -> list[int]:
    """The base offsets of its segments."""
    return sorted(int(path.stem) for log_dir in kafka.log_dirs for path in log_dir.glob(f"{topic}-0/*.log"))


def told(kafka: Kafka) -> dict[str, Told]:
    """What segtail says of the group, by topic."""
    return {topic: partition for (group, topic, _), partition in told_offline(kafka).items() if group == _GROUP}


@dataclass(slots=True)
class Fate:
    """When the first unread record of a topic was last seen and first seen to be gone, Unix milliseconds."""

    there_ms: int = 0
    gone_ms: int = 0


def deleted(admin: AdminClient) -> dict[str, Fate]:
    """By topic; waits for it."""
    fates = {topic: Fate() for topic in TOPICS}

    def all_gone() -> bool:
        asked_ms = now_ms()
        for topic, start in ends(admin, OffsetSpec.earliest()).items():
            if start <= _COMMITTED:
                fates[topic].there_ms = asked_ms
            elif not fates[topic].gone_ms:
                fates[topic].gone_ms = now_ms()
        return all(fate.gone_ms for fate in fates.values())

    until("the broker has deleted what was not read", all_gone, saw=lambda: fates)
    return fates


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_the_first_unread_record_is_deleted_by_the_check_after_the_time_that_is_predicted(kafka_that_deletes: Kafka) -> None:
    kafka = kafka_that_deletes
    for topic, config in TOPICS.items():
        create_topic(kafka.bootstrap, topic, config=config)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    until("the broker knows the topics", lambda: TOPICS.keys() <= admin.list_topics(timeout=SECONDS).topics.keys())
    with appending(kafka) as appender:
        until("the second segments are closed", lambda: min(ends(admin, OffsetSpec.latest()).values()) > 3 * _COMMITTED)
        commit(kafka, _COMMITTED)
        predicted = until("the commit is replicated", lambda: both if (both := told(kafka)).keys() == TOPICS.keys() else None)
        following = {topic: next(base for base in bases(kafka, topic) if base > _COMMITTED) for topic in TOPICS}
        assert max(ends(admin, OffsetSpec.earliest()).values()) <= _COMMITTED, "it was told before it was gone"
        fates = deleted(admin)
    for topic, fate in fates.items():
        said = predicted[topic]
        # at the latest check that deletes it, as far as is known here: without server.properties that is 5 minutes later
        assert following[topic] - _COMMITTED <= said["loss_records"] <= said["lag_records_read_committed"]
        slack_ms = CHECK_MS + round(2000 * appender.latest_seconds) if topic == "by-size" else 0
        node = kafka.broker(1)
        wrong = disproved(node, said["loss_ms"], there_ms=fate.there_ms, gone_ms=fate.gone_ms, early_ms=slack_ms, late_ms=slack_ms)
        assert not wrong, (topic, wrong)
    for topic, said in told(kafka).items():
        assert said["log_start"] > _COMMITTED
        assert said["lost_offsets"] == said["log_start"] - _COMMITTED, topic
