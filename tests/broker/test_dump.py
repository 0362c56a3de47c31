"""Log dirs that a broker has just written, dumped by segtail and by Kafka's own tool: nothing may differ."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from streaming.dump.request import Format
from tests.broker.clients import SECONDS, create_topic
from tests.broker.kafka import Kafka
from tests.broker.oracle import run_tool
from tests.dump.running import dumped
from tests.dump.told import aborted_fields, as_ours, batch_fields, fields, record_fields, shared, snapshot_fields

TOPIC = "dump.live"
PARTITIONS = 2
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_DUMPING = re.compile(r"Dumping (.*)")


@pytest.fixture(scope="module")
def directories(kafka: Kafka) -> list[Path]:
    """The partitions of a topic that was written in every way that the client knows, over several segments."""
    create_topic(kafka.bootstrap, TOPIC, partitions=PARTITIONS, config={"segment.bytes": "1048576", "index.interval.bytes": "1024"})
    chosen = random.Random(5)
    for codec in CODECS:
        plain = Producer({"bootstrap.servers": kafka.bootstrap, "compression.type": codec, "linger.ms": 5})
        for number in range(300):
            _produce(plain, chosen, number)
        plain.flush()
    for transaction in range(12):
        own = {"transactional.id": f"dump-{transaction % 3}", "compression.type": chosen.choice(CODECS)}
        client = Producer({"bootstrap.servers": kafka.bootstrap, **own})
        client.init_transactions()
        client.begin_transaction()
        for number in range(chosen.randrange(1, 200)):
            _produce(client, chosen, number)
        client.flush()
        if transaction % 3:
            client.commit_transaction()
        else:
            client.abort_transaction()
    return [path for log_dir in kafka.log_dirs for path in sorted(log_dir.glob(f"{TOPIC}-*"))]


def _produce(client: Producer, chosen: random.Random, number: int) -> None:
    client.produce(
        TOPIC,
        key=chosen.choice([None, b"", f"key {number}".encode()]),
        value=chosen.choice([None, b"", chosen.randbytes(chosen.randrange(9000)), b"text " * chosen.randrange(3000)]),
        headers=[(f"h{at}", chosen.choice([None, b"", b"value"])) for at in range(chosen.randrange(3))],
        partition=number % PARTITIONS,
    )
    client.poll(0)


def by_file(lines: list[str]) -> Iterator[tuple[Path, list[str]]]:
    """What Kafka's tool printed of each file."""
    path, found = None, list[str]()
    for line in lines:
        if match := _DUMPING.fullmatch(line):
            if path is not None:
                yield path, found
            path, found = Path(match[1]), []
        else:
            found.append(line)
    if path is not None:
        yield path, found


def told(paths: list[Path]) -> Iterator[tuple[Path, list[str]]]:
    return by_file(run_tool("dump-log", "--deep-iteration", "--files", ",".join(map(str, paths))).splitlines())


def ours(path: Path, **asked: Any) -> list[dict[str, Any]]:
    done = dumped(path, format=Format.JSON, **asked)
    assert (done.findings, done.status) == ((), 0)
    return done.rows


def files(directories: list[Path], suffix: str) -> list[Path]:
    found = [path for directory in directories for path in sorted(directory.glob(f"*{suffix}"))]
    assert found, f"the broker wrote no {suffix}"
    return found


def test_batches_and_records(directories: list[Path]) -> None:
    compared = 0
    for path, lines in told(files(directories, ".log")):
        batches = [fields(line) for line in lines if line.startswith("baseOffset: ")]
        assert [batch_fields(row) for row in ours(path, verify=True)] == batches
        expected = [fields(line) for line in lines if line.startswith("| ")]
        found = ours(path, records=True)
        assert [record_fields(row, line) for row, line in zip(found, expected, strict=True)] == expected
        compared += len(expected)
    assert compared > 1500


