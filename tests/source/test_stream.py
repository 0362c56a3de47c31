"""The stream reader with real agents, without Spark: what it plans, asks for and hands on."""

import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pyspark.sql.streaming.datasource import ReadMaxBytes

from streaming.broker.protocol.consumer_messages import NOT_BEGUN, Plan
from streaming.common.event_row import EVENTS
from streaming.common.pace import WorkCheck, last_check
from streaming.common.rows import ROWS, Kind, unpack_rows
from streaming.errors import AgentError
from streaming.simulator.log import PartitionLog
from streaming.spark.job.counting import Counting
from streaming.spark.source import agent_connections as agents_module
from streaming.spark.source import stream as stream_module
from streaming.spark.source.counted_file import LogColumns, write_counted
from streaming.spark.source.job_options import parse_options
from streaming.spark.source.stream import EventStreamReader, Hurry, Turns
from tests.agents import Agent
from tests.builders import batch, log_dir, partition
from tests.events import Shard
from tests.ports import free_ports
from tests.source.event_reading import ALL, SHARDS, Stream, agent_has_seen, next_batch, read, reader_of, ready, records
from tests.tables import each_row


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that is away is given up at once."""
    monkeypatch.setattr(agents_module, "PATIENCE_SECONDS", 0.0)


# --- plans


def test_looks_are_noted_and_counted_in_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that fails whenever it is started looks once each time, and that is no sign of health."""
    monkeypatch.setattr("streaming.spark.source.agent_connections._job_logs", False)  # put back, for what others log
    checks = tmp_path / "checks"
    for _ in range(3):
        reader_of("127.0.0.1:1", checks=checks).latestOffset({}, ALL)
        first = last_check(checks)
        assert first is not None
        assert (first.number, first.idle) == (1, True)
    reader = reader_of("127.0.0.1:1", checks=checks)
    reader.latestOffset({}, ALL)
    reader.latestOffset({}, ALL)
    second = last_check(checks)
    assert second is not None
    assert second.number == 2
    assert second.at >= first.at


def test_a_look_that_cannot_be_noted_fails_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("streaming.spark.source.agent_connections._job_logs", False)
    assert reader_of("127.0.0.1:1", checks=tmp_path / "gone" / "checks").latestOffset({}, ALL) == {}
    assert "the time of the last plan cannot be written" in caplog.messages


class Waits:
    """In the place of the pauses of a paced reader: what each look asked of the next one."""

    def __init__(self, reader: EventStreamReader, schedule: Path) -> None:
        self.asked: list[Hurry] = []
        turns = reader._turns = Turns(schedule, lambda: 0.0, lambda _: None)
        turns._due = lambda: 0.0  # type: ignore[method-assign]
        checked = turns.checked

        def note(hurry: Hurry, *, idle: bool) -> WorkCheck:
            self.asked.append(hurry)
            return checked(hurry, idle=idle)

        turns.checked = note  # type: ignore[method-assign]


def test_a_consumer_that_registers_is_asked_for_again_soon_and_one_that_has_all_is_not(
    agent: Agent, log: PartitionLog, tmp_path: Path
) -> None:
    with agent.served() as address:
        reader = reader_of(address, schedule=tmp_path / "schedule")
        waits = Waits(reader, tmp_path / "schedule")
        end = next_batch(reader, {})
        assert waits.asked[0] is Hurry.SOON
        read(reader, {}, end)
        reader.commit(end)
        waits.asked.clear()
        log.append(batch(2))
        following = next_batch(reader, end)
        assert waits.asked[-1] is Hurry.NOT
        assert reader.latestOffset(end, ALL) == following  # nothing has arrived since
        read(reader, end, following)


def test_a_plan_that_was_cut_is_followed_by_the_next_one_at_once(agent: Agent, log: PartitionLog, tmp_path: Path) -> None:
    with agent.served() as address:
        reader = ready(reader_of(address, schedule=tmp_path / "schedule"))
        reader._takes_all, reader._targets = False, None
        waits = Waits(reader, tmp_path / "schedule")
        for _ in range(3):
            agent.journal.reach(0, None)  # reported: the next append is an event of its own
            log.append(batch(1, value_bytes=2000))
            agent_has_seen(agent, log)
        end: dict[str, Any] = {}
        while end.get("a1", {}).get("total") != log.active.size:
            following = next_batch(reader, end, ReadMaxBytes(log.active.entries[-1].size))
            read(reader, end, following)
            reader.commit(following)
            end = following
        assert waits.asked[0] is Hurry.NOW
        while waits.asked[-1] is Hurry.NOW:  # what is behind the last byte
            following = reader.latestOffset(end, ReadMaxBytes(1 << 20))
            read(reader, end, following)
            reader.commit(following)
            end = following
        assert reader.latestOffset(end, ReadMaxBytes(1 << 20)) is end
        assert waits.asked[-1] is Hurry.NOT


