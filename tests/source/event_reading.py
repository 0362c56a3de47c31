"""Reads the stream of events in the test's process, as Spark's planner and its tasks do."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable

from streaming.common.event_row import EVENTS, EventRow
from streaming.common.rows import ROWS, Kind, unpack_rows
from streaming.common.state_row import STATES
from streaming.rules.shard import state_rows
from streaming.simulator.log import PartitionLog
from streaming.spark.job.counting import Counting
from streaming.spark.source.counted_file import NOTHING_COUNTED
from streaming.spark.source.job_options import parse_options
from streaming.spark.source.stream import ARROW_SCHEMA, EventStreamReader
from tests.agents import Agent, event_rows
from tests.events import Shard

ALL = ReadAllAvailable()


SHARDS = 4


def reader_of(*addresses: str, **options: Any) -> EventStreamReader:
    given = {"agents": ",".join(addresses), "consumer": "job", "start_from": "earliest", "shards": SHARDS, **options}
    return EventStreamReader(parse_options({name: str(value) for name, value in given.items()}))


def read(reader: EventStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[EventRow]:
    """The rows of all tasks; each task runs in a process of its own."""
    tasks = [pickle.loads(pickle.dumps((reader, task))) for task in reader.partitions(start, end)]
    batches = [found for its_reader, task in tasks for found in its_reader.read(task)]
    assert all(found.schema == ARROW_SCHEMA for found in batches)
    packed = pa.Table.from_batches(batches, ARROW_SCHEMA)[ROWS].to_pylist()
    return event_rows(pa.Table.from_batches([unpack_rows(each, EVENTS) for each in packed], EVENTS))


def next_batch(reader: EventStreamReader, start: dict[str, Any], limit: Any = ALL) -> dict[str, Any]:
    """The end of the next micro-batch; asked for until there is one."""
    while (end := reader.latestOffset(start, limit)) == start:
        pass
    return end


def records(rows: list[EventRow]) -> int:
    return sum(row.records for row in rows if row.kind == Kind.APPENDED)


def agent_has_seen(agent: Agent, log: PartitionLog) -> None:
    """Wait until everything in the log is published."""
    while agent.journal.end().total < log.active.size:
        pass


def ready(reader: EventStreamReader) -> EventStreamReader:
    """One that takes all that the agents have, which is there now."""
    reader.prepareForTriggerAvailableNow()
    reader._targets = reader._everything(NOTHING_COUNTED)
    return reader


class Stream:
    """A query over the agents, by hand: what it has folded is what it has counted.

    Args:
        counted: where it says that.
    """

    def __init__(self, *addresses: str, counted: Path, **options: object) -> None:
        self.counted = counted
        self.shard = Shard()
        self.end: dict[str, Any] = {}
        self.start(*addresses, **options)

    def start(self, *addresses: str, **options: object) -> None:
        """Begin another run, which recalls what there is."""
        self.reader: EventStreamReader = reader_of(*addresses, counted=self.counted, **options)
        self._counting = Counting(self.counted, recalls=1 if self.end else 0)

    def keep(self) -> None:
        """What the job does again and again."""
        self._counting.keep()

    def step(self) -> None:
        """A micro-batch, if there is anything to do."""
        following = self.reader.latestOffset(self.end, ALL)
        if following != self.end:
            self.take(following)

    def take(self, following: dict[str, Any]) -> None:
        """The micro-batch that was planned."""
        self.fold(read(self.reader, self.end, following))
        self.reader.commit(following)
        self.end = following

    def fold(self, rows: list[EventRow]) -> None:
        """What the sink gets of these rows."""
        changes = self.shard.fold(*rows)
        self._counting.take(pa.Table.from_batches([state_rows(changes)] if changes else [], STATES))

    def until(self, check: Callable[[dict[str, int]], bool]) -> None:
        while not check(self.records):
            self.step()

    @property
    def records(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for state in self.shard.states.values():
            found[state.topic] = found.get(state.topic, 0) + state.appended_records
        return found

    @property
    def skipped(self) -> int:
        return sum(sum(state.skipped_bytes) for state in self.shard.states.values())
