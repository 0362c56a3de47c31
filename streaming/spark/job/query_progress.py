"""The progress of the query: when it checked for work, how long its micro-batches took, and how far each agent's bytes have come.

Spark would call a `StreamingQueryListener` for the first two. But each call from the JVM into Python makes py4j search all of Spark's jars
for classes that do not exist, which costs 50 ms of CPU per micro-batch. So the job polls Spark instead, once a second.
"""

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from streaming.broker.protocol.status_messages import Status
from streaming.cluster.view.observer import Observer
from streaming.common.pace import Freshness, last_check
from streaming.common.rows import Change
from streaming.spark.source.offsets import AgentOffset, parse

log = logging.getLogger(__name__)

_Offsets = dict[str, AgentOffset]
_NO_OFFSET = ("None", "null", "")  # how a progress report spells "no offset yet"
_NOTHING: tuple[_Offsets, _Offsets] = ({}, {})


class QueryProgress:
    """Reports to the observer. Spark's thread calls `arrived`, the job's thread everything else.

    Args:
        looked: called when the query has checked for work.
        took: see `streaming.common.pace.Pacer.took`.
        monotonic: seconds of `time.monotonic`.
    """

    def __init__(
        self,
        observer: Observer,
        clock: Callable[[], float],
        checked: Callable[[], None],
        took: Callable[[float, float], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._observer = observer
        self._clock = clock
        self._checked = checked
        self._took = took
        self._monotonic = monotonic
        self._arrived = self._counted = -1  # micro-batches
        self._planned = _NOTHING  # the start and the end of what this run of the query has planned
        self._freshness: Freshness | None = None
        self.reached = Reached()
        """How much of each agent's journal this process has received."""

    def arrived(self, states: pa.Table, batch: int) -> None:
        """A micro-batch is in the metrics. Its rows report how far each agent's bytes have come.

        The plans cannot report that: a planned range may not have arrived, and then comes with a later one.
        """
        self._arrived = batch
        if self._freshness is not None:
            check = self._freshness.arrived()
            if check is not None:
                self._took(check.first, self._monotonic() - check.first)
        self.reached.take(states)
        rows = states.filter(pc.equal(states["change"], str(Change.ARRIVED)))
        for agent, journal, total in zip(*(rows[name].to_pylist() for name in ("agent", "topic_id", "appended_bytes")), strict=True):
            self._observer.processed(agent, journal, total)

    def begins(self, checks: Path) -> None:
        """The query is started: it may run its last micro-batch again, which counts as another one.

        Args:
            looks: the file in which its source stores its checks for work (`streaming.spark.source.job_options.SourceOptions`).
        """
        self._observer.queries()
        self._arrived = self._counted = -1
        self._planned = _NOTHING
        if self._freshness is None:
            checks.unlink(missing_ok=True)  # of an earlier process, perhaps from before a restart of the host
            self._freshness = Freshness(checks)
        self._checks, self._last_check = checks, last_check(checks)

    def age(self, now: float) -> float | None:
        """How old the newest data in the metrics is at ``now`` (`time.monotonic`), None as long as that is not known. From any thread."""
        return None if self._freshness is None else self._freshness.age(now)

    def poll(self, query: StreamingQuery) -> None:
        """Report what has happened since the last poll.

        Raises:
            Py4JError: the JVM does not answer.
        """
        if self._arrived > self._counted:
            for progress in self._through(query):
                (source,) = progress["sources"]
                start = self._planned[0] if self._counted >= 0 else _parsed(source["startOffset"])
                self._planned = (start, _parsed(source["endOffset"]))
                self._counted = progress["batchId"]
                seconds = (progress["batchDuration"] - progress["durationMs"].get("latestOffset", 0)) / 1000  # the source waits there
                self._observer.batch_took(seconds)
                log.debug("a micro-batch is through", extra={"batch": self._counted, "seconds": seconds})
        check = last_check(self._checks)
        if check is not None and check != self._last_check and check.number > 1:  # a query that fails each time makes only its first check
            self._last_check = check
            self.checked()

    def checked(self) -> None:
        """The query checked for work, and everything that it found before is through."""
        self._observer.checked(self._clock())
        self._checked()

    def delivered(self, agents: Iterable[str]) -> bool:
        """Whether a query that has ended has ever planned something of each of these agents, and has received all that it planned."""
        start, end = self._planned
        return set(agents) <= end.keys() and not self.reached.lacks(start, end)

    def _through(self, query: StreamingQuery) -> Iterable[StreamingQueryProgress]:
        """The micro-batches that are through and not counted yet, as far as Spark remembers them. Most often that is only the last one."""
        last = query.lastProgress
        if last is None or last["batchId"] <= self._counted:
            return ()
        if last["batchId"] == self._counted + 1:
            return (last,)
        return (each for each in query.recentProgress if each["batchId"] > self._counted)


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


def _parsed(offset: str) -> _Offsets:
    return {} if offset in _NO_OFFSET else parse(json.loads(offset))
