"""A disk before and after limits were lowered, after a topic was deleted, and with a replica that the broker does not know."""

import shutil
from contextlib import ExitStack
from pathlib import Path

from tests.broker.clients import create_topic, delete_topic
from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import run_tool
from tests.recorded.making import Making
from tests.recorded.worlds.resting import settle
from tests.recorded.worlds.retention import bases, fill, set_config

TRIALS = {
    "by-time": ("retention.ms", 3_600_000),
    "by-size": ("retention.bytes", 12_000),
    "young": ("retention.ms", 3_600_000),
    "idle": ("retention.ms", 3_600_000),
}
"""What is tried on each topic, and then set."""

MINUTES = {"by-time": (-180, -170, -120, -10, -5), "by-size": (-6, -5, -4, -3, -2, -1), "young": (-9, -8, -7), "idle": (-180, -170)}
_SEGMENTS = {"retention.ms": "-1", "internal.segment.bytes": "8000"}


def make(making: Making) -> None:
    """The states are `before`, `limited`, `deleted`, `unknown` (the broker is stopped) and `stray`."""
    settings = {"log.initial.task.delay.ms": 500, "log.retention.check.interval.ms": 1000}
    kafka = Kafka(making.directory / "kafka", settings=settings, version=making.version)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        for topic, minutes in MINUTES.items():
            create_topic(kafka.bootstrap, topic, config=_SEGMENTS)
            fill(kafka, topic, minutes)
        create_topic(kafka.bootstrap, "gone", config=_SEGMENTS)
        fill(kafka, "gone", (-3, -2))
        settle(kafka, lambda: bases(kafka), "the disk")
        making.answer("sizes", run_tool("log-dirs", "--bootstrap-server", kafka.bootstrap, "--describe"), by="kafka-log-dirs --describe")
        making.disk(kafka, "before")
        before = bases(kafka)

        for topic, (name, value) in TRIALS.items():
            set_config(kafka, topic, name, str(value))
        kafka.until(lambda: bases(kafka) != before, "something is deleted")
        settle(kafka, lambda: bases(kafka), "what the broker has left")
        making.disk(kafka, "limited")

        delete_topic(kafka.bootstrap, "gone")
        kafka.until(lambda: there(kafka, "gone-0.*-delete") != [], "the directory is being deleted")
        making.disk(kafka, "deleted")

        kafka.stop()
        (here,) = there(kafka, "young-0")
        ghost = shutil.copytree(here, here.with_name("ghost-0"))
        (ghost / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAZQ")
        making.disk(kafka, "unknown")
        kafka.start()
        kafka.until(lambda: there(kafka, "*-stray") != [], "the broker has put the replica aside")
        making.disk(kafka, "stray")


def there(kafka: Kafka, pattern: str) -> list[Path]:
    """Directories in the log dirs."""
    return [path for log_dir in kafka.log_dirs for path in log_dir.glob(pattern)]
