"""What a stream of logs needs of the place where the logs are: log dirs that this Spark can open, or agents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from streaming.broker.protocol.position_messages import GONE, TRUNCATED, Missing
from streaming.common.log_positions import LogName, Position, Positions
from streaming.spark.source.relations import Relation

AllPositions = Mapping[str, Positions]
"""By what an offset has them: the id of a broker, or `RECORDS`."""

RECORDS = "records"
"""In an offset, instead of a broker: one replica of each partition is read."""


class StreamLogs(ABC):
    """The logs of one place. Their positions are those of `streaming.common.log_positions`."""

    @abstractmethod
    def available(self) -> dict[str, dict[LogName, Position]]:
        """Up to where each log could be read at the last plan."""

    @abstractmethod
    def plan(self, wanted: Wanted) -> dict[str, dict[LogName, Position]]:
        """The positions after the next micro-batch."""

    @abstractmethod
    def tasks(self, before: AllPositions, to: AllPositions) -> list[StreamTask]:
        """The tasks between two positions. Those before say no beginnings."""

    @abstractmethod
    def rows(self, scan: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task's excerpts or records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a micro-batch may have: from the positions ``at`` on, which say no beginnings, ``budget`` bytes, None for no bound.

    ``all``: every agent with logs has to answer, because the query ends when nothing is left.
    """

    at: AllPositions
    budget: int | None
    all: bool = False


@dataclass
class StreamTask(InputPartition):
    """The work of one task: excerpts or ranges of records, and rows that say what is not there."""

    scan: InputPartition | None = None
    missing: tuple[dict[str, object], ...] = ()


def missing_row(relation: Relation, broker: str, missing: Missing) -> dict[str, object] | None:
    """What is missing as the columns of a relation, None if it has no such rows."""
    if missing.kind in (GONE, TRUNCATED) and relation is not Relation.RANGES:
        return None
    base, end = (None if each < 0 else each for each in (missing.base_offset, missing.next_offset))
    row: dict[str, object] = {
        "kind": missing.kind,
        "broker": int(broker),
        "topic": missing.topic,
        "partition": missing.partition,
        "topic_id": missing.topic_id or None,
        "log_dir": missing.log_dir or None,
        "missing_bytes": None if missing.bytes < 0 else missing.bytes,
        "reason": missing.reason,
        "base_offset": base,
        "next_offset": end,
    }
    if base is not None and end is not None:
        row |= {"first_offset": base, "last_offset": end - 1}
    return row
