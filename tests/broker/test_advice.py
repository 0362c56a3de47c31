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
_NOW = {"compression.type": "lz4", "batch.size": 600, "linger.ms": 0}
_LINGER_MS = 100  # on a busy machine records come in heaps, other ones in each run: it matters little where batches are long

CASES: list[Any] = [
    ("orders", 1, [("zstd", 16_384)]),
    pytest.param("orders", 3, [("zstd", 65_536), ("lz4", 16_384)], marks=pytest.mark.long),
    pytest.param("logs", 1, [("gzip", 16_384), ("zstd", 65_536), ("snappy", 16_384)], marks=pytest.mark.long),
    pytest.param("avro", 1, [("snappy", 16_384), ("lz4", 65_536), ("zstd", 16_384)], marks=pytest.mark.long),
    pytest.param("encrypted", 1, [("zstd", 16_384)], marks=pytest.mark.long),  # here batches are full long before
]


ALONE: list[Any] = [
    ("gzip", {"compression.type": "lz4", "batch.size": 1000, "linger.ms": _LINGER_MS}),
    pytest.param("producer", {"compression.type": "none", "batch.size": 2048, "linger.ms": _LINGER_MS}, marks=pytest.mark.long),
]


def produce(kafka: Kafka, topic: str, kind: str, partitions: int, settings: dict[str, object], of_topic: str = "producer") -> int:
    """The bytes on the disk of half a minute's records."""
    create_topic(kafka.bootstrap, topic, partitions, config={"compression.type": of_topic})
    given = (f"{name}={value}" for name, value in settings.items())
    arguments = (kafka.bootstrap, topic, str(partitions), kind, "30000", "1000", *given)
    subprocess.run(java_command("Paced", *arguments, classes=compiled(_CLASSES)), check=True)
    return sum(path.stat().st_size for log_dir in kafka.log_dirs for path in log_dir.glob(f"{topic}-?/*.log"))


def advice(kafka: Kafka, topic: str) -> dict[str, Any]:
    done = run_command("advise", "--json", "--topic", topic, *kafka.log_dirs)
    assert done.returncode in (0, 3), done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    return dict(row)


def saving(found: dict[str, Any], codec: str, size: int | None, linger_ms: int | None) -> float:
    of = {(each["codec"], each["batch_size"], each["linger_ms"]): each["saving_percent"] for each in found["settings"]}
    return float(of[codec, size, linger_ms])


@pytest.mark.parametrize(("kind", "partitions", "settings"), CASES)
def test_what_is_predicted_is_what_a_producer_then_writes(
    kafka: Kafka, kind: str, partitions: int, settings: list[tuple[str, int]]
) -> None:
    topic = f"paced-{kind}-{partitions}"
    before = produce(kafka, topic, kind, partitions, _NOW)
    predicted = advice(kafka, topic)
    assert (predicted["verdict"] == "advised") == (kind != "encrypted")
    for number, (codec, size) in enumerate(settings):
        setting = {"compression.type": codec, "batch.size": size, "linger.ms": _LINGER_MS}
        after = produce(kafka, f"{topic}-{number}", kind, partitions, setting)
        assert abs(saving(predicted, codec, size, _LINGER_MS) - 100 * (1 - after / before)) < _POINTS, (codec, size)
        written = advice(kafka, f"{topic}-{number}")
        assert abs(saving(written, codec, None, None)) < _POINTS, "it compresses as Java does"
        assert abs(saving(written, codec, size, _LINGER_MS)) < _POINTS, "the same records make the same batches"


@pytest.mark.parametrize(("of_topic", "settings"), ALONE)
def test_a_codec_alone_saves_what_is_predicted(kafka: Kafka, of_topic: str, settings: dict[str, object]) -> None:
    """Of the topic where brokers compress anew, else of producers whose batches are full."""
    topic, anew = f"alone-{of_topic}", of_topic != "producer"
    before = produce(kafka, topic, "orders", 1, settings, of_topic)
    predicted = advice(kafka, topic)
    assert predicted["compression"] == (of_topic if anew else None)
    other = {} if anew else {"compression.type": "zstd"}
    after = produce(kafka, f"{topic}-zstd", "orders", 1, settings | other, "zstd" if anew else of_topic)
    assert abs(saving(predicted, "zstd", None, None) - 100 * (1 - after / before)) < _POINTS


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
