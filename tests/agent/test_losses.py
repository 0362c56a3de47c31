"""Counted and skipped bytes are what was published, for every consumer: over trims, expiry, lost deliveries, replays, restarts, kills."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from streaming.broker.journal import forgetting
from streaming.broker.journal.consumers import JournalBounds
from streaming.broker.journal.joined_ranges import decode_steps
from streaming.broker.protocol.agent_calls import Reason
from streaming.broker.protocol.consumer_messages import NOT_BEGUN, Committed, PlanRequest, Range, Register
from streaming.common.event_row import Event, EventRow
from streaming.common.rows import Kind
from streaming.errors import AgentError
from streaming.simulator.log import PartitionLog
from streaming.spark.client.agent_client import AgentClient
from streaming.spark.source.stream import shard_of
from tests.agents import Agent, Reader, event_rows, read_range
from tests.builders import batch, commit, log_dir, partition
from tests.events import Shard
from tests.scratch import scratch
from tests.watcher import joined
from tests.watcher.journalled import events_of

SHARDS = 3
TOPICS = ("bills", "orders", "tills")
EVER = 10**12


class KilledError(BaseException):
    """The agent's process ends."""


class MortalAgent(Agent):
    """An agent that can be killed before any write of its journal."""

    writes_left: int | None = None

    def open(self) -> None:
        super().open()
        self.writes_left = None
        with self.journal.database.reading() as run:
            run.execute("PRAGMA synchronous=OFF")  # a process is killed here, no machine
        write = self.journal.database.transaction

        @contextmanager
        def mortal() -> Iterator[Any]:
            if self.writes_left == 0:
                raise KilledError
            if self.writes_left is not None:
                self.writes_left -= 1
            with write() as run:
                yield run

        self.journal.database.transaction = mortal  # type: ignore[method-assign]

    def killed(self) -> None:
        for tail in self.watcher.tails():
            tail.close()
        self.journal.close()
        self.open()


class Job:
    """One consumer: what Spark keeps of its query, and the folds of its shards."""

    def __init__(self, agent: MortalAgent, name: str) -> None:
        self.agent = agent
        self.name = name
        self.run = 1
        self.shards = [Shard() for _ in range(SHARDS)]
        self.at = ("", -1, 0)  # where the last micro-batch ended that is committed
        self.planned: tuple[str, int, int] | None = None  # where one ends that is not
        self.reported = True  # the agent has heard of the last commit

    def register(self) -> None:
        self.agent.service.register(Register(self.name, "earliest", self.at[1] >= 0))

    def plan(self) -> bool:
        """Plan the next micro-batch, if there is anything to do."""
        if self.planned is None:
            plan = self.agent.service.plan(
                PlanRequest(self.name, str(self.run), *self.at[:2], 400, 0, total=self.at[2] if self.at[0] else -1)
            )
            if plan.seq >= 0 and (plan.again or (plan.journal, plan.seq) != self.at[:2]):
                self.planned = (plan.journal, plan.seq, plan.total)
        return self.planned is not None

    def asked(self) -> Range:
        assert self.planned is not None
        journal, seq, _ = self.planned
        same = journal == self.at[0]
        return Range(self.name, str(self.run), journal, self.at[1] if same else -1, self.at[2] if same else 0, seq)

    def read(self) -> list[EventRow]:
        return event_rows(read_range(self.agent.service, self.asked()))

    def received(self) -> None:
        self.agent.service.received(self.asked())

    def fold(self, rows: list[EventRow]) -> None:
        """The micro-batch is through."""
        for number, shard in enumerate(self.shards):
            shard.fold(*(row for row in rows if row.kind == Kind.CENSUS_END or shard_of(row.topic, row.partition, SHARDS) == number))
        assert self.planned is not None
        self.at, self.planned, self.reported = self.planned, None, False

    def announce(self) -> None:
        if not self.reported:
            self.reported = True
            self.agent.service.committed(Committed(self.name, str(self.run), *self.at[:2]))

    def anew(self) -> None:
        """The query is started again; a micro-batch that is not committed is run again."""
        self.run += 1

    @property
    def states(self) -> list[Any]:
        return [state for shard in self.shards for state in shard.states.values()]

    @property
    def counted(self) -> int:
        return sum(state.appended_bytes for state in self.states)

    @property
    def skipped(self) -> int:
        return sum(sum(state.skipped_bytes) for state in self.states)


