"""A job of one agent by all of its parts but Spark, turned by hand: what its agent has read goes into a table."""

import pyarrow as pa

from streaming.cluster.view.answers import apply
from streaming.cluster.view.observer import AgentStatus
from streaming.cluster.view.page_context import context_of
from streaming.cluster.view.table import Table
from streaming.cluster.view.view import View, view
from streaming.common.catalog import NOTHING_DECIDED
from streaming.common.rows import pack_rows
from streaming.common.settings import Settings
from streaming.common.state_row import STATES
from tests.agents import Agent, Reader, read_range
from tests.job_without_spark import Folding

_SHARD = 0


class OneAgentJob:
    """Its consumer begins when it is made."""

    def __init__(self, agent: Agent, settings: Settings) -> None:
        self.agent = agent
        self.table = Table(replicas="leaders", stale_after_s=1e12, series_limit=0, context=context_of(settings, once=False))
        self._reader, self._folding = Reader(agent).begin(), Folding()

    def round(self, now_ms: int) -> View:
        """Take all that the agent has published; returns what is exported at this time."""
        agent, plan = self.agent, self._reader.plan()
        asked = self._reader.asked(plan)
        read = read_range(agent.service, asked).combine_chunks().to_batches()
        self.table.apply(self._folding.fold({_SHARD: [pack_rows(rows) for rows in read]}))
        self._reader.has = (plan.journal, plan.seq)
        status = agent.service.status()
        apply(self.table, [AgentStatus(name=agent.name, up=True, broker_statuses=tuple(status.broker_statuses))], [status])
        decided = agent.watcher.decided(())
        assert decided is not None
        self.table.take_catalog(agent.name, decided.applied(NOTHING_DECIDED))
        arrived = {"change": "arrived", "agent": agent.name, "topic_id": plan.journal, "partition": _SHARD, "log_end_offset": plan.seq}
        self.table.apply(pa.Table.from_pylist([{name: arrived.get(name) for name in STATES.names}], STATES))
        return self.look(now_ms)

    def look(self, now_ms: int) -> View:
        """What is exported at this time, of an agent that has nothing new."""
        self.table.mark_agent(self.agent.name, now_ms / 1000)
        self.table.set_reading({self.agent.name: now_ms / 1000})
        return view(self.table.snapshot(now_ms / 1000))
