"""Streams of log dirs by calling what Spark calls: a query's micro-batches, one after the other."""

import json
import pickle
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable

from streaming.spark.source.public_options import parse_public_options
from streaming.spark.source.public_stream import PublicStreamReader
from tests.source.public_reading import Clock

ALL = ReadAllAvailable()


def stream(*paths: Path, **options: Any) -> PublicStreamReader:
    given = {"log_dirs": ",".join(map(str, paths)), "relation": "batches", "startingPosition": "earliest", **options}
    clock = Clock()
    wanted = {name: str(value) for name, value in given.items() if value is not None}
    return PublicStreamReader(parse_public_options(wanted, at_once=False), clock, clock.sleep)


def read(reader: PublicStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of all tasks, each with a reader of its own, as in another process; the offsets went through a checkpoint."""
    start, end = json.loads(json.dumps([start, end]))
    tasks = pickle.loads(pickle.dumps([(reader, task) for task in reader.partitions(start, end)]))
    return [row for its_reader, task in tasks for found in its_reader.read(task) for row in found.to_pylist()]


def step(reader: PublicStreamReader, at: dict[str, Any], limit: Any = ALL) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """One micro-batch."""
    end = reader.latestOffset(at, limit)
    return ([], at) if end is at else (read(reader, at, end), end)


def to_the_end(reader: PublicStreamReader, at: dict[str, Any], limit: Any = ALL) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    while True:
        more, end = step(reader, at, limit)
        if end is at:
            return rows, at
        rows, at = rows + more, end


def batches(rows: list[dict[str, Any]]) -> list[tuple[str, int, int, int]]:
    return [(row["topic"], row["partition"], row["base_offset"], row["last_offset"]) for row in rows if row["kind"] == "batch"]
