"""A disk on which retention has much to delete, the same disk when the broker has done so, and once more after a change of limits."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.broker.clients import create_topic, delete_topic, producer
from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import run_tool
from tests.limits import SECONDS
from tests.recorded.making import Making
from tests.recorded.worlds.resting import settle

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


def make(making: Making) -> None:
    """The states are `before`, when the broker has not looked for what to delete, `after` and `changed`."""
    settings = {"log.initial.task.delay.ms": NEVER, "log.retention.check.interval.ms": NEVER, "log.retention.minutes": 480}
    kafka = Kafka(making.directory / "kafka", settings=settings, version=making.version)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        create_topic(kafka.bootstrap, "born-again", config=_HOURLY)
        fill(kafka, "born-again", (-900,))
        delete_topic(kafka.bootstrap, "born-again")
        for topic, (config, minutes) in TOPICS.items():
            create_topic(kafka.bootstrap, topic, config=config)
            fill(kafka, topic, minutes)
        admin, offset = AdminClient({"bootstrap.servers": kafka.bootstrap}), TopicPartition("records-deleted", 0, 95)
        admin.delete_records([offset])[offset].result(SECONDS)
        kafka.stop()
        making.disk(kafka, "before")
        before = bases(kafka)

        kafka.configure({"log.initial.task.delay.ms": 500, "log.retention.check.interval.ms": 1000})
        kafka.start()
        kafka.until(lambda: bases(kafka) != before, "something is deleted")
        settle(kafka, lambda: bases(kafka), "what the broker has left")
        making.disk(kafka, "after")
        after = bases(kafka)

        set_config(kafka, "changed-while-running", "retention.ms", str(HOUR))
        kafka.until(lambda: bases(kafka) != after, "a changed limit has taken effect")
        settle(kafka, lambda: bases(kafka), "what the broker has left after a change")
        making.answer("sizes", run_tool("log-dirs", "--bootstrap-server", kafka.bootstrap, "--describe"), by="kafka-log-dirs --describe")
        making.disk(kafka, "changed")


def fill(kafka: Kafka, topic: str, minutes: tuple[int, ...]) -> None:
    """A batch for each of these, so many minutes from now."""
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


def set_config(kafka: Kafka, topic: str, name: str, value: str) -> None:
    """One configuration of a topic."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)


def bases(kafka: Kafka) -> dict[Path, list[int]]:
    """The base offsets of all segments, by directory."""
    found: dict[Path, list[int]] = {}
    for log_dir in kafka.log_dirs:
        for segment in log_dir.glob("*-0/*.log"):
            found.setdefault(segment.parent, []).append(int(segment.stem))
    return {directory: sorted(offsets) for directory, offsets in found.items()}
