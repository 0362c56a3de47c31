"""The public relations, read at once, by calling what Spark calls."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import DataSourceReader, EqualTo, GreaterThanOrEqual
from pyspark.sql.types import LongType, StructType

from streaming.broker.protocol.excerpt_messages import EVERYTHING, Excerpt
from streaming.errors import AgentError, LogDirError, SegtailError, UsageError
from streaming.simulator.log import LogDir, PartitionLog
from streaming.spark.source import at_once
from streaming.spark.source.at_once import TASK_BYTES
from streaming.spark.source.datasource import SegtailDataSource
from streaming.spark.source.public_rows import ARROW
from streaming.spark.source.public_stream import RefusedStream
from streaming.spark.source.relations import SCHEMAS, Relation
from tests.agents import Agent
from tests.builders import CLUSTER_ID, NOW, batch, commit, log_dir, partition
from tests.facts import facts_of
from tests.source.public_reading import reader, rows
from tests.tables import each_row

READ = (Relation.RANGES, Relation.BATCHES, Relation.TRANSACTIONS)


@pytest.fixture
def disk(tmp_path: Path) -> LogDir:
    return log_dir(tmp_path)


@pytest.fixture
def logs(disk: LogDir) -> list[PartitionLog]:
    made = [partition(disk, "orders", 0), partition(disk, "orders", 1), partition(disk, "pay")]
    for log in made[:2]:
        log.append(batch(3), batch(2, timestamp=NOW + 5000))
    made[2].append(batch(1, producer=7, transactional=True), commit(7), batch(1, producer=8, transactional=True))
    return made


@pytest.fixture(params=["log_dirs", "agents"])
def where(request: pytest.FixtureRequest, disk: LogDir, logs: list[PartitionLog], tmp_path: Path) -> Iterator[dict[str, str]]:
    if request.param == "log_dirs":
        yield {"log_dirs": str(disk.path)}
        return
    agent = Agent(disk.path)
    with agent.served() as address:
        yield {"agents": address}
    agent.close()


def test_batches(where: dict[str, str], logs: list[PartitionLog]) -> None:
    found = rows({**where, "relation": "batches"})
    assert [(row["topic"], row["partition"], row["base_offset"], row["size"]) for row in found] == [
        (log.topic, log.partition, entry.base_offset, entry.size) for log in logs for entry in log.active.entries
    ]


def test_ranges_have_the_sums_of_their_logs(where: dict[str, str], logs: list[PartitionLog]) -> None:
    found = rows(where)
    assert [(row["kind"], row["topic"], row["partition"], row["bytes"], row["records"]) for row in found] == [
        ("appended", log.topic, log.partition, facts_of(log).held.bytes, facts_of(log).held.records) for log in logs
    ]
    assert [(each["kind"], each["producer_id"]) for each in found[2]["markers"]] == [("commit", 7)]
    assert {row["is_leader"] for row in found} == {None}


def test_transactions_those_that_are_open_too(where: dict[str, str]) -> None:
    found = rows({**where, "relation": "transactions"})
    assert [(row["kind"], row["producer_id"], row["first_offset"], row["marker_offset"]) for row in found] == [
        ("committed", 7, 0, 1),
        ("open", 8, 2, None),
    ]


@pytest.mark.parametrize("relation", READ)
def test_the_rows_have_the_schema_also_where_there_are_none(where: dict[str, str], relation: Relation) -> None:
    made = reader({**where, "relation": relation, "topics": "orders", "startingTimestamp": str(1 << 50)})
    (task,) = made.partitions()  # without one Spark would call `read` with None
    assert [(some.schema, some.num_rows) for some in made.read(task)] == [(ARROW[relation], 0)]
    made = reader({**where, "relation": relation})
    assert all(some.schema == ARROW[relation] for task in made.partitions() for some in made.read(task))


@pytest.mark.parametrize(("together", "pieces"), [(at_once.ROWS_TOGETHER, [0, 7]), (3, [0, 4, 3]), (1, [0, 2, 2, 3])])
def test_rows_of_small_logs_go_to_spark_together(
    disk: LogDir, logs: list[PartitionLog], together: int, pieces: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at_once, "ROWS_TOGETHER", together)
    made = reader({"log_dirs": str(disk.path), "relation": "batches"})
    (task,) = made.partitions()
    assert [some.num_rows for some in made.read(task)] == pieces


@pytest.mark.parametrize("relation", READ)
def test_a_copy_without_a_segment_is_refused_unless_its_broker_runs(disk: LogDir, logs: list[PartitionLog], relation: Relation) -> None:
    next(logs[0].directory.glob("*.log")).unlink()
    made = reader({"log_dirs": str(disk.path), "relation": relation, "topics": "orders"})
    assert made.partitions(), "a broker may be deleting it"
    disk.release()
    with pytest.raises(LogDirError, match=r"orders-0 has 0+\.index.* without the \.log beside: copy it whole"):
        made.partitions()


def test_some_columns(where: dict[str, str]) -> None:
    options = {**where, "relation": "batches", "columns": "size,topic"}
    assert SegtailDataSource(options).schema().names == ["topic", "size"]
    assert {tuple(row) for row in rows(options)} == {("topic", "size")}


def test_selections_and_starts(where: dict[str, str], logs: list[PartitionLog]) -> None:
    def found(**options: str) -> list[tuple[str, int, int]]:
        return [(row["topic"], row["partition"], row["base_offset"]) for row in rows({**where, "relation": "batches", **options})]

    assert found(topics="orders", partitions="1") == [("orders", 1, 0), ("orders", 1, 3)]
    assert found(topicsPattern="pa.") == [("pay", 0, 0), ("pay", 0, 1), ("pay", 0, 2)]
    assert found(topics="orders", startingTimestamp=str(NOW + 3000)) == [("orders", 0, 3), ("orders", 1, 3)]
    logs[0].roll()
    logs[0].append(batch(1))
    assert found(topics="orders", partitions="0", startingPosition="active") == [("orders", 0, 5)]


def test_filters_narrow_what_is_read(where: dict[str, str]) -> None:
    topic, offset = EqualTo(("topic",), "orders"), GreaterThanOrEqual(("base_offset",), 3)

    def push(made: Any) -> None:
        assert made.pushFilters([topic, offset]) == [offset]

    assert [(row["topic"], row["base_offset"]) for row in rows({**where, "relation": "batches"}, push)] == [("orders", 3), ("orders", 3)]
    assert rows({**where}, lambda made: made.pushFilters([EqualTo(("topic",), "nowhere")])) == []


def test_a_log_that_a_filter_leaves_out_is_not_opened(disk: LogDir, logs: list[PartitionLog]) -> None:
    (logs[2].directory / "partition.metadata").write_bytes(b"\xff")
    found = rows({"log_dirs": str(disk.path)}, lambda made: made.pushFilters([EqualTo(("topic",), "orders")]))
    assert [row["topic"] for row in found] == ["orders", "orders"]


def test_pyspark_takes_the_reader_while_filters_are_not_pushed(where: dict[str, str]) -> None:
    """It would refuse a reader with a method of its own."""
    assert getattr(reader(where).pushFilters, "__func__", None) is DataSourceReader.pushFilters


def test_what_is_not_there_is_a_row(where: dict[str, str], logs: list[PartitionLog]) -> None:
    with logs[0].active.path("log").open("r+b") as file:
        file.seek(logs[0].active.positions[1] + 16)
        file.write(b"\x09")
    missing = logs[0].active.entries[1].size
    for relation in READ:
        skipped = [row for row in rows({**where, "relation": relation, "topics": "orders"}) if row["kind"] == "skipped"]
        assert [(row["topic"], row["partition"], row["missing_bytes"]) for row in skipped] == [("orders", 0, missing)]
        assert skipped[0]["reason"].startswith("corrupt: bad magic")
    planned = reader({**where, "relation": "batches", "topics": "orders"})
    tasks = planned.partitions()
    size = logs[1].active.size
    shutil.rmtree(logs[1].directory)
    gone = [row for task in tasks for some in planned.read(task) for row in some.to_pylist() if row["partition"] == 1]
    assert [(row["kind"], row["missing_bytes"], row["reason"]) for row in gone] == [("skipped", size, "deleted")]


def test_a_log_dir_of_an_agent_that_cannot_be_used_is_a_row(disk: LogDir, logs: list[PartitionLog], tmp_path: Path) -> None:
    other = log_dir(tmp_path, "d1")
    agent = Agent(disk.path, other.path)
    agent.log_dirs.bar(other.path, "does not answer")
    with agent.served() as address:
        for relation in READ:
            found = rows({"agents": address, "relation": relation})
            (row,) = [each for each in found if each["kind"] == "skipped"]
            assert (row["log_dir"], row["reason"], row["missing_bytes"], row["topic"]) == (str(other.path), "unavailable", None, None)
            assert len(found) > 1
    agent.close()


# --- what cannot be


def test_a_selection_that_nothing_fits(where: dict[str, str]) -> None:
    for options, words in (
        ({"topics": "ordres"}, r"option topics: no partition fits; did you mean orders\?"),
        ({"topics": "ordres,pax"}, r"option topics: no partition fits; did you mean orders, pay\?"),
        ({"topics": "clicks"}, "option topics: no partition fits; there are orders, pay"),
        ({"topicsPattern": "x.*"}, "option topicsPattern: no partition fits; there are orders, pay"),
        ({"partitions": "7"}, "option partitions: no partition fits; there are orders, pay"),
        ({"topics": "pay", "partitions": "1"}, "options topics and partitions: no partition fits"),
    ):
        with pytest.raises(UsageError, match=words):
            reader({**where, **options}).partitions()


def test_paths_that_are_no_log_dirs(tmp_path: Path, disk: LogDir, logs: list[PartitionLog]) -> None:
    (tmp_path / "empty").mkdir()
    copied = tmp_path / "copied"
    shutil.copytree(disk.path, copied)
    (copied / "meta.properties").unlink()
    other = log_dir(tmp_path, "other", cluster_id="BBBBBBBBBBBBBBBBBBBBBB")
    partition(other, "orders").append(batch(1))
    for paths, words in (
        ([tmp_path / "nowhere"], "nowhere does not exist"),
        ([tmp_path / "empty"], "empty is not a Kafka log dir: it has no meta.properties"),
        ([disk.path, copied], "copied is not a Kafka log dir"),
        ([disk.path, other.path], "log dirs of two clusters"),
    ):
        with pytest.raises(LogDirError, match=words):
            reader({"log_dirs": ",".join(map(str, paths))}).partitions()


@pytest.mark.parametrize("option", [{"maxBytesPerTrigger": "1g"}])
def test_options_of_streams_are_refused_at_once(option: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=f"option {next(iter(option))}: it goes with readStream, and this is read at once"):
        reader({"agents": "a:1", **option})


def test_a_partition_that_may_not_be_read_is_named(disk: LogDir, logs: list[PartitionLog]) -> None:
    (logs[0].directory / "partition.metadata").write_bytes(b"\xff")
    with pytest.raises(AgentError, match=r"orders-0 cannot be read: its partition\.metadata"):
        reader({"log_dirs": str(disk.path)}).partitions()
    assert rows({"log_dirs": str(disk.path), "topics": "pay"})


def test_log_dirs_that_an_executor_does_not_see(disk: LogDir, logs: list[PartitionLog], tmp_path: Path) -> None:
    made = reader({"log_dirs": str(disk.path)})
    tasks = made.partitions()
    disk.path.rename(tmp_path / "away")
    with pytest.raises(LogDirError, match="every executor has to see log_dirs under the same paths"):
        list(made.read(tasks[0]))


def test_agents_that_do_not_answer_or_watch_another_cluster(disk: LogDir, logs: list[PartitionLog], tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"127\.0\.0\.1:1: nobody listens there: is it running\?"):
        reader({"agents": "127.0.0.1:1"}).partitions()
    agent = Agent(disk.path)
    with agent.served() as address:
        with pytest.raises(AgentError, match=f"it watches cluster {CLUSTER_ID}, this job cluster other"):
            reader({"agents": address, "cluster_id": "other"}).partitions()
        port = address.rpartition(":")[2]
        twice = rows({"agents": f"{address},localhost:{port}", "relation": "batches", "topics": "orders", "partitions": "0"})
    agent.close()
    assert len(twice) == 2, "an agent takes part once, whatever its addresses"


def test_a_schema_of_another_relation(where: dict[str, str]) -> None:
    source = SegtailDataSource({**where, "relation": "batches"})
    wrong = StructType([field for field in SCHEMAS[Relation.BATCHES].fields if field.name not in ("codec", "size")])
    wrong.add("size", LongType()).add("x", LongType())
    with pytest.raises(UsageError, match=r"has no column x; size is int and not bigint; codec is missing"):
        source.reader(wrong)
    turned = StructType(list(reversed(SCHEMAS[Relation.BATCHES].fields)))
    with pytest.raises(UsageError, match="another order"):
        source.reader(turned)


@each_row(
    ("options", "words"),
    [
        ({"relation": "records", "agents": "a:1"}, "records are read of log_dirs alone"),
        ({"agents": "a:1", "topics": ""}, "option topics"),
    ],
)
def test_a_stream_that_cannot_be_says_why_at_its_first_call(options: dict[str, str], words: str) -> None:
    stream = SegtailDataSource(options).streamReader(StructType([]))
    assert isinstance(stream, RefusedStream)
    for call in (stream.initialOffset, lambda: stream.latestOffset({}, None), lambda: stream.partitions({}, {})):
        with pytest.raises(SegtailError, match=words):
            call()


# --- how work is shared


EXCERPT = Excerpt(1, "/d", "orders", 0, "", 0, 0, TASK_BYTES // 2, TASK_BYTES // 2, 0, EVERYTHING)


def tasks(relation: Relation, *excerpts: Excerpt) -> list[tuple[list[tuple[int, int]], bool]]:
    made = reader({"log_dirs": "/d", "relation": relation})
    return [([(each.partition, each.segment) for each in task.excerpts], task.ongoing) for task in made.tasks("", excerpts, "")]


def test_excerpts_share_tasks_up_to_a_size() -> None:
    some = [replace(EXCERPT, segment=segment) for segment in range(3)]
    small = replace(EXCERPT, partition=1, bytes=1)
    assert tasks(Relation.BATCHES, *some, small) == [([(0, 0), (0, 1)], False), ([(0, 2), (1, 0)], True)]
    assert tasks(Relation.TRANSACTIONS, *some, small) == [([(0, 0), (0, 1), (0, 2)], True), ([(1, 0)], True)]


def test_a_task_is_a_request_that_is_not_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_once, "TASK_EXCERPTS", 2)
    some = [replace(EXCERPT, segment=segment, bytes=1) for segment in range(3)]
    assert tasks(Relation.TRANSACTIONS, *some) == [([(0, 0), (0, 1)], False), ([(0, 2)], True)]