class JobsOfOneAgent(RuleBasedStateMachine):
    """Some logs, their agent, and three jobs that come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.scratch = scratch()
        self.home = Path(self.scratch.name)
        self.patched = ExitStack()
        self.patched.enter_context(patch.object(forgetting, "SLICE", 3))
        self.patched.enter_context(joined.at_once())
        self.directory = log_dir(self.home)
        self.logs = [partition(self.directory, topic, topic_id=number + 1) for number, topic in enumerate(TOPICS)]
        self.agent = MortalAgent(self.directory.path, journal=self.home / "journal")
        self.jobs = [Job(self.agent, name) for name in ("first", "second", "third")]
        for job in self.jobs:
            job.register()
        self.agent.look()
        self.appended = 0

    def teardown(self) -> None:
        try:
            self.settle()
        finally:
            self.patched.close()
            self.agent.close()
            for log in self.logs:
                log.close()
            self.directory.release()
            self.scratch.cleanup()

    def settle(self) -> None:
        """Everything works from now on."""
        self.agent.writes_left = None
        self.agent.look()
        for job in self.jobs:
            for _ in range(1000):
                if not job.plan():
                    break
                rows = job.read()
                job.received()
                job.fold(rows)
                job.announce()
            else:
                raise AssertionError("a job never comes to an end")
            assert (job.name, job.counted, job.skipped) == (job.name, self.appended - job.skipped, job.skipped)

    # --- what happens

    @rule(numbers=st.lists(st.sampled_from(range(len(TOPICS))), min_size=1, max_size=5))
    def append(self, numbers: list[int]) -> None:
        """Some logs grow, and the agent sees each growth by itself."""
        for number in numbers:
            log = self.logs[number]
            before = log.active.size
            log.append(batch(1 + number))
            self.appended += log.active.size - before
            self._mortal(self.agent.look)
            self._mortal(lambda: self.agent.journal.reach(0, None))  # from now on nothing is merged into it

    @rule(name=st.sampled_from(range(3)))
    def micro_batch(self, name: int) -> None:
        job = self.jobs[name]
        self._mortal(job.announce)
        if self._mortal(job.plan):
            rows = self._mortal(job.read)
            if rows is not None:
                self._mortal(job.received)
            job.fold(rows or [])

    @rule(name=st.sampled_from(range(3)))
    def announce(self, name: int) -> None:
        self._mortal(self.jobs[name].announce)

    @rule(name=st.sampled_from(range(3)))
    def lose_read(self, name: int) -> None:
        job = self.jobs[name]
        if self._mortal(job.plan):
            job.fold([])

    @rule(name=st.sampled_from(range(3)), read=st.booleans())
    def lose_received(self, name: int, read: bool) -> None:
        """The agent does not hear that the rows arrived, or nothing arrives of what it sent."""
        job = self.jobs[name]
        if self._mortal(job.plan):
            rows = self._mortal(job.read)
            job.fold((rows if read else None) or [])

    @rule(name=st.sampled_from(range(3)), received=st.booleans())
    def job_dies(self, name: int, received: bool) -> None:
        """In the midst of a micro-batch, or between two."""
        job = self.jobs[name]
        if received and self._mortal(job.plan) and self._mortal(job.read) is not None:
            self._mortal(job.received)
        job.anew()
        job.reported = True  # a new process reports no commit of the one before

    @rule(away=st.sets(st.sampled_from(range(3))), old=st.booleans(), slices=st.integers(1, 12))
    def trim(self, away: set[int], old: bool, slices: int) -> None:
        """Some consumers are silent for too long; ``old``: all that is kept is too old."""
        self.agent.now += 2_000
        for number, job in enumerate(self.jobs):
            if number not in away and self.agent.writes_left is None:
                job.register()
        bounds = JournalBounds(max_bytes=1 << 40, max_age_ms=-1 if old else EVER, consumer_expiry_ms=1_000)
        for _ in range(slices):
            if not self._mortal(lambda: self.agent.consumers.trim(bounds)):
                break

    @rule()
    def stop_agent(self) -> None:
        self.agent.restart()
        self._register()

    @precondition(lambda self: self.agent.writes_left is None)
    @rule(writes=st.integers(0, 6))
    def kill_agent(self, writes: int) -> None:
        self.agent.writes_left = writes

    @invariant()
    def nothing_is_counted_twice(self) -> None:
        for job in self.jobs:
            assert job.counted + job.skipped <= self.appended

    def _mortal(self, action: Any) -> Any:
        """Do something in the agent, which may be killed meanwhile."""
        try:
            return action()
        except KilledError:
            self.agent.killed()
            self._register()
            return None

    def _register(self) -> None:
        for job in self.jobs:
            job.register()


JobsOfOneAgent.TestCase.settings = settings(
    max_examples=40 if settings().max_examples < 1000 else 2000, stateful_step_count=40, deadline=None
)
TestJobsOfOneAgent = pytest.mark.slow(JobsOfOneAgent.TestCase)


# --- one by one


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return partition(log_dir(tmp_path), "orders")


def sizes(rows: list[EventRow]) -> list[int]:
    return [row.bytes for row in rows if row.kind == Kind.SKIPPED]


def forget_all(agent: Agent) -> None:
    """Every consumer is silent for too long, and everything too old."""
    agent.now += 1000
    agent.trim(keep_ms=-1, expiry_ms=0)


def test_a_loss_that_did_not_arrive_is_delivered_by_the_next_process_too_and_what_is_open_with_it(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(producer=4000, transactional=True), batch(producer=4001, transactional=True))
    reader = Reader(agent).begin()
    reader.step()
    reader.commit()
    log.append(commit(4000))
    agent.look()
    forget_all(agent)
    log.append(batch(2))
    agent.look()
    reader.take(reader.plan(), arrives=False)
    agent.restart()
    reader.register(resumed=True)
    agent.look()
    reader.commit()
    assert sizes(reader.step()) == [78]
    agent.restart()
    reader.register(resumed=True)
    rows = [row for _ in range(3) for row in (agent.look(), reader.step())[1]]
    appeared = [row for row in rows if row.kind == Kind.APPEARED]
    assert {tuple(decode_steps(row.transactions)["producer_id"].tolist()) for row in appeared} == {(4001,)}


def test_what_a_consumer_has_never_read_of_its_own_beginning_is_a_loss_like_any_other(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(5))
    reader = Reader(agent).begin()
    forget_all(agent)
    assert sizes(reader.step()) == [log.active.size]


@pytest.mark.parametrize("reads", [False, True])
def test_a_job_that_knows_the_logs_begins_once_more_if_its_beginning_is_forgotten_before_it_read_any(
    agent: Agent, log: PartitionLog, reads: bool
) -> None:
    """What it reported lies on the disk. Once some of it was sent, the rest is a loss."""
    log.append(batch(5))
    reader = Reader(agent)
    reader.at = ("another", 7, 10**6)
    reader.begin()
    if reads:
        reader.take(reader.plan(), arrives=False)
        log.append(batch(3))
        agent.look()
    forget_all(agent)
    assert (reader.plan().seq == NOT_BEGUN) is not reads
    rows = reader.begin().step()
    counted = sum(row.bytes for row in rows if row.kind == Kind.APPENDED)
    assert counted + sum(sizes(rows)) == log.active.size
    assert bool(sizes(rows)) is reads


def test_a_loss_comes_although_nothing_new_does(agent: Agent, log: PartitionLog) -> None:
    reader = Reader(agent).begin()
    reader.step()
    log.append(batch(5))
    agent.look()
    forget_all(agent)
    assert sizes(reader.step()) == [log.active.size]


def test_what_was_sent_and_not_committed_is_kept_for_a_consumer_that_is_silent(agent: Agent, log: PartitionLog) -> None:
    """Its fold may have it or not: only the very rows can show it."""
    log.append(batch(3))
    reader, other = Reader(agent).begin(), Reader(agent, "other", start_from="latest").begin()
    plan = reader.plan()
    reader.take(plan, arrives=False)
    log.append(batch(2))
    agent.look()
    other.step()
    agent.now += 2000
    other.register()
    agent.trim(expiry_ms=1000)
    rows = reader.step()
    assert (sum(row.records for row in rows if row.kind == Kind.APPENDED), sizes(rows)) == (3, [log.active.entries[-1].size])
    agent.look()
    reader.step()
    agent.trim()
    assert events_of(agent.journal, 0, plan.seq) == []


def test_a_loss_that_grows_before_it_is_committed_grows_by_what_was_lost_more(agent: Agent, log: PartitionLog) -> None:
    shard, lost = Shard(), 0
    reader = Reader(agent).begin()
    for count in (5, 7):
        log.append(batch(count))
        agent.look()
        forget_all(agent)
        for arrives in (False, True):
            reader.take(reader.plan(), arrives=False)
            agent.restart()
            if arrives:  # it does, and the agent never hears of it
                shard.fold(*event_rows(read_range(agent.service, Range("job", "run 1", *reader.at, agent.journal.end().seq))))
        lost = log.active.size
        assert sum(sum(state.skipped_bytes) for state in shard.states.values()) == lost


def test_a_job_that_was_restored_from_a_copy_reads_again_what_was_forgotten_since_and_loses_nothing(
    agent: Agent, log: PartitionLog
) -> None:
    log.append(batch(3))
    reader, shard = Reader(agent).begin(), Shard()
    shard.fold(*reader.step())
    copied = reader.at
    log.append(batch(5))
    agent.look()
    reader.step()
    reader.commit()
    agent.trim()
    reader.at, reader.run = copied, "run 2"
    log.append(batch(1))
    agent.look()
    assert reader.plan().seq == NOT_BEGUN
    reader.begin()
    shard.fold(*reader.step())
    (state,) = shard.states.values()
    assert (state.appended_bytes, state.appended_records, sum(state.skipped_bytes)) == (log.active.size, 9, 0)


# --- two jobs of one id, and a journal that was set back


def test_of_two_jobs_with_one_id_one_is_refused_and_the_agent_says_so(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    one, two = Reader(agent).begin(), Reader(agent)
    one.step()
    two.run, two.at = "run 2", one.at
    two.plan()
    for ask in (one.plan, lambda: read_range(agent.service, Range("job", "run 1", agent.journal.id, *one.at[1:], 9))):
        with pytest.raises(AgentError, match="another run of this job's query is served: job") as refused:
            ask()
        assert refused.value.reason == Reason.TWIN_CONSUMER
    assert agent.service.status().twins == ["job"]
    before = agent.consumers.committed("job")
    one.commit()
    assert agent.consumers.committed("job") == before


def test_a_micro_batch_that_is_run_again_by_a_new_run_is_served_before_it_registers(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent).begin()
    plan = reader.plan()
    reader.run = "run 2"
    assert sum(row.records for row in reader.take(plan) if row.kind == Kind.APPENDED) == 3
    assert not reader.plan().again


def test_a_job_hears_over_the_wire_why_it_is_refused(agent: Agent) -> None:
    with agent.served() as address:
        client = AgentClient(address)
        for run in ("run 1", "run 2"):
            client.register(Register("job", "earliest", False, run=run))
        with pytest.raises(AgentError, match="was a checkpoint copied") as refused:
            client.register(Register("job", "earliest", False, run="run 1"))
        client.close()
    assert refused.value.reason == Reason.TWIN_CONSUMER


def test_an_older_copy_of_the_journal_that_has_gone_on_is_found_by_its_bytes_and_nothing_is_dropped(
    agent: Agent, log: PartitionLog, tmp_path: Path
) -> None:
    shard = Shard()
    log.append(batch(1))
    reader = Reader(agent).begin()
    shard.fold(*reader.step())
    agent.close()
    shutil.copytree(tmp_path / "journal", tmp_path / "copy")
    agent.open()
    log.append(batch(2))
    agent.look()
    shard.fold(*reader.step())
    agent.close()
    shutil.rmtree(tmp_path / "journal")
    (tmp_path / "copy").rename(tmp_path / "journal")
    agent.open()
    for _ in range(5):  # the journal goes on, beyond what the job has of it
        log.append(batch(3))
        agent.look()
        agent.journal.reach(0, None)
    assert agent.journal.end().seq > reader.at[1]
    assert reader.plan().seq == NOT_BEGUN
    reader.register(resumed=True)
    agent.look()
    shard.fold(*reader.step())
    (state,) = [state for key, state in shard.states.items() if key.topic]
    assert (state.appended_bytes, sum(state.skipped_bytes)) == (log.active.size, 0)


# --- several consumers, and files that shrink


def test_a_second_job_that_is_away_does_not_shrink_how_long_the_journal_lasts(agent: Agent, log: PartitionLog) -> None:
    away, reader = Reader(agent, "away").begin(), Reader(agent)
    reader.begin()
    sizes = []
    for _ in range(2):
        for _ in range(forgetting.LEAST):
            log.append(batch(1))
            agent.watcher.poll(set())
            reader.step()
        reader.commit()
        with joined.at_once():
            agent.trim()
        sizes.append(agent.journal.size())
    assert sizes[1] < 1.2 * sizes[0]
    assert sum(row.records for row in away.step()) == 2 * forgetting.LEAST


def test_the_file_shrinks_when_the_journal_forgets(agent: Agent, log: PartitionLog, tmp_path: Path) -> None:
    reader = Reader(agent).begin()
    agent.journal.publish([Event(kind=Kind.FOUND, topic=str(number), segments=bytes(10_000)) for number in range(500)])
    reader.step()
    reader.commit()
    agent.trim()
    with agent.journal.database.reading() as run:
        run.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert (tmp_path / "journal" / "journal.db").stat().st_size < 1_000_000
