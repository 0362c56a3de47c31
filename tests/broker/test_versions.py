"""The same on brokers of each version that segtail is tried with: its commands say what Kafka answers, and every file is known.

All other tests with brokers are run with the newest of them.
"""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.kafka.formats.transaction_index import ABORTED
from tests.broker.clients import CODECS, create_topic, delete_topic, producer, send, transaction
from tests.broker.install import BROKER_VERSION, KAFKA_VERSION, OLDER_VERSION, compiled, java_command
from tests.broker.kafka import Kafka
from tests.commands import run_command
from tests.limits import SECONDS
from tests.processes import until

_SHARING = Path(__file__).parent / "sharing"
QUEUE = "dlq.letters"  # with the prefix that errors.deadletterqueue.topic.name.prefix asks for
READ = 60
KNOWN_KINDS = {"segment", "index", "snapshot", "checkpoint", "metadata", "directory", "delete", "deleted"}
FORMATTED = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


@dataclass(frozen=True, slots=True)
class Release:
    """A version, its level of `share.version`, and the file that a node is formatted with."""

    version: str
    share_version: int | None
    formatted: str
    dead_letters: bool = False


RELEASES = (
    Release(BROKER_VERSION, 2, FORMATTED, dead_letters=True),
    Release(KAFKA_VERSION, 1, "bootstrap.checkpoint"),
    Release(OLDER_VERSION, None, "bootstrap.checkpoint"),
)


@dataclass(frozen=True, slots=True)
class World:
    """A broker at work: nothing is appended any more. ``shared``: of a share group, start offset and lag by partition, as Kafka says."""

    release: Release
    kafka: Kafka
    shared: dict[tuple[str, int], tuple[int, int]]

    def reported(self, command: str, *arguments: str) -> Any:
        """What a command says of the log dirs, as JSON."""
        done = self.run(command, "--format", "json", *arguments)
        assert done.returncode in ((0, 3, 4) if command == "disk" else (0, 3)), done.stderr  # how fast a disk fills is not known at once
        return json.loads(done.stdout)

    def run(self, command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        properties = ",".join(str(node.properties) for node in self.kafka.brokers)
        given = ("--server-properties", properties) if command in ("count", "disk", "groups", "retention", "transactions") else ()
        return run_command(command, "--log-dirs", ",".join(map(str, self.kafka.log_dirs)), *given, *arguments)


@pytest.fixture(scope="module", params=RELEASES, ids=lambda release: release.version)
def world(kafka_jars: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    release: Release = request.param
    kafka = Kafka(tmp_path_factory.mktemp("release"), version=release.version)
    try:
        kafka.start()
        fill(kafka)
        shared = share(kafka, release) if release.share_version else {}
        until("all checkpoints are current", lambda: high_watermarks(kafka) >= leading_ends(kafka))
        yield World(release, kafka, shared)
    finally:
        kafka.kill()


def fill(kafka: Kafka) -> None:
    """Every codec; transactions that commit, abort and stay open; deleted records; a topic that is gone; commits, some in transactions."""
    for topic in ("codecs", "ledger", "gone"):
        create_topic(kafka.bootstrap, topic, partitions=2)
    create_topic(kafka.bootstrap, QUEUE, config={"errors.deadletterqueue.group.enable": "true"} if kafka.version == BROKER_VERSION else {})
    for codec in CODECS:
        send(producer(kafka.bootstrap, codec), "codecs", 0, batches=2, records=10)
    send(producer(kafka.bootstrap), "codecs", 1, batches=1, records=40)
    delete_topic(kafka.bootstrap, "gone")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.delete_records([TopicPartition("codecs", 0, 15)])[TopicPartition("codecs", 0)].result(SECONDS)
    client = producer(kafka.bootstrap, transactional_id="ended")
    client.init_transactions(SECONDS)
    for number in range(4):
        with transaction(client, commit=number % 2 == 0):
            send(client, "ledger", number % 2, batches=1, records=5)
    reader = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "plain", "enable.auto.commit": False})
    reader.commit(offsets=[TopicPartition("codecs", 0, 40), TopicPartition("codecs", 1, 7)], asynchronous=False)
    in_transaction = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "in transactions", "enable.auto.commit": False})
    client.begin_transaction()
    client.send_offsets_to_transaction([TopicPartition("ledger", 0, 3)], in_transaction.consumer_group_metadata(), SECONDS)
    client.commit_transaction(SECONDS)
    open_one = producer(kafka.bootstrap, transactional_id="open")
    open_one.init_transactions(SECONDS)
    open_one.begin_transaction()
    send(open_one, "ledger", 1, batches=1, records=3)
    _OPEN.append(open_one)  # it would be aborted if its client were gone
    reader.close()
    in_transaction.close()


