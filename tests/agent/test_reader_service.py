"""Readers of an agent over random lives: each byte comes once, and what is read again is the same, whatever happens in between."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

from streaming.broker.agent.reader_service import ReaderService
from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.broker.journal.consumers import Readers
from streaming.broker.protocol.consumer_messages import (
    EVERYTHING_SELECTED,
    ReaderCommit,
    ReaderPlan,
    ReaderPlanRequest,
    ReaderPosition,
    ReaderRange,
    Register,
    Selected,
)
from streaming.broker.protocol.excerpt_messages import Scan
from streaming.common.event_row import EventRow
from streaming.common.rows import Kind
from streaming.simulator.log import PartitionLog
from tests.agents import Agent, Reader, event_rows
from tests.builders import batch, log_dir, partition

ALL = Selected.of(EVERYTHING_SELECTED)
LIVES = 12


@dataclass
class Query:
    """What Spark and a sink do with one agent: a micro-batch is planned, written down, read, and then known by its number."""

    agent: Agent
    name: str
    start: str = "earliest"
    holds: bool = True
    rows: Scan = Scan.RANGES
    runs: int = 0
    offsets: list[ReaderPosition] = field(default_factory=lambda: [ReaderPosition()])
    sink: dict[int, list[EventRow]] = field(default_factory=dict)
    read_before: dict[int, list[EventRow]] = field(default_factory=dict)

    @property
    def service(self) -> ReaderService:
        return ReaderService(self.agent.service, Readers(self.agent.journal, self.agent.consumers))

    @property
    def run(self) -> str:
        return f"run {self.runs}"

    def plan(self, budget: int | None = None) -> ReaderPlan:
        request = ReaderPlanRequest(
            reader=self.name, run=self.run, at=self.offsets[-1], start=self.start, holds=self.holds, selected=ALL, budget=budget
        )
        plan = self.service.plan(request)
        if plan.begun and plan.to != self.offsets[-1]:
            self.offsets.append(plan.to)
        return plan

    @property
    def pending(self) -> bool:
        return len(self.offsets) - 1 > len(self.sink)

    def read(self) -> list[EventRow]:
        """The rows of the micro-batch that is written down. If it is read again, they are the same."""
        number = len(self.sink) + 1
        begin, end = self.offsets[number - 1], self.offsets[number]
        if begin.journal != end.journal:
            begin = ReaderPosition(journal=end.journal, seq=-1, excerpts=end.excerpts if begin.journal else 0)
        request = ReaderRange(
            reader=self.name, run=self.run, begin=begin, end=end, events=begin.seq < end.seq, rows=str(self.rows), selected=ALL
        )
        found = [row for table in self.service.rows(request) for row in event_rows(pa.Table.from_batches([table]))]
        rows = [replace(row, seen_at=-1) for row in found]
        if self.holds:
            assert self.read_before.setdefault(number, rows) == rows
        return rows

    def finish(self) -> None:
        """The sink has the micro-batch."""
        self.sink[len(self.sink) + 1] = self.read()

    def commit(self) -> None:
        self.service.committed(ReaderCommit(reader=self.name, run=self.run, at=self.offsets[len(self.sink)]))

    def kill(self) -> None:
        self.runs += 1

    def take_everything(self) -> None:
        while True:
            if self.pending:
                self.finish()
                self.commit()
            elif not self.plan().begun:
                self.agent.look()
            elif not self.pending:
                return

    def appended(self) -> list[tuple[int, int]]:
        """The ranges that came, in the order of their offsets."""
        rows = [row for rows in self.sink.values() for row in rows]
        return sorted((row.base_offset, row.next_offset) for row in rows if row.kind == Kind.APPENDED)


def once(ranges: list[tuple[int, int]], begin: int, end: int) -> bool:
    """Whether these ranges are all offsets, each once."""
    return [begin, *(upto for _, upto in ranges)] == [*(base for base, _ in ranges), end]


class Life:
    """What happens to one log, its agent, a job and some readers."""

    def __init__(self, agent: Agent, log: PartitionLog, seed: int) -> None:
        self.agent, self.log = agent, log
        self.chance = random.Random(seed)
        self.jobs: list[Reader] = []
        self.queries: list[tuple[Query, int]] = []
        self.actions = [
            *(self.append, self.append, self.roll, self.look, self.look, self.time_passes, self.restart, self.job_begins, self.job_steps),
            *(self.query_begins, self.plan, self.plan, self.read, self.read_twice, self.commit, self.kill),
        ]

    def step(self) -> None:
        self.chance.choice(self.actions)()

    def append(self) -> None:
        self.log.append(*[batch(self.chance.randint(1, 4)) for _ in range(self.chance.randint(1, 3))])

    def roll(self) -> None:
        self.log.roll()

    def look(self) -> None:
        self.agent.look()

    def time_passes(self) -> None:
        self.agent.now += 120_000
        self.agent.trim()

    def restart(self) -> None:
        self.agent.restart()

    def job_begins(self) -> None:
        if len(self.jobs) < 3:
            job = Reader(self.agent, f"job {len(self.jobs)}", self.chance.choice(["earliest", "active", "latest"]))
            self.agent.service.register(Register(job.consumer, job.start_from, self.chance.random() < 0.3))
            self.jobs.append(job)
            self.agent.look()

    def job_steps(self) -> None:
        if self.jobs:
            job = self.chance.choice(self.jobs)
            job.register()
            self.agent.look()
            if job.plan().seq >= 0:
                job.step()

    def query_begins(self) -> None:
        if len(self.queries) < 3:
            query = Query(self.agent, f"q{len(self.queries)}")
            self.queries.append((query, 0))

    def _some(self) -> Iterator[Query]:
        if self.queries:
            yield self.chance.choice(self.queries)[0]

    def plan(self) -> None:
        for query in self._some():
            if not query.pending:
                query.plan(self.chance.choice([None, 100, 500]))

    def read(self) -> None:
        for query in self._some():
            if query.pending:
                query.finish()

    def read_twice(self) -> None:
        for query in self._some():
            if query.pending:
                query.read()

    def commit(self) -> None:
        for query in self._some():
            if query.sink:
                query.commit()

    def kill(self) -> None:
        for query in self._some():
            query.kill()


@pytest.fixture(autouse=True)
def join_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbouring appends are joined as soon as they may be."""
    monkeypatch.setattr("streaming.broker.journal.forgetting.LEAST", 1)
    monkeypatch.setattr("streaming.broker.journal.forgetting.LOOKS", 0)


