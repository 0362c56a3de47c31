"""The stream of agents, with real ones and without Spark: each row comes once, whatever happens to them and to the query."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from streaming.broker.agent.call_answers import answers
from streaming.broker.protocol.agent_calls import Call
from streaming.errors import AgentError, UsageError
from streaming.simulator.log import PartitionLog
from streaming.spark.source.public_stream import PublicStreamReader
from tests.agents import Agent, served
from tests.builders import NOW, abort, batch, commit, log_dir, partition
from tests.ports import free_ports
from tests.source.public_reading import everything, read, stream

ALL = ReadAllAvailable()


def appended(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return sorted((row["base_offset"], row["next_offset"]) for row in rows if row["kind"] == "appended")


def counted(rows: list[dict[str, Any]]) -> tuple[int, int]:
    return sum(row["records"] for row in rows), sum(row["bytes"] for row in rows)


def step(address: str, at: dict[str, Any], **options: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A micro-batch of a query that was started again from its checkpoint."""
    reader = stream(address, **options)
    end = reader.latestOffset(at, ALL)
    return ([], at) if end is at else (read(reader, at, end), end)


def test_what_lay_there_before_and_what_is_appended_comes_once(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        rows, at = everything(stream(address))
        assert counted(rows) == (3, log.active.size)
        assert at["1"]["offsets"] == {"orders": {"0": 3}}
        log.append(batch(4))
        more, at = everything(stream(address), at)
        assert [(row["kind"], row["records"], row["base_offset"]) for row in more] == [("appended", 4, 3)]
        assert everything(stream(address), at)[0] == []


def test_progress_says_how_far_the_logs_go(agent: Agent, log: PartitionLog) -> None:
    for _ in range(4):
        log.roll()
        log.append(batch(1))
    with agent.served() as address:
        reader = stream(address)
        assert reader.reportLatestOffset() is None
        end, there = reader.latestOffset({}, ReadMaxBytes(1)), reader.reportLatestOffset()
    assert there is not None
    assert (end["1"]["offsets"], there["1"]["offsets"]) == ({"orders": {"0": 3}}, {"orders": {"0": 7}})


def test_an_agent_is_asked_for_what_was_planned_as_often_as_spark_asks(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        _, at = everything(stream(address))
        log.append(batch(4))
        plans = stream(address)
        end = plans.latestOffset(at, ALL)
        rows = read(plans, at, end)
        log.append(batch(5))
        again = stream(address)  # the query was killed, and started again from its checkpoint
        assert read(again, at, end) == rows
        rest, _ = everything(again, end)
        assert [row["records"] for row in rest] == [5]


def test_an_agent_that_is_started_on_an_empty_directory_goes_on(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        rows, at = step(address, {})
        log.append(batch(4))
        end = stream(address).latestOffset(at, ALL)
    agent.restart()
    with agent.served() as address:
        rows += read(stream(address), at, end)
        log.append(batch(2))
        more, _ = step(address, end)
    assert appended(rows + more) == [(0, 3), (3, 7), (7, 9)]
    assert {row["kind"] for row in rows + more} == {"appended"}


def test_what_was_planned_waits_for_an_agent_that_ends_before_it_is_read(agent: Agent, log: PartitionLog) -> None:
    """It is not told as gone, whoever still seems to take part."""
    with agent.served() as address:
        reader = stream(address)
        end = reader.latestOffset({}, ALL)
    with pytest.raises(AgentError, match=r"orders-0 of broker 1 was planned, and no agent that answers has it: agent at .*nobody listens"):
        reader.partitions({}, end)
    with agent.served(port=int(address.rpartition(":")[2])):
        waiting = PublicStreamReader(reader._options)  # for as long as it takes
        assert appended(read(waiting, {}, end)) == [(0, 3)]


def test_a_task_reads_from_its_agent_wherever_that_has_come_back_and_from_no_other(
    agent: Agent, log: PartitionLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streaming.spark.source.agent_stream.READ_SECONDS", 0.0)
    (later,) = free_ports(1)
    other = Agent(*agent.paths, name="a2")
    with agent.served() as address:
        reader = stream(f"{address},127.0.0.1:{later}")
        tasks = reader.partitions({}, reader.latestOffset({}, ALL))
    assert len(tasks) == 1
    with other.served(port=int(address.rpartition(":")[2])):
        with pytest.raises(AgentError, match=rf"agent at 127\.0\.0\.1:{later}: nobody listens"):
            list(reader.read(tasks[0]))
        with agent.served(port=later):
            assert appended([row for found in reader.read(tasks[0]) for row in found.to_pylist()]) == [(0, 3)]
    other.close()


@pytest.mark.parametrize("relation", ["batches", "ranges"])
def test_a_backlog_of_many_segments_comes_in_parts_and_whole(agent: Agent, log: PartitionLog, relation: str) -> None:
    for _ in range(5):
        log.append(batch(4), batch(1))
        log.roll()
    with agent.served() as address:
        rows, at = everything(stream(address, relation=relation, maxBytesPerTrigger=500))
        sizes = [row["size"] if relation == "batches" else row["bytes"] for row in rows]
        assert sum(sizes) == sum(segment.size for segment in log.segments)
        assert sum(row["records"] for row in rows) == 28
        assert everything(stream(address, relation=relation), at)[0] == []


def test_batches_come_one_by_one_of_what_is_appended(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        _, at = everything(stream(address, relation="batches"))
        log.append(batch(4), batch(1, producer=7, sequence=3))
        rows, _ = everything(stream(address, relation="batches"), at)
    found = [(row["base_offset"], row["records"], row["producer_id"], row["base_sequence"]) for row in rows]
    assert found == [(3, 4, None, None), (7, 1, 7, 3)]


def test_transactions_come_when_they_end_with_what_they_wrote_in_micro_batches_before(agent: Agent, log: PartitionLog) -> None:
    options = {"relation": "transactions"}
    with agent.served() as address:
        log.append(batch(2, producer=7, transactional=True))
        size = log.active.size
        rows, at = everything(stream(address, **options))
        log.append(batch(4, producer=8, transactional=True), batch(1, producer=7, sequence=2, transactional=True))
        more, at = everything(stream(address, **options), at)
    agent.restart()  # what is open is found on disk
    with agent.served() as address:
        log.append(commit(7), abort(8))
        last, _ = everything(stream(address, **options), at)
    assert rows + more == []
    assert [(row["kind"], row["producer_id"], row["first_offset"], row["last_offset"], row["marker_offset"]) for row in last] == [
        ("committed", 7, 3, 9, 10),
        ("aborted", 8, 5, 8, 11),
    ]
    assert size > last[0]["bytes"] > 0


@pytest.mark.parametrize(("position", "records"), [("latest", []), ("active", [2]), ("earliest", [3, 2])])
def test_where_a_query_begins(agent: Agent, log: PartitionLog, position: str, records: list[int]) -> None:
    log.roll()
    log.append(batch(2))
    with agent.served() as address:
        rows, at = step(address, {}, startingPosition=position)
        log.append(batch(5))
        more, _ = step(address, at, startingPosition=position)
    assert [row["records"] for row in rows + more] == [*records, 5]


def test_from_a_time_on(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(1, timestamp=NOW + 1000), batch(2, timestamp=NOW + 2000))
    with agent.served() as address:
        rows, _ = step(address, {}, startingPosition=None, startingTimestamp=NOW + 1500, relation="batches")
    assert [row["base_offset"] for row in rows] == [4]


def test_what_is_gone_when_it_is_read_comes_as_skipped(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        _, at = everything(stream(address, relation="batches"))
        log.append(batch(4))
        plans = stream(address, relation="batches")
        end = plans.latestOffset(at, ALL)
        tasks = plans.partitions(at, end)
        size = log.segments[0].size
        log.roll()
        log.append(batch(1))
        log.delete_records(7)
        log._delete_segments(1, 0)
        log.unlink_deleted(10**15)
        late = [row for task in tasks for found in plans.read(task) for row in found.to_pylist()]
        rows = read(plans, at, end)
    assert [(row["kind"], row["reason"], row["segment"]) for row in late] == [("skipped", "deleted", 0)]
    assert [(row["kind"], row["reason"], row["base_offset"], row["last_offset"]) for row in rows] == [
        ("skipped", "deleted: 4 offsets; their bytes are an estimate", 3, 6)
    ]
    for row in (*late, *rows):
        assert 0 < row["missing_bytes"] < size


def test_a_log_that_is_cut_off_or_gone_is_said(agent: Agent, log: PartitionLog) -> None:
    log.append(batch(4))
    with agent.served() as address:
        _, at = step(address, {})
        log.truncate(3)
        log.append(batch(9), leader_epoch=2)
        rows, at = step(address, at)
        log.rename(f"{log.name}.{0:032x}-delete")
        gone, at = step(address, at)
        assert step(address, at) == ([], at)
    assert [(row["kind"], row["base_offset"], row["next_offset"]) for row in rows] == [("appended", 3, 12), ("truncated", None, 3)]
    assert [(row["kind"], row["topic"], row["reason"], row["missing_bytes"]) for row in gone] == [("gone", "orders", "deleted", 0)]


@pytest.mark.parametrize(("unwanted", "selected"), [("orders", {"topicsPattern": "pay.*"}), ("__cluster_metadata", {})])
def test_only_what_was_selected_comes_and_the_rest_makes_no_micro_batch(tmp_path: Path, unwanted: str, selected: dict[str, str]) -> None:
    disk = log_dir(tmp_path)
    log, other = partition(disk, unwanted), partition(disk, "payments", topic_id=2)
    log.append(batch(3))
    other.append(batch(2))
    agent = Agent(disk.path)
    with agent.served() as address:
        rows, at = everything(stream(address, **selected))
        assert [(row["topic"], row["records"]) for row in rows] == [("payments", 2)]
        log.append(batch(4))
        assert step(address, at, **selected) == ([], at)
        other.append(batch(1))
        assert [(row["topic"], row["records"]) for row in step(address, at, **selected)[0]] == [("payments", 1)]
        assert step(address, at, topics=unwanted)[0][0]["topic"] == unwanted, "what is selected no more is not gone"
    agent.close()


def test_the_metadata_log_comes_if_it_is_named(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    partition(disk, "__cluster_metadata").append(batch(3))
    agent = Agent(disk.path)
    with agent.served() as address:
        assert counted(step(address, {}, topics="__cluster_metadata")[0])[0] == 3
    agent.close()


def test_a_query_of_which_no_agent_answers_says_so() -> None:
    for make_all in (False, True):
        reader = stream("127.0.0.1:1")
        if make_all:
            reader.prepareForTriggerAvailableNow()
        with pytest.raises(AgentError, match=r"127\.0\.0\.1:1"):
            reader.latestOffset({}, ALL)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_query_that_begins_with_topics_that_are_nowhere_says_so(agent: Agent, log: PartitionLog, at_once: bool) -> None:
    with agent.served() as address:
        reader = stream(address, topics="ordres")
        if at_once:
            reader.prepareForTriggerAvailableNow()
        with pytest.raises(UsageError, match=r"option topics: no partition fits; did you mean orders\?"):
            reader.latestOffset({}, ALL)


def test_a_query_begins_if_its_topics_may_be_where_nobody_answers(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        assert stream(f"{address},127.0.0.1:1", topics="ordres").latestOffset({}, ALL)


def test_a_pattern_waits_for_topics_and_misses_nothing_of_them(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    agent = Agent(disk.path)
    options = {"topicsPattern": "pay.*", "startingPosition": "latest"}
    with agent.served() as address:
        rows, at = step(address, {}, **options)
        partition(disk, "payments").append(batch(2))
        more, _ = step(address, at, **options)
        assert (rows, [row["topic"] for row in more]) == ([], ["payments"])
    agent.close()


def test_available_now_ends_where_the_logs_ended_at_first(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "orders")
    for _ in range(3):
        log.append(batch(1))
        log.roll()
    agent = Agent(disk.path)
    with agent.served() as address:
        reader = stream(address)
        reader.prepareForTriggerAvailableNow()
        at, rows = {}, []
        while (end := reader.latestOffset(at, ReadMaxBytes(1))) is not at:
            rows += read(reader, at, end)
            at = end
            log.append(batch(1))
            partition(disk, f"late{len(rows)}", topic_id=50 + len(rows)).append(batch(1))
    agent.close()
    assert appended(rows) == [(0, 1), (1, 2), (2, 3)]


def test_a_plan_that_found_nothing_lets_time_pass_before_the_next(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        _, at = everything(stream(address))
        reader = stream(address)
        clock: Any = reader._clock
        assert reader.latestOffset(at, ALL) is at
        assert sum(clock.slept) == 0
        assert reader.latestOffset(at, ALL) is at
        assert sum(clock.slept) > 0.5


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        ({"": "query 7", "a1": {"journal": "j", "seq": 3, "total": 9, "excerpts": 0}}, "is of no version of positions"),
        ({"1": {"version": 9}}, "is of version 9"),
        ({"records": {"version": 1, "offsets": {}, "epochs": {}, "topic_ids": {}, "begins": {}}}, "is of another relation"),
    ],
)
def test_an_offset_that_is_none_of_positions_is_refused_with_what_to_do(offset: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=rf"the checkpoint's offset {words}.*: begin the query with a new checkpointLocation"):
        stream("127.0.0.1:1").latestOffset(offset, ALL)


# --- several agents


@pytest.fixture
def halves(tmp_path: Path) -> Any:
    """A broker with two log dirs, each with an agent of its own."""
    disks = [log_dir(tmp_path, name) for name in ("d0", "d1")]
    logs = [partition(each, topic, topic_id=1 + number) for number, (each, topic) in enumerate(zip(disks, "tu", strict=True))]
    for each in logs:
        each.append(batch(3))
    agents = [Agent(each.path, name=each.path.name) for each in disks]
    yield disks, logs, agents
    for agent in agents:
        agent.close()


def test_agents_that_share_a_broker_answer_for_what_each_has(halves: Any) -> None:
    disks, logs, agents = halves
    with agents[0].served() as first:
        with agents[1].served() as second:
            both = f"{first},{second}"
            rows, at = step(both, {})
            assert sorted(row["topic"] for row in rows) == ["t", "u"]
            assert at["1"]["offsets"] == {"t": {"0": 3}, "u": {"0": 3}}
        logs[0].append(batch(1))
        rows, at = step(both, at)
        assert [(row["kind"], row["topic"]) for row in rows] == [("appended", "t")], "who does not answer may have the other"
        with pytest.raises(AgentError, match=r"u-0 of broker 1 was planned, and no agent that answers has it: agent at .*nobody listens"):
            stream(both).partitions({}, at)
    (logs[1].directory).rename(disks[0].path / "u-0")  # moved to the other agent's log dir
    with agents[0].served() as first, agents[1].served() as second:
        rows, at = step(f"{first},{second}", at)
        assert rows == []
        (disks[0].path / "u-0").rename(disks[0].path / f"u-0.{0:032x}-delete")
        reader = stream(f"{first},{second}")
        assert reader.latestOffset(at, ALL) is at, "it may be on its way from the one to the other"
        rows = read(reader, at, reader.latestOffset(at, ALL))
        assert [(row["kind"], row["topic"]) for row in rows] == [("gone", "u")]


def test_two_agents_on_the_same_log_dirs_are_read_once(agent: Agent, log: PartitionLog, tmp_path: Path) -> None:
    other = Agent(*agent.paths, name="a2")
    with agent.served() as first, other.served() as second:
        rows, at = step(f"{first},{second}", {})
        log.append(batch(2))
        more, _ = step(f"{first},{second}", at)
    other.close()
    assert appended(rows + more) == [(0, 3), (3, 5)]


def test_an_agent_with_the_log_dirs_of_several_brokers_has_a_position_for_each(tmp_path: Path) -> None:
    disks = [log_dir(tmp_path, f"d{broker}", broker=broker) for broker in (1, 2)]
    logs = [partition(each, "t") for each in disks]
    for number, each in enumerate(logs):
        each.append(batch(2 + number))
    agent = Agent(*(each.path for each in disks))
    with agent.served() as address:
        rows, at = step(address, {})
        assert sorted((row["broker"], row["records"]) for row in rows) == [(1, 2), (2, 3)]
        assert {key: each["offsets"] for key, each in at.items()} == {"1": {"t": {"0": 2}}, "2": {"t": {"0": 3}}}
        logs[1].append(batch(1))
        assert [(row["broker"], row["base_offset"]) for row in step(address, at)[0]] == [(2, 3)]
    agent.close()


def test_an_agent_that_comes_later_begins_where_the_query_begins(tmp_path: Path) -> None:
    disks = [log_dir(tmp_path, f"d{broker}", broker=broker) for broker in (1, 2)]
    for each in disks:
        partition(each, "t").append(batch(2))
    agents = [Agent(each.path, name=each.path.name) for each in disks]
    with ExitStack() as stack:
        first = stack.enter_context(agents[0].served())
        _, at = step(first, {}, startingPosition="latest")
        second = stack.enter_context(agents[1].served())
        rows, at = step(f"{first},{second}", at, startingPosition="latest")
        assert (rows, sorted(at)) == ([], ["1", "2"])
    for agent in agents:
        agent.close()


def test_another_cluster_does_not_take_part(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address, pytest.raises(AgentError, match=r"it watches cluster .*, this job cluster other"):
        stream(address, cluster_id="other").latestOffset({}, ALL)


def test_an_agent_of_before_positions_says_so_in_a_sentence(agent: Agent, log: PartitionLog) -> None:
    known = {call: each for call, each in answers(replace(agent.service)).items() if call not in (Call.REACH, Call.BETWEEN)}
    agent.look()
    words = "this agent knows no call 'reach': are job and agent of the same version"
    with served(known) as address, pytest.raises(AgentError, match=words):
        stream(address).latestOffset({}, ALL)
