"""The stream reader: plans how far each agent's journal goes into the next micro-batch, and reads that much.

Spark runs this object in three kinds of process; it keeps nothing but its options, and what it remembers of a process it does not pickle.
Nothing here raises because an agent is away, except where the user asked for everything there is.
"""

import logging
import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from streaming.agent.client import AgentClient
from streaming.agent.messages import NOT_BEGUN, Committed, Hello, Plan, PlanRequest, Range, Status
from streaming.agent.tables import events_table
from streaming.agent.trouble import Reason
from streaming.errors import AgentError
from streaming.pace.files import note_look
from streaming.pace.waiting import Hurry, Turns
from streaming.rows import PACKED, Kind
from streaming.source import agents, offsets
from streaming.source.options import SourceOptions
from streaming.source.sharding import by_shard, recall
from streaming.watcher.events import Event
from streaming.workers import freeze_imports

log = logging.getLogger(__name__)

SCHEMA = from_arrow_schema(PACKED)
ARROW_SCHEMA = to_arrow_schema(SCHEMA, timezone="UTC")

TASKS = 2
"""A task costs a micro-batch 40 ms whatever it reads, so agents share few."""

GREET_AGAIN_SECONDS = 5.0
"""How often an agent that is not ready is told again that a consumer waits: it may have been started anew and know nothing of it."""

_POLL_SECONDS = 0.05


@dataclass
class Delivery(InputPartition):
    """What one task reads: the ranges of some agents, the totals at their ends, and where the agents were when the ranges were planned.

    Or the shards that are recalled.
    """

    ranges: dict[str, Range]
    totals: dict[str, int]
    addresses: dict[str, str]
    recalled: range = range(0)


class EventStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The events of all agents as a stream."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        if options.looks is not None:
            agents.leave_to_the_job()
        self._run = str(uuid.uuid4())  # of this query; the reader that plans names it to those that read
        self._greeted: dict[str, Status] = {}  # by address: the agents that know that this consumer is there
        self._rests = agents.Rests()
        self._targets: dict[str, offsets.AgentOffset] | None = None
        self._has_planned = False
        self._recalls: bool | None = None  # whether this run goes on with a state that there is; None before its first look
        self._turns = Turns(options.schedule)

    def initialOffset(self) -> offsets.Offset:  # noqa: N802
        """Before everything; no agent is asked, they may be away."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """So many bytes of logs go into one micro-batch."""
        return ReadMaxBytes(self._options.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Wait until every agent has read what is there, and take that as the end.

        Raises:
            AgentError: an agent cannot be reached.
        """
        greeted_at = answered_at = time.monotonic()
        while True:
            addresses = self._options.addresses()
            self._greet(addresses, None)
            answers, now = agents.ask_all(addresses, AgentClient.status, self._options.files), time.monotonic()
            troubles = agents.troubles(addresses, self._options.files)
            twins = [address for address, trouble in troubles.items() if trouble.reason == Reason.SAME_NAME]
            missing = [address for address in addresses if address not in answers and address not in twins]
            waiting = [address for address, answer in answers.items() if address not in self._greeted or not answer.caught_up]
            if missing or not addresses:
                if now - answered_at > agents.PATIENCE_SECONDS:
                    said = [str(troubles.get(address, f"agent at {address}: it does not answer")) for address in missing]
                    raise AgentError("; ".join(said) or "no agent has an address yet: is it running?")
                self._forget(missing)
            elif not waiting:
                self._targets = {one.agent: offsets.AgentOffset(one.journal, one.seq, one.total, 0) for one in answers.values()}
                return
            else:
                answered_at = now
                if now - greeted_at > GREET_AGAIN_SECONDS:
                    greeted_at = now
                    self._forget(waiting)
            time.sleep(_POLL_SECONDS)

    def latestOffset(self, start: offsets.Offset, limit: ReadLimit) -> offsets.Offset:  # noqa: N802
        """How far the next micro-batch goes; ``start`` itself when nothing is new. Waits until it is time to look."""
        if self._targets is None and not self._turns.wait():
            return start
        end, hurry = self._latest(start, limit)
        look = self._turns.looked(hurry, idle=end is start)
        if self._options.looks is not None:
            try:
                note_look(self._options.looks, look)
            except OSError as error:  # the job is not well then, and says so
                log.error("the look for work cannot be noted", extra={"path": str(self._options.looks), "error": str(error)})
        return end

    def _latest(self, start: offsets.Offset, limit: ReadLimit) -> tuple[offsets.Offset, Hurry]:
        recalled = self._recall(start)
        if recalled is not start:
            return recalled, Hurry.NOW
        if self._targets is not None and self._has_planned and offsets.reached(start, self._targets):
            return start, Hurry.NOT
        self._has_planned = True  # once in any case: what an earlier run had planned may not have arrived
        known, greeted = offsets.parse(start), self._greeted.keys()
        self._greet(self._options.addresses(), known)
        met = self._greeted.keys() - greeted
        budget = None if isinstance(limit, ReadAllAvailable) else self._budget(limit, len(self._greeted))
        awake = self._rests.awake(self._greeted)
        plans = agents.ask_all(
            awake, lambda client: client.plan(self._request(known.get(self._greeted[client.address].agent), budget)), self._options.files
        )
        brokers = {status.agent: status.brokers for status in self._greeted.values()}
        for address, plan in plans.items():
            self._rests.note(address, missed=plan.missed)
        self._look_again([address for address, plan in plans.items() if plan.missed])
        # greeted again: one that went away, or that speaks for another journal now, which may not know this consumer
        self._greeted = {
            address: status
            for address, status in self._greeted.items()
            if address not in awake or (address in plans and plans[address].journal == status.journal and plans[address].seq != NOT_BEGUN)
        }
        hurry = _hurry(plans.values(), known, budget, met=bool(met))
        return offsets.advance(start, plans.values(), brokers), hurry

    def _recall(self, start: offsets.Offset) -> offsets.Offset:
        """The next part of what a run has handed out again before its first rows, whether or not an agent answers; ``start`` if none."""
        if self._recalls is None:
            self._recalls = bool(start)
        return offsets.recall(start, self._run, self._options.shards) if self._recalls else start

    def _look_again(self, addresses: Collection[str]) -> None:
        """What was planned for these did not arrive: one may have been replaced by one whose version does not fit, after it was greeted."""
        answers = agents.ask_all(addresses, AgentClient.status, self._options.files)
        self._forget(set(addresses) - set(self._but(answers, agents.misfits(answers, self._options.files))))

    def _request(self, at: offsets.AgentOffset | None, budget: int | None) -> PlanRequest:
        wait_ms = self._options.wait_ms if self._targets is None else 0
        journal, after, total = ("", -1, -1) if at is None else (at.journal, at.seq, at.total)
        return PlanRequest(self._options.consumer, self._run, journal, after, budget, wait_ms, total=total)

    def _budget(self, limit: ReadLimit, count: int) -> int:
        size = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self._options.max_bytes
        return max(1, size // max(1, count))

    def _greet(self, addresses: tuple[str, ...], known: Mapping[str, offsets.AgentOffset] | None) -> None:
        """Say hello to the agents that do not know yet that this consumer is there.

        Args:
            known: what has been planned so far, None if Spark has not told.
        """
        self._forget(set(self._greeted) - set(addresses))
        files = self._options.files
        strangers = agents.ask_all([each for each in addresses if each not in self._greeted], AgentClient.status, files)
        journals = {agent: at.journal for agent, at in (known or {}).items()}
        strangers = self._but(strangers, agents.misfits(strangers, files))
        strangers = self._but(strangers, agents.unwelcome(strangers, self._greeted, journals, self._options.cluster_id))
        self._greeted |= agents.ask_all(strangers, lambda client: client.hello(self._hello(strangers[client.address], known)), files)

    def _but(self, answers: dict[str, Status], refused: Mapping[str, AgentError]) -> dict[str, Status]:
        """The answers without those that may not take part, which are left alone for a while."""
        for address, error in refused.items():
            agents.line(address, self._options.files).refuse(error)
        return {address: status for address, status in answers.items() if address not in refused}

    def _forget(self, addresses: Collection[str]) -> None:
        self._greeted = {address: status for address, status in self._greeted.items() if address not in addresses}

    def _hello(self, status: Status, known: Mapping[str, offsets.AgentOffset] | None) -> Hello:
        resumed = self._options.resumed if known is None else offsets.knows(known, status.agent, status.brokers)
        return Hello(self._options.consumer, self._options.start_from, resumed, run=self._run)

    def partitions(self, start: offsets.Offset, end: offsets.Offset) -> list[Delivery]:
        """The tasks of a micro-batch."""
        recalled = offsets.recalls(start, end)
        found = sorted(offsets.ranges(start, end, self._options.consumer, self._run).items())
        totals = {agent: at.total for agent, at in offsets.parse(end).items()}
        addresses = {status.agent: address for address, status in self._greeted.items()}
        tasks = [Delivery(dict(found[task::TASKS]), totals, addresses) for task in range(min(TASKS, len(found)))]
        return [Delivery({}, {}, {}, recalled), *tasks] if recalled else tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task. An agent's whole answer is taken before a row is handed on, so that trying again repeats none.

        Raises:
            AgentError: an agent stays away and an earlier attempt at this task may have had its rows: it must not go without them.
        """
        assert isinstance(partition, Delivery)
        freeze_imports()
        yield pa.RecordBatch.from_pylist([], ARROW_SCHEMA)
        if partition.recalled:
            yield from recall(partition.recalled).cast(ARROW_SCHEMA).to_batches()
        for agent, events in agents.read_ranges(self._options, partition.ranges, partition.addresses):
            if events is not None:
                events = pa.concat_tables([events, _arrived(agent, partition.ranges[agent], partition.totals[agent])])
                yield from by_shard(events, self._options.shards).cast(ARROW_SCHEMA).to_batches()
            elif _attempt() > 0:
                raise AgentError(f"agent {agent} does not answer, and a first attempt at this task may have had its rows")

    def commit(self, end: offsets.Offset) -> None:
        """Tell the agents that a micro-batch is through."""
        at = offsets.parse(end)
        told = {
            address: Committed(self._options.consumer, self._run, at[status.agent].journal, at[status.agent].seq)
            for address, status in self._greeted.items()
            if status.agent in at
        }
        agents.ask_all(told, lambda client: client.committed(told[client.address]), self._options.files)

    def __getstate__(self) -> dict[str, Any]:
        """Only the options travel."""
        return {"_options": self._options, "_run": self._run, "_greeted": {}, "_rests": agents.Rests(), "_targets": None} | {
            "_recalls": None,
            "_has_planned": False,
            "_turns": Turns(self._options.schedule),
        }


def _arrived(agent: str, asked: Range, total: int) -> pa.Table:
    """Says that all of a range is here. An agent sends with it what did not arrive before it, so nothing before its end is missing."""
    return events_table(agent, asked.journal, [(asked.upto, [Event(kind=Kind.ARRIVED, bytes=total)])])


def _hurry(plans: Collection[Plan], known: Mapping[str, offsets.AgentOffset], budget: int | None, *, met: bool) -> Hurry:
    """What these plans ask of the next look.

    Args:
        met: an agent was greeted just now: where its logs begin for this consumer it will say in a moment.
    """
    if any(_is_cut(plan, known.get(plan.agent), budget) for plan in plans):
        return Hurry.NOW
    return Hurry.SOON if met or any(plan.missed or plan.seq == NOT_BEGUN for plan in plans) else Hurry.NOT


def _is_cut(plan: Plan, before: offsets.AgentOffset | None, budget: int | None) -> bool:
    """Whether there is more than the plan holds; where an agent of an earlier version does not say, by how much of the budget it took."""
    if budget is None or plan.seq == NOT_BEGUN:
        return False
    if plan.more is not None:
        return plan.more
    return 2 * (plan.total - (before.total if before is not None and before.journal == plan.journal else 0)) >= budget


def _attempt() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.attemptNumber()
