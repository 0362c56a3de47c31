"""Reads the public relations in the test's process, as Spark's planner and its tasks do: at once, and as a stream."""

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from streaming.spark.source.datasource import SegtailDataSource
from streaming.spark.source.public_options import parse_public_options
from streaming.spark.source.public_stream import PublicStreamReader


def reader(options: dict[str, str]) -> Any:
    source = SegtailDataSource(options)
    return source.reader(source.schema())


def rows(options: dict[str, str], push: Callable[[Any], None] = lambda _: None) -> list[dict[str, Any]]:
    """All rows, by the way of Spark: what plans is pickled for what reads."""
    planning = reader(options)
    push(planning)
    tasks = planning.partitions()
    reading, tasks = pickle.loads(pickle.dumps((planning, tasks)))
    found = []
    for task in tasks:
        for some in reading.read(task):
            assert isinstance(some, pa.RecordBatch)
            found += some.to_pylist()
    return found


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
    wanted = {name: str(value) for name, value in given.items() if value is not None}
    return PublicStreamReader(parse_public_options(wanted), clock, clock.sleep)


def read(reader: PublicStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of all tasks; each runs in a process of its own, with a reader that Spark made besides the one that plans."""
    start, end = json.loads(json.dumps([start, end]))
    tasks = [pickle.loads(pickle.dumps((PublicStreamReader(reader._options), task))) for task in reader.partitions(start, end)]
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
