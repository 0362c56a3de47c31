"""The relations as a stream. Its offset is where each log has been read up to, wherever the logs are read: by agents, or of log dirs.

A micro-batch is what lies between two offsets, and it is read from the disk as often as Spark asks for it. The offset is ``{broker:
positions}`` (`streaming.common.log_positions`); of records ``{"records": positions}``, because one replica of each partition is read.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from streaming.common.log_positions import LogName, Position, decode, encode, reached, without_begins
from streaming.errors import UsageError
from streaming.spark.source.agent_stream import AgentLogs
from streaming.spark.source.local_stream import BrokerLogs, RecordLogs
from streaming.spark.source.offsets import Offset
from streaming.spark.source.public_options import PublicOptions
from streaming.spark.source.public_rows import skipped_row
from streaming.spark.source.relations import Relation, schema_of
from streaming.spark.source.stream_logs import RECORDS, AllPositions, StreamLogs, StreamTask, Wanted

PLAN_SECONDS = 1.0
"""The shortest time between two plans of which the first found nothing: each asks for the sizes of all logs."""

_Decoded = dict[str, dict[LogName, Position]]


class PublicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A relation as a stream. Of log dirs, every executor sees them under the same paths."""

    def __init__(
        self, options: PublicOptions, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._options, self._clock, self._sleep = options, clock, sleep
        self._logs = _logs_of(options, clock, sleep)
        self._takes_all = False
        self._targets: _Decoded | None = None
        self._checked_at = float("-inf")

    def initialOffset(self) -> Offset:  # noqa: N802
        """The offset before everything. No agent is asked, because agents may be away."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """How many bytes of logs go into one micro-batch."""
        return ReadMaxBytes(self._options.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The ends of the logs at the first plan are those of the query."""
        self._takes_all = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """How far the next micro-batch goes; ``start`` itself when nothing is new.

        Raises:
            UsageError: the offset is of another version, or a query that begins names topics that are not there.
            LogDirError: a log dir cannot be read.
            AgentError: no agent answers at first, or everything is wanted and one of them does not.
        """
        at = self._decoded(start, begins=False)
        if self._takes_all and self._targets is None:
            self._targets = self._logs.plan(Wanted(at=at, budget=None, all=True))
        if self._targets is not None and all(reached(at.get(key, {}), each) for key, each in self._targets.items()):
            return start
        self._sleep(max(0.0, self._checked_at + PLAN_SECONDS - self._clock()))
        size = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self._options.max_bytes
        budget = None if isinstance(limit, ReadAllAvailable) else size
        ends = self._logs.plan(Wanted(at=at, budget=budget, all=self._takes_all))
        if self._targets is not None:
            ends = _bounded(at, ends, self._targets)
        if {key: without_begins(each) for key, each in ends.items()} == at and (start or not ends):
            self._checked_at = self._clock()
            return start
        return {key: encode(ends[key]) for key in sorted(ends)}

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """Up to where the logs could be read at the last plan, None before it."""
        available = self._logs.available()
        return {key: encode(without_begins(available[key])) for key in sorted(available)} or None

    def partitions(self, start: Offset, end: Offset) -> list[StreamTask]:
        """The tasks of a micro-batch.

        Raises:
            LogDirError: a log cannot be read; or records that were planned are gone, and failOnDataLoss is not false.
            AgentError: an agent does not answer for a while, and a part of it was planned.
        """
        return self._logs.tasks(self._decoded(start, begins=False), self._decoded(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task.

        Raises:
            LogDirError: a log dir is not there on this host, or cannot be read.
            AgentError: an agent does not answer for a while, or went away in the middle of a long answer.
        """
        assert isinstance(partition, StreamTask)
        schema = to_arrow_schema(schema_of(self._options.relation, self._options.columns), timezone="UTC")
        yield pa.RecordBatch.from_pylist([], schema)
        if partition.scan is not None:
            yield from self._logs.rows(partition.scan)
        for values in partition.missing:
            yield skipped_row(self._options.relation, values).select(schema.names)

    def commit(self, end: Offset) -> None:
        """Do nothing: the logs are Kafka's, and the offsets Spark's."""

    def _decoded(self, offset: Offset, *, begins: bool = True) -> _Decoded:
        if offset and (RECORDS in offset) != (self._options.relation is Relation.RECORDS):
            raise UsageError("the checkpoint's offset is of another relation: begin the query with a new checkpointLocation")
        found = {key: decode(each) for key, each in offset.items()}
        return found if begins else {key: without_begins(each) for key, each in found.items()}

    def __getstate__(self) -> dict[str, Any]:
        """Only the options are pickled: tasks do not plan."""
        return {"_options": self._options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_options"])  # type: ignore[misc]


def _logs_of(options: PublicOptions, clock: Callable[[], float], sleep: Callable[[float], None]) -> StreamLogs:
    """The one thing in which streams of agents and of log dirs differ."""
    if options.relation is Relation.RECORDS:
        return RecordLogs(options)
    return BrokerLogs(options) if options.log_dirs else AgentLogs(options, clock, sleep)


def _bounded(at: AllPositions, ends: AllPositions, targets: AllPositions) -> _Decoded:
    """No further than the targets: who is not among them stays where it is, or is left out."""
    found = {}
    for key in ends:
        before, goals = at.get(key, {}), targets.get(key, {})
        bounded = {name: _nearer(before.get(name), to, goals.get(name)) for name, to in ends[key].items()}
        if key in at or key in targets:
            found[key] = {name: each for name, each in bounded.items() if each is not None}
    return found


def _nearer(before: Position | None, to: Position, goal: Position | None) -> Position | None:
    if goal is None or goal.topic_id != to.topic_id:
        return before
    known = before is not None and before.topic_id == goal.topic_id
    if known and before is not None and before.next_offset >= goal.next_offset:
        return before
    nearer = goal if to.next_offset >= goal.next_offset else to
    return nearer._replace(begin=to.begin if known else goal.begin)


class RefusedStream(DataSourceStreamReader):
    """Each call raises a UsageError with ``why``. PySpark hides an error of `DataSource.streamReader` itself behind one of its own."""

    def __init__(self, why: str) -> None:
        self._why = why

    def initialOffset(self) -> dict[str, object]:  # noqa: N802
        """Raise the error: Spark calls this first."""
        self._refuse()

    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> dict[str, object]:  # noqa: N802
        """Raise the error: Spark calls this first where a checkpoint is there."""
        self._refuse()

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> list[InputPartition]:
        """Raises, too."""
        self._refuse()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises, too."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UsageError(self._why)
