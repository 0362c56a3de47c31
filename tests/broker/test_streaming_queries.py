"""Real Structured Streaming queries: what their checkpoints show is what they then read, and what is lost makes them fail."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GroupDetail, GroupPartition
from streaming.common.query_checkpoints import Isolation, QueryCheckpoint
from streaming.common.settings import Settings
from streaming.terminal.offline.group_reading import read_groups
from tests.broker.clients import create_topic, producer, send, transaction
from tests.broker.install import spark_environment
from tests.broker.kafka import Kafka
from tests.group_answers import detailed
from tests.limits import SECONDS
from tests.processes import until
from tests.recorded.worlds.retention import set_config

pytestmark = pytest.mark.spark

TOPIC = "orders"
HOUR_MS = 3_600_000


class Queries:
    """The process in which queries run, and what segtail says of them."""

    def __init__(self, process: "subprocess.Popen[str]", kafka: Kafka, directory: Path) -> None:
        self._process, self._kafka, self._directory = process, kafka, directory

    def ask(self, do: str, isolation: Isolation | None = None, **more: object) -> Any:
        """Ask for something to be done with the query of an isolation."""
        of = {"topic": TOPIC, "checkpoint": str(self._directory / isolation), "isolation": isolation} if isolation else {}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"do": do, **of, **more}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def found(self, isolation: Isolation) -> GroupDetail:
        """What log dirs and its checkpoint show of a query."""
        checkpoint = QueryCheckpoint("q", str(self._directory / isolation), isolation)
        settings = Settings(spark_checkpoints=(checkpoint,), server_properties=(self._kafka.broker(1).properties,))
        (found,) = detailed(read_groups(open_log_dirs(self._kafka.log_dirs), ("spark:q",), settings, None)).groups
        return found

    def first(self, isolation: Isolation) -> GroupPartition:
        """What they show of its first partition."""
        (found,) = (each for each in self.found(isolation).partitions if each.partition == 0)
        return found

    def left(self, isolation: Isolation) -> int:
        """The records that a query has left, once the end of the log is known to be replicated."""
        return self.found(isolation).summary.records_left


@contextmanager
def _started(kafka: Kafka, directory: Path) -> Iterator[Queries]:
    command = [sys.executable, "-m", "tests.broker.running_query", kafka.bootstrap]
    with (directory / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, env=spark_environment()
        )
    try:
        yield Queries(process, kafka, directory)
    finally:
        process.communicate(timeout=SECONDS)  # at the end of its stdin it ends, and its JVM with it


@pytest.fixture(scope="module")
def queries(kafka: Kafka, connector: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queries]:
    with _started(kafka, tmp_path_factory.mktemp("queries")) as started:
        yield started


def test_what_is_left_is_what_queries_then_read_and_what_is_lost_makes_them_fail(kafka: Kafka, queries: Queries) -> None:
    create_topic(kafka.bootstrap, TOPIC, partitions=2, config={"internal.segment.bytes": "6000", "retention.ms": str(24 * HOUR_MS)})
    plain, transactional = producer(kafka.bootstrap), producer(kafka.bootstrap, transactional_id="t")
    transactional.init_transactions(SECONDS)
    send(plain, TOPIC, 0, 2, 5)
    for each in Isolation:
        assert queries.ask("run", each) == {"rows": 10, "error": ""}
    isolation = Isolation.READ_UNCOMMITTED

    # while they stand: markers and aborted records lie between
    for commit in (True, False):
        with transaction(transactional, commit=commit):
            send(transactional, TOPIC, 0, 1, 7)
            send(transactional, TOPIC, 1, 1, 3)
    send(plain, TOPIC, 1, 3, 4)
    wanted = {Isolation.READ_COMMITTED: 22, Isolation.READ_UNCOMMITTED: 32}
    until("all is replicated", lambda: {each: queries.left(each) for each in Isolation} == wanted)

    # a micro-batch that was aborted is planned, and not read
    assert "aborted by the test" in queries.ask("fail", Isolation.READ_COMMITTED)["error"]
    found = queries.found(Isolation.READ_COMMITTED)
    assert (found.summary.records_left, found.summary.state) == (22, "Planned")
    assert "micro-batch 1 is planned since" in found.notes[1]
    assert queries.ask("run", Isolation.READ_COMMITTED)["rows"] == 22
    assert queries.found(Isolation.READ_COMMITTED).summary.state == "Committed"

    # while one runs, its micro-batch counts when it is committed
    queries.ask("hold", isolation)
    found = queries.found(isolation)
    assert (found.summary.records_left, found.summary.state) == (32, "Planned")
    assert queries.ask("release")["rows"] == 32
    assert {each: queries.left(each) for each in Isolation} == dict.fromkeys(Isolation, 0)

    # what is deleted before it is read is lost, whoever deletes it
    send(plain, TOPIC, 0, 120, 1)
    until("all is replicated", lambda: queries.left(isolation) == 120)
    position = queries.first(isolation).committed
    assert queries.first(isolation).loss_ms > 0
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})  # as long as it is there, it answers
    (deleted,) = admin.delete_records([TopicPartition(TOPIC, 0, position + 8)]).values()
    assert deleted.result(SECONDS).low_watermark == position + 8
    until("the deletion is on disk", lambda: queries.first(isolation).lost_records == 8)
    assert queries.left(isolation) == 112
    set_config(kafka, TOPIC, "retention.ms", "1000")
    until("retention has deleted the rest", lambda: queries.first(isolation).lost_offsets == 120)
    set_config(kafka, TOPIC, "retention.ms", str(24 * HOUR_MS))
    send(plain, TOPIC, 0, 1, 2)
    until("the next ones are there", lambda: queries.left(isolation) == 2)
    found = queries.found(isolation)
    assert found.summary.verdict == "lost"
    assert "failOnDataLoss" in found.findings[0].text
    assert "data may have been lost" in queries.ask("run", isolation)["error"]
    assert queries.ask("run", isolation, loss=False) == {"rows": 2, "error": ""}
    assert queries.left(isolation) == 0