_OPEN: list[object] = []


def share(kafka: Kafka, release: Release) -> dict[tuple[str, int], tuple[int, int]]:
    words = (kafka.bootstrap, "sharing", "codecs", str(READ), *([QUEUE] if release.dead_letters else []))
    command = java_command("Sharing", *words, classes=compiled(_SHARING))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return {(topic, int(number)): (int(start), int(lag)) for topic, number, start, lag in rows}


def offsets(kafka: Kafka, isolation: IsolationLevel) -> dict[tuple[str, int], int]:
    """The ends that a broker tells consumers of this isolation."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    pairs = [(name, number) for name, topic in admin.list_topics(timeout=SECONDS).topics.items() for number in topic.partitions]
    asked = admin.list_offsets({TopicPartition(*pair): OffsetSpec.latest() for pair in pairs}, isolation_level=isolation)
    return {(at.topic, at.partition): answer.result(SECONDS).offset for at, answer in asked.items()}


def leading_ends(kafka: Kafka) -> set[tuple[str, int, int]]:
    return {(*pair, end) for pair, end in offsets(kafka, IsolationLevel.READ_UNCOMMITTED).items()}


def high_watermarks(kafka: Kafka) -> set[tuple[str, int, int]]:
    lines = [line.split() for path in kafka.log_dirs for line in (path / "replication-offset-checkpoint").read_text().splitlines()[2:]]
    return {(topic, int(number), int(offset)) for topic, number, offset in lines}


def consumed(kafka: Kafka, topic: str, number: int, isolation: str) -> int:
    """How many records come to a consumer of this isolation from the first on."""
    reading = {"bootstrap.servers": kafka.bootstrap, "group.id": "counting", "enable.partition.eof": True, "isolation.level": isolation}
    consumer = Consumer({**reading, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, number, 0)])
    got = 0
    try:
        while True:
            message = consumer.poll(SECONDS)
            assert message is not None
            if message.error() is not None:
                assert message.error().name() == "_PARTITION_EOF"
                return got
            got += 1
    finally:
        consumer.close()


def test_counts_and_ends_are_those_of_consumers_and_of_the_broker(world: World) -> None:
    rows = {(row["topic"], row["partition"]): row for row in world.reported("count", "--by", "partition")["rows"]}
    ends, stable = (offsets(world.kafka, isolation) for isolation in (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED))
    assert {pair: row["next_offset"] for pair, row in rows.items() if pair in ends} == ends
    assert {pair: row["last_stable_offset"] for pair, row in rows.items() if pair in stable} == stable
    for pair in (("codecs", 0), ("codecs", 1), ("ledger", 0), ("ledger", 1), (QUEUE, 0)):
        row = rows[pair]
        assert [row["data"], row["readable"]] == [consumed(world.kafka, *pair, f"read_{which}committed") for which in ("un", "")]
    assert rows["codecs", 0]["first_offset"] == 15
    assert rows[QUEUE, 0]["data"] >= READ // 4 if world.release.dead_letters else not rows[QUEUE, 0]["data"]


def test_transactions_are_those_of_the_coordinator(world: World) -> None:
    (row,) = world.reported("transactions")["rows"]
    assert (row["transactional_id"], row["topic"], row["partition"], row["verdict"]) == ("open", "ledger", 1, "open")
    indexes = [path.read_bytes() for log_dir in world.kafka.log_dirs for path in log_dir.glob("ledger-1/*.txnindex")]
    assert [len(index) for index in indexes] == [2 * ABORTED.itemsize]


def test_groups_of_every_kind_are_as_the_coordinators_say(world: World) -> None:
    admin = AdminClient({"bootstrap.servers": world.kafka.bootstrap})
    ends = offsets(world.kafka, IsolationLevel.READ_UNCOMMITTED)
    committed = {}
    for name in ("plain", "in transactions"):
        asked = ConsumerGroupTopicPartitions(name)
        for at in admin.list_consumer_group_offsets([asked])[name].result(SECONDS).topic_partitions:
            committed[name, at.topic, at.partition] = (at.offset, ends[at.topic, at.partition] - at.offset)
    assert len(committed) == 3
    names = ["plain", "in transactions", *(["sharing"] if world.shared else [])]
    found = world.reported("groups", *names)["rows"]
    partitions = {(group["summary"]["group"], each["topic"], each["partition"]): each for group in found for each in group["partitions"]}
    assert {key: (of["committed"], of["lag_offsets"]) for key, of in partitions.items() if key[0] != "sharing"} == committed
    shared = {key[1:]: (of["committed"], of["lag_records_read_uncommitted"]) for key, of in partitions.items() if key[0] == "sharing"}
    assert {pair: numbers for pair, numbers in shared.items() if pair in world.shared} == world.shared
    assert bool(world.shared) == bool(world.release.share_version)


def test_what_is_on_its_way_to_a_dead_letter_queue_is_marked_where_there_is_one(world: World) -> None:
    states = set[int]()
    for directory in (path for log_dir in world.kafka.log_dirs for path in log_dir.glob("__share_group_state-0")):
        dumped = run_command("dump", "--records", "--format", "json", str(directory))
        values = [json.loads(line)["value"] or {} for line in dumped.stdout.splitlines()]
        states |= {batch["delivery_state"] for value in values for batch in value.get("state_batches", ())}
    assert states - {0} == ({2, 3, 4} if world.release.dead_letters else {2, 4} if world.shared else set())


def test_the_metadata_is_read_with_the_levels_of_the_release(world: World) -> None:
    (node,) = world.kafka.brokers
    cluster = ClusterView(open_log_dirs(node.log_dirs))
    cluster.refresh()
    assert cluster.known
    assert (cluster.partition_count("codecs"), cluster.partition_count("gone")) == (2, 0)
    assert sum((path / world.release.formatted).exists() for path in node.log_dirs) >= 1
    others = {release.formatted for release in RELEASES} - {world.release.formatted}
    assert not [path / other for path in node.log_dirs for other in others if (path / other).exists()]
    (metadata,) = (path for log_dir in node.log_dirs if (path := log_dir / "__cluster_metadata-0").exists())
    dumped = run_command("dump", "--records", str(metadata))
    assert dumped.returncode == 0, dumped.stderr
    levels = [line for line in dumped.stdout.splitlines() if '"share.version"' in line and "FEATURE_LEVEL" in line]
    assert all(f'"level": {world.release.share_version}' in line for line in levels)
    assert bool(levels) == bool(world.release.share_version)


def test_everything_on_disk_is_known_and_sound(world: World) -> None:
    (node,) = world.kafka.brokers
    verified = run_command("dump", "--verify", *(str(path) for log_dir in node.log_dirs for path in sorted(log_dir.glob("*-[0-9]"))))
    assert (verified.returncode, verified.stderr) == (0, "")
    disk = world.reported("disk")
    assert {kind["kind"] for each in disk["log_dirs"] for kind in each["kinds"]} <= KNOWN_KINDS
    assert disk["leftovers"] == []
    doctor = world.run("doctor")
    assert "0 faults" in doctor.stdout
