"""The public relations as a stream: agents are planned as far as they are there, and what was planned is read, neither more nor less."""

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from streaming.broker.protocol.agent_calls import Reason
from streaming.broker.protocol.consumer_messages import ReaderCommit, ReaderPlan, ReaderPlanRequest, ReaderPosition, ReaderRange, Selected
from streaming.broker.protocol.excerpt_messages import Scan
from streaming.broker.protocol.status_messages import Status
from streaming.common.event_row import journal_file
from streaming.common.rows import BATCHES, SEGMENTS, Kind
from streaming.common.start_from import StartFrom
from streaming.errors import AgentError, SameAgentError, UsageError, VersionError
from streaming.kafka.formats.properties import known_clusters
from streaming.spark.client.agent_client import AgentClient
from streaming.spark.client.column_versions import as_events
from streaming.spark.source import agent_connections
from streaming.spark.source.offsets import Offset as Offset
from streaming.spark.source.producer_names import LATE_SECONDS, names_of_agents
from streaming.spark.source.public_options import PublicOptions, nothing_fits
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
from streaming.spark.source.relations import Relation, schema_of

log = logging.getLogger(__name__)

# --- the offset of a public stream: how far each agent has been planned. All arithmetic on it is here, without Spark or network. An offset
# is JSON. Spark compares it as text, so its keys are always in the same order. Beside the agents it holds the reader's own id, under which
# the agents know it, the option ``consumer`` or one that was made up when the query first planned: ``{"": id, agent: {journal, seq, total,
# excerpts}}``.


_ID = ""  # the key instead of an agent's name, which is never empty


@dataclass(frozen=True, slots=True)
class AgentRange:
    """What a micro-batch reads of an agent. ``events``: the journal has something between the two positions.

    ``anew``: the reader began anew at this agent after ``begin``, because that could not go on: what lay between is not known.
    """

    begin: ReaderPosition
    end: ReaderPosition
    events: bool
    anew: bool = False


def reader_id(offset: Offset) -> str:
    """The id in an offset, "" if there is none."""
    found: str = offset.get(_ID, "")
    return found


def positions(offset: Offset) -> dict[str, ReaderPosition]:
    """The position at each agent."""
    return {agent: ReaderPosition(**fields) for agent, fields in offset.items() if agent != _ID}


def advance(start: Offset, reader: str, plans: Iterable[ReaderPlan]) -> Offset:
    """The offset after ``plans``; ``start`` itself if nothing is new. An agent without a plan stays where it is."""
    at = positions(start) | {plan.agent: plan.to for plan in plans if plan.begun}
    if at == positions(start) and reader_id(start) in ("", reader):
        return start
    return {_ID: reader} | {agent: _fields(at[agent]) for agent in sorted(at)}


def _fields(at: ReaderPosition) -> dict[str, Any]:
    return {"journal": at.journal, "seq": at.seq, "total": at.total, "excerpts": at.excerpts}


def ranges(start: Offset, end: Offset) -> dict[str, AgentRange]:
    """What has to be read of each agent between two offsets."""
    before, found = positions(start), {}
    for agent, to in positions(end).items():
        since = before.get(agent)
        if since == to:
            continue
        if since is not None and since.journal == to.journal:
            found[agent] = AgentRange(since, to, events=since.seq < to.seq)
        else:
            # what lay there before it has had, if it has been there before
            begin = ReaderPosition(journal=to.journal, seq=-1, excerpts=0 if since is None else to.excerpts)
            found[agent] = AgentRange(begin, to, events=True, anew=since is not None)
    return found


def reached(offset: Offset, targets: Mapping[str, ReaderPosition]) -> bool:
    """Whether every agent has been planned up to its target."""
    at = positions(offset)
    return all(agent in at and at[agent] == target for agent, target in targets.items())


PLAN_SECONDS = 1.0
"""The shortest time between two checks for work of which the first found nothing: each lets every agent look at all its logs."""

IDLE_SECONDS = 60.0
"""While nothing that is wanted is new, the offset moves on this often, so that agents can forget the rest."""

ADVANCE_SECONDS = 120.0
"""How long a query that takes what is there waits for an agent whose rows it still lacks."""

_PAUSE_SECONDS = 0.25