@pytest.mark.parametrize("seed", range(LIVES))
def test_every_offset_comes_once_whatever_happens(agent: Agent, log: PartitionLog, seed: int) -> None:
    life = Life(agent, log, seed)
    for _ in range(60):
        life.step()
    life.query_begins()
    agent.look()
    for query, begin in life.queries:
        query.kill()
        query.take_everything()
        assert once(query.appended(), begin, log.log_end_offset), (seed, query.name, query.appended())


def test_what_was_sent_and_is_not_committed_is_not_joined(agent: Agent, log: PartitionLog) -> None:
    query = Query(agent, "q")
    query.take_everything()
    for _ in range(3):
        log.append(batch(1))
        agent.look()
    query.plan()
    first = query.read()
    assert len(first) == 3
    agent.now += 120_000
    agent.trim()
    query.kill()
    assert query.read() == first


def test_a_reader_with_the_id_of_a_job_is_another_consumer(agent: Agent, log: PartitionLog) -> None:
    job = Reader(agent, "job").begin()
    job.step()
    log.append(batch(2))
    agent.look()
    query = Query(agent, "job")
    query.take_everything()
    assert once(query.appended(), 0, 5)
    assert [row.records for row in job.step() if row.kind == Kind.APPENDED] == [2]


def test_a_log_that_cannot_be_read_is_a_row_and_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = log_dir(tmp_path)
    for topic, topic_id in (("orders", 1), ("payments", 2)):
        partition(disk, topic, topic_id=topic_id).append(batch(3))
    agent = Agent(disk.path, journal=tmp_path / "journal")
    Reader(agent).begin().step()

    def refused(directory: Path) -> tuple[Segment, ...]:
        if directory.name == "orders-0":
            raise PermissionError(13, "Permission denied")
        return list_segments(directory)

    for module in ("excerpt_listing", "excerpt_walk"):
        monkeypatch.setattr(f"streaming.broker.excerpts.{module}.list_segments", refused)
    query = Query(agent, "q")
    query.take_everything()
    rows = [row for rows in query.sink.values() for row in rows]
    assert [(row.kind, row.topic, row.records) for row in rows] == [(Kind.APPENDED, "payments", 3), (Kind.SKIPPED, "orders", 0)]
    assert rows[1].reason.startswith("unreadable: ")
    agent.close()
