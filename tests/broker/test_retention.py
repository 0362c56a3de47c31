"""What is said about retention from a broker's disk, held against what the broker then does."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from streaming.disk.logdirs import open_log_dirs
from streaming.offline.partition_retention import Row, keep
from streaming.settings import Settings
from tests.broker.clients import SECONDS, create_topic, delete_topic, producer
from tests.broker.kafka import Kafka
from tests.broker.oracle import log_sizes

HOUR, MINUTE = 3_600_000, 60_000
NEVER = 24 * HOUR
_HOURLY = {"retention.ms": str(HOUR), "internal.segment.bytes": "8000"}  # less than two batches: each begins a segment

TOPICS: Mapping[str, tuple[Mapping[str, str], tuple[int, ...]]] = {
    "by-time": (_HOURLY, (-180, -170, -120, -10, -5)),
    "all-gone": (_HOURLY, (-180, -170)),
    "idle": ({"retention.ms": str(HOUR)}, (-180, -170, -160)),
    "future": (_HOURLY, (30, -180, -170)),
    "head-of-line": (_HOURLY, (-10, -180, -170)),
    "active": ({"retention.ms": str(HOUR)}, (-180, -10)),
    "by-size": ({"retention.ms": "-1", "retention.bytes": "12000", "internal.segment.bytes": "8000"}, (-6, -5, -4, -3, -2, -1)),
    "records-deleted": ({"retention.ms": "-1", "internal.segment.bytes": "8000"}, (-6, -5, -4, -3)),
    "unlimited": ({"retention.ms": "-1", "internal.segment.bytes": "8000"}, (-5000, -4000)),
    "by-the-broker": ({"internal.segment.bytes": "8000"}, (-600, -500, -10)),
    "born-again": (_HOURLY, (-180, -10)),
    "changed-while-running": ({"retention.ms": "-1", "internal.segment.bytes": "8000"}, (-180, -170, -1)),
}
"""Configurations of each topic, and how many minutes from now the batches are that it is given, 40 records of 150 bytes each."""

BLOCKED = {"future": "future_timestamp", "head-of-line": "head_of_line", "active": "active_segment"}


@pytest.fixture(scope="module")
def kafka_that_keeps(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A broker that does not look for what to delete, stopped, with `TOPICS` on its disk."""
    settings = {"log.initial.task.delay.ms": NEVER, "log.retention.check.interval.ms": NEVER, "log.retention.minutes": 480}
    kafka = Kafka(tmp_path_factory.mktemp("kafka-that-keeps"), settings=settings)
    try:
        kafka.start()
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        create_topic(kafka.bootstrap, "born-again", config=_HOURLY)
        _fill(kafka, "born-again", (-900,))
        delete_topic(kafka.bootstrap, "born-again")
        for topic, (config, minutes) in TOPICS.items():
            create_topic(kafka.bootstrap, topic, config=config)
            _fill(kafka, topic, minutes)
        admin.delete_records([TopicPartition("records-deleted", 0, 95)])[TopicPartition("records-deleted", 0)].result(SECONDS)
        kafka.stop()
        yield kafka
    finally:
        kafka.kill()


def _fill(kafka: Kafka, topic: str, minutes: tuple[int, ...]) -> None:
    client = producer(kafka.bootstrap)
    now = int(time.time() * 1000)
    failures: list[object] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    for minute in minutes:
        for _ in range(40):
            client.produce(topic, b"x" * 150, partition=0, timestamp=now + minute * MINUTE, on_delivery=delivered)
        assert (client.flush(SECONDS), failures) == (0, [])


def _look(kafka: Kafka) -> dict[str, Row]:
    (node,) = kafka.nodes
    settings = Settings(server_properties=(node.properties,))
    judged = keep(open_log_dirs(node.log_dirs), None, settings, int(time.time() * 1000)).rows
    return {row.topic: row for row in judged if row.topic in TOPICS}


def _predicted(judged: Mapping[str, Row]) -> dict[str, list[int]]:
    """The base offsets of the segments that will be left: without the prefix that is reclaimable, a new one where that is everything."""
    left = {}
    for topic, row in judged.items():
        reclaimable = row.retention_reclaimable_bytes
        assert reclaimable is not None
        segments = sorted((int(path.stem), path.stat().st_size) for path in Path(row.log_dir).glob(f"{topic}-0/*.log"))
        while reclaimable:
            reclaimable -= segments.pop(0)[1]
        left[topic] = [base for base, _ in segments] or [row.log_end_offset]
    return left


def _on_disk(kafka: Kafka) -> dict[str, list[int]]:
    directories = [path for log_dir in kafka.log_dirs for path in log_dir.iterdir() if path.name.removesuffix("-0") in TOPICS]
    return {path.name.removesuffix("-0"): _bases(path) for path in directories}


def _bases(directory: Path) -> list[int]:
    return sorted(int(path.stem) for path in directory.glob("*.log"))


def test_kafka_deletes_exactly_the_segments_that_were_predicted(kafka_that_keeps: Kafka) -> None:
    kafka = kafka_that_keeps
    judged = _look(kafka)
    predicted = _predicted(judged)
    before = _on_disk(kafka)
    assert set(predicted) == set(TOPICS)
    assert {topic for topic in TOPICS if predicted[topic] != before[topic]} == {
        *("by-time", "all-gone", "idle", "by-size", "records-deleted", "by-the-broker", "born-again")
    }
    assert {topic: row.retention_blocked for topic, row in judged.items() if row.retention_blocked} == BLOCKED
    assert judged["records-deleted"].log_start_offset == 95
    assert (judged["by-the-broker"].limit_source, judged["by-the-broker"].retention_limit_seconds) == ("static", 480 * 60)

    kafka.configure({"log.initial.task.delay.ms": 500, "log.retention.check.interval.ms": 1000})
    kafka.start()
    kafka.until(lambda: _on_disk(kafka) == predicted, f"the segments are {predicted}; they are {_on_disk(kafka)}")

    _set(kafka, "changed-while-running", "retention.ms", str(HOUR))
    changed = {**predicted, "changed-while-running": [80]}
    kafka.until(lambda: _on_disk(kafka) == changed, "a changed limit has taken effect")  # by a later check: the others are as they were

    judged = _look(kafka)
    assert _predicted(judged) == changed
    assert judged["changed-while-running"].retention_limit_seconds == HOUR / 1000
    sizes = log_sizes(kafka)
    assert {topic: row.size_bytes for topic, row in judged.items()} == {topic: sizes[1, topic, 0] for topic in judged}


def _set(kafka: Kafka, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)
