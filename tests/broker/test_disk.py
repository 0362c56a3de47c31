"""What is said of a broker's disk, held against ``du``, kafka-log-dirs, and what the broker then deletes."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.disk.logdirs import open_log_dirs
from streaming.offline.disk_reading import Asked, read_disk
from streaming.protocol.disk_json import DiskAnswer
from streaming.settings import Settings
from streaming.usage.disk_answer import answer_of
from streaming.usage.what_if import parse_trial
from tests.broker.clients import create_topic, delete_topic
from tests.broker.kafka import Kafka
from tests.broker.oracle import log_sizes
from tests.broker.test_retention import _fill as fill
from tests.broker.test_retention import _set as set_config

TRIALS = {
    "by-time": ("retention.ms", 3_600_000),
    "by-size": ("retention.bytes", 12_000),
    "young": ("retention.ms", 3_600_000),
    "idle": ("retention.ms", 3_600_000),
}
"""What is tried on each topic, and then set."""

MINUTES = {"by-time": (-180, -170, -120, -10, -5), "by-size": (-6, -5, -4, -3, -2, -1), "young": (-9, -8, -7), "idle": (-180, -170)}
_SEGMENTS = {"retention.ms": "-1", "internal.segment.bytes": "8000"}


@pytest.fixture(scope="module")
def kafka(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    settings = {"log.initial.task.delay.ms": 500, "log.retention.check.interval.ms": 1000}
    made = Kafka(tmp_path_factory.mktemp("kafka-with-a-disk"), settings=settings)
    try:
        made.start()
        for topic, minutes in MINUTES.items():
            create_topic(made.bootstrap, topic, config=_SEGMENTS)
            fill(made, topic, minutes)
        create_topic(made.bootstrap, "gone", config=_SEGMENTS)
        fill(made, "gone", (-3, -2))
        yield made
    finally:
        made.kill()


def look(kafka: Kafka, *trials: str, by: str = "partition") -> DiskAnswer:
    (node,) = kafka.nodes
    asked = Asked(now_ms=int(time.time() * 1000), trials=[parse_trial(each) for each in trials])
    found = read_disk(open_log_dirs(node.log_dirs), Settings(server_properties=(node.properties,)), asked)
    return answer_of(found, by, 1000)


def du(path: str) -> int:
    done = subprocess.run(["du", "-s", "-B1", path], capture_output=True, text=True, check=True)
    return int(done.stdout.split("\t")[0])


def agrees_with_du(kafka: Kafka) -> bool:
    """A broker writes while it is looked at: it agrees if the disk was the same before and after."""
    before = {each.log_dir: each.taken for each in look(kafka).log_dirs}
    return {path: du(path) for path in before} == before == {each.log_dir: each.taken for each in look(kafka).log_dirs}


def kinds(kafka: Kafka) -> dict[str, int]:
    return {row.kind: row.taken for row in look(kafka, by="kind").rows}


def bytes_of(kafka: Kafka) -> dict[str, int]:
    """Bytes of the live segments of each topic."""
    found: dict[str, int] = {}
    for log_dir in kafka.log_dirs:
        for segment in log_dir.glob("*/*.log"):
            topic = segment.parent.name.rpartition("-")[0]
            found[topic] = found.get(topic, 0) + segment.stat().st_size
    return found


def test_sizes_are_those_of_du_and_of_the_broker(kafka: Kafka) -> None:
    kafka.until(lambda: agrees_with_du(kafka), "the sum is that of du")
    told = log_sizes(kafka)
    rows = {(row.broker, row.topic, row.partition): row.segments for row in look(kafka).rows if row.topic in MINUTES}
    assert rows == {place: told[place] for place in rows}
    assert len(rows) == len(MINUTES)


def test_what_is_freed_by_another_configuration_is_what_the_broker_then_deletes(kafka: Kafka) -> None:
    trials = {topic: f"{topic}:{name}={value}" for topic, (name, value) in TRIALS.items()}
    answer = look(kafka, *trials.values())
    predicted = {row.topic: row.frees_now for row in answer.rows if row.topic in TRIALS}
    assert [topic for topic, size in predicted.items() if not size] == ["young"]
    assert sum(each.frees_now for each in answer.in_force) == 0
    before = bytes_of(kafka)
    for topic, (name, value) in TRIALS.items():
        set_config(kafka, topic, name, str(value))
    left = {topic: before[topic] - size for topic, size in predicted.items()}
    kafka.until(lambda: {topic: bytes_of(kafka)[topic] for topic in left} == left, f"what is left is {left}")
    kafka.until(lambda: agrees_with_du(kafka), "the sum is that of du, with what waits to be unlinked")
    assert kinds(kafka)["deleted"] >= sum(predicted.values())
    assert {row.topic: row.frees_now for row in look(kafka).rows if row.topic in TRIALS} == dict.fromkeys(TRIALS, 0)


def test_a_topic_that_is_deleted_and_a_replica_that_nobody_knows_are_told_apart(kafka: Kafka) -> None:
    delete_topic(kafka.bootstrap, "gone")
    kafka.until(lambda: kinds(kafka).get("delete", 0) > 0, "the directory is being deleted")
    assert {row.topic for row in look(kafka).rows if row.garbage and row.replicas == 0} == {"gone"}
    kafka.stop()
    here = next(path for log_dir in kafka.log_dirs for path in log_dir.glob("young-0"))
    ghost = here.with_name("ghost-0")
    shutil.copytree(here, ghost)
    metadata = ghost / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAZQ")
    assert look(kafka).leftovers == []
    kafka.start()
    kafka.until(lambda: _strays(kafka) != [], "the broker has put the replica aside")
    answer = look(kafka)
    assert [(Path(each.path).name.startswith("ghost-0."), each.kind) for each in answer.leftovers] == [(True, "stray")]
    kafka.until(lambda: agrees_with_du(kafka), "the sum is that of du")


def _strays(kafka: Kafka) -> list[Path]:
    return [path for log_dir in kafka.log_dirs for path in log_dir.glob("*-stray")]
