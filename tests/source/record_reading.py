"""Reads ``relation=records`` in the test's process, as Spark's planner and its tasks do."""

import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from streaming.spark.source.local_reader import RecordsReader
from streaming.spark.source.public_options import parse_public_options


def records_reader(*log_dirs: Path, **options: str) -> RecordsReader:
    """The reader of these log dirs, as a task has it: it was pickled."""
    given = {"relation": "records", "log_dirs": ",".join(map(str, log_dirs)), **options}
    reader: RecordsReader = pickle.loads(pickle.dumps(RecordsReader(parse_public_options(given, at_once=True))))
    return reader


def record_batches(*log_dirs: Path, **options: str) -> list[pa.RecordBatch]:
    """What all tasks give out, one after the other."""
    reader = records_reader(*log_dirs, **options)
    return [batch for task in pickle.loads(pickle.dumps(reader.partitions())) for batch in reader.read(task)]


def record_rows(*log_dirs: Path, **options: str) -> list[dict[str, Any]]:
    """The rows; every Arrow array in them is a valid one."""
    batches = record_batches(*log_dirs, **options)
    for batch in batches:
        batch.validate(full=True)
    return [row for batch in batches for row in batch.to_pylist()]


def offsets_of(rows: Iterable[dict[str, Any]]) -> dict[tuple[str, int], list[int]]:
    """The offsets that came, by topic and partition."""
    found: dict[tuple[str, int], list[int]] = {}
    for row in rows:
        found.setdefault((row["topic"], row["partition"]), []).append(row["offset"])
    return found