@each_row(
    ("plan", "budget", "hurry"),
    [
        (Plan("a1", "j", 4, 9, 500, more=True), 1000, Hurry.NOW),
        (Plan("a1", "j", 4, 9, 900), 1000, Hurry.NOT),
        (Plan("a1", "j", 4, 9, 5000, more=True), None, Hurry.NOT),
        (Plan("a1", "j", -1, NOT_BEGUN, 0), 1000, Hurry.SOON),
    ],
)
def test_what_a_plan_asks_of_the_next_look(plan: Plan, budget: int | None, hurry: Hurry) -> None:
    assert stream_module._hurry([plan], budget, waits=False) is hurry
    assert stream_module._hurry([plan], budget, waits=True) is (Hurry.NOW if hurry is Hurry.NOW else Hurry.SOON)


def test_a_run_that_ends_by_itself_never_waits(agent: Agent, tmp_path: Path) -> None:
    with agent.served() as address:
        reader = ready(reader_of(address, schedule=tmp_path / "schedule"))
        reader._turns.wait = pytest.fail  # type: ignore[assignment]
        end = next_batch(reader, {})
        assert reader.latestOffset(end, ALL) is end


def test_one_that_spark_has_left_looks_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.spark.source.agent_connections._job_logs", False)
    reader, checks = reader_of("127.0.0.1:1", schedule=tmp_path / "schedule", checks=tmp_path / "checks"), tmp_path / "checks"
    reader._turns.wait = lambda: False  # type: ignore[method-assign]
    start: dict[str, Any] = {}
    assert reader.latestOffset(start, ALL) is start
    assert not checks.exists()


def test_it_begins_before_everything_without_asking_anyone() -> None:
    assert reader_of("nobody:1").initialOffset() == {}
    assert reader_of("nobody:1", max_bytes=77).getDefaultReadLimit() == ReadMaxBytes(77)


def test_what_is_there_is_planned_read_and_not_planned_again(agent: Agent) -> None:
    with agent.served() as address:
        reader = ready(reader_of(address))
        end = next_batch(reader, {})
        assert records(read(reader, {}, end)) == 3
        assert list(end) == ["a1"]
        assert reader.latestOffset(end, ALL) is end


