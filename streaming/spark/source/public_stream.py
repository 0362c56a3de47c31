"""The public relations as a stream: what was planned of each agent is read, all of it and nothing else, so that a sink has each row once.

An agent that is away is planned no further, and holds nobody up. What was planned of it already has to come: the tasks of its micro-batch
wait for it, and in the end the query fails with its name. Started again from its checkpoint, the query reads the same ranges.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from streaming.broker.protocol.agent_calls import Reason
from streaming.broker.protocol.consumer_messages import ReaderRange, Selected
from streaming.broker.protocol.excerpt_messages import Scan
from streaming.common.rows import BATCHES, SEGMENTS, Kind
from streaming.errors import AgentError, UsageError, VersionError
from streaming.spark.client.agent_client import AgentClient
from streaming.spark.client.column_versions import as_events
from streaming.spark.source import agent_connections, reader_planner
from streaming.spark.source.public_options import PublicOptions
from streaming.spark.source.public_rows import (
    ARROW,
    known,
    known_text,
    one_batch,
    public_batches,
    public_ranges,
    public_transactions,
    skipped_row,
    times,
)
from streaming.spark.source.reader_planner import AgentRange, Offset, ReaderPlanner
from streaming.spark.source.relations import Relation, schema_of

# --- the tables of an agent's answer to a reader as rows of its relation: what was asked for, and events that say what is missing.


def public_rows(relation: Relation, table: pa.Table) -> pa.Table:
    """The rows of one table of an answer.

    Raises:
        AgentError: it is none that an agent sends for this relation.
    """
    if "kind" in table.schema.names:
        events = as_events(table)
        return _ranges(events) if relation is Relation.RANGES else _skips(relation, events)
    if relation is Relation.BATCHES and set(BATCHES.names) <= set(table.schema.names):
        return pa.Table.from_batches([public_batches(table.select(BATCHES.names).cast(BATCHES))])
    if relation is Relation.TRANSACTIONS:
        return pa.Table.from_batches([public_transactions(table)])
    raise AgentError(f"its rows are none of {relation}: are the agent and this Spark of the same version?", "protocol")


def lost_rows(relation: Relation, agent: str, journal: str) -> pa.Table:
    """The row that says that a reader had to begin anew at an agent: how much it misses is not known."""
    reason = f"agent_lost: agent {agent} has another journal, or has forgotten this query: what it published before is not known"
    values: Mapping[str, object] = {"reason": reason} | ({"agent": agent, "journal": journal} if relation is Relation.RANGES else {})
    return pa.Table.from_batches([skipped_row(relation, values)])


def _ranges(events: pa.Table) -> pa.Table:
    found = [public_ranges(events)]
    listed = events.filter(pc.equal(events["kind"], str(Kind.FOUND)))
    if listed.num_rows:
        found += [_of_segments(listed, "rolled"), _of_segments(listed, "deleted")]
    return pa.Table.from_batches(found)


def _of_segments(events: pa.Table, name: str) -> pa.RecordBatch:
    """A row for each segment in a column of `SEGMENTS`: of kind ``rolled`` or ``deleted``, as the column is called."""
    rows = one_batch(events.filter(events[name].is_valid()))
    packed = rows[name].to_pylist()
    segments = np.frombuffer(b"".join(packed), SEGMENTS)
    owners = rows.take(pa.array(np.repeat(np.arange(len(packed)), [len(each) // SEGMENTS.itemsize for each in packed])))
    schema, count = ARROW[Relation.RANGES], len(segments)
    bases, zero = pa.array(segments["base_offset"]), pa.repeat(pa.scalar(0, pa.int64()), count)
    deleted = name == "deleted"
    columns: dict[str, pa.Array] = {field.name: pa.nulls(count, field.type) for field in schema}
    columns |= {field.name: pa.array([[]] * count, field.type) for field in schema if pa.types.is_nested(field.type)}
    columns |= dict.fromkeys(("bytes", "batches", "records", "old_format_batches"), zero)
    columns |= {column: known(owners[column]) for column in ("broker", "partition", "seq")}
    columns |= {column: known_text(owners[column]) for column in ("log_dir", "topic", "topic_id", "agent", "journal")}
    columns |= {
        "kind": pa.repeat(name, count),
        "segment": bases,
        "base_offset": bases,
        "seen_at": times(owners["seen_at"]),
        "missing_bytes": pa.array(segments["size"]) if deleted else zero,
    }
    if deleted:
        columns |= {"end_position": pa.array(segments["size"]), "max_timestamp": times(pa.array(segments["largest_timestamp"]))}
    return pa.RecordBatch.from_arrays([columns[each] for each in schema.names], schema=schema)


def _skips(relation: Relation, events: pa.Table) -> pa.Table:
    """The rows of kind ``skipped`` among events; others are none of this relation."""
    rows = one_batch(events.filter(pc.equal(events["kind"], str(Kind.SKIPPED))))
    schema, count = ARROW[relation], rows.num_rows
    columns: dict[str, pa.Array] = {field.name: pa.nulls(count, field.type) for field in schema}
    columns |= {column: known_text(rows[column]) for column in ("log_dir", "topic", "topic_id", "reason")}
    columns |= {column: known(rows[column]) for column in ("broker", "partition")}
    columns |= {"kind": pa.repeat("skipped", count), "missing_bytes": rows["bytes"]}
    if relation is Relation.BATCHES:
        last = known(pc.subtract(rows["next_offset"], 1))
        columns |= {"segment": known(rows["segment"]), "base_offset": known(rows["base_offset"]), "last_offset": last}
    else:
        columns["first_offset"] = known(rows["base_offset"])
    return pa.Table.from_batches([pa.RecordBatch.from_arrays([columns[each] for each in schema.names], schema=schema)])


log = logging.getLogger(__name__)

READ_SECONDS = 120.0
"""How long a task waits for an agent whose rows were planned."""

BUFFER_BYTES = 64 << 20
"""So many bytes of an answer are kept until it is complete, so that it can be asked for again; of a longer one the task fails."""

EXCERPTS_A_TASK = 4
_PAUSE_SECONDS = 0.25


@dataclass
class ReaderTask(InputPartition):
    """The work of one task: ranges of agents, and where each agent was when they were planned.

    ``reader``: the query's id; ``run``: of the reader that planned, because Spark makes another one for the tasks.
    """

    reader: str
    run: str
    ranges: list[tuple[str, AgentRange]]
    addresses: dict[str, str]


class PublicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A relation of all agents as a stream."""

    def __init__(
        self, options: PublicOptions, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._options = options
        self._clock = clock
        self._sleep = sleep
        self._planner = ReaderPlanner(options, clock, sleep)

    def initialOffset(self) -> Offset:  # noqa: N802
        """The offset before everything. No agent is asked, because they may be away."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """How many bytes of logs go into one micro-batch."""
        return ReadMaxBytes(self._options.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The first plan will wait until every agent has read what is there, and use that as the end."""
        self._planner.take_all()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """How far the next micro-batch goes; ``start`` itself when nothing is new.

        Raises:
            AgentError: no agent answers at first, or everything is wanted and one of them does not.
            UsageError: a query that begins names topics, and no agent has any of them.
        """
        return self._planner.plan(start, limit)

    def partitions(self, start: Offset, end: Offset) -> list[ReaderTask]:
        """The tasks of a micro-batch."""
        reader, run, addresses = reader_planner.reader_id(end), self._planner.run, self._planner.addresses
        found = sorted(reader_planner.ranges(start, end).items())
        tasks = [[each] for agent, range_ in found for each in _parts(agent, range_)]
        if self._options.relation is Relation.RANGES:
            events = [each for task in tasks for each in task if each[1].events]  # a task costs more than the rows of some agents
            tasks = [events] * bool(events) + [task for task in tasks if not task[0][1].events]
        return [ReaderTask(reader, run, task, addresses) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task.

        Raises:
            AgentError: an agent does not answer for `READ_SECONDS`, or went away in the middle of a long answer.
        """
        assert isinstance(partition, ReaderTask)
        options = self._options
        schema = to_arrow_schema(schema_of(options.relation, options.columns), timezone="UTC")
        yield pa.RecordBatch.from_pylist([], schema)
        for agent, range_ in partition.ranges:
            if range_.anew:
                yield from lost_rows(options.relation, agent, range_.end.journal).select(schema.names).cast(schema).to_batches()
            for table in self._rows(partition, agent, range_):
                yield from public_rows(options.relation, table).select(schema.names).cast(schema).to_batches()

    def _rows(self, partition: ReaderTask, agent: str, range_: AgentRange) -> Iterator[pa.Table]:
        """The rows of a range as the agent sends them, asked for again while nothing of them was passed on."""
        request = ReaderRange(
            reader=partition.reader,
            run=partition.run,
            begin=range_.begin,
            end=range_.end,
            events=range_.events,
            rows=str(Scan(self._options.relation)),
            selected=Selected.of(self._options.selection),
        )
        deadline, logged = self._clock() + READ_SECONDS, ""
        while True:
            passed_on = False
            try:
                kept: list[pa.Table] | None = []
                size = 0
                for table in self._client(agent, partition.addresses).reader_rows(request):
                    size += table.nbytes
                    if kept is None:
                        yield table
                    elif size <= BUFFER_BYTES:
                        kept.append(table)
                    else:
                        passed_on = True
                        yield from [*kept, table]
                        kept = None
                yield from kept or ()
                return
            except AgentError as error:
                # where another run of this query is served, this one is over: nobody waits for its rows
                if passed_on or isinstance(error, VersionError) or error.reason == Reason.TWIN_CONSUMER or self._clock() > deadline:
                    raise
                if str(error) != logged:
                    log.warning("read failed", extra={"agent": agent, "error": str(error)})
                    logged = str(error)
            self._sleep(_PAUSE_SECONDS)

    def _client(self, agent: str, addresses: Mapping[str, str]) -> AgentClient:
        """The connection to an agent, which may have come back at another address.

        Raises:
            AgentError: it is at none of the addresses.
        """
        last_at, others = addresses.get(agent), {address for name, address in addresses.items() if name != agent}
        candidates = [address for address in self._options.addresses() if address not in others]
        problem: AgentError | None = None
        for address in sorted(candidates, key=lambda address: address != last_at):
            client = agent_connections.client(address, self._options.files)
            try:
                if client.status().agent == agent:
                    return client
            except AgentError as error:
                problem = problem or error
                client.close()
        raise problem or AgentError(f"agent {agent} is at none of the addresses of option agents")

    def commit(self, end: Offset) -> None:
        """Report to the agents that a micro-batch is through."""
        self._planner.commit(end)

    def __getstate__(self) -> dict[str, Any]:
        """Only the options are pickled: tasks do not plan."""
        return {"_options": self._options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._clock, self._sleep = time.monotonic, time.sleep
        self._planner = ReaderPlanner(self._options)


def _parts(agent: str, range_: AgentRange) -> Iterator[tuple[str, AgentRange]]:
    """The events of a range, and some of its excerpts each: parts that can be read at the same time."""
    first, last = range_.begin.excerpts, range_.end.excerpts
    if range_.events or range_.anew:
        yield agent, replace(range_, end=replace(range_.end, excerpts=first))
    for begin in range(first, last, EXCERPTS_A_TASK):
        until = min(last, begin + EXCERPTS_A_TASK)
        yield (
            agent,
            AgentRange(replace(range_.begin, excerpts=begin), replace(range_.end, excerpts=until), events=False),
        )


class RefusedStream(DataSourceStreamReader):
    """Each call raises a UsageError with ``why``. PySpark hides an error of `DataSource.streamReader` itself behind one of its own."""

    def __init__(self, why: str) -> None:
        self._why = why

    def initialOffset(self) -> dict[str, object]:  # noqa: N802
        """It is the first call."""
        self._refuse()

    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> dict[str, object]:  # noqa: N802
        """It is the first call where a checkpoint is there."""
        self._refuse()

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> list[InputPartition]:
        """Raises, too."""
        self._refuse()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises, too."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UsageError(self._why)