class ReaderPlanner:
    """Plans how far a run of a query goes at each agent. An agent that is away is planned no further, and holds nobody up.

    ``run``: the id of the run, by which agents tell it from an earlier one.
    """

    def __init__(
        self, options: PublicOptions, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.run = str(uuid.uuid4())
        self._options = options
        self._clock = clock
        self._sleep = sleep
        self._id = options.consumer or f"query {uuid.uuid4()}"
        self._agents: dict[str, Status] = {}  # by address: those that take part
        self._takes_all = False
        self._targets: dict[str, ReaderPosition] | None = None
        self._has_planned = self._knows_topics = False
        self._checked_at = self._advanced_at = float("-inf")

    @property
    def addresses(self) -> dict[str, str]:
        """Where each agent that takes part was when it was planned, by its name."""
        return {status.agent: address for address, status in self._agents.items()}

    @property
    def cluster_id(self) -> str:
        """The cluster of the agents that take part, "" if it is not known."""
        return next(iter(known_clusters(status.cluster_id for status in self._agents.values())), "")

    def take_all(self) -> None:
        """The first plan will wait until every agent has read what is there, and use that as the end."""
        self._takes_all = True

    def plan(self, start: Offset, limit: ReadLimit) -> Offset:
        """How far the next micro-batch goes; ``start`` itself when nothing is new.

        Raises:
            AgentError: no agent answers at first, or everything is wanted and one of them does not.
            UsageError: a query that begins names topics, and no agent has any of them.
        """
        self._id = reader_id(start) or self._id
        if self._takes_all and self._targets is None:
            self._targets = self._everything(start)
        if self._targets is not None:
            return self._next_of_all(start, limit)
        self._sleep(max(0.0, self._checked_at + PLAN_SECONDS - self._clock()))
        end = self._next(start, limit)
        if end is start:
            self._checked_at = self._clock()
        return end

    def commit(self, end: Offset) -> None:
        """Report to the agents that a micro-batch is through."""
        at, reader = positions(end), reader_id(end)
        commits = {
            address: ReaderCommit(reader=reader, run=self.run, at=at[status.agent])
            for address, status in self._agents.items()
            if status.agent in at
        }
        agent_connections.ask_all(commits, lambda client: client.reader_commit(commits[client.address]), self._options.files)

    def _next(self, start: Offset, limit: ReadLimit) -> Offset:
        plans = self._plans(start, limit, None) if self._has_planned else self._first_plans(start, limit)
        self._has_planned = True
        moves = self._clock() - self._advanced_at >= IDLE_SECONDS
        at = positions(start)
        end = advance(start, self._id, [plan for plan in plans.values() if moves or plan.agent not in at or not plan.idle])
        if end is not start:
            self._advanced_at = self._clock()
        return end

    def _first_plans(self, start: Offset, limit: ReadLimit) -> dict[str, ReaderPlan]:
        """Wait until the query has begun at the agents that answer: what is appended from then on is in it.

        A query of which no agent answers at first has wrong options, more likely than not.
        """
        deadline = self._clock() + agent_connections.PATIENCE_SECONDS
        while True:
            plans = self._plans(start, limit, None)
            if plans and all(plan.begun for plan in plans.values()):
                return plans
            if self._clock() > deadline:
                if plans:
                    return plans
                raise AgentError(self._reasons(self._options.addresses()))
            self._sleep(_PAUSE_SECONDS)

    def _everything(self, start: Offset) -> dict[str, ReaderPosition]:
        """Wait until every agent has read what is there; returns the ends of that."""
        answered_at = self._clock()
        while True:
            plans = self._plans(start, ReadAllAvailable(), None)
            missing = [address for address in self._options.addresses() if address not in plans and not self._is_twin(address)]
            waiting = [plan for plan in plans.values() if not plan.begun or plan.unread]
            if not missing and plans and not waiting:
                return {plan.agent: plan.to for plan in plans.values()}
            if plans and not missing:
                answered_at = self._clock()
            elif self._clock() - answered_at > agent_connections.PATIENCE_SECONDS:
                raise AgentError(self._reasons(missing))
            self._sleep(_PAUSE_SECONDS)

    def _next_of_all(self, start: Offset, limit: ReadLimit) -> Offset:
        """The next part on the way to the targets. Spark takes ``start`` itself for the end of the query."""
        assert self._targets is not None
        deadline = self._clock() + ADVANCE_SECONDS
        while not reached(start, self._targets):
            end = advance(start, self._id, self._plans(start, limit, self._targets).values())
            if end is not start:
                return end
            if self._clock() > deadline:
                raise AgentError(self._reasons(self._options.addresses()))
            self._sleep(_PAUSE_SECONDS)
        return start

    def _plans(self, start: Offset, limit: ReadLimit, targets: Mapping[str, ReaderPosition] | None) -> dict[str, ReaderPlan]:
        """A plan of each agent that answers, by address."""
        at = positions(start)
        self._look_for_agents(at)
        if not start and not self._knows_topics:
            self._check_topics()
        size = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self._options.max_bytes
        budget = None if isinstance(limit, ReadAllAvailable) else max(1, size // max(1, len(self._agents)))
        wanted = [address for address, status in self._agents.items() if targets is None or status.agent in targets]

        def plan(client: AgentClient) -> ReaderPlan:
            agent = self._agents[client.address].agent
            options = self._options
            position = options.starting_position or StartFrom.LATEST
            request = ReaderPlanRequest(
                reader=self._id,
                run=self.run,
                at=at.get(agent, ReaderPosition()),
                start=str(options.starting_timestamp) if options.starting_timestamp >= 0 else str(position),
                holds=bool(options.consumer),
                selected=Selected.of(options.selection),
                budget=budget,
                upto=None if targets is None else targets[agent],
            )
            plan = client.reader_plan(request)
            if plan.agent != agent:
                raise AgentError(f"agent at {client.address}: it is {agent} no more")
            return plan

        plans = agent_connections.ask_all(wanted, plan, self._options.files)
        self._agents = {address: status for address, status in self._agents.items() if address not in wanted or address in plans}
        return plans

    def _look_for_agents(self, at: Mapping[str, ReaderPosition]) -> None:
        """Find the agents that take part: each once, of one cluster, and of a version that is understood."""
        addresses, files = self._options.addresses(), self._options.files
        self._agents = {address: status for address, status in self._agents.items() if address in addresses}
        strangers = agent_connections.ask_all(
            [each for each in addresses if each not in self._agents], lambda client: client.status(), files
        )
        journals = {agent: journal_file(position.journal) for agent, position in at.items()}
        for refused in (
            agent_connections.misfits(strangers, files),
            agent_connections.unwelcome(strangers, self._agents, journals, self._options.cluster_id),
        ):
            for address, error in refused.items():
                agent_connections.line(address, files).refuse(error)
                strangers.pop(address, None)
        self._agents |= strangers

    def _check_topics(self) -> None:
        """Of the topics that a query names when it begins, one has to be there. A pattern waits for those that come."""
        selection, addresses = self._options.selection, self._options.addresses()
        there = agent_connections.ask_all(self._agents, lambda client: client.topics(), self._options.files) if selection.topics else {}
        if any(address not in there and not self._is_twin(address) for address in addresses):
            return  # who does not answer may have them
        topics = {topic for names in there.values() for topic in names}
        if not any(map(selection.has_topic, topics)):
            raise nothing_fits(selection, topics)
        self._knows_topics = True

    def _is_twin(self, address: str) -> bool:
        error = agent_connections.errors([address], self._options.files).get(address)
        return isinstance(error, SameAgentError)

    def _reasons(self, addresses: Iterable[str]) -> str:
        errors = agent_connections.errors(addresses, self._options.files)
        reasons = [str(errors.get(address, f"agent at {address}: it does not answer")) for address in addresses]
        return "; ".join(reasons) or "option agents: none has an address yet"


# --- the tables of an agent's answer to a reader as rows of its relation: what was asked for, and events that say what is missing.


def public_rows(relation: Relation, table: pa.Table, names: Callable[[pa.Array], pa.Array]) -> pa.Table:
    """The rows of one table of an answer; ``names``: the transactional ids of producer ids.

    Raises:
        AgentError: it is none that an agent sends for this relation.
    """
    if "kind" in table.schema.names:
        events = as_events(table)
        return _ranges(events) if relation is Relation.RANGES else _skips(relation, events)
    if relation is Relation.BATCHES and set(BATCHES.names) <= set(table.schema.names):
        return pa.Table.from_batches([public_batches(table.select(BATCHES.names).cast(BATCHES))])
    if relation is Relation.TRANSACTIONS:
        return pa.Table.from_batches([public_transactions(table, names)])
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


READ_SECONDS = 120.0
"""How long a task waits for an agent whose rows were planned."""

BUFFER_BYTES = 64 << 20
"""So many bytes of an answer are kept until it is complete, so that it can be asked for again; of a longer one the task fails."""

EXCERPTS_A_TASK = 4


@dataclass
class ReaderTask(InputPartition):
    """The work of one task: ranges of agents, and where each agent was when they were planned.

    ``reader``: the query's id; ``run``: of the reader that planned, because Spark makes another one for the tasks. ``cluster_id``: "" not
    known.
    """

    reader: str
    run: str
    ranges: list[tuple[str, AgentRange]]
    addresses: dict[str, str]
    cluster_id: str


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
        reader, run, addresses, cluster_id = reader_id(end), self._planner.run, self._planner.addresses, self._planner.cluster_id
        found = sorted(ranges(start, end).items())
        tasks = [[each] for agent, range_ in found for each in _parts(agent, range_)]
        if self._options.relation is Relation.RANGES:
            events = [each for task in tasks for each in task if each[1].events]  # a task costs more than the rows of some agents
            tasks = [events] * bool(events) + [task for task in tasks if not task[0][1].events]
        return [ReaderTask(reader, run, task, addresses, cluster_id) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task.

        Raises:
            AgentError: an agent does not answer for `READ_SECONDS`, or went away in the middle of a long answer.
        """
        assert isinstance(partition, ReaderTask)
        options = self._options
        schema = to_arrow_schema(schema_of(options.relation, options.columns), timezone="UTC")
        yield pa.RecordBatch.from_pylist([], schema)
        names = names_of_agents(options, partition.cluster_id, LATE_SECONDS)
        for agent, range_ in partition.ranges:
            if range_.anew:
                yield from lost_rows(options.relation, agent, range_.end.journal).select(schema.names).cast(schema).to_batches()
            for table in self._rows(partition, agent, range_):
                yield from public_rows(options.relation, table, names).select(schema.names).cast(schema).to_batches()

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
