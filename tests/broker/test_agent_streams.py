"""Streams of an agent beside a live broker: it is killed and started on an empty directory while producers write, commit and abort."""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from streaming.spark.source.public_options import parse_public_options
from streaming.spark.source.public_stream import PublicStreamReader
from tests.broker.clients import create_topic, producer, send, transaction
from tests.broker.install import KAFKA_VERSION
from tests.broker.kafka import Kafka
from tests.broker.running import running
from tests.limits import SECONDS
from tests.ports import free_ports
from tests.processes import Segtail, segtail
from tests.source.local_streaming import ALL, batches, read, step, stream

TOPIC, PARTITIONS, ROUNDS = "tailed-by-agent", 2, 24


@pytest.fixture(scope="module")
def broker(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    yield from running(Kafka(tmp_path_factory.mktemp("kafka-of-agent"), version=KAFKA_VERSION))


@dataclass(slots=True)
class Agents:
    """An agent at one address, and those that come after it."""

    kafka: Kafka
    directory: Path
    stack: ExitStack
    port: int = field(default_factory=lambda: free_ports(1)[0])
    running: Segtail | None = None
    started: int = 0

    def start(self) -> None:
        """Kill the one that runs, and start another that finds nothing of it."""
        if self.running is not None:
            self.running.kill_family()
            self.running.reap()
        self.started += 1
        dirs = ",".join(map(str, self.kafka.log_dirs))
        words = ("agent", "--log-dirs", dirs, "--listen", f"127.0.0.1:{self.port}", "--name", "tailing")
        self.running = self.stack.enter_context(segtail(*words, stated=self.directory / f"stated-{self.started}"))


@dataclass(slots=True)
class Query:
    """A query with its checkpoint, and the rows that came."""

    relation: str
    port: int
    at: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    reader: PublicStreamReader = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Another process goes on from its checkpoint."""
        where = {"agents": f"127.0.0.1:{self.port}", "topics": TOPIC, "startingPosition": "earliest", "relation": self.relation}
        self.reader = PublicStreamReader(parse_public_options(where))

    def plan(self) -> dict[str, Any]:
        return self.reader.latestOffset(self.at, ALL)

    def take(self, end: dict[str, Any]) -> None:
        if end != self.at:
            self.rows += read(self.reader, self.at, end)
            self.at = end

    def take_all(self) -> None:
        """Everything that is there now."""
        self.restart()
        self.reader.prepareForTriggerAvailableNow()
        while (end := self.plan()) is not self.at:
            self.take(end)


def test_each_range_comes_once_though_the_agent_is_killed_and_knows_nothing_afterwards(broker: Kafka, tmp_path: Path) -> None:
    create_topic(broker.bootstrap, TOPIC, PARTITIONS, config={"internal.segment.bytes": "6000"})
    draw = random.Random(11)
    paying = producer(broker.bootstrap, "lz4", transactional_id=TOPIC)
    paying.init_transactions(SECONDS)
    plain = producer(broker.bootstrap)
    ends = dict.fromkeys((True, False), 0)
    with ExitStack() as stack:
        agents = Agents(broker, tmp_path, stack)
        agents.start()
        queries = [Query(relation, agents.port) for relation in ("ranges", "batches", "transactions")]
        for number in range(ROUNDS):
            commit = draw.random() < 0.6
            send(plain, TOPIC, number % PARTITIONS, 1, draw.randint(1, 9))
            with transaction(paying, commit=commit):
                for partition in range(PARTITIONS):
                    send(paying, TOPIC, partition, 1, 3)
                if number % 6 == 1:
                    planned = [query.plan() for query in queries]
                    agents.start()  # what was planned by one is read by the next
                    for query, end in zip(queries, planned, strict=True):
                        query.take(end)
                else:
                    for query in draw.sample(queries, 2):
                        query.take(query.plan())
            ends[commit] += PARTITIONS
            if number % 6 == 4:
                draw.choice(queries).restart()
        broker.until(lambda: len(on_disk(broker, "transactions")) == sum(ends.values()), "all markers are written")
        for query in queries:
            query.take_all()
    ranges, each_batch, transactions = (query.rows for query in queries)
    whole, there = on_disk(broker, "ranges"), on_disk(broker, "batches")
    for partition in range(PARTITIONS):
        own = sorted((row for row in ranges if row["partition"] == partition), key=lambda row: row["base_offset"])
        reached = [0, *(row["next_offset"] for row in own)]
        assert [row["base_offset"] for row in own] == reached[:-1]
        for name in ("records", "bytes", "batches"):
            assert sum(row[name] for row in own) == sum(row[name] for row in whole if row["partition"] == partition)
    assert {(row["kind"], row["is_leader"]) for row in ranges} == {("appended", True)}
    assert sum(row["start_position"] == 0 for row in ranges) > 2 * PARTITIONS, "segments were rolled"
    assert sorted(batches(each_batch)) == sorted(batches(there))
    kinds = [row["kind"] for row in transactions]
    assert {True: kinds.count("committed"), False: kinds.count("aborted")} == ends
    assert {row["transactional_id"] for row in transactions} == {TOPIC}
    assert agents.started == 1 + sum(number % 6 == 1 for number in range(ROUNDS))


def on_disk(broker: Kafka, relation: str) -> list[dict[str, Any]]:
    """What its log dirs hold now, read without an agent."""
    return step(stream(*broker.log_dirs, relation=relation, topics=TOPIC), {})[0]
