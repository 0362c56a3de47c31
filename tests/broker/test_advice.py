"""What ``segtail advise`` predicts of a topic, held against the bytes that a Java producer writes with that setting, at the same pace."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.broker.clients import create_topic, producer
from tests.broker.install import compiled, java_command
from tests.broker.kafka import Kafka
from tests.commands import run_command

_CLASSES = Path(__file__).parent / "paced_java"
_POINTS = 3.0
_SMALL = {"compression.type": "lz4", "batch.size": 600, "linger.ms": 0}
_LINGERS = {"compression.type": "lz4", "batch.size": 16_384, "linger.ms": 20}  # each run makes nearly the same batches
_PLAIN = {**_LINGERS, "compression.type": "none"}

Setting = tuple[str, int | None, int | None]

CASES: list[Any] = [
    ("orders", 1, _LINGERS, [("zstd", None, None), ("zstd", 16_384, 100)]),
    pytest.param("orders", 3, _SMALL, [("zstd", 65_536, 100), ("lz4", 16_384, 20)], marks=pytest.mark.long),
    pytest.param("logs", 1, _SMALL, [("gzip", 16_384, 20), ("zstd", 65_536, 100)], marks=pytest.mark.long),
    pytest.param("avro", 1, _PLAIN, [("zstd", None, None), ("snappy", 16_384, 100), ("lz4", 65_536, 100)], marks=pytest.mark.long),
    pytest.param("encrypted", 1, _SMALL, [("zstd", 16_384, 20)], marks=pytest.mark.long),
]


def produce(kafka: Kafka, topic: str, kind: str, partitions: int, settings: dict[str, object]) -> int:
    """The bytes on the disk of half a minute's records."""
    create_topic(kafka.bootstrap, topic, partitions)
    given = (f"{name}={value}" for name, value in settings.items())
    arguments = (kafka.bootstrap, topic, str(partitions), kind, "30000", "1000", *given)
    subprocess.run(java_command("Paced", *arguments, classes=compiled(_CLASSES)), check=True)
    return sum(path.stat().st_size for log_dir in kafka.log_dirs for path in log_dir.glob(f"{topic}-?/*.log"))


def advice(kafka: Kafka, topic: str) -> dict[str, Any]:
    done = run_command("advise", "--json", "--topic", topic, *kafka.log_dirs)
    assert done.returncode in (0, 3), done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    return dict(row)


@pytest.mark.parametrize(("kind", "partitions", "now", "settings"), CASES)
def test_what_is_predicted_is_what_a_producer_then_writes(
    kafka: Kafka, kind: str, partitions: int, now: dict[str, object], settings: list[Setting]
) -> None:
    topic = f"paced-{kind}-{partitions}"
    before = produce(kafka, topic, kind, partitions, now)
    predicted = advice(kafka, topic)
    assert (predicted["verdict"] == "advised") == (kind != "encrypted")
    for number, (codec, size, linger) in enumerate(settings):
        depth = {} if size is None else {"batch.size": size, "linger.ms": linger}
        after = produce(kafka, f"{topic}-{number}", kind, partitions, {**now, "compression.type": codec, **depth})
        of = {(each["codec"], each["batch_size"], each["linger_ms"]): each["saving_percent"] for each in predicted["settings"]}
        assert abs(of[codec, size, linger] - 100 * (1 - after / before)) < _POINTS, (codec, size, linger)


def test_a_topic_of_librdkafka_is_read_and_what_is_not_known_of_it_is_said(kafka: Kafka) -> None:
    create_topic(kafka.bootstrap, "rdkafka")
    client = producer(kafka.bootstrap, "lz4")
    for number in range(2000):
        client.produce("rdkafka", json.dumps({"order": number, "customer": number * 7919 % 10_007, "status": "paid"}).encode())
        if number % 2:
            client.flush()
    found = advice(kafka, "rdkafka")
    assert (found["verdict"], found["codec"], found["batch_records"]) == ("advised", "lz4", 2.0)
    assert any("no producer id" in note for note in found["notes"])
