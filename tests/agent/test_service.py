"""What an agent answers: nothing that a job needs is left out, whatever is lost on the way."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.agent.service import POLL_SECONDS
from streaming.broker.journal.joined_ranges import decode_steps
from streaming.broker.protocol.consumer_messages import NOT_BEGUN, Committed, Plan, PlanRequest, Range, Register
from streaming.common.event_row import EventRow
from streaming.common.rows import SKIP_REASONS, Kind
from streaming.errors import AgentError
from streaming.simulator.log import PartitionLog, compact
from streaming.simulator.segment_writer import LogConfig
from tests.agents import Agent, Reader, event_rows, read_range
from tests.builders import NOW, batch, commit, log_dir, partition
from tests.events import Shard
from tests.scratch import scratch
from tests.watcher.journalled import events_of


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


def test_a_new_consumer_gets_the_logs_from_where_it_wants_them_and_a_census(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    log.roll()
    log.append(batch(2))
    rows = Reader(agent, start_from="active").begin().step()
    assert kinds(rows) == [Kind.APPEARED, Kind.CENSUS, Kind.CENSUS_END, Kind.APPENDED, Kind.FOUND]
    assert (rows[0].next_offset, rows[3].base_offset, records(rows)) == (3, 3, 2)


def test_before_its_beginning_is_published_a_consumer_has_no_plan(agent: Agent) -> None:
    reader = Reader(agent)
    assert reader.plan().seq == NOT_BEGUN
    reader.register()
    reader.register()
    assert reader.plan().seq == NOT_BEGUN
    agent.look()
    assert kinds(reader.step()) == [Kind.APPEARED, Kind.CENSUS, Kind.CENSUS_END, Kind.FOUND]


def test_nothing_older_comes_before_the_beginning_of_a_second_consumer(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    Reader(agent).begin().step()
    log.append(batch(2))
    second = Reader(agent, "second")
    second.register()  # the two records are published in the turn that also publishes its beginning
    agent.look()
    rows = second.step()
    assert (rows[0].kind, records(rows)) == (Kind.APPEARED, 5)


def test_a_known_consumer_is_registered_with_a_picture_and_nothing_is_published_again(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent).begin()
    reader.step()
    agent.restart()
    reader.register(resumed=True)
    assert not agent.service.status().caught_up
    agent.look()
    assert agent.service.status().caught_up
    reader.take(reader.plan())
    reader.commit()
    assert records(reader.step()) == 0


def test_a_start_that_does_not_exist_is_an_error_in_words(agent: Agent) -> None:
    with pytest.raises(AgentError, match="no such start: 'noon'"):
        agent.service.register(Register("job", "noon", resumed=False))


def test_status_shows_how_much_is_not_read_yet(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    assert agent.service.status().unread == -1  # nobody has registered: which logs are read from where is not decided
    agent.service.register(Register("job", "earliest", resumed=False))
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
        agent.journal.reach(0, None)  # reported: later appends are events of their own
    size = log.active.size // 4
    assert reader.plan(budget=2 * size).total == 2 * size
    assert reader.plan(budget=1).seq > 0
    assert reader.plan(budget=None) == reader.plan(budget=10**9)
    steps = [records(reader.step(budget=size)) for _ in range(12)]
    assert sum(steps) == 4
    assert max(steps) == 1


def test_where_nothing_is_new_the_plan_stays_where_it_was(agent: Agent) -> None:
    reader = Reader(agent).begin()
    reader.step()
    plan = reader.plan()
    assert (plan.seq, plan.total, plan.again) == (*reader.at[1:], False)


def test_a_plan_waits_for_something_new(agent: Agent, log: PartitionLog) -> None:
    reader = Reader(agent).begin()
    reader.step()
    log.append(batch(1))
    with agent.served():
        plan = agent.service.plan(PlanRequest("job", "run 1", *reader.at[:2], None, 60_000))
    assert plan.seq > reader.at[1]


def test_a_plan_looks_first(agent: Agent, log: PartitionLog) -> None:
    """The watcher rests between two plans: what was appended meanwhile is in the plan all the same."""
    reader = Reader(agent).begin()
    reader.step()
    with agent.served():
        reader.plan()  # somebody has begun to look
        for _ in range(3):
            log.append(batch(1))
            plan = reader.plan()
            assert plan.seq > reader.at[1]
            reader.take(plan)
            reader.commit()


def test_a_plan_that_is_cut_waits_for_no_look(agent: Agent, log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(agent).begin()
    for _ in range(2):
        log.append(batch(1))
        agent.look()
        agent.journal.reach(0, None)
    waits: list[float] = []
    monkeypatch.setattr(agent.polls, "request", waits.append)
    assert reader.plan(budget=1).more
    assert not waits
    reader.plan()
    assert waits == [POLL_SECONDS]


def test_what_a_lost_read_did_not_bring_comes_with_the_next_one(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent).begin()
    reader.take(reader.plan(), arrives=False)
    log.append(batch(2))
    agent.look()
    reader.commit()
    assert records(reader.step()) == 5
    log.append(batch(1))
    agent.look()
    assert records(reader.step()) == 1


def test_a_lost_read_is_planned_again_where_nothing_new_comes_until_it_has_arrived(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent).begin()
    reader.take(reader.plan(), arrives=False)
    for _ in range(2):
        reader.commit()
        plan = reader.plan()
        assert (plan.again, plan.seq) == (True, reader.at[1])
        reader.take(plan, arrives=False)
    assert records(reader.take(reader.plan())) == 3
    assert not reader.plan().again
    reader.commit()
    assert not reader.plan().again


def test_a_task_that_is_tried_again_reads_the_same_rows(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent).begin()
    reader.take(reader.plan(), arrives=False)
    log.append(batch(2))
    agent.look()
    reader.commit()
    asked = reader.asked(reader.plan())
    first = read_range(agent.service, asked)
    agent.service.received(asked)
    assert read_range(agent.service, asked) == first
    assert first.num_rows == 6


def test_what_a_run_received_that_never_committed_it_does_not_count(agent: Agent, log: PartitionLog) -> None:
    """The job is killed behind its read; run again, the micro-batch finds no agent and is committed without its rows."""
    log.append(batch(3))
    reader = Reader(agent).begin()
    reader.take(reader.plan())
    reader.run = "run 2"
    reader.commit()
    plan = reader.plan()
    assert plan.again
    assert records(reader.take(plan)) == 3


def test_a_commit_that_is_lost_costs_a_delivery_and_no_row(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent).begin()
    first = reader.take(reader.plan())
    log.append(batch(2))
    agent.look()
    second = reader.step()
    assert counted(first, second) == 5
    log.append(batch(1))
    agent.look()
    assert records(reader.step()) == 1


def test_an_agent_that_starts_anew_between_plan_and_read_sends_the_same_rows(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent).begin()
    plan = reader.plan()
    before = read_range(agent.service, reader.asked(plan)).to_pylist()
    agent.restart()
    after = read_range(agent.service, reader.asked(plan)).to_pylist()
    assert [row for row in after if row["kind"] == Kind.APPENDED] == [row for row in before if row["kind"] == Kind.APPENDED]


def test_a_census_of_an_earlier_process_names_the_logs_that_were_there_then(agent: Agent, log: PartitionLog) -> None:
    """One that has not looked yet knows no log, and what is gone since is reported behind the census."""
    log.append(batch(3))
    reader = Reader(agent).begin()
    plan = reader.plan()
    before = read_range(agent.service, reader.asked(plan)).to_pylist()
    agent.restart()
    log.rename(f"{log.name}.{0:032x}-delete")
    assert read_range(agent.service, reader.asked(plan)).to_pylist() == before


def test_a_known_consumer_that_registers_brings_no_event(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent).begin()
    reader.step()
    end = agent.journal.end()
    for _ in range(3):
        reader.register(resumed=True)
        assert not agent.watcher.caught_up
        agent.look()
        assert agent.watcher.caught_up
    assert agent.journal.end() == end


# --- journals that end, and others that begin


def test_of_a_journal_that_is_no_more_nothing_is_read_and_the_new_one_begins_at_the_first_event(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent).begin()
    first = reader.step()
    log.append(batch(2))
    agent.look()
    plan = reader.plan()
    agent.lose_journal()
    lost = reader.take(plan)
    reader.commit()
    assert lost == []
    assert reader.plan().seq == NOT_BEGUN
    reader.register(resumed=True)
    agent.look()
    again = reader.step()
    assert (records(again), counted(first, again)) == (5, 5)


def test_a_range_of_a_resumed_consumer_that_straddles_is_counted_exactly(agent: Agent, log: PartitionLog) -> None:
    for _ in range(3):
        log.append(batch(2), batch(1))
    reader = Reader(agent).begin()
    first = reader.step()
    agent.lose_journal()
    log.append(batch(4))
    reader.register(resumed=True)
    agent.look()
    again = reader.step()
    assert (len([row for row in again if row.kind == Kind.APPENDED]), counted(first, again)) == (1, 13)


def test_a_job_that_has_seen_more_than_the_journal_holds_begins_anew_and_nobody_else(agent: Agent, log: PartitionLog) -> None:
    """The journal was restored from a copy. ``first`` had gone on before."""
    log.append(batch(3))
    first, second = Reader(agent, "first").begin(), Reader(agent, "second").begin()
    had, others = first.step(), second.step()
    first.at = (first.at[0], first.at[1] + 100, first.at[2])
    assert first.plan().seq == NOT_BEGUN
    before, begun = first.at[0], second.at[0]
    first.register(resumed=True)
    agent.look()
    again = first.step()
    assert (kinds(again)[0], counted(had, again), first.at[0] != before) == (Kind.APPEARED, 3, True)
    assert (counted(others, second.step()), second.at[0]) == (3, begun)


def test_a_job_that_comes_back_from_another_journal_begins_anew(agent: Agent, log: PartitionLog) -> None:
    """The journal was lost, the job went on with a new one, and then the old one was restored."""
    log.append(batch(3))
    reader = Reader(agent).begin()
    had, begun = reader.step(), reader.at[0]
    reader.at = ("another", 7, 10**6)
    assert reader.plan().seq == NOT_BEGUN
    reader.register()
    agent.look()
    again = reader.step()
    assert (counted(had, again), begun != reader.at[0]) == (3, True)


def test_a_job_that_has_read_nothing_yet_may_come_from_any_journal(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent)
    reader.at = ("another", 7, 10**6)
    assert records(reader.begin().step()) == 3


def test_a_job_that_knows_another_journal_is_not_given_what_is_for_one_that_knows_nothing(agent: Agent, log: PartitionLog) -> None:
    """The journal is a copy from before it read anything: it may know a part of every range."""
    log.append(batch(3))
    reader = Reader(agent).begin()
    reader.at = ("another", 7, 10**6)
    assert reader.plan().seq == NOT_BEGUN
    rows = reader.begin().step()
    assert records(rows) == 3
    assert all(row.detail for row in rows if row.kind == Kind.APPENDED)


# --- what was forgotten


def trimmed(rows: Sequence[EventRow]) -> list[int]:
    return [row.bytes for row in rows if row.kind == Kind.SKIPPED and row.reason == "journal_trimmed"]


def test_what_is_committed_by_all_is_forgotten_and_nothing_else(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    fast, slow = Reader(agent, "fast").begin(), Reader(agent, "slow").begin()
    fast.step()
    agent.trim()
    assert records(slow.step()) == 3
    agent.trim()
    assert events_of(agent.journal, 0, agent.journal.end().seq) == []


def test_the_loss_of_a_consumer_that_was_away_for_too_long_is_reported_until_it_has_arrived_and_counted_once(
    agent: Agent, log: PartitionLog
) -> None:
    log.append(batch(3))
    reader = Reader(agent).begin()
    first = reader.step()
    size = log.active.size
    log.append(batch(5))
    agent.look()
    agent.now += 1000
    agent.trim(keep_ms=-1, expiry_ms=0)
    log.append(batch(2))
    agent.look()
    lost = log.active.entries[-2].size
    reader.commit()
    missed = reader.plan()
    asked = reader.asked(missed)
    rows = reader.take(missed, arrives=False)
    assert rows == []
    assert asked.after_total == size
    agent.look()
    reader.commit()
    second = reader.step()
    third = reader.step()
    assert (trimmed(second), trimmed(third)) == ([lost], [])
    shard = Shard()
    for delivery in (first, second, second, third):
        shard.fold(*delivery)
    reported = sum(state.skipped_bytes[SKIP_REASONS.index("journal_trimmed")] for state in shard.states.values())
    appended = sum(state.appended_bytes for state in shard.states.values())
    assert (reported, appended + reported) == (lost, log.active.size)


def test_a_consumer_that_has_missed_something_is_reported_again_what_is_open(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(producer=4000, transactional=True), batch(producer=4001, transactional=True))
    reader = Reader(agent).begin()
    reader.step()
    log.append(commit(4000))
    agent.look()
    agent.now += 1000
    agent.trim(keep_ms=-1, expiry_ms=0)
    log.append(batch())
    agent.look()
    assert trimmed(reader.step()) == [78]
    agent.look()
    (appeared,) = [row for row in reader.step() if row.kind == Kind.APPEARED]
    assert (appeared.next_offset, decode_steps(appeared.transactions)["producer_id"].tolist()) == (4, [4001])
    assert kinds(reader.step()) == []


def test_bounds_that_forget_what_a_slow_consumer_needs_leave_their_size_in_its_place(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = Reader(agent).begin()
    reader.step()
    log.append(batch(5))
    agent.look()
    size = log.active.entries[-1].size
    agent.now += 1000
    agent.trim(keep_ms=-1)
    rows = reader.step()
    assert trimmed(rows) == [size]
    assert trimmed(reader.step()) == []


# --- a reader without an id


def test_a_reader_without_an_id_reads_what_is_kept_and_holds_nothing_back(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    Reader(agent, "job").begin().step()
    passing = Reader(agent, "")
    passing.register()
    assert records(passing.step()) == 3
    assert agent.consumers.committed("") is None
    agent.trim()
    assert agent.journal.trimmed().seq == agent.consumers.committed("job")


def test_a_reader_without_an_id_may_be_the_first(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    passing = Reader(agent, "").begin()
    assert records(passing.step()) == 3
    log.append(batch(2))
    passing.register()
    agent.look()
    assert records(passing.step()) == 2


def test_a_reader_without_an_id_is_given_what_was_forgotten_before_it_came_so_far(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    job, passing = Reader(agent, "job").begin(), Reader(agent, "")
    passing.step()
    log.append(batch(2))
    agent.look()
    job.step()
    agent.trim()
    log.append(batch(1))
    agent.look()
    rows = passing.step()
    assert (trimmed(rows), records(rows)) == ([log.active.entries[1].size], 1)


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
        self.agent = Agent(self.directory.path, journal=home / "journal")
        self.reader = Reader(self.agent).begin()
        self.shard = Shard()
        self.epoch = self.appended = 0

    def append(self) -> None:
        self.log.append(batch(2), batch(1), leader_epoch=self.epoch)
        self.appended += 3
        self.agent.look()

    def truncate(self) -> None:
        if len(self.log.active.entries) > 1:
            self.epoch += 1
            self.log.truncate(self.log.active.entries[-1].base_offset)
            self.agent.look()

    def look(self) -> None:
        self.agent.look()

    def micro_batch(self) -> None:
        self._micro_batch()
        self.reader.commit()

    def lost_read(self) -> None:
        self._micro_batch(read=False)
        self.reader.commit()

    def lost_received(self) -> None:
        self._micro_batch(received=False)
        self.reader.commit()

    def lost_commit(self) -> None:
        self._micro_batch()

    def agent_anew(self) -> None:
        self.agent.restart()
        self.reader.register(resumed=True)
        self.agent.look()

    def run_anew(self) -> None:
        self.reader.run += "+"

    def trim(self) -> None:
        self.agent.trim()

    def _micro_batch(self, *, read: bool = True, received: bool = True) -> None:
        plan = self.reader.plan(budget=300)
        asked = self.reader.asked(plan)
        self.reader.at = (plan.journal, plan.seq, plan.total)
        if read:
            self.shard.fold(*event_rows(read_range(self.agent.service, asked)))
            if received:
                self.agent.service.received(asked)

    def end(self) -> None:
        """Everything works from now on."""
        self.agent.look()
        while (plan := self.reader.plan()).again or plan.seq > self.reader.at[1]:
            self.micro_batch()
        self.agent.close()
        self.log.close()
        self.directory.release()


steps = ["append", "truncate", "look", "micro_batch", "lost_read", "lost_received", "lost_commit", "agent_anew", "run_anew", "trim"]


@given(st.lists(st.sampled_from(["append", "micro_batch", *steps]), max_size=30))
def test_whatever_is_lost_on_the_way_is_counted_once(steps: list[str]) -> None:
    with scratch() as directory:
        course = Course(Path(directory))
        for step in steps:
            getattr(course, step)()
        course.end()
    (state,) = [state for key, state in course.shard.states.items() if key.topic]
    assert (state.appended_records, state.log_end_offset) == (course.appended, course.log.log_end_offset)
    assert not any(state.skipped_bytes)


def test_a_reader_without_an_id_plans_no_further_than_the_journal(agent: Agent) -> None:
    Reader(agent).begin()
    end = agent.journal.end().seq
    for after in (end + 1, 10**9):
        with pytest.raises(AgentError, match=f"a plan after {after} of a journal that ends at {end}"):
            agent.service.plan(PlanRequest("", "run", agent.journal.id, after, None, 0))
    assert agent.service.plan(PlanRequest("", "run", agent.journal.id, end, None, 0)).seq == end


def test_messages_of_another_journal_are_heard_and_change_nothing(agent: Agent) -> None:
    reader = Reader(agent).begin()
    before = agent.consumers.committed("job")
    agent.service.received(Range("job", "run 1", "another", -1, 0, 10**6))
    agent.service.committed(Committed("job", "run 1", "another", 10**6))
    assert agent.consumers.committed("job") == before
    assert isinstance(reader.plan(), Plan)


def test_a_log_that_is_deleted_for_good_is_in_no_census(agent: Agent, log: PartitionLog, tmp_path: Path) -> None:
    reader = Reader(agent).begin()
    assert Kind.CENSUS in kinds(reader.step())
    log.rename(f"{log.name}.{0:032x}-delete")
    agent.look()
    agent.look()
    found = kinds(Reader(agent, "another").begin().step())
    assert (Kind.CENSUS in found, Kind.CENSUS_END in found) == (False, True)


# --- logs that are empty now


def test_a_log_that_was_emptied_while_its_journal_was_lost_says_where_it_ends_and_what_is_missing(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader, shard = Reader(agent), Shard()
    shard.fold(*reader.begin().step())
    log.append(batch(2))
    log.roll()
    log.delete_records(5)
    log.config = LogConfig(compacted=True, retention_ms=-1)
    log.delete_old_segments(NOW)
    log.unlink_deleted(NOW + 10**6)
    agent.lose_journal()
    reader.register(resumed=True)
    agent.look()
    shard.fold(*reader.step())
    (state,) = shard.states.values()
    assert (state.log_end_offset, state.appended_records, state.truncations) == (5, 3, 0)
    assert state.skipped_bytes[SKIP_REASONS.index("agent_lost")] == 2 * state.appended_bytes // 3
    log.append(batch(4))
    agent.look()
    shard.fold(*reader.step())
    (after,) = shard.states.values()
    assert (after.log_end_offset, after.appended_records, after.skipped_bytes) == (9, 7, state.skipped_bytes)


def test_a_log_whose_last_batches_were_cleaned_unread_says_where_it_ends(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(3))
    reader, shard = Reader(agent), Shard()
    shard.fold(*reader.begin().step())
    agent.close()
    log.append(batch(2))
    log.roll()
    compact(log, 0, {0})
    agent.open()
    reader.register()
    agent.look()
    shard.fold(*reader.step())
    (state,) = shard.states.values()
    assert (state.log_end_offset, state.appended_records, state.truncations, sum(state.skipped_bytes)) == (5, 3, 0, 0)


def test_a_job_that_has_lost_its_offsets_and_its_state_begins_anew(agent: Agent, log: PartitionLog) -> None:
    reader = Reader(agent).begin()
    log.append(batch(3))
    agent.look()
    reader.step()
    reader.commit()
    log.append(batch(2))
    agent.look()
    emptied = Reader(agent)
    emptied.run = "run 2"
    emptied.begin()
    assert sum(row.records for row in emptied.step()) == sum(entry.records for segment in log.segments for entry in segment.entries)


def test_a_job_that_registered_and_died_before_its_first_micro_batch_has_lost_nothing(agent: Agent, log: PartitionLog) -> None:
    Reader(agent).begin()
    before = agent.journal.end().seq
    again = Reader(agent)
    again.run = "run 2"
    again.register()
    assert agent.watcher.caught_up is False
    agent.look()
    kinds = [event.kind for _, event in events_of(agent.journal, before, agent.journal.end().seq)]
    assert Kind.APPEARED not in kinds
    assert sum(row.records for row in again.step()) == sum(entry.records for segment in log.segments for entry in segment.entries)
