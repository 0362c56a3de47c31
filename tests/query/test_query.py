"""The streaming query in Spark, over an agent in this process: what a job has counted after all that may come between."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from streaming.broker.agent.service import Service
from streaming.broker.protocol.consumer_messages import Range
from streaming.cluster.view.observer import AgentStatus, Observer
from streaming.common.rows import Change
from streaming.common.state_row import STATES
from streaming.errors import AgentError
from streaming.simulator.log import LogDir, PartitionLog
from streaming.spark.job.counting import Counting
from streaming.spark.job.query_progress import QueryProgress
from streaming.spark.query.query import fold_events
from tests.agents import Agent
from tests.builders import batch, log_dir, partition
from tests.exposition.reading import named
from tests.facts import facts_of
from tests.view.rows import new_observer, new_table

pytestmark = pytest.mark.spark

SHARDS = 4
PARTITIONS = 6


@dataclass
class Sink:
    """What the driver got."""

    batches: list[int] = field(default_factory=list)
    rows: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    recalled: set[int] = field(default_factory=set)
    observer: Observer = field(default_factory=new_observer)
    looks: list[float] = field(default_factory=list)
    took: list[tuple[float, float]] = field(default_factory=list)
    counting: Counting | None = None

    def __post_init__(self) -> None:
        self.progress = QueryProgress(self.observer, lambda: 5.0, lambda: self.looks.append(5.0), lambda *took: self.took.append(took))

    def take(self, states: pa.Table, number: int) -> None:
        assert states.schema.names == STATES.names
        new_table(replicas="all", series_limit=1).apply(states)
        self.batches.append(number)
        self.progress.arrived(states, number)
        assert self.counting is not None
        self.counting.take(states)
        for row in states.to_pylist():
            if row["change"] == Change.RECALLED:
                self.recalled.add(row["partition"])
            elif row["change"] != Change.ARRIVED:
                self.rows[row["topic"], row["partition"]] = row

    def lag(self, agent: Agent) -> dict[str, set[float]]:
        """Bytes and seconds, ten seconds after somebody looked at the agent."""
        self.observer.know([AgentStatus(name=agent.name, up=True, brokers=(1,))])
        self.observer.published(agent.name, agent.jobs.journal("", "job"), agent.journal.end().total, at=0.0)
        return {
            name: set(named(new_table(), f"segtail_tail_lag_{name}", self.observer, now=10.0).values()) for name in ("bytes", "seconds")
        }

    @property
    def counted(self) -> int:
        """Micro-batches in the metrics."""
        return int(sum(named(new_table(), "segtail_query_batch_duration_seconds_count", self.observer).values()))

    def appended(self) -> dict[tuple[str, int], tuple[int, int, int]]:
        return {key: (row["appended_bytes"], row["appended_batches"], row["appended_records"]) for key, row in self.rows.items()}


@pytest.fixture
def directory(tmp_path: Path) -> LogDir:
    return log_dir(tmp_path)


@pytest.fixture
def logs(directory: LogDir) -> list[PartitionLog]:
    made = [partition(directory, "orders", number) for number in range(PARTITIONS)]
    for number, log in enumerate(made):
        log.append(batch(1 + number, value_bytes=2000), batch(1))
    return made


@pytest.fixture
def agent(logs: list[PartitionLog], directory: LogDir, tmp_path: Path) -> Iterator[Agent]:
    made = Agent(directory.path)
    yield made
    made.close()


def run_once(spark: SparkSession, address: str, checkpoint: Path, **options: Any) -> Sink:
    """One run of the query to the end of what is there."""
    sink, looks, counted = Sink(), checkpoint.with_name("checks"), checkpoint.with_name("counted")
    given = {"agents": address, "consumer": "job", "start_from": "earliest", "shards": SHARDS, **options}
    given |= {"checks": str(looks), "counted": str(counted)}
    sink.counting = Counting(counted, SHARDS if checkpoint.exists() else 0)
    events = spark.readStream.format("segtail-job").options(**given).load()
    sink.progress.begins(looks)
    query = fold_events(events, sink.take).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    sink.progress.poll(query)
    return sink


def facts(logs: list[PartitionLog]) -> dict[tuple[str, int], tuple[int, int, int]]:
    appended = [(log, facts_of(log).appended) for log in logs]
    return {(log.topic, log.partition): (totals.bytes, totals.batches, totals.records) for log, totals in appended}


Reads = Callable[[Service, Range, str], Iterator[pa.RecordBatch]]


def refusing_rows(read: Reads) -> Reads:
    """An agent that fails where there are rows to send."""

    def refusing(service: Service, asked: Range, principal: str) -> Iterator[pa.RecordBatch]:
        if asked.journal:
            raise AgentError("no")
        return read(service, asked, principal)

    return refusing


def newest(directory: Path) -> Path:
    return max((path for path in directory.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))


def test_everything_is_counted_once_over_micro_batches_restarts_and_replays(
    spark: SparkSession, agent: Agent, logs: list[PartitionLog], tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    with agent.served() as address:
        first = run_once(spark, address, checkpoint, max_bytes=10_000)
        assert first.appended() == facts(logs)
        assert first.recalled == set()
        assert len(first.batches) > 3  # a cap of 10,000 bytes for some 40,000 in ranges of up to 14,000
        assert first.counted == len(first.batches)
        assert first.looks == [5.0]

        for log in logs[:3]:
            log.append(batch(4), batch(2))
        logs[5].truncate(logs[5].active.entries[-1].base_offset)
        logs[5].append(batch(2), leader_epoch=1)
        second = run_once(spark, address, checkpoint)
        assert second.recalled == set(range(SHARDS))
        assert {key: second.appended()[key] for key in facts(logs)} == facts(logs)
        assert second.batches[0] == first.batches[-1] + 1
        assert second.counted == len(second.batches)

        newest(checkpoint / "commits").unlink()  # as if the job had been killed before it could commit
        third = run_once(spark, address, checkpoint)
        assert third.batches[0] == second.batches[-1]
        assert third.appended() == facts(logs)
        assert not any(any(row["skipped_bytes"]) for row in third.rows.values())
    assert len(newest(checkpoint / "offsets").read_text().splitlines()[-1]) < 200


def test_what_was_planned_and_did_not_arrive_is_behind(
    spark: SparkSession, agent: Agent, logs: list[PartitionLog], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever plans reaches the agent, whoever reads does not: the micro-batch goes through without its rows."""
    checkpoint = tmp_path / "checkpoint"

    with agent.served() as address:
        with monkeypatch.context() as away:
            away.setattr(Service, "read", refusing_rows(Service.read))
            first = run_once(spark, address, checkpoint)
        assert first.appended() == {}
        assert first.lag(agent) == {"bytes": set(), "seconds": {10.0}}  # nothing is known of how much waits, but for how long
        second = run_once(spark, address, checkpoint)
        assert second.appended() == facts(logs)
        assert second.lag(agent) == {"bytes": {0}, "seconds": {0}}


def test_an_agent_that_is_started_anew_between_two_runs_changes_no_number(
    spark: SparkSession, agent: Agent, logs: list[PartitionLog], tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    with agent.served() as address:
        run_once(spark, address, checkpoint)
    agent.restart()
    for log in logs:
        log.append(batch(3))
    with agent.served() as address:
        again = run_once(spark, address, checkpoint)
    assert again.appended() == facts(logs)
    assert not any(any(row["skipped_bytes"]) for row in again.rows.values())


def test_a_wrong_option_is_named(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="option shards: 'many' is not a whole number"):
        spark.readStream.format("segtail-job").option("agents", "a:1").option("shards", "many").load()


def test_the_driver_makes_the_query_without_pandas(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    events = spark.readStream.format("rate").load().selectExpr("cast(value as int) as shard", "cast(null as binary) as rows")
    monkeypatch.setitem(sys.modules, "pandas", None)
    fold_events(events, lambda *_: None)