def test_indexes_and_snapshots(directories: list[Path]) -> None:
    closed = [path for path in files(directories, ".index") if path.stat().st_size < 1 << 20]  # of an active one Kafka's tool prints zeros
    assert closed
    for path, lines in told(closed):
        assert [f"offset: {row['offset']} position: {row['position']}" for row in ours(path, verify=True)] == lines
    for path, lines in told([path.with_suffix(".timeindex") for path in closed]):
        assert [f"timestamp: {row['timestamp']} offset: {row['offset']}" for row in ours(path, verify=True)] == lines
    for path, lines in told(files(directories, ".txnindex")):
        assert [aborted_fields(row) for row in ours(path, verify=True)] == [fields(line) for line in lines if line.startswith("version")]
    for path, lines in told(files(directories, ".snapshot")):
        assert [snapshot_fields(row) for row in ours(path)] == [fields(line) for line in lines if line.startswith("producerId")]


def test_whole_log_dirs_have_nothing_to_find(kafka: Kafka, directories: list[Path]) -> None:
    for log_dir in kafka.log_dirs:
        summaries = ours(log_dir, verify=True, summary=True)
        assert {Path(row["file"]).name for row in summaries if TOPIC in row["file"]} <= {path.name for path in directories} | {
            f"{0:020}.log"
        }


def test_groups_and_metadata_are_what_kafkas_decoders_say(kafka: Kafka, directories: list[Path]) -> None:
    assert directories
    for protocol in ("classic", "consumer"):
        consumer = Consumer(
            {"bootstrap.servers": kafka.bootstrap, "group.id": protocol, "group.protocol": protocol, "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([TOPIC])
        assert consumer.consume(1, SECONDS)
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 7, metadata="é")], asynchronous=False)
        consumer.close()
    found = set[str]()
    for decoder, pattern in (
        ("--offsets-decoder", "__consumer_offsets-*/*.log"),
        ("--transaction-log-decoder", "__transaction_state-*/*.log"),
        ("--cluster-metadata-decoder", "__cluster_metadata-0/*.log"),
    ):
        paths = [path for log_dir in kafka.log_dirs for path in sorted(log_dir.glob(pattern))]
        for path, lines in by_file(run_tool("dump-log", decoder, "--files", ",".join(map(str, paths))).splitlines()):
            expected = [opened for line in lines if (opened := opened_by_kafka(line)) is not None]
            rows = [row for row in ours(path, records=True) if row["control"] is None][: len(expected)]  # the broker goes on writing
            for row, (key, value) in zip(rows, expected, strict=True):
                assert shared([row["key"], row["value"]], [key, value]) == shared([key, value], [row["key"], row["value"]])
                found.add((row["value"] or {}).get("type", "") or row["key"].get("type", "transaction"))
    assert found >= {"OFFSET_COMMIT", "GROUP_METADATA", "CONSUMER_GROUP_MEMBER_METADATA", "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT"}
    assert found >= {"transaction", "TOPIC", "PARTITION", "CONFIG", "REGISTER_BROKER", "FEATURE_LEVEL"}


def opened_by_kafka(line: str) -> tuple[object, object] | None:
    """The key and the value of a record's line, with our names; None for another line, and for a control record."""
    decode, rest = json.JSONDecoder().raw_decode, re.split(r"headerKeys: \[[^\]]*\]", line)[-1]
    key = None
    if rest.startswith(" key: {"):
        key, end = decode(rest[6:])
        rest = rest[6 + end :]
    if not line.startswith("| offset: ") or not rest.startswith(" payload: "):
        return None
    value = None if rest == " payload: <DELETE>" else decode(rest[10:])[0]
    return key and as_ours(key["data"]), value and as_ours(value["data"])


def test_the_coordinators_logs_are_opened(kafka: Kafka, directories: list[Path]) -> None:
    assert directories
    found = [
        row for log_dir in kafka.log_dirs for path in sorted(log_dir.glob("__transaction_state-*")) for row in ours(path, records=True)
    ]
    assert {row["key"]["transactional_id"] for row in found} >= {"dump-0", "dump-1", "dump-2"}
