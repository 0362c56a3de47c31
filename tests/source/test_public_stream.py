"""The public stream with real agents, without Spark: what it plans, and that each row comes once, whatever is run again."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from streaming.broker.protocol.consumer_messages import Register
from streaming.errors import AgentError, UsageError
from streaming.simulator.log import PartitionLog
from streaming.spark.source.public_options import parse_public_options
from streaming.spark.source.public_stream import PublicStreamReader
from tests.agents import Agent, Reader
from tests.builders import abort, batch, commit, log_dir, partition
from tests.source.public_reading import Clock, everything, read, stream

ALL = ReadAllAvailable()


def appended(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return sorted((row["base_offset"], row["next_offset"]) for row in rows if row["kind"] == "appended")


def counted(rows: list[dict[str, Any]]) -> tuple[int, int]:
    return sum(row["records"] for row in rows), sum(row["bytes"] for row in rows)


def test_what_lay_there_before_and_what_is_appended_comes_once(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        rows, at = everything(stream(address, consumer="q"))
        assert counted(rows) == (3, log.active.size)
        log.append(batch(4))
        more, at = everything(stream(address, consumer="q"), at)
        assert [(row["kind"], row["records"], row["base_offset"]) for row in more] == [("appended", 4, 3)]
        assert everything(stream(address, consumer="q"), at)[0] == []


def test_a_micro_batch_that_is_run_again_reads_the_same_rows(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        first = stream(address, consumer="q")
        _, at = everything(first)
        log.append(batch(4))
        plans = stream(address, consumer="q")
        plans.prepareForTriggerAvailableNow()
        end = plans.latestOffset(at, ALL)
        rows = read(plans, at, end)
        log.append(batch(5))
        again = stream(address, consumer="q")  # the query was killed, and started again from its checkpoint
        assert read(again, at, end) == rows
        rest, _ = everything(again, end)
        assert [row["records"] for row in rest] == [5]


def test_what_another_job_has_published_again_does_not_come_again(agent: Agent, log: PartitionLog) -> None:
    reader = Reader(agent, start_from="latest").begin()
    reader.step()
    with agent.served() as address:
        _, at = everything(stream(address, startingPosition="latest"))
        log.append(batch(4))
        agent.service.register(Register("other", "earliest", resumed=False))
        rows, at = everything(stream(address, startingPosition="latest"), at)
        assert appended(rows) == [(3, 7)]


def test_a_later_beginning_of_a_job_gives_no_row_twice_although_the_log_is_published_again(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        rows, at = everything(stream(address, consumer="q"))
        agent.service.register(Register("job", "earliest", resumed=False))
        log.append(batch(2))
        more, _ = everything(stream(address, consumer="q"), at)
        assert appended(rows + more) == [(0, 3), (3, 5)]


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
    with agent.served() as address:
        options = {"relation": "transactions", "consumer": "q"}
        log.append(batch(2, producer=7, transactional=True))
        size = log.active.size
        rows, at = everything(stream(address, **options))
        assert rows == []
        log.append(batch(4, producer=8, transactional=True), batch(1, producer=7, sequence=2, transactional=True))
        more, at = everything(stream(address, **options), at)
        log.append(commit(7), abort(8))
        last, _ = everything(stream(address, **options), at)
    assert rows + more == []
    assert [(row["kind"], row["producer_id"], row["first_offset"], row["last_offset"], row["marker_offset"]) for row in last] == [
        ("committed", 7, 3, 9, 10),
        ("aborted", 8, 5, 8, 11),
    ]
    assert size > last[0]["bytes"] > 0


def test_an_agent_that_forgot_what_is_open_finds_it_on_disk(agent: Agent, log: PartitionLog) -> None:
    options = {"relation": "transactions", "consumer": "q"}
    log.append(batch(2, producer=7, transactional=True))
    with agent.served() as address:
        _, at = everything(stream(address, **options))
    agent.restart()
    log.append(commit(7))
    with agent.served() as address:
        rows, _ = everything(stream(address, **options), at)
    assert [(row["kind"], row["first_offset"], row["bytes"] > 0) for row in rows] == [("committed", 3, True)]


def test_a_reader_without_a_name_holds_up_no_journal_and_says_what_it_has_missed(agent: Agent, log: PartitionLog) -> None:
    job = Reader(agent).begin()  # it has read everything: the journal keeps nothing for it
    job.step()
    with agent.served() as address:
        everything(stream(address, consumer="q"))
        _, at = everything(stream(address))
    log.append(batch(4))
    missed = log.active.size
    agent.look()
    job.step()
    agent.trim()
    assert agent.journal.trimmed().seq < agent.journal.end().seq  # kept for q
    agent.consumers.forget("reader q")
    agent.trim()
    with agent.served() as address:
        log.append(batch(5))
        rows, _ = everything(stream(address), at)
    assert [(row["kind"], row["records"], row["missing_bytes"] > 0) for row in rows] == [("skipped", 0, True), ("appended", 5, False)]
    assert rows[0]["reason"] == "journal_trimmed"
    assert rows[0]["missing_bytes"] < missed


def test_an_agent_that_lost_its_journal_says_so_and_gives_nothing_twice(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        _, at = everything(stream(address, consumer="q"))
    agent.lose_journal()
    with agent.served() as address:
        rows, at = everything(stream(address, consumer="q"), at)
        assert [(row["kind"], row["missing_bytes"]) for row in rows] == [("skipped", None)]
        assert rows[0]["reason"].startswith("agent_lost")
        log.append(batch(4))
        more, _ = everything(stream(address, consumer="q"), at)
        assert appended(more) == [(3, 7)]


@pytest.mark.parametrize("relation", ["ranges", "batches"])
def test_a_checkpoint_whose_consumer_another_one_has_taken_gets_nothing_twice(agent: Agent, log: PartitionLog, relation: str) -> None:
    options = {"consumer": "q", "startingPosition": "earliest", "relation": relation}
    with agent.served() as address:
        _, at = everything(stream(address, **options))
        log.append(batch(4))
        rows, at = everything(stream(address, **options), at)
        assert [row["base_offset"] for row in rows] == [3]
        other, _ = everything(stream(address, **options))  # it begins with a checkpoint of its own
        assert sum(row["records"] for row in other) == 7
        rows, at = everything(stream(address, **options), at)
        assert [(row["kind"], row["reason"].partition(":")[0]) for row in rows] == [("skipped", "agent_lost")]
        log.append(batch(5))
        rows, at = everything(stream(address, **options), at)
        assert [row["base_offset"] for row in rows] == [7]


def test_what_is_gone_when_it_is_read_comes_as_skipped(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        _, at = everything(stream(address, relation="batches", consumer="q"))
        log.append(batch(4))
        plans = stream(address, relation="batches", consumer="q")
        plans.prepareForTriggerAvailableNow()
        end = plans.latestOffset(at, ALL)
        log.roll()
        size = log.segments[0].size
        log.append(batch(1))
        log.delete_records(7)
        log._delete_segments(1, 0)
        log.unlink_deleted(10**15)
        rows = read(plans, at, end)
    assert [(row["kind"], row["reason"], row["base_offset"], row["last_offset"]) for row in rows] == [("skipped", "deleted", 3, 6)]
    assert 0 < rows[0]["missing_bytes"] < size


@pytest.mark.slow
def test_rolls_and_deletions_are_rows_once(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        _, at = everything(stream(address, consumer="q"))
        log.roll()
        log.append(batch(4))
        size = log.segments[0].size
        rows, at = until(lambda: stream(address, consumer="q"), at, "rolled")
        assert [(row["segment"], row["missing_bytes"]) for row in rows if row["kind"] == "rolled"] == [(3, 0)]
    agent.restart()
    log._delete_segments(1, 0)
    with agent.served() as address:
        rows, at = until(lambda: stream(address, consumer="q"), at, "deleted")
        found = [(row["kind"], row["segment"], row["missing_bytes"]) for row in rows if row["kind"] in ("rolled", "deleted")]
        assert found == [("deleted", 0, size)]


def until(make: Any, at: dict[str, Any], kind: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """All rows until one of this kind has come."""
    rows: list[dict[str, Any]] = []
    while not any(row["kind"] == kind for row in rows):
        more, at = everything(make(), at)
        rows += more
    return rows, at


@pytest.mark.parametrize(("unwanted", "selected"), [("orders", {"topicsPattern": "pay.*"}), ("__cluster_metadata", {})])
def test_only_what_was_selected_comes_and_the_rest_makes_no_micro_batch(tmp_path: Path, unwanted: str, selected: dict[str, str]) -> None:
    disk = log_dir(tmp_path)
    log, other = partition(disk, unwanted), partition(disk, "payments", topic_id=2)
    log.append(batch(3))
    other.append(batch(2))
    agent = Agent(disk.path, journal=tmp_path / "journal")
    with agent.served() as address:
        rows, at = everything(stream(address, consumer="q", **selected))
        assert [(row["topic"], row["records"]) for row in rows] == [("payments", 2)]
        reader = stream(address, consumer="q", **selected)
        reader._planner._advanced_at = 0.0  # it has moved on just now
        log.append(batch(4))
        assert reader.latestOffset(at, ALL) is at
        other.append(batch(1))
        while (end := reader.latestOffset(at, ALL)) is at:
            pass
        assert [(row["topic"], row["records"]) for row in read(reader, at, end)] == [("payments", 1)]
    agent.close()


def test_what_is_appended_after_the_first_plan_is_in_the_query(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        options = parse_public_options({"agents": address, "consumer": "q"})
        reader = PublicStreamReader(options)
        at = reader.latestOffset({}, ALL)
        log.append(batch(2))
        rows = read(reader, {}, at)
        more, _ = everything(PublicStreamReader(options), at)
        assert appended(rows + more) == [(3, 5)]


def test_a_query_of_which_no_agent_answers_says_so() -> None:
    reader = stream("127.0.0.1:1")
    with pytest.raises(AgentError, match=r"127\.0\.0\.1:1"):
        reader.latestOffset({}, ALL)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_query_that_begins_with_topics_that_are_nowhere_says_so_and_holds_nothing(tmp_path: Path, at_once: bool) -> None:
    disk = log_dir(tmp_path)
    partition(disk, "orders").append(batch(2))
    agent = Agent(disk.path, journal=tmp_path / "journal")
    with agent.served() as address:
        reader = stream(address, topics="ordres", consumer="q")
        if at_once:
            reader.prepareForTriggerAvailableNow()
        with pytest.raises(UsageError, match=r"option topics: no partition fits; did you mean orders\?"):
            reader.latestOffset({}, ALL)
        assert not agent.consumers.any()
    agent.close()


def test_a_query_begins_if_its_topics_may_be_where_nobody_answers(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        assert stream(f"{address},127.0.0.1:1", topics="ordres").latestOffset({}, ALL)


def test_a_query_goes_on_though_its_topics_were_deleted(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        _, at = everything(stream(address, consumer="q"))
        assert stream(address, consumer="q", topics="gone").latestOffset(at, ALL)


@pytest.mark.slow
def test_a_pattern_waits_for_topics_to_come(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    agent = Agent(disk.path, journal=tmp_path / "journal")
    with agent.served() as address:
        options = {"topicsPattern": "pay.*", "consumer": "q"}
        _, at = everything(stream(address, **options))
        partition(disk, "payments").append(batch(2))
        rows: list[dict[str, Any]] = []
        while not rows:
            rows, at = everything(stream(address, **options), at)
        assert {row["topic"] for row in rows} == {"payments"}
    agent.close()


def test_a_plan_that_found_nothing_lets_time_pass_before_the_next(agent: Agent, log: PartitionLog) -> None:
    with agent.served() as address:
        _, at = everything(stream(address, consumer="q"))
        clock = Clock()
        reader = PublicStreamReader(parse_public_options({"agents": address, "consumer": "q"}), clock, clock.sleep)
        assert reader.latestOffset(at, ALL) is at
        assert sum(clock.slept) == 0
        assert reader.latestOffset(at, ALL) is at
        assert sum(clock.slept) > 0.5