def test_a_limit_is_shared_and_without_one_everything_comes(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        reader = ready(reader_of(address))
        reader._takes_all, reader._targets = False, None  # a stream that does not end
        for _ in range(3):
            agent.journal.reach(0, None)  # reported: the next append is an event of its own
            log.append(batch(1, value_bytes=2000))
            agent_has_seen(agent, log)
        all_at_once = next_batch(reader, {})
        size = log.active.entries[-1].size
        end: dict[str, Any] = {}
        steps: list[int] = []
        while sum(steps) < 6:
            following = next_batch(reader, end, ReadMaxBytes(size))
            steps.append(records(read(reader, end, following)))
            reader.commit(following)
            end = following
        assert max(steps) == 3  # the first event holds what was there
        assert all_at_once["a1"]["total"] == end["a1"]["total"] == log.active.size


def test_rows_that_did_not_arrive_are_planned_again_only_of_an_agent_that_still_answers(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A task waits for planned rows: each of one that plans and then stalls would hold up a micro-batch."""
    counting = Counting(tmp_path / "counted", 0)
    counting.keep()

    def stall(_: object) -> None:
        raise AgentError("it does not answer")

    with agent.served() as address:
        reader = reader_of(address, counted=tmp_path / "counted")
        end = next_batch(reader, {})
        reader._recalls = False
        again = reader.latestOffset(end, ALL)
        assert again["a1"]["turn"] == end["a1"]["turn"] + 1, "it answers, and its rows did not arrive"
        monkeypatch.setattr(reader, "_status", stall)
        assert reader.latestOffset(again, ALL) is again


def test_an_agent_that_never_answers_holds_nobody_up(agent: Agent) -> None:
    with agent.served() as address:
        reader, shard = reader_of("127.0.0.1:1", address), Shard()
        end: dict[str, Any] = {}
        while not any(state.appended_records == 3 for state in shard.states.values()):
            following = next_batch(reader, end)
            shard.fold(*read(reader, end, following))
            reader.commit(following)
            end = following


@pytest.mark.usefixtures("soon")
def test_without_any_answer_the_start_stays_and_nothing_is_raised() -> None:
    reader, start = reader_of("127.0.0.1:1"), {"a1": {"journal": "j", "after": 0, "seq": 1, "total": 1, "turn": 0}}
    recalled = reader.latestOffset(start, ALL)
    assert reader.latestOffset(recalled, ALL) is recalled
    reader.commit(recalled)
    end = recalled | {"a1": {"journal": "j", "after": 1, "seq": 2, "total": 1, "turn": 0}}
    assert read(reader, recalled, end) == []


START = {"a1": {"journal": "j", "after": 0, "seq": 1, "total": 1, "turn": 0}}


def test_a_run_that_goes_on_recalls_every_shard_before_its_first_rows_though_no_agent_answers() -> None:
    reader = reader_of("127.0.0.1:1", shards=40)
    at, found = START, []
    while (end := reader.latestOffset(at, ALL)) is not at:
        tasks = reader.partitions(at, end)
        assert reader_of("127.0.0.1:1", shards=40).partitions(at, end) == tasks  # another run that plans it again recalls the same
        rows = [each for task in tasks for found in reader.read(task) for each in found.to_pylist()]
        assert {kind for each in rows for kind in unpack_rows(each[ROWS], EVENTS)["kind"].to_pylist()} == {Kind.RECALL}
        found.append([each["shard"] for each in rows])
        assert {name: end[name] for name in START} == START
        at = end
    assert found == [list(range(16)), list(range(16, 32)), list(range(32, 40))]


def test_what_is_recalled_is_not_paced() -> None:
    reader = reader_of("127.0.0.1:1", shards=40)
    at = START
    for _ in range(3):
        at, hurry = reader._latest(at, ALL)
        assert hurry is Hurry.NOW


def test_each_run_recalls_once_and_a_new_checkpoint_nothing() -> None:
    first = reader_of("127.0.0.1:1")
    assert first.latestOffset({}, ALL) == {}
    assert first.latestOffset(START, ALL) is START  # planned by this run
    end = reader_of("127.0.0.1:1").latestOffset(START, ALL)
    again = reader_of("127.0.0.1:1").latestOffset(end, ALL)
    assert end != again
    assert [each.recalled for each in first.partitions(end, again)] == [range(SHARDS)]


def test_an_agent_without_an_address_yet_is_waited_for(tmp_path: Path, agent: Agent) -> None:
    reader = EventStreamReader(parse_options({"address_file": str(tmp_path / "address"), "consumer": "job", "start_from": "earliest"}))
    assert reader.latestOffset({}, ALL) == {}
    with agent.served() as address:
        (tmp_path / "address").write_text(address)
        assert list(next_batch(reader, {})) == ["a1"]


# --- reading


def test_an_agent_that_comes_back_at_another_address_is_found_there(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "address"
    reader = EventStreamReader(parse_options({"address_file": str(file), "consumer": "job", "start_from": "earliest", "shards": "4"}))
    with agent.served() as address:
        file.write_text(address)
        end = next_batch(ready(reader), {})
    with ExitStack() as stack:
        pauses = []

        def come_back(_: float) -> None:
            pauses.append(1)
            if len(pauses) == 2:
                file.write_text(stack.enter_context(agent.served()))

        # of this module alone: other threads of the process sleep too
        monkeypatch.setattr(agents_module, "time", SimpleNamespace(monotonic=time.monotonic, sleep=come_back))
        rows = read(reader, {}, end)
    assert (records(rows), len(pauses)) == (3, 2)


@pytest.mark.usefixtures("soon")
def test_a_read_that_dies_is_delivered_with_the_next_one(agent: Agent, log: PartitionLog, tmp_path: Path) -> None:
    with agent.served() as address:
        stream = Stream(address, counted=tmp_path / "counted")
        first = next_batch(stream.reader, {})
    stream.take(first)
    assert stream.records == {}
    log.append(batch(2))
    with agent.served() as address:
        stream.start(address)
        stream.until(lambda records: records == {"orders": 5})
    assert stream.skipped == 0


@pytest.mark.usefixtures("soon")
def test_a_second_attempt_at_a_task_fails_rather_than_go_without_rows(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent may believe that the first one has handed them on."""
    with agent.served() as address:
        reader = ready(reader_of(address))
        end = next_batch(reader, {})
    monkeypatch.setattr(stream_module, "_attempt", lambda: 1)
    with pytest.raises(AgentError, match="agent a1 does not answer"):
        [list(reader.read(task)) for task in reader.partitions({}, end)]


def test_a_run_of_the_query_is_named_by_the_reader_that_plans(agent: Agent) -> None:
    with agent.served() as address:
        first, second = ready(reader_of(address)), reader_of(address)
        end = next_batch(first, {})
        runs = {asked.run for each in (first, second) for task in each.partitions({}, end) for asked in task.ranges.values()}
    assert len(runs) == 2


def test_two_agents_share_the_tasks(agent: Agent, tmp_path: Path) -> None:
    other_dir = log_dir(tmp_path, "d1")
    partition(other_dir, "bills").append(batch(2))
    other = Agent(other_dir.path, name="a2")
    with agent.served() as first, other.served() as second:
        reader = ready(reader_of(first, second))
        end = next_batch(reader, {})
        tasks = reader.partitions({}, end)
        assert [list(task.ranges) for task in tasks] == [["a1"], ["a2"]]
        assert {row.agent for row in read(reader, {}, end)} == {"a1", "a2"}
    other.close()


@pytest.mark.usefixtures("soon")
def test_one_of_two_agents_that_is_away_for_several_micro_batches_loses_nothing(agent: Agent, log: PartitionLog, tmp_path: Path) -> None:
    bills = partition(log_dir(tmp_path, "d1", broker=2), "bills")
    other, file = Agent(bills.directory.parent, name="a2"), tmp_path / "address"
    with other.served() as second:
        stream = Stream(second, counted=tmp_path / "counted", address_file=file)
        with agent.served() as address:
            file.write_text(address)
            stream.until(lambda records: records.get("orders") == 3)
        log.append(batch(4))
        for count in (1, 2, 3):
            bills.append(batch(1))
            stream.until(lambda records, count=count: records.get("bills") == count)
        agent.restart()
        with agent.served() as address:
            file.write_text(address)
            stream.until(lambda records: records["orders"] == 7)
    other.close()
    assert stream.skipped == 0


def test_an_agent_that_is_started_anew_under_a_living_stream_reads_on_where_the_job_has_counted(
    agent: Agent, log: PartitionLog, tmp_path: Path
) -> None:
    with agent.served() as address:
        stream = Stream(address, counted=tmp_path / "counted", start_from="latest")
        stream.until(lambda records: "orders" in records)
        log.append(batch(1))
        stream.until(lambda records: records == {"orders": 1})
    agent.restart()
    log.append(batch(2))
    with agent.served(port=int(address.partition(":")[2])):
        stream.until(lambda records: records == {"orders": 3})
        log.append(batch(4))
        stream.until(lambda records: records == {"orders": 7})
    assert stream.skipped == 0


def test_each_run_reads_on_where_the_states_are_whatever_was_planned_before(agent: Agent, log: PartitionLog, tmp_path: Path) -> None:
    """What was planned and is not in the states of the run that follows is counted, and what is there is not counted again."""
    with agent.served() as address:
        stream = Stream(address, counted=tmp_path / "counted")
        for count in range(2, 7):
            stream.until(lambda records, count=count: records.get("orders") == count + 1)
            log.append(batch(1))
            agent_has_seen(agent, log)
            following = next_batch(stream.reader, stream.end)
            if count % 2:
                read(stream.reader, stream.end, following)  # in a micro-batch that was not committed
            stream.start(address)
            if count % 3:
                stream.take(following)  # it is run again, by a run that the agent does not know
    assert stream.skipped == 0


@pytest.mark.parametrize("damage", [None, b"", b"nonsense"])
def test_without_what_is_counted_nothing_is_planned_and_nothing_is_lost(
    agent: Agent, log: PartitionLog, tmp_path: Path, damage: bytes | None
) -> None:
    with agent.served() as address:
        stream = Stream(address, counted=tmp_path / "counted")
        stream.until(lambda records: records == {"orders": 3})
        log.append(batch(2))
        agent_has_seen(agent, log)
        for begins_anew in (False, True):
            if begins_anew:
                stream.start(address)
                while stream.reader.latestOffset(stream.end, ALL) is not stream.end:
                    stream.step()  # it recalls
            if damage is None:
                stream.counted.unlink(missing_ok=True)
            else:
                stream.counted.write_bytes(damage)
            assert stream.reader.latestOffset(stream.end, ALL) is stream.end
            assert stream.reader._latest(stream.end, ALL)[1] is Hurry.SOON
        stream.keep()
        stream.until(lambda records: records == {"orders": 5})
    assert stream.skipped == 0


def test_an_older_file_brings_rows_twice_and_counts_them_once(agent: Agent, log: PartitionLog, tmp_path: Path) -> None:
    with agent.served() as address:
        stream = Stream(address, counted=tmp_path / "counted")
        stream.until(lambda records: records == {"orders": 3})
        older = stream.counted.read_bytes()
        log.append(batch(2))
        stream.until(lambda records: records == {"orders": 5})
        stream.counted.write_bytes(older)
        log.append(batch(1))
        agent_has_seen(agent, log)
        following = next_batch(stream.reader, stream.end)
        assert records(read(stream.reader, stream.end, following)) == 3
        stream.take(following)
        assert stream.records == {"orders": 6}
        stream.start(address)
        stream.step()
        stream.counted.write_bytes(older)  # of a registration, too: it begins before what is counted
        log.append(batch(1))
        stream.until(lambda records: records == {"orders": 7})
    assert stream.skipped == 0


def test_an_agent_that_is_renamed_at_its_address_is_met_anew(agent: Agent, log: PartitionLog, tmp_path: Path) -> None:
    """It is met anew: by the plans of one and the addresses of the other, nothing of it would ever arrive."""
    (port,) = free_ports(1)
    with agent.served(port=port) as address:
        stream = Stream(address, counted=tmp_path / "counted")
        stream.until(lambda records: records == {"orders": 3})
    log.append(batch(2))
    agent.look()
    log.truncate(3)
    agent.look()
    log.append(batch(4))
    agent.look()
    with agent.served(port=port):
        stream.until(lambda records: records == {"orders": 3 + 2 + 4})
    agent.name = "a2"
    agent.restart()
    log.append(batch(1))
    with agent.served(port=port):
        stream.until(lambda records: records == {"orders": 3 + 2 + 4 + 1})
    (counted,) = (state for key, state in stream.shard.states.items() if key.topic == "orders")
    assert (counted.truncations, stream.skipped) == (1, 0)


# --- everything there is


def test_available_now_ends_where_everything_was_when_it_began(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        reader = ready(reader_of(address))
        end = next_batch(reader, {})
        assert records(read(reader, {}, end)) == 3
        log.append(batch(2))
        agent_has_seen(agent, log)
        assert reader.latestOffset(end, ALL) is end


def test_available_now_reads_what_an_agent_has_no_more_room_for(agent: Agent, log: PartitionLog, tmp_path: Path) -> None:
    """It reads no further before the job has what is published: who waits for all of it first would wait for ever."""
    agent.journal.full_bytes = 1
    for _ in range(3):
        log.roll()
        log.append(batch(2))
    with agent.served() as address:
        stream = Stream(address, counted=tmp_path / "counted")
        stream.reader.prepareForTriggerAvailableNow()
        while (following := stream.reader.latestOffset(stream.end, ALL)) != stream.end:
            stream.take(following)
    assert stream.records == {"orders": 3 + 6}


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("options", [{"agents": "127.0.0.1:1"}, {"address_file": "/nowhere/address"}])
def test_everything_there_is_cannot_be_had_from_an_agent_that_is_away(options: dict[str, str]) -> None:
    with pytest.raises(AgentError, match="is it running"):
        ready(EventStreamReader(parse_options(options)))


def test_an_agent_that_was_started_anew_before_it_was_ready_is_registered_again(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new process does not know that anybody waits."""
    monkeypatch.setattr(stream_module, "REGISTER_AGAIN_SECONDS", 0.0)
    with agent.served() as address:
        reader = reader_of(address)
        reader._registered = {address: agent.service.status()}
        ready(reader)
        assert agent.jobs.place("", "job", reader._run) is not None


# --- who is new and who resumes


@pytest.mark.parametrize(("brokers", "begins"), [([], 3), ([7], 3), ([1], 0), ([7, 1], 0)])
def test_an_agent_begins_where_the_job_says_unless_something_of_its_brokers_is_counted(
    agent: Agent, log: PartitionLog, brokers: list[int], begins: int, tmp_path: Path
) -> None:
    """A log of these brokers that is not among the positions is one that came since, and all of it is wanted."""
    log.roll()
    log.append(batch(2))
    counted = tmp_path / "counted"
    write_counted(counted, {}, brokers, LogColumns([]).rows(np.empty(0, np.int64), np.empty(0, np.int64)))
    start = {"other": {"journal": "j", "after": 0, "seq": 5, "total": 9, "turn": 0}}
    with agent.served() as address:
        reader = reader_of(address, start_from="active", counted=counted)
        appeared: list[int] = []
        while not appeared:
            end = next_batch(reader, start)
            appeared = [row.next_offset for row in read(reader, start, end) if row.kind == Kind.APPEARED]
            start = end
    assert appeared == [begins]
