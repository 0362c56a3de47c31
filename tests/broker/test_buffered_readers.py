"""Real consumers that fetch ahead of what they process, while records are deleted: what a job counts as lost is what they write down."""

import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from streaming.cluster.consumers.group_tracker import GroupTracker
from streaming.cluster.view.family import EVERYTHING
from streaming.common.settings import Settings
from tests.broker.clients import create_topic, producer
from tests.broker.kafka import Kafka
from tests.limits import SECONDS
from tests.worlds.group_job import STOPPED_AFTER_MS, reported_by_job

_AT_ONCE, _BETWEEN_MS = 40, 2_000
_SMALL = {"queued.max.messages.kbytes": 60, "fetch.message.max.bytes": 20_000}
"""So that some hundred records of a hundred bytes are fetched ahead."""


@dataclass
class Reader:
    """A consumer, and a job that looks after each of its commits as if some seconds had passed."""

    kafka: Kafka
    topic: str
    protocol: str
    directory: Path
    offset: int = -1  # the last that it has got
    missed: int = 0
    looks: int = 0

    def __post_init__(self) -> None:
        protocol = {"group.protocol": self.protocol} if self.protocol == "consumer" else {}
        own = {"bootstrap.servers": self.kafka.bootstrap, "group.id": self.topic, "auto.offset.reset": "earliest"}
        self.consumer = Consumer(own | {"enable.auto.commit": False} | _SMALL | protocol)
        self.consumer.subscribe([self.topic])
        self.tracker = GroupTracker(EVERYTHING, STOPPED_AFTER_MS)
        self.began_ms = time.time_ns() // 1_000_000

    def read(self) -> None:
        """Read some records, commit, and look."""
        got = 0
        while got < _AT_ONCE:
            message = self.consumer.poll(SECONDS)
            assert message is not None
            offset = message.offset()
            assert offset is not None, message.error()
            self.missed += offset - self.offset - 1
            self.offset, got = offset, got + 1
        self.consumer.commit(offsets=[TopicPartition(self.topic, 0, self.offset + 1)], asynchronous=False)
        self.look()

    def look(self) -> None:
        self.looks += 1
        settings, at_ms = Settings(server_properties=(self.kafka.broker(1).properties,)), self.began_ms + self.looks * _BETWEEN_MS
        found = reported_by_job(self.kafka.log_dirs, self.directory / f"journal{self.looks}", at_ms, self.tracker, settings)
        (self.found,) = found[self.topic].partitions

    @property
    def lost(self) -> int:
        """What the job has counted as lost."""
        return self.found.lost_lately_records + self.found.lost_lately_offsets


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_counts_as_lost_is_what_a_consumer_has_not_got(kafka: Kafka, tmp_path: Path, protocol: str) -> None:
    topic = f"buffered-{protocol}"
    create_topic(kafka.bootstrap, topic)
    writer = producer(kafka.bootstrap)
    for _ in range(40):
        for _ in range(50):
            writer.produce(topic, b"x" * 100, partition=0)
        assert writer.flush(SECONDS) == 0
    reader = Reader(kafka, topic, protocol, tmp_path)
    for _ in range(5):
        reader.read()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.delete_records([TopicPartition(topic, 0, 1500)])[TopicPartition(topic, 0)].result(SECONDS)
    reader.look()
    assert (reader.lost, reader.found.buffered_offsets, reader.found.verdict) == (0, 1500 - 5 * _AT_ONCE, "buffered")
    while reader.offset < 1500:
        assert reader.lost == 0
        reader.read()
    assert reader.missed > 0
    assert abs(reader.lost - reader.missed) <= _AT_ONCE, "how much it read between a commit and a reset is on no disk"
    assert reader.found.buffered_offsets == 0
    reader.consumer.close()
