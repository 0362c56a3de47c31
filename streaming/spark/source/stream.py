"""The stream reader: plans how far the rows of each agent go into the next micro-batch, and reads that much.

Spark runs this object in three kinds of process. Only its options and the id of the run are pickled; everything else stays in its process.
Nothing here raises because an agent is away, except where the user asked for everything there is.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from streaming.broker.protocol.agent_calls import Call, Reason
from streaming.broker.protocol.consumer_messages import NOT_BEGUN, Plan, PlanRequest, Range, Register
from streaming.broker.protocol.event_tables import events_table
from streaming.broker.protocol.known_ends import pack
from streaming.broker.protocol.status_messages import Status, StatusRequest
from streaming.common.arrays import Longs
from streaming.common.event_row import Event, journal_file
from streaming.common.pace import QUICK_SECONDS, WorkCheck, due_without, read_schedule, write_check
from streaming.common.rows import PACKED, Kind, pack_rows
from streaming.common.workers import freeze_imports
from streaming.errors import AgentError, CheckpointError, SameAgentError, quoted
from streaming.spark.client.agent_client import ANSWER_SECONDS, REGISTER_SECONDS, AgentClient
from streaming.spark.source import agent_connections, offsets
from streaming.spark.source.counted_file import NOT_ARRIVED, NOTHING_COUNTED, Arrived, Counted, read_counted
from streaming.spark.source.job_options import SCHEMA, SourceOptions

log = logging.getLogger(__name__)

_TICK_SECONDS = 0.5
"""How often the schedule is read again, so that a person who opens a page does not wait long."""

ARROW_SCHEMA = to_arrow_schema(SCHEMA, timezone="UTC")

TASKS = 2
"""Each task adds 40 ms to a micro-batch, whatever it reads, so all agents share few tasks."""

REGISTER_AGAIN_SECONDS = 5.0
"""An agent gets so long to publish where a run begins, before the run is registered again: it may not know it any more."""

_POLL_SECONDS = 0.05
_LONGEST_POLL_SECONDS = 0.5

_POLL_PART = 0.05
"""The next look at whether an agent has read what is there comes after this part of the wait so far, between these times."""


class EventStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The events of all agents as a stream."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        if options.checks is not None:
            agent_connections.leave_to_the_job()
        self._run = options.run or str(uuid.uuid4())  # of this query; the reader that plans passes it to those that read
        self._registered: dict[str, Status] = {}  # by address: the agents with which this run is registered
        self._registered_at: dict[str, float] = {}  # by address, seconds of `time.monotonic`
        self._planned: dict[str, offsets.AgentOffset] = {}  # by agent: what this run has planned last
        self._backoff = agent_connections.Backoff()
        self._takes_all = False
        self._targets: dict[str, Arrived] | None = None
        self._has_planned = False
        self._recalls: bool | None = None  # whether this run continues with an existing state; None before its first check
        self._turns = Turns(options.schedule)
        self._reported: dict[str, str] = {}  # by address, what the job knows of agents that do not answer here

    def initialOffset(self) -> offsets.Offset:  # noqa: N802
        """The offset before everything. No agent is asked, because they may be away."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """How many bytes of logs go into one micro-batch."""
        return ReadMaxBytes(self._options.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The first plan will wait until every agent has read what is there, and use that as the end."""
        self._takes_all = True

    def _everything(self, counted: Counted) -> dict[str, Arrived] | None:
        """Wait until every agent has read what is there; returns how far each has come. None if one reads no further before it is read.

        Raises:
            AgentError: an agent cannot be reached, or has the name of another one.
        """
        began = registered_at = answered_at = time.monotonic()
        while True:
            addresses = self._options.addresses()
            self._register(addresses, counted)
            answers, now = agent_connections.ask_all(addresses, self._status, self._options.files), time.monotonic()
            errors = agent_connections.errors(addresses, self._options.files)
            twins = [address for address, error in errors.items() if isinstance(error, SameAgentError)]
            missing = [address for address in addresses if address not in answers and address not in twins]
            waiting = [address for address, answer in answers.items() if address not in self._registered or not answer.caught_up]
            if missing or not addresses:
                if now - answered_at > agent_connections.PATIENCE_SECONDS:
                    reasons = [str(errors.get(address, f"agent at {address}: it does not answer")) for address in missing]
                    raise AgentError("; ".join(reasons) or "no agent has an address yet: is it running?")
                self._forget(missing)
            elif not waiting:
                return {one.agent: Arrived(one.journal, one.seq) for one in answers.values()}
            elif any(answers[address].full for address in waiting):
                return None
            else:
                answered_at = now
                if now - registered_at > REGISTER_AGAIN_SECONDS:
                    registered_at = now
                    self._forget(waiting)
            time.sleep(min(_LONGEST_POLL_SECONDS, max(_POLL_SECONDS, _POLL_PART * (now - began))))

    def latestOffset(self, start: offsets.Offset, limit: ReadLimit) -> offsets.Offset:  # noqa: N802
        """How far the next micro-batch goes; ``start`` itself when nothing is new. Waits until the next check for work is due.

        Raises:
            AgentError: everything is wanted, and an agent cannot be reached.
        """
        if not self._takes_all and not self._turns.wait():
            return start
        end, hurry = self._all(start, limit) if self._takes_all else self._latest(start, limit)
        check = self._turns.checked(hurry, idle=end is start)
        if self._options.checks is not None:
            try:
                write_check(self._options.checks, check)
            except OSError as error:  # the job is not well then, and reports it
                log.error("the time of the last plan cannot be written", extra={"path": str(self._options.checks), "error": str(error)})
            self._report(self._options.checks)
        return end

    def _all(self, start: offsets.Offset, limit: ReadLimit) -> tuple[offsets.Offset, Hurry]:
        """The next part of everything that there is. If nothing is new, all of it was planned.

        Raises:
            AgentError: an agent does not deliver up to where it had come.
        """
        ends_at = None
        while True:
            end, hurry = self._latest(start, limit)
            if end is not start or (self._targets is not None and offsets.reached(start, self._targets)):
                return end, hurry
            if self._targets is None:  # what is counted is not known yet, or an agent is about to read on
                pass
            elif ends_at is None:
                ends_at = time.monotonic() + agent_connections.PATIENCE_SECONDS
            elif time.monotonic() > ends_at:
                away = agent_connections.errors(self._options.addresses(), self._options.files)
                raise AgentError("; ".join(map(str, away.values())) or "an agent was started again: not everything was planned")
            time.sleep(_POLL_SECONDS)

    def _report(self, checks: Path) -> None:
        """Report to the job which agents do not answer here, when that has changed."""
        addresses, files = self._options.addresses(), self._options.files
        late = {
            address: AgentError(f"agent at {address}: what the query has planned does not arrive in time", Reason.SILENT)
            for address in self._backoff.missing(addresses)
        }
        found = late | agent_connections.unanswered(addresses, files)
        said = {address: str(error) for address, error in found.items()}
        if said == self._reported:
            return
        try:
            agent_connections.write_unanswered(agent_connections.unanswered_path(checks), found)
            self._reported = said
        except OSError as error:  # a full disk: it is tried again
            log.error("what the query knows of agents cannot be written", extra={"path": str(checks), "error": str(error)})

    def _latest(self, start: offsets.Offset, limit: ReadLimit) -> tuple[offsets.Offset, Hurry]:
        # the offset after the next part of the recall, which needs no agent; ``start`` if this run recalls nothing more
        if self._recalls is None:
            self._recalls = bool(start)
        recalled = offsets.recall(start, self._run, self._options.shards) if self._recalls else start
        if recalled is not start:
            return recalled, Hurry.NOW
        counted = self._counted(start)
        if counted is None:
            return start, Hurry.SOON
        if self._takes_all and self._targets is None:
            self._targets = self._everything(counted)
        if self._targets is not None and self._has_planned and offsets.reached(start, self._targets):
            return start, Hurry.NOT
        self._has_planned = True  # plan once in any case: what an earlier run planned may not have arrived
        registered = self._registered.keys()
        self._register(self._options.addresses(), counted)
        met = self._registered.keys() - registered
        budget = None if isinstance(limit, ReadAllAvailable) else self._budget(limit, len(self._registered))
        late = self._late(counted)
        plans = self._plans(counted.arrived, budget, late)
        end = offsets.advance(start, plans.values(), counted.arrived)
        if end is not start:
            agents = offsets.parse(end)
            self._planned |= {plan.agent: agents[plan.agent] for plan in plans.values() if plan.seq != NOT_BEGUN}
        return end, _hurry(plans.values(), budget, waits=bool(met or late.intersection(plan.agent for plan in plans.values())))

    def _counted(self, start: offsets.Offset) -> Counted | None:
        """What the job has counted; None if that is not known, which is logged by the process that writes the file, or by this one.

        Raises:
            CheckpointError: the run is to end by itself, and waits in vain.
        """
        if self._options.counted is None:
            agents = offsets.parse(start).items()
            return replace(NOTHING_COUNTED, arrived={agent: Arrived(at.journal, at.seq) for agent, at in agents})
        if not start:
            return NOTHING_COUNTED
        ends_at = time.monotonic() + (agent_connections.PATIENCE_SECONDS if self._takes_all else 0.0)
        while (found := read_counted(self._options.counted)) is None and time.monotonic() < ends_at:
            time.sleep(_LONGEST_POLL_SECONDS)
        if found is None and self._takes_all:
            raise CheckpointError(f"{self._options.counted} is not written: nothing can be planned without")
        return found

    def _late(self, counted: Counted) -> set[str]:
        """The agents of which this run has planned something that has not arrived."""
        return {agent for agent, at in self._planned.items() if not at.has_arrived(counted.arrived.get(agent, NOT_ARRIVED))}

    def _plans(self, arrived: Mapping[str, Arrived], budget: int | None, missed: set[str]) -> dict[str, Plan]:
        """The plans of the agents that take part now, by address. ``missed``: those whose rows have not arrived."""
        awake = self._backoff.awake(self._registered)
        plans = agent_connections.ask_all(
            awake,
            lambda client: self._plan(client, arrived, budget),
            self._options.files,
            call=Call.PLAN,
            seconds=ANSWER_SECONDS + self._options.wait_ms / 1000,
        )
        begun = {address: plan for address, plan in plans.items() if plan.seq != NOT_BEGUN}  # what others miss is planned again first
        for address, plan in begun.items():
            self._backoff.note(address, missed=plan.agent in missed, alone=len(self._registered) == 1)
        late = {address for address, plan in begun.items() if plan.agent in missed}
        self._rescan_soon(late)  # no task waits once more for the rows of one that does not even answer that
        plans = {address: plan for address, plan in plans.items() if address not in late or address in self._registered}
        self._registered = {
            address: replace(status, journal=plans[address].journal) if address in plans else status
            for address, status in self._registered.items()
            if address not in awake or (address in plans and self._is_known(address, status, plans[address]))
        }
        return plans

    def _plan(self, client: AgentClient, arrived: Mapping[str, Arrived], budget: int | None) -> Plan:
        agent = self._registered[client.address].agent
        plan = client.plan(self._request(arrived.get(agent, NOT_ARRIVED), budget))
        if plan.agent != agent:  # it was renamed, and is registered again; its plan would move on how far another agent is read
            raise AgentError(f"agent at {client.address}: it is {agent}, and plans for {quoted(plan.agent)}", Reason.PROTOCOL)
        return plan

    def _is_known(self, address: str, status: Status, plan: Plan) -> bool:
        """Whether this run is known to the agent that has planned, or may be in a moment: else it is registered again."""
        if plan.seq != NOT_BEGUN:
            return True
        is_same = journal_file(plan.journal) == journal_file(status.journal)
        return is_same and time.monotonic() - self._registered_at.get(address, 0.0) < REGISTER_AGAIN_SECONDS

    def _status(self, client: AgentClient) -> Status:
        return client.status(StatusRequest(consumer=self._options.consumer))

    def _rescan_soon(self, addresses: Collection[str]) -> None:
        """Check agents whose ranges did not arrive: an agent of a version that does not fit may have replaced one of them."""
        for address in addresses:
            agent_connections.line(address, self._options.files).check_again()
        answers = agent_connections.ask_all(addresses, self._status, self._options.files)
        self._forget(set(addresses) - set(self._but(answers, agent_connections.misfits(answers, self._options.files))))

    def _request(self, arrived: Arrived, budget: int | None) -> PlanRequest:
        wait_ms = self._options.wait_ms if self._targets is None else 0
        return PlanRequest(self._options.consumer, self._run, arrived.journal, arrived.seq, budget, wait_ms)

    def _budget(self, limit: ReadLimit, count: int) -> int:
        size = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self._options.max_bytes
        return max(1, size // max(1, count))

    def _register(self, addresses: tuple[str, ...], counted: Counted) -> None:
        """Register this run with the agents that do not know it yet."""
        self._forget(set(self._registered) - set(addresses))
        files = self._options.files
        strangers = agent_connections.ask_all([each for each in addresses if each not in self._registered], self._status, files)
        journals = {agent: at.journal for agent, at in counted.arrived.items()}
        strangers = self._but(strangers, agent_connections.misfits(strangers, files))
        strangers = self._but(strangers, agent_connections.unwelcome(strangers, self._registered, journals, self._options.cluster_id))
        registered = agent_connections.ask_all(
            strangers,
            lambda client: client.register(self._registration(strangers[client.address], counted)),
            files,
            call=Call.REGISTER,
            seconds=REGISTER_SECONDS,
        )
        for address in registered:
            self._backoff.wake(address)
        self._registered |= registered
        self._registered_at |= dict.fromkeys(registered, time.monotonic())

    def _but(self, answers: dict[str, Status], refused: Mapping[str, AgentError]) -> dict[str, Status]:
        """The answers without the agents that may not take part. Those are left alone for a while."""
        for address, error in refused.items():
            agent_connections.line(address, self._options.files).refuse(error)
        return {address: status for address, status in answers.items() if address not in refused}

    def _forget(self, addresses: Collection[str]) -> None:
        self._registered = {address: status for address, status in self._registered.items() if address not in addresses}

    def _registration(self, status: Status, counted: Counted) -> Register:
        resumed = not counted.brokers.isdisjoint(status.brokers)
        positions = pack(counted.ends(status.brokers))
        return Register(self._options.consumer, self._options.start_from, resumed, run=self._run, positions=positions)

    def partitions(self, start: offsets.Offset, end: offsets.Offset) -> list[Delivery]:
        """The tasks of a micro-batch."""
        recalled = offsets.recalls(start, end)
        found = sorted(offsets.ranges(start, end, self._options.consumer, self._run).items())
        totals = {agent: at.total for agent, at in offsets.parse(end).items()}
        addresses = {status.agent: address for address, status in self._registered.items()}
        shared = len({*addresses, *(agent for agent, _ in found)}) > 1  # with one agent no other agent waits for its rows
        seconds = {agent: self._backoff.seconds(addresses.get(agent, "")) for agent, _ in found} if shared else {}
        tasks = [Delivery(dict(found[task::TASKS]), totals, addresses, seconds=seconds) for task in range(min(TASKS, len(found)))]
        return [Delivery({}, {}, {}, recalled), *tasks] if recalled else tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task. An agent's whole answer is received before a row is passed on, so that a retry repeats no row.

        Raises:
            AgentError: an agent does not answer, and an earlier attempt at this task may have had its rows: this one needs them too.
        """
        assert isinstance(partition, Delivery)
        freeze_imports()
        yield pa.RecordBatch.from_pylist([], ARROW_SCHEMA)
        if partition.recalled:
            yield from recall(partition.recalled).cast(ARROW_SCHEMA).to_batches()
        for agent, events in agent_connections.read_ranges(self._options, partition.ranges, partition.addresses, partition.seconds):
            if events is not None:
                events = pa.concat_tables([events, _arrived(agent, partition.ranges[agent], partition.totals[agent])])
                yield from by_shard(events, self._options.shards).cast(ARROW_SCHEMA).to_batches()
            elif _attempt() > 0:
                raise AgentError(f"agent {agent} does not answer, and a first attempt at this task may have received its rows")

    def commit(self, end: offsets.Offset) -> None:
        """Nothing has to be told: the agents keep nothing for a query, and each plan says what has arrived."""

    def __getstate__(self) -> dict[str, Any]:
        """Only the options and the id of the run are pickled."""
        return {
            "_options": self._options,
            "_run": self._run,
            "_registered": {},
            "_registered_at": {},
            "_planned": {},
            "_backoff": agent_connections.Backoff(),
            "_takes_all": self._takes_all,
            "_targets": None,
        } | {
            "_recalls": None,
            "_has_planned": False,
            "_turns": Turns(self._options.schedule),
            "_reported": {},
        }


class Turns:
    """The checks for work of one run of a query. Only one thread uses it.

    The source's side of the pace: it waits until the next check for work is due, unless there is a reason to hurry.

    Args:
        schedule: the file that the exporter writes, None for no pace at all.
        clock: seconds of `time.monotonic`.
        sleep: waits so many seconds.
        parent: returns the id of the process that this one works for.
    """

    def __init__(
        self,
        schedule: Path | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        parent: Callable[[], int] = os.getppid,
    ) -> None:
        self._schedule = schedule
        self._clock = clock
        self._sleep = sleep
        self._parent = parent
        self._since: float | None = None
        self._hurry = Hurry.NOW
        self._first = 0.0
        self._number = 0

    def __reduce__(self) -> tuple[type[Turns], tuple[Path | None]]:
        """Pickle the schedule alone: in another process the checks begin again with the first."""
        return Turns, (self._schedule,)

    def wait(self) -> bool:
        """Wait until the next check is due. False if no process needs it any more: Spark, which would notice this, is gone."""
        parent = self._parent()
        while (left := self._due() - self._clock()) > 0:
            self._sleep(min(left, _TICK_SECONDS))
            if self._parent() != parent:
                return False
        return True

    def checked(self, hurry: Hurry, *, idle: bool) -> WorkCheck:
        """A check has ended. Returns it, for the file."""
        now = self._clock()
        if self._since is None or self._hurry is not Hurry.NOW:
            self._first = now
        self._since, self._hurry, self._number = now, hurry, self._number + 1
        return WorkCheck(now, self._number, idle, self._first)

    def _due(self) -> float:
        if self._schedule is None or self._since is None or self._hurry is Hurry.NOW:
            return 0.0
        if self._hurry is Hurry.SOON:
            return self._since + QUICK_SECONDS
        now = self._clock()
        schedule = read_schedule(self._schedule, now)
        return due_without(self._since) if schedule is None else schedule.due(self._since, now)


class Hurry(Enum):
    """How soon the next check has to follow the last one."""

    NOT = auto()
    SOON = auto()  # something was not there yet but will come: it is requested again, without a busy loop
    NOW = auto()  # there is more than one micro-batch takes


def _hurry(plans: Collection[Plan], budget: int | None, *, waits: bool) -> Hurry:
    """How soon the next check for work has to follow these plans.

    Args:
        waits: an agent was registered just now, and will publish in a moment where its logs begin; or something planned has not arrived.
    """
    if budget is not None and any(plan.more for plan in plans):
        return Hurry.NOW
    return Hurry.SOON if waits or any(plan.seq == NOT_BEGUN for plan in plans) else Hurry.NOT


@dataclass
class Delivery(InputPartition):
    """The work of one task: the ranges of some agents, the totals at their ends, and the agents' addresses when the ranges were planned.

    Or the shards that are recalled.
    """

    ranges: dict[str, Range]
    totals: dict[str, int]
    addresses: dict[str, str]
    recalled: range = range(0)
    seconds: dict[str, float] = field(default_factory=dict)  # how long the rows of each agent may take


def recall(shards: range) -> pa.Table:
    """The rows of `streaming.common.rows.PACKED` that make these shards hand out all that their state holds."""
    row = _packed(events_table("", "", [(0, [Event(kind=Kind.RECALL)])]))
    return pa.table([list(shards), [row] * len(shards)], schema=PACKED)


def _packed(rows: pa.Table) -> bytes:
    (batch,) = rows.combine_chunks().to_batches()
    return pack_rows(batch)


def _arrived(agent: str, request: Range, total: int) -> pa.Table:
    """The event that all of a range has arrived. It begins where what had arrived before ends: nothing before its end is missing."""
    return events_table(agent, request.journal, [(request.upto, [Event(kind=Kind.ARRIVED, bytes=total)])])


def by_shard(events: pa.Table, shards: int) -> pa.Table:
    """Events as rows of `streaming.common.rows.PACKED`, one for each shard that has any; the closing row of a census goes to every shard.

    An ``ARRIVED`` row goes to the same shard as another row, so that no shard is folded for it alone.
    """
    rows = events.combine_chunks()
    closing, arrived = (pc.equal(rows["kind"], str(kind)).to_numpy() for kind in (Kind.CENSUS_END, Kind.ARRIVED))
    shard_of_row = _shards_of(rows, shards)
    shard_of_row[arrived] = shard_of_row[~arrived & ~closing][:1] if (~arrived & ~closing).any() else 0
    own, copied = np.flatnonzero(~closing), np.flatnonzero(closing)
    keys = np.concatenate([shard_of_row[own], np.tile(np.arange(shards), len(copied))])
    items = np.concatenate([own, np.repeat(copied, shards)])
    order = np.argsort(keys, kind="stable")
    keys, ordered = keys[order], rows.take(pa.array(items[order], pa.int64())).combine_chunks()
    found, begins, counts = np.unique(keys, return_index=True, return_counts=True)
    packed = [_packed(ordered.slice(begin, count)) for begin, count in zip(begins.tolist(), counts.tolist(), strict=True)]
    return pa.table([found.tolist(), packed], schema=PACKED)


def _shards_of(rows: pa.Table, shards: int) -> Longs:
    """`shard_of` each row. A topic has many partitions and a number comes in many topics: each is spelled once."""
    topics, partitions = rows["topic"].combine_chunks().dictionary_encode(), rows["partition"].to_pylist()
    begun = [_begun(topic) for topic in topics.dictionary.to_pylist()]
    spelled = {partition: _spelled(partition) for partition in set(partitions)}
    sums = [zlib.crc32(spelled[partition], begun[topic]) for topic, partition in zip(topics.indices.to_pylist(), partitions, strict=True)]
    return np.array(sums, np.int64) % shards


def _begun(topic: str) -> int:
    """The checksum of a partition's name, up to its number."""
    return zlib.crc32(f"{topic}-".encode())


def _spelled(partition: int) -> bytes:
    return str(partition).encode()


def _attempt() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.attemptNumber()


def shard_of(topic: str, partition: int, shards: int) -> int:
    """The shard that holds all replicas of a partition. It never changes, because it is part of the checkpoint."""
    return zlib.crc32(_spelled(partition), _begun(topic)) % shards
