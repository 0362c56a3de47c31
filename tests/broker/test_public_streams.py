"""The public stream of a real broker: every row once in Parquet under kills of all parts, and the examples of its document."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.broker.clients import create_topic, producer, send, transaction
from tests.broker.install import spark_environment
from tests.broker.kafka import Kafka
from tests.broker.killed_streams import SHARES, run_streams
from tests.limits import SECONDS
from tests.ports import free_ports
from tests.processes import segtail

pytestmark = pytest.mark.spark

SEED = 5


@pytest.mark.long  # test_kills stands for it
def test_sinks_hold_every_row_once_whatever_is_killed(kafka_jars: None, tmp_path: Path) -> None:
    report = run_streams(tmp_path, len(SHARES), SEED)
    assert report.problems == ()
    assert set(report.kills) == set(SHARES)
    assert min(report.rows.values()) > 0


def test_the_documented_examples_do_what_they_say(kafka_alone: Kafka, connector: None, tmp_path: Path) -> None:
    create_topic(kafka_alone.bootstrap, "orders", 2)
    create_topic(kafka_alone.bootstrap, "orders-recovered", 2)
    earlier = time.time_ns() // 1_000_000 - 120_000
    plain = producer(kafka_alone.bootstrap)
    for number in range(500):  # all of one minute, which the last of the examples looks at
        plain.produce("orders", b"order", key=str(number), partition=0, timestamp=earlier)
    assert plain.flush(SECONDS) == 0
    paying = producer(kafka_alone.bootstrap, transactional_id="slow")
    paying.init_transactions(SECONDS)
    with transaction(paying):
        paying.produce("orders", b"paid", partition=1, timestamp=earlier, headers={"by": b"card"})
        paying.flush(SECONDS)
    send(plain, "orders", 1, 1, 2)
    (port,) = free_ports(1)
    dirs = ",".join(map(str, kafka_alone.log_dirs))
    words = ("agent", "--log-dirs", dirs, "--listen", f"127.0.0.1:{port}")
    with segtail(*words, stated=tmp_path / "messages"):
        command = [sys.executable, "-m", "tests.broker.documented_spark", kafka_alone.bootstrap, f"127.0.0.1:{port}", dirs, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=spark_environment(), timeout=600)
    assert done.returncode == 0, done.stderr[-5000:]
    found = json.loads(done.stdout)
    assert found["hours"] == {"orders": 50}
    assert [(row["kind"], row["transactional_id"]) for row in found["joined"]] == [("committed", "buyer")]
    slow = [(row["partition"], row["transactional_id"], row["first_offset"], row["seconds"] > 60) for row in found["slow"]]
    assert slow == [(1, "slow", 0, True)]
    assert [(row["topic"], row["partition"]) for row in found["hot"]] == [("orders", 0)]
    assert read_all(kafka_alone, "orders-recovered") == read_all(kafka_alone, "orders")


def read_all(kafka: Kafka, topic: str) -> list[tuple[object, ...]]:
    """The records of a topic with two partitions, as a consumer reads them."""
    config = {"bootstrap.servers": kafka.bootstrap, "group.id": "reads-all", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({**config, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(2)])
    rows: list[tuple[object, ...]] = []
    ended: set[int | None] = set()
    while len(ended) < 2:
        message = consumer.poll(SECONDS)
        assert message is not None
        if message.error():
            ended.add(message.partition())
        else:
            rows.append((message.partition(), message.key(), message.value(), tuple(message.headers() or ())))
    consumer.close()
    return sorted(rows, key=repr)
