"""Up to where each agent's journal is in the table, and whether that is everything that was there when the job was new."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from streaming.broker.protocol.status_messages import Status
from streaming.common.rows import Change
from streaming.spark.source.offsets import AgentOffset


@dataclass(slots=True)
class Reached:
    """The data that this process has received. Spark's thread calls `take`, the job's thread everything else."""

    _upto: dict[str, tuple[str, int]] = field(default_factory=dict)  # journal and seq by agent
    _targets: dict[str, tuple[str, int]] = field(default_factory=dict)
    _through: set[str] = field(default_factory=set)

    def take(self, states: pa.Table) -> None:
        """Rows of `streaming.common.state_row.STATES` are in the table."""
        rows = states.filter(pc.equal(states["change"], str(Change.ARRIVED)))
        for agent, journal, seq in zip(*(rows[name].to_pylist() for name in ("agent", "topic_id", "log_end_offset")), strict=True):
            before = self._upto.get(agent, ("", -1))
            self._upto[agent] = (journal, max(seq, before[1]) if journal == before[0] else seq)

    def has(self, agent: str, journal: str, seq: int) -> bool:
        """Whether all of a journal up to ``seq`` is in the table."""
        upto = self._upto.get(agent)
        return upto is not None and upto[0] == journal and upto[1] >= seq

    def lacks(self, start: Mapping[str, AgentOffset], end: Mapping[str, AgentOffset]) -> list[str]:
        """The agents for which something was planned between two offsets, and did not arrive."""
        moved = (agent for agent, at in end.items() if start.get(agent) != at)
        return sorted(agent for agent in moved if not self.has(agent, end[agent].journal, end[agent].seq))

    def through(self, answers: Iterable[Status]) -> frozenset[str]:
        """The agents whose events are in the table, all up to the moment when they had caught up with their disks.

        The first rows of an agent show that the job is registered with it. Before that, ``caught_up`` is about other jobs.

        Args:
            answers: the statuses of the agents that answer now.
        """
        for status in answers:
            agent = status.agent
            if agent not in self._upto or agent in self._through:
                continue
            if status.caught_up and self._targets.get(agent, ("", 0))[0] != status.journal:
                self._targets[agent] = (status.journal, status.seq)
            if agent in self._targets and self.has(agent, *self._targets[agent]):
                self._through.add(agent)
        return frozenset(self._through)
