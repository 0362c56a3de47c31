"""`segtail count`, and every position of the ladder, against what Kafka's own consumer really gets."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

from streaming.disk.scanning import window
from streaming.disk.segment_files import list_segments
from streaming.ladder.count_log import count_log
from streaming.simulator.batch_writer import Record
from streaming.simulator.compressor import Codec
from tests.broker.clients import CODECS, SECONDS, create_topic, producer, send, transaction
from tests.broker.kafka import Kafka
from tests.broker.oracle import run_tool
from tests.builders import log_dir, partition
from tests.legacy_messages import Messages

SMALL_SEGMENTS = {"internal.segment.bytes": "4000"}
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "internal.segment.bytes": "4000",
    "delete.retention.ms": "0",
}
TOPICS: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "count-transactions": (2, SMALL_SEGMENTS),
    "count-codecs": (1, SMALL_SEGMENTS),
    "count-compacted": (1, COMPACTED),
    "count-deleted": (1, SMALL_SEGMENTS),
    "count-old": (1, {"retention.ms": "-1"}),
}
"""How many partitions each topic has, and its configuration."""


def write_transactions(bootstrap: str) -> None:
    """Commits and aborts of two producers, some over several segments, beside data without a transaction; the last one stays open."""
    plain = producer(bootstrap)
    clients = [producer(bootstrap, transactional_id=f"count-{number}") for number in range(2)]
    for client in clients:
        client.init_transactions(SECONDS)
    for number in range(8):
        with transaction(clients[0], commit=number % 3 != 0):
            send(clients[0], "count-transactions", 0, 1, 3)
            with transaction(clients[1], commit=number % 2 == 0):
                send(clients[1], "count-transactions", number % 2, 2 + 4 * (number == 5), 5)
                send(plain, "count-transactions", number % 2, 1, 2)
            send(clients[0], "count-transactions", 1, 1, 4)
    clients[0].begin_transaction()
    send(clients[0], "count-transactions", 1, 1, 3)
    send(plain, "count-transactions", 1, 1, 7)
    OPEN.append(clients[0])


OPEN: list[object] = []
"""A producer that is forgotten would abort its transaction."""


def write_codecs(bootstrap: str) -> None:
    for codec in CODECS:
        send(producer(bootstrap, codec), "count-codecs", 0, 3, 11)


def write_compacted(bootstrap: str) -> None:
    """Few keys, so that most records go; transactions among them, some of them aborted."""
    client = producer(bootstrap, "lz4", transactional_id="count-compacted")
    client.init_transactions(SECONDS)
    for number in range(24):
        with transaction(client, commit=number % 4 != 0):
            send(client, "count-compacted", 0, 1, 3 + number % 5)
        if number % 5 == 0:
            send(producer(bootstrap), "count-compacted", 0, 1, 10 + number // 2)


def write_deleted(bootstrap: str) -> None:
    send(producer(bootstrap), "count-deleted", 0, 6, 20)
    admin, offset = AdminClient({"bootstrap.servers": bootstrap}), TopicPartition("count-deleted", 0, 47)
    admin.delete_records([offset])[offset].result(SECONDS)


def place_old_messages(kafka: Kafka, directory: Path) -> None:
    """Messages of magic 0 and 1 in the log of a stopped broker, which has to recover it: brokers of today write none."""
    records = tuple(Record(value=b"old %d" % number, timestamp=1_500_000_000_000 + number) for number in range(9))
    log = partition(log_dir(directory), "count-old")
    for magic in (0, 1):
        for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY):
            log.append(Messages(magic=magic, records=records, codec=codec))
    (target,) = (path / "count-old-0" for path in kafka.log_dirs if (path / "count-old-0").exists())
    for path in target.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    (target / "leader-epoch-checkpoint").write_text("0\n0\n")
    shutil.copyfile(log.active.path("log"), target / f"{0:020}.log")
    (target.parent / ".kafka_cleanshutdown").unlink()
    (target.parent / "recovery-point-offset-checkpoint").write_bytes(b"")


class Counted:
    """A broker with `TOPICS`, which was stopped after its consumer had read them: offsets by isolation, topic and partition."""

    def __init__(self, kafka: Kafka, directory: Path) -> None:
        self.kafka = kafka
        kafka.start()
        for topic, (partitions, config) in TOPICS.items():
            create_topic(kafka.bootstrap, topic, partitions, config=config)
        write_compacted(kafka.bootstrap)
        kafka.until(self._is_compacted, "the cleaner has run")
        kafka.stop()
        place_old_messages(kafka, directory)
        kafka.start()
        write_codecs(kafka.bootstrap)
        write_deleted(kafka.bootstrap)
        write_transactions(kafka.bootstrap)
        self.consumed = {isolation: self._consume(isolation) for isolation in ("read_committed", "read_uncommitted")}
        kafka.stop()

    def _is_compacted(self) -> bool:
        """Whether the cleaner has noted how far it came."""
        cleaned = [each / "cleaner-offset-checkpoint" for each in self.kafka.log_dirs]
        return any(path.exists() and "count-compacted 0" in path.read_text() for path in cleaned)

    def _consume(self, isolation: str) -> dict[tuple[str, int], list[int]]:
        found: dict[tuple[str, int], list[int]] = {(topic, each): [] for topic, (count, _) in TOPICS.items() for each in range(count)}
        for topic in TOPICS:
            printed = run_tool(
                "console-consumer",
                *("--bootstrap-server", self.kafka.bootstrap, "--topic", topic, "--from-beginning"),
                *("--isolation-level", isolation, "--timeout-ms", "4000"),
                *("--formatter-property", "print.partition=true", "--formatter-property", "print.offset=true"),
                *("--formatter-property", "print.value=false"),
            )
            for line in printed.splitlines():
                if line.startswith("Partition:"):
                    number, offset = (int(part.partition(":")[2]) for part in line.split("\t")[:2])
                    found[topic, number].append(offset)
        return found


@pytest.fixture(scope="module")
def counted(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counted]:
    kafka = Kafka(tmp_path_factory.mktemp("kafka-that-is-counted"), settings={"log.cleaner.backoff.ms": 500})
    try:
        yield Counted(kafka, tmp_path_factory.mktemp("old"))
    finally:
        OPEN.clear()
        kafka.kill()


def count(kafka: Kafka, *arguments: str) -> list[dict[str, object]]:
    dirs = ",".join(map(str, kafka.log_dirs))
    command = [sys.executable, "-m", "streaming.cli", "count", "--log-dirs", dirs, "--format", "json", *arguments, *TOPICS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


def test_as_many_records_as_a_consumer_gets(counted: Counted) -> None:
    rows = count(counted.kafka, "--by", "partition")
    committed, uncommitted = counted.consumed["read_committed"], counted.consumed["read_uncommitted"]
    assert {(row["topic"], row["partition"]): row["readable"] for row in rows} == {key: len(found) for key, found in committed.items()}
    assert {(row["topic"], row["partition"]): row["data"] for row in rows} == {key: len(found) for key, found in uncommitted.items()}
    by_topic = {row["topic"]: row["readable"] for row in count(counted.kafka)}
    assert by_topic == {topic: sum(len(found) for key, found in committed.items() if key[0] == topic) for topic in TOPICS}


def test_from_every_offset_on_as_many_as_a_consumer_gets(counted: Counted) -> None:
    """Not only from the beginning: from each offset at which a group might be, inside batches too."""
    rows = {(str(row["topic"]), int(str(row["partition"]))): row for row in count(counted.kafka, "--by", "partition")}
    for (topic, number), row in rows.items():
        (directory,) = (path / f"{topic}-{number}" for path in counted.kafka.log_dirs if (path / f"{topic}-{number}").exists())
        first, end, stable = (int(str(row[name])) for name in ("first_offset", "next_offset", "last_stable_offset"))
        positions = count_log(list_segments(directory), 0, window()).positions(range(first, end + 1), end)
        at = {position.offset: position for position in positions}
        uncommitted = counted.consumed["read_uncommitted"][topic, number]
        committed = counted.consumed["read_committed"][topic, number]
        for offset in range(first, end + 1):
            assert at[end].data - at[offset].data == sum(one >= offset for one in uncommitted), (topic, number, offset)
            if offset <= stable:
                readable = at[stable].data - at[stable].aborted - at[offset].data + at[offset].aborted
                assert readable == sum(one >= offset for one in committed), (topic, number, offset)
                following = next((one for one in committed if one >= offset), at[stable].next_offset)
                assert at[offset].next_offset == following, (topic, number, offset)


def test_the_logs_have_everything_that_is_counted_in_a_special_way(counted: Counted) -> None:
    rows = {(row["topic"], row["partition"]): row for row in count(counted.kafka, "--by", "partition")}
    assert all(int(str(rows["count-transactions", number]["aborted"])) > 0 for number in (0, 1))
    assert int(str(rows["count-transactions", 1]["waiting"])) == 10
    assert rows["count-deleted", 0]["first_offset"] == 47
    compacted = rows["count-compacted", 0]
    assert int(str(compacted["data"])) + int(str(compacted["control"])) < int(str(compacted["next_offset"]))
    assert rows["count-old", 0]["data"] == 54
