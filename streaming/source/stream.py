"""The stream reader: plans how far each agent's journal goes into the next micro-batch, and reads that much.

Spark runs this object in three kinds of process; it keeps nothing but its options, and what it remembers of a process it does not pickle.
Nothing here raises because an agent is away, except where the user asked for everything there is.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from streaming.agent.messages import Committed, Hello, PlanRequest, Range, Status
from streaming.errors import AgentError
from streaming.rows import SHARDED_EVENTS
from streaming.source import agents, offsets
from streaming.source.options import SourceOptions
from streaming.source.sharding import with_shards

SCHEMA = from_arrow_schema(SHARDED_EVENTS)
ARROW_SCHEMA = to_arrow_schema(SCHEMA, timezone="UTC")

TASKS = 2
"""A task costs a micro-batch 40 ms whatever it reads, so agents share few."""

_POLL_SECONDS = 0.05


@dataclass
class Delivery(InputPartition):
    """What one task reads: the ranges of some agents."""

    ranges: dict[str, Range]


class EventStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The events of all agents as a stream."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._greeted: dict[str, Status] = {}  # by address: the agents that know that this consumer is there
        self._met: set[str] = set()  # addresses that were greeted once
        self._targets: dict[str, offsets.AgentOffset] | None = None

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
        answered_at = time.monotonic()
        while True:
            addresses = self._options.addresses()
            self._greet(addresses)
            answers = agents.ask_all(addresses, lambda client: client.status())
            missing = [address for address in addresses if address not in answers]
            if missing or not addresses:
                if time.monotonic() - answered_at > agents.PATIENCE_SECONDS:
                    raise AgentError(f"agent at {', '.join(missing) or 'no address'} does not answer: is it running?")
            elif self._greeted.keys() == set(addresses) and all(answer.caught_up for answer in answers.values()):
                self._targets = {one.agent: offsets.AgentOffset(one.journal, one.seq, one.total, 0) for one in answers.values()}
                return
            else:
                answered_at = time.monotonic()
            time.sleep(_POLL_SECONDS)

    def latestOffset(self, start: offsets.Offset, limit: ReadLimit) -> offsets.Offset:  # noqa: N802
        """How far the next micro-batch goes; ``start`` itself when nothing is new."""
        if self._targets is not None and offsets.reached(start, self._targets):
            return start
        addresses = self._options.addresses()
        self._greet(addresses)
        known = offsets.parse(start)
        budget = None if isinstance(limit, ReadAllAvailable) else self._budget(limit, len(self._greeted))
        plans = agents.ask_all(
            self._greeted, lambda client: client.plan(self._request(known.get(self._greeted[client.address].agent), budget))
        )
        # one that went away, or came back with another journal, is greeted again: its new journal may not know this consumer
        self._greeted = {
            address: status for address, status in self._greeted.items() if address in plans and plans[address].journal == status.journal
        }
        return offsets.advance(start, (plans[address] for address in self._greeted))

    def _request(self, at: offsets.AgentOffset | None, budget: int | None) -> PlanRequest:
        wait_ms = self._options.wait_ms if self._targets is None else 0
        if at is None:
            return PlanRequest(self._options.consumer, "", -1, budget, wait_ms)
        return PlanRequest(self._options.consumer, at.journal, at.seq, budget, wait_ms)

    def _budget(self, limit: ReadLimit, count: int) -> int:
        size = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self._options.max_bytes
        return max(1, size // max(1, count))

    def _greet(self, addresses: tuple[str, ...]) -> None:
        """Say hello to the agents that do not know yet that this consumer is there."""
        self._greeted = {address: status for address, status in self._greeted.items() if address in addresses}
        strangers = [address for address in addresses if address not in self._greeted]
        answers = agents.ask_all(strangers, lambda client: client.hello(self._hello(client.address)))
        self._greeted |= answers
        self._met |= answers.keys()

    def _hello(self, address: str) -> Hello:
        return Hello(self._options.consumer, self._options.start_from, self._options.resumed or address in self._met)

    def partitions(self, start: offsets.Offset, end: offsets.Offset) -> list[Delivery]:
        """The tasks of a micro-batch."""
        found = sorted(offsets.ranges(start, end, self._options.consumer).items())
        return [Delivery(dict(found[task::TASKS])) for task in range(min(TASKS, len(found)))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task. An agent's whole answer is taken before a row is handed on, so that trying again repeats none."""
        assert isinstance(partition, Delivery)
        yield pa.RecordBatch.from_pylist([], ARROW_SCHEMA)
        for agent, asked in partition.ranges.items():
            events = agents.read_range(self._options, agent, asked)
            if events is not None:
                yield from with_shards(events, self._options.shards).cast(ARROW_SCHEMA).to_batches()

    def commit(self, end: offsets.Offset) -> None:
        """Tell the agents what will not be asked for again."""
        at = offsets.parse(end)
        told = {
            address: Committed(self._options.consumer, at[status.agent].journal, at[status.agent].seq)
            for address, status in self._greeted.items()
            if status.agent in at
        }
        agents.ask_all(told, lambda client: client.committed(told[client.address]))

    def __getstate__(self) -> dict[str, Any]:
        """Only the options travel."""
        return {"_options": self._options, "_greeted": {}, "_met": set(), "_targets": None}
