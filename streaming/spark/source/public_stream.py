"""The public relations as a stream: what was planned of each agent is read, all of it and nothing else, so that a sink has each row once.

An agent that is away is planned no further, and holds nobody up. What was planned of it already has to come: the tasks of its micro-batch
wait for it, and in the end the query fails with its name. Started again from its checkpoint, the query reads the same ranges.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from streaming.broker.protocol.excerpt_messages import Scan
from streaming.broker.protocol.problems import Reason
from streaming.broker.protocol.reader_messages import ReaderRange, Selected
from streaming.errors import AgentError, VersionError
from streaming.spark.client.agent_client import AgentClient
from streaming.spark.source import agent_connections, reader_offsets
from streaming.spark.source.public_answers import lost_rows, public_rows
from streaming.spark.source.public_options import PublicOptions
from streaming.spark.source.reader_offsets import AgentRange, Offset
from streaming.spark.source.reader_planner import ReaderPlanner
from streaming.spark.source.relations import Relation, schema_of

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
        reader, run, addresses = reader_offsets.reader_id(end), self._planner.run, self._planner.addresses
        found = sorted(reader_offsets.ranges(start, end).items())
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
