"""The public stream with real agents, without Spark: what it plans, and that each row comes once, whatever is run again."""

import pickle
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from streaming.broker.protocol.consumer_messages import Register
from streaming.errors import AgentError
from streaming.simulator.log import PartitionLog
from streaming.spark.source import agent_connections
from streaming.spark.source.public_options import parse_public_options
from streaming.spark.source.public_stream import PublicStreamReader
from tests.agents import Agent, Reader
from tests.builders import batch, log_dir, partition

ALL = ReadAllAvailable()


@dataclass
class Clock:
    """Time that passes when somebody sleeps."""

    now: float = 0.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def stream(address: str, **options: Any) -> PublicStreamReader:
    given = {"agents": address, "startingPosition": "earliest", **options}
    clock = Clock()
    return PublicStreamReader(parse_public_options({name: str(value) for name, value in given.items()}), clock, clock.sleep)


def read(reader: PublicStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of all tasks; each runs in a process of its own."""
    tasks = [pickle.loads(pickle.dumps((reader, task))) for task in reader.partitions(start, end)]
    return [row for its_reader, task in tasks for found in its_reader.read(task) for row in pa.Table.from_batches([found]).to_pylist()]


def everything(reader: PublicStreamReader, start: dict[str, Any] | None = None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """All micro-batches of a query that takes what is there now, and where it ends."""
    reader.prepareForTriggerAvailableNow()
    at, rows = start or {}, []
    while (end := reader.latestOffset(at, reader.getDefaultReadLimit())) != at:
        rows += read(reader, at, end)
        reader.commit(end)
        at = end
    return rows, at


def appended(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return sorted((row["base_offset"], row["next_offset"]) for row in rows if row["kind"] == "appended")


def counted(rows: list[dict[str, Any]]) -> tuple[int, int]:
    return sum(row["records"] for row in rows), sum(row["bytes"] for row in rows)


def test_what_lay_there_before_and_what_is_appended_comes_once(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        rows, at = everything(stream(address, consumer="q"))
        assert counted(rows) == (3, log.active.size)
        log.append(batch(4))
        more, at = everything(stream(address, consumer="q"), at)
        assert [(row["kind"], row["records"], row["base_offset"]) for row in more] == [("appended", 4, 3)]
        assert everything(stream(address, consumer="q"), at)[0] == []


def test_a_micro_batch_that_is_run_again_reads_the_same_rows(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        first = stream(address, consumer="q")
        _, at = everything(first)
        log.append(batch(4))
        plans = stream(address, consumer="q")
        plans.prepareForTriggerAvailableNow()
        end = plans.latestOffset(at, ALL)
        rows = read(plans, at, end)
        log.append(batch(5))
        again = stream(address, consumer="q")  # the query was killed, and started again from its checkpoint
        assert read(again, at, end) == rows
        rest, _ = everything(again, end)
        assert [row["records"] for row in rest] == [5]


def test_what_another_job_has_published_again_does_not_come_again(agent: Agent, log: PartitionLog) -> None:
    reader = Reader(agent, start_from="latest").begin()
    reader.step()
    with agent.served() as address:
        _, at = everything(stream(address, startingPosition="latest"))
        log.append(batch(4))
        agent.service.register(Register("other", "earliest", resumed=False))
        rows, at = everything(stream(address, startingPosition="latest"), at)
        assert appended(rows) == [(3, 7)]
