"""What an agent answers: nothing that a job needs is left out, whatever is lost on the way."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.agent import service
from streaming.broker.agent.service import POLL_SECONDS
from streaming.broker.protocol.consumer_messages import NOT_BEGUN, PlanRequest, Range, Register
from streaming.broker.watcher import grown_logs
from streaming.common.event_row import EventRow
from streaming.common.rows import SKIP_REASONS, Kind
from streaming.errors import AgentError, GoneError
from streaming.simulator.log import PartitionLog, compact
from streaming.simulator.segment_writer import LogConfig
from tests.agents import Agent, Reader, event_rows, read_range
from tests.builders import NOW, batch, commit, log_dir, partition
from tests.events import Shard
from tests.scratch import scratch


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return partition(log_dir(tmp_path), "orders")


def kinds(rows: Sequence[EventRow]) -> list[str]:
    return [row.kind for row in rows]


def records(rows: Sequence[EventRow]) -> int:
    return sum(row.records for row in rows if row.kind == Kind.APPENDED)


def counted(*deliveries: Sequence[EventRow]) -> int:
    """Records that a fold counts."""
    shard = Shard()
    for rows in deliveries:
        shard.fold(*rows)
    return shard.log(topic_id=next(iter(shard.states)).topic_id).appended_records


# --- registering


def test_a_new_job_gets_the_logs_from_where_it_wants_them_and_a_census(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    log.roll()
    log.append(batch(2))
    rows = Reader(agent, start_from="active").begin().step()
    assert kinds(rows) == [Kind.APPEARED, Kind.CENSUS, Kind.CENSUS_END, Kind.APPENDED, Kind.FOUND]
    assert (rows[0].next_offset, rows[3].base_offset, records(rows)) == (3, 3, 2)


def test_before_its_beginning_is_published_a_job_has_no_plan(agent: Agent) -> None:
    reader = Reader(agent)
    assert reader.plan().seq == NOT_BEGUN
    reader.register()
    reader.register()
    assert reader.plan().seq == NOT_BEGUN
    agent.look()
    assert kinds(reader.step()) == [Kind.APPEARED, Kind.CENSUS, Kind.CENSUS_END, Kind.FOUND]


def test_nothing_older_comes_before_the_beginning_of_a_second_job(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    Reader(agent).begin().step()
    log.append(batch(2))
    second = Reader(agent, "second")
    second.register()  # the two records are published in the turn that also publishes its beginning
    agent.look()
    rows = second.step()
    assert (rows[0].kind, records(rows)) == (Kind.APPEARED, 5)


def test_a_run_that_registers_again_goes_on_and_nothing_is_published_again(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent).begin()
    reader.step()
    end = agent.journal.end()
    for _ in range(3):
        reader.register()
        agent.look()
    assert agent.journal.end() == end
    assert reader.step() == []


@pytest.mark.parametrize("restarted", [True, False])
def test_another_run_begins_at_what_the_job_has_counted(agent: Agent, log: PartitionLog, restarted: bool) -> None:
    log.append(batch(3), batch(4))
    reader = Reader(agent).begin()
    reader.step()
    log.append(batch(2))
    reader.run = "run 2"
    if restarted:
        agent.restart()
    rows = reader.begin().step()
    appended = [row for row in rows if row.kind == Kind.APPENDED]
    assert [(row.kind, row.next_offset) for row in rows[:1]] == [(Kind.APPEARED, 7)]
    assert [(row.base_offset, row.records, row.detail) for row in appended] == [(7, 2, None)]


def test_where_the_log_was_cut_off_meanwhile_a_run_begins_there(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3), batch(4))
    reader = Reader(agent).begin()
    reader.step()
    agent.restart()
    log.truncate(3)
    log.append(batch(2), leader_epoch=1)
    rows = reader.begin().step()
    assert [(row.base_offset, row.next_offset, bool(row.detail)) for row in rows if row.kind == Kind.APPENDED] == [(3, 5, True)]
    state = reader.counted.states[rows[0].log]
    assert (state.appended_records, state.log_end_offset, state.truncations) == (9, 5, 1)


def test_a_log_with_another_history_is_published_from_its_first_byte(agent: Agent, log: PartitionLog) -> None:
    """The last epoch that the job knows is not among those of the log: they parted somewhere."""
    log.append(batch(3), leader_epoch=1)
    log.append(batch(4), leader_epoch=5)
    reader = Reader(agent).begin()
    reader.step()
    agent.restart()
    log.truncate(3)
    log.append(batch(6), leader_epoch=6)
    rows = reader.begin().step()
    assert rows[0].next_offset == 0
    state = reader.counted.states[rows[0].log]
    assert (state.appended_records, state.log_end_offset) == (13, 9)


def test_a_start_that_does_not_exist_is_an_error_in_words(agent: Agent) -> None:
    with pytest.raises(AgentError, match="no such start: 'noon'"):
        agent.service.register(Register("job", "noon", resumed=False, run="run 1"))


@pytest.mark.parametrize("positions", ["1:rubbish", "2:", "rubbish"])
def test_damaged_positions_are_refused_and_change_nothing(agent: Agent, positions: str) -> None:
    with pytest.raises(AgentError, match="positions of logs are"):
        agent.service.register(Register("job", "earliest", resumed=True, run="run 1", positions=positions))
    agent.look()
    assert agent.journal.end().seq == 0


@pytest.mark.parametrize(("job", "run"), [("", "run 1"), ("j\n", "run 1"), ("job", "r" * 65)])
def test_ids_that_are_none_are_refused(agent: Agent, job: str, run: str) -> None:
    with pytest.raises(AgentError, match="no such id"):
        agent.service.register(Register(job, "earliest", resumed=False, run=run))


def test_status_shows_how_much_is_not_read_yet(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    assert agent.service.status().unread == -1  # nobody has registered: which logs are read from where is not decided
    agent.service.register(Register("job", "earliest", resumed=False, run="run 1"))
    agent.watcher.poll(set(), budget=0)
    assert agent.service.status().unread == log.active.size
    agent.look()
    assert agent.service.status().unread == 0


def test_status_shows_who_it_is_and_how_far_it_has_come(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    before = agent.service.status()
    Reader(agent).begin()
    after = agent.service.status()
    assert (before.agent, before.journal, before.brokers, before.caught_up) == ("a1", agent.journal.id, [1], False)
    assert (after.logs, after.caught_up, after.total, after.seq) == (1, True, log.active.size, agent.journal.end().seq)
    assert after.unreadable_metadata == [1]


# --- plans


def test_a_budget_reaches_as_far_as_its_bytes_and_at_least_one_event(agent: Agent, log: PartitionLog) -> None:
    reader = Reader(agent).begin()
    for _ in range(4):
        log.append(batch(1, value_bytes=1000))
        agent.look()
    size = log.active.size // 4
    assert reader.plan(budget=2 * size).total == 2 * size
    assert reader.plan(budget=1).seq > 0
    assert reader.plan(budget=None) == reader.plan(budget=10**9)
    steps = [records(reader.step(budget=size)) for _ in range(12)]
    assert sum(steps) == 4
    assert max(steps) == 1


def test_where_nothing_is_new_the_plan_ends_where_it_begins(agent: Agent) -> None:
    reader = Reader(agent).begin()
    reader.step()
    plan = reader.plan()
    assert (plan.after, plan.seq, plan.more) == (reader.has[1], reader.has[1], False)


def test_a_plan_waits_for_something_new(agent: Agent, log: PartitionLog) -> None:
    reader = Reader(agent).begin()
    reader.step()
    log.append(batch(1))
    with agent.served():
        plan = agent.service.plan(PlanRequest("job", "run 1", *reader.has, None, 60_000))
    assert plan.seq > reader.has[1]


def test_a_plan_looks_first(agent: Agent, log: PartitionLog) -> None:
    """The watcher rests between two plans: what was appended meanwhile is in the plan all the same."""
    reader = Reader(agent).begin()
    reader.step()
    with agent.served():
        reader.plan()  # somebody has begun to look
        for _ in range(3):
            log.append(batch(1))
            plan = reader.plan()
            assert plan.seq > reader.has[1]
            reader.apply(plan)


def test_a_plan_that_is_cut_waits_for_no_look(agent: Agent, log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(agent).begin()
    for _ in range(2):
        log.append(batch(1))
        agent.look()
    waits: list[float] = []
    monkeypatch.setattr(agent.polls, "request", waits.append)
    assert reader.plan(budget=1).more
    assert not waits
    reader.plan()
    assert waits == [POLL_SECONDS]


def test_what_a_lost_read_did_not_bring_comes_with_the_next_one(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent).begin()
    reader.apply(reader.plan(), arrives=False)
    log.append(batch(2))
    agent.look()
    assert records(reader.step()) == 5
    log.append(batch(1))
    agent.look()
    assert records(reader.step()) == 1


def test_a_task_that_is_tried_again_reads_the_same_rows(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent).begin()
    asked = reader.asked(reader.plan())
    first = read_range(agent.service, asked)
    log.append(batch(2))
    agent.look()
    assert read_range(agent.service, asked) == first
    assert records(event_rows(first)) == 3


@pytest.mark.parametrize("blocks", [1, 2, 100])
def test_a_range_is_the_same_in_parts_of_any_size(agent: Agent, log: PartitionLog, monkeypatch: pytest.MonkeyPatch, blocks: int) -> None:
    reader = Reader(agent).begin()
    for _ in range(5):
        log.append(batch(1))
        agent.look()
    asked = reader.asked(reader.plan())
    whole = read_range(agent.service, asked)
    monkeypatch.setattr(service, "BLOCKS_AT_ONCE", blocks)
    assert read_range(agent.service, asked) == whole


def test_a_plan_beyond_the_end_is_refused(agent: Agent) -> None:
    reader = Reader(agent).begin()
    reader.step()
    reader.has = (reader.has[0], reader.has[1] + 1)
    with pytest.raises(AgentError, match="it cannot be there"):
        reader.plan()


def test_the_columns_of_every_answer_are_told_to_anybody(agent: Agent) -> None:
    assert read_range(agent.service, Range("", "", "", -1, -1)).num_rows == 0


# --- what is not there any more


def test_of_a_process_that_is_no_more_nothing_is_read_and_the_run_begins_again(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent).begin()
    reader.step()
    log.append(batch(2))
    agent.look()
    plan = reader.plan()
    agent.restart()
    with pytest.raises(GoneError):
        reader.apply(plan)
    assert reader.plan().seq == NOT_BEGUN
    assert records(reader.begin().step()) == 2


def test_a_job_that_lacks_what_is_dropped_begins_again_at_what_it_has(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    fast, slow = Reader(agent, "fast").begin(), Reader(agent, "slow").begin()
    slow.step()
    log.append(batch(2))
    agent.look()
    plan = slow.plan()
    agent.journal.clear()
    with pytest.raises(GoneError):
        slow.apply(plan)
    assert slow.plan().seq == NOT_BEGUN
    rows = slow.begin().step()
    assert (rows[0].kind, rows[0].next_offset, records(rows)) == (Kind.APPEARED, 3, 2)
    assert fast.plan().seq == NOT_BEGUN
    assert records(fast.begin().step()) == 5


def records_read_beside(agent: Agent) -> int:
    """How many records a job gets that reads after each poll. What it has not read is not dropped, or it would have to begin again."""
    reader, found = Reader(agent), 0
    reader.register()
    for _ in range(20):
        agent.now += 1000
        agent.watcher.poll(set())
        found += records(reader.step())
    return found


def test_what_a_poll_finds_besides_ranges_waits_if_these_are_enough_for_a_job(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    for number in range(12):
        log = partition(disk, f"orders-{number}")
        log.append(batch(3))
        log.roll()
        log.append(batch(2))
    with closing(Agent(disk.path, kept_bytes=4 << 10)) as agent:
        assert records_read_beside(agent) == 12 * 5


def test_a_poll_reads_no_more_than_a_job_has_to_read_before_it_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grown_logs, "SLICE_BYTES", 1)
    disk = log_dir(tmp_path)
    for number in range(10):
        log = partition(disk, f"payments-{number}")
        for producer in range(100):  # so many transactions in one range
            log.append(batch(1, value_bytes=8, producer=producer, transactional=True), commit(producer))
    with closing(Agent(disk.path, kept_bytes=24 << 10)) as agent:
        assert records_read_beside(agent) == 10 * 100


def test_events_that_are_dropped_between_two_parts_of_a_range_are_an_error(
    agent: Agent, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "BLOCKS_AT_ONCE", 1)
    reader = Reader(agent).begin()
    for _ in range(3):
        log.append(batch(1))
        agent.look()
    rows = agent.service.read(reader.asked(reader.plan()))
    next(rows)
    agent.journal.clear()
    with pytest.raises(GoneError):
        list(rows)


def test_who_begins_where_nobody_reads_any_more_is_given_no_rest(agent: Agent, log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append(batch(3))
    Reader(agent).begin()
    monkeypatch.setattr(agent.jobs, "furthest", lambda: -1)
    late = Reader(agent, "late")
    late.register()
    assert agent.journal.size() == 0
    agent.look()
    assert records(late.step()) == 3


def test_a_range_of_one_that_has_not_registered_is_refused(agent: Agent) -> None:
    reader = Reader(agent).begin()
    with pytest.raises(GoneError):
        read_range(agent.service, Range("stranger", "run", reader.plan().journal, 0, 10**9))


def test_another_token_s_job_of_the_same_id_is_another_job(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent).begin()
    assert agent.service.plan(PlanRequest("job", "theirs", "", -1, None, 0), "stranger").seq == NOT_BEGUN
    agent.service.register(Register("job", "latest", resumed=False, run="theirs"), "stranger")
    agent.look()
    assert records(reader.step()) == 3
    assert agent.service.status().twins == []


def test_of_two_runs_that_are_both_alive_one_is_served(agent: Agent) -> None:
    first, second = Reader(agent).begin(), Reader(agent)
    second.run = "run 2"
    second.begin()
    second.step()
    with pytest.raises(AgentError, match="another run of this job's query is served"):
        first.plan()
    assert agent.service.status().twins == ["job"]


# --- anything may be lost on the way


def test_a_topic_that_is_deleted_is_reported_with_its_events_before(agent: Agent, log: PartitionLog, tmp_path: Path) -> None:
    reader = Reader(agent).begin()
    reader.step()
    log.append(batch(2))
    agent.look()
    log.rename(f"{log.name}.{0:032x}-delete")
    agent.look()
    rows = [row for row in reader.step() if row.kind not in (Kind.CENSUS, Kind.CENSUS_END, Kind.FOUND)]
    assert [(row.kind, row.reason) for row in rows] == [(Kind.APPENDED, ""), (Kind.GONE, "deleted")]


class Course:
    """A log, its agent and a job. Each method is a step; all but the disk may fail."""

    def __init__(self, home: Path) -> None:
        self.directory = log_dir(home)
        self.log = partition(self.directory, "orders")
        self.agent = Agent(self.directory.path)
        self.reader = Reader(self.agent).begin()
        self.epoch = self.appended = 0

    def append(self) -> None:
        self.log.append(batch(2), batch(1), leader_epoch=self.epoch)
        self.appended += 3
        self.agent.look()

    def truncate(self) -> None:
        if len(self.log.active.entries) > 1:
            self._read_everything()  # of what is cut off unread nothing may be left
            self.epoch += 1
            self.log.truncate(self.log.active.entries[-1].base_offset)
            self.agent.look()

    def look(self) -> None:
        self.agent.look()

    def micro_batch(self) -> None:
        self._micro_batch(arrives=True)

    def lost_read(self) -> None:
        self._micro_batch(arrives=False)

    def agent_anew(self) -> None:
        self.agent.restart()
        self.reader.begin()

    def watcher_anew(self) -> None:
        self.agent.replace_watcher()
        self.agent.look()

    def run_anew(self) -> None:
        self.reader.run += "+"
        self.reader.begin()

    def drop(self) -> None:
        self.agent.journal.clear()

    def _micro_batch(self, *, arrives: bool) -> None:
        plan = self.reader.plan(budget=300)
        if plan.seq == NOT_BEGUN:
            plan = self.reader.begin().plan(budget=300)
        self.reader.apply(plan, arrives=arrives)

    def _read_everything(self) -> None:
        self.agent.look()
        self.micro_batch()
        while self.reader.plan().seq > self.reader.has[1]:
            self.micro_batch()

    def end(self) -> None:
        """Everything works from now on."""
        self._read_everything()
        self.agent.close()
        self.log.close()
        self.directory.release()


steps = ["append", "truncate", "look", "micro_batch", "lost_read", "agent_anew", "watcher_anew", "run_anew", "drop"]


@given(st.lists(st.sampled_from(["append", "micro_batch", *steps]), max_size=30))
def test_whatever_is_lost_on_the_way_is_counted_once(steps: list[str]) -> None:
    with scratch() as directory:
        course = Course(Path(directory))
        for step in steps:
            getattr(course, step)()
        course.end()
    (state,) = [state for key, state in course.reader.counted.states.items() if key.topic]
    assert (state.appended_records, state.log_end_offset) == (course.appended, course.log.log_end_offset)
    assert not any(state.skipped_bytes)


def test_a_log_that_is_deleted_for_good_is_in_no_census(agent: Agent, log: PartitionLog, tmp_path: Path) -> None:
    reader = Reader(agent).begin()
    assert Kind.CENSUS in kinds(reader.step())
    log.rename(f"{log.name}.{0:032x}-delete")
    agent.look()
    agent.look()
    found = kinds(Reader(agent, "another").begin().step())
    assert (Kind.CENSUS in found, Kind.CENSUS_END in found) == (False, True)


# --- logs that are empty now


def test_a_log_that_was_emptied_while_no_agent_ran_says_where_it_ends_and_what_is_missing(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent)
    reader.begin().step()
    log.append(batch(2))
    log.roll()
    log.delete_records(5)
    log.config = LogConfig(compacted=True, retention_ms=-1)
    log.delete_old_segments(NOW)
    log.unlink_deleted(NOW + 10**6)
    agent.restart()
    reader.begin().step()
    log.append(batch(4))
    agent.look()
    reader.step()
    (after,) = reader.counted.states.values()
    assert (after.log_end_offset, after.appended_records, after.truncations) == (9, 7, 0)
    assert after.skipped_bytes[SKIP_REASONS.index("agent_lost")] > 0


def test_a_log_whose_last_batches_were_cleaned_unread_says_where_it_ends(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent)
    reader.begin().step()
    agent.close()
    log.append(batch(2))
    log.roll()
    compact(log, 0, {0})
    agent.open()
    reader.begin().step()
    (state,) = reader.counted.states.values()
    assert (state.appended_records, state.truncations, sum(state.skipped_bytes)) == (3, 0, 0)


def test_a_job_that_has_lost_its_offsets_and_its_state_begins_anew(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent).begin()
    reader.step()
    log.append(batch(2))
    agent.look()
    emptied = Reader(agent)
    emptied.run = "run 2"
    assert records(emptied.begin().step()) == 5
