"""Filters of a query that spare reading, and what Spark still has to check of them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, IsNotNull, LessThan, LessThanOrEqual, Not

from streaming.broker.disk.opening import bytes_read
from streaming.broker.protocol.consumer_messages import Selection
from streaming.broker.protocol.excerpt_messages import EVERYTHING, Excerpt
from streaming.spark.source.at_once import PushedFilters, take
from streaming.spark.source.relations import Relation
from tests.builders import batch, log_dir, partition
from tests.source.public_reading import reader

TIME = datetime(2026, 1, 1, tzinfo=UTC)
MS = 1_767_225_600_000


def offsets(*filters: Filter) -> tuple[int, int]:
    wanted, left = take(filters, Relation.BATCHES)
    assert left == list(filters), "skipped rows are Spark's to compare"
    return wanted.from_offset, wanted.until_offset


def test_topics_and_partitions_are_all_handled() -> None:
    filters = [In(("topic",), ("a", "b")), EqualTo(("topic",), "b"), EqualTo(("partition",), 3)]
    for relation in (Relation.RANGES, Relation.BATCHES, Relation.TRANSACTIONS):
        assert take(filters, relation) == (PushedFilters(topics=frozenset(["b"]), partitions=frozenset([3])), [])
    assert take([EqualTo(("topic",), "a"), EqualTo(("topic",), "b")], Relation.RANGES)[0].topics == frozenset()


def test_others_are_left_to_spark() -> None:
    filters = [EqualTo(("topic",), None), Not(EqualTo(("topic",), "a")), IsNotNull(("topic",)), EqualTo(("codec",), "lz4")]
    filters += [EqualTo(("markers", "topic"), "a"), GreaterThan(("partition",), 2), In(("partition",), (1, None))]
    assert take(filters, Relation.BATCHES) == (PushedFilters(), filters)


def test_offsets_of_batches() -> None:
    assert offsets(GreaterThan(("base_offset",), 5), LessThanOrEqual(("last_offset",), 9)) == (6, 10)
    assert offsets(GreaterThanOrEqual(("base_offset",), 5), LessThan(("base_offset",), 9)) == (5, 9)
    assert offsets(EqualTo(("base_offset",), 5)) == (5, 6)
    assert offsets(EqualTo(("last_offset",), 5)) == (0, 6)
    assert offsets(GreaterThanOrEqual(("last_offset",), 5)) == (0, EVERYTHING)
    assert take([GreaterThan(("last_offset",), 5), EqualTo(("last_offset",), 4)], Relation.BATCHES)[0].reached_offset == 6


def test_times_of_batches() -> None:
    for each in (GreaterThan(("max_timestamp",), TIME), EqualTo(("max_timestamp",), TIME + timedelta(microseconds=7))):
        wanted, left = take([each], Relation.BATCHES)
        assert (wanted, left) == (PushedFilters(timestamp=MS), [each])
    assert take([LessThan(("max_timestamp",), TIME)], Relation.BATCHES)[0] == PushedFilters()


def test_a_range_is_not_cut() -> None:
    """It would be another range."""
    filters = [GreaterThan(("base_offset",), 5), GreaterThan(("max_timestamp",), TIME)]
    assert take(filters, Relation.RANGES) == (PushedFilters(), filters)


def test_a_selection_is_narrowed() -> None:
    wanted = PushedFilters(topics=frozenset(["a", "b"]))
    assert wanted.narrowed(Selection()) == Selection(topics=("a", "b"))
    assert wanted.narrowed(Selection(topics=("b", "c"))) == Selection(topics=("b",))
    assert wanted.narrowed(Selection(topics=("c",))) is None
    assert PushedFilters(topics=frozenset()).narrowed(Selection()) is None
    assert PushedFilters(partitions=frozenset([2])).narrowed(Selection(pattern="a.*")) == Selection(pattern="a.*", partitions=(2,))
    selection = Selection(topics=("b", "a"), partitions=(1, 2))
    assert PushedFilters().narrowed(selection) == selection


def test_excerpts_without_anything_wanted_are_left_out() -> None:
    excerpt = Excerpt(1, "/a", "t", 0, "", 100, 0, 50, 50, from_offset=100, until_offset=200)
    assert PushedFilters(from_offset=150).part_of(excerpt).from_offset == 150
    assert [PushedFilters(from_offset=at).has(excerpt) for at in (0, 199, 200)] == [True, True, False]
    assert [PushedFilters(until_offset=at).has(excerpt) for at in (100, 101)] == [False, True]
    assert [PushedFilters(reached_offset=at).has(excerpt) for at in (0, 199, 200)] == [True, True, False]
    assert not PushedFilters(topics=frozenset(["u"])).has(excerpt)


def test_a_filter_chooses_no_log_that_its_relation_leaves_out() -> None:
    wanted = PushedFilters(topics=frozenset(["a", "__cluster_metadata"]))
    assert wanted.narrowed(Selection()) == Selection(topics=("a",))
    assert PushedFilters(topics=frozenset(["__cluster_metadata"])).narrowed(Selection()) is None
    assert wanted.narrowed(Selection(topics=("b", "__cluster_metadata"))) == Selection(topics=("__cluster_metadata",))


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve batches of 1 MiB, ten offsets each, in each of three logs; two in a segment. A batch is later than the one before it."""
    made = log_dir(tmp_path_factory.mktemp("disk"))
    for topic, number in (("orders", 0), ("orders", 1), ("pay", 0)):
        log = partition(made, topic, number, segment_bytes=5 << 19)
        for item in range(12):
            log.append(batch(10, value_bytes=(1 << 20) // 10, timestamp=MS + 1_000 * item))
    return made.path


LOG = [EqualTo(("topic",), "orders"), EqualTo(("partition",), 1)]


def read(disk: Path, relation: Relation, filters: list[Filter], **options: str) -> tuple[int, int, int]:
    """How many of the wanted rows come, and how many MiB of segments are read to plan and for the rows, rounded."""
    made = reader({"log_dirs": str(disk), "relation": relation, **options})
    list(made.pushFilters(filters))
    began = bytes_read()
    tasks = made.partitions()
    planned = bytes_read()
    count = sum(found.num_rows for task in tasks for found in made.read(task))
    return count, round((planned - began) / 2**20), round((bytes_read() - planned) / 2**20)


@pytest.mark.parametrize(
    ("filters", "rows", "most"),
    [
        ([], 36, 36),
        (LOG[:1], 24, 24),
        ([In(("partition",), (1,))], 12, 12),
        (LOG, 12, 12),
        ([*LOG, GreaterThanOrEqual(("base_offset",), 100)], 2, 2),
        ([*LOG, GreaterThan(("last_offset",), 99)], 2, 2),
        ([*LOG, EqualTo(("base_offset",), 50)], 1, 2),
        ([*LOG, LessThan(("last_offset",), 40)], 4, 4),
        ([*LOG, GreaterThan(("max_timestamp",), TIME + timedelta(seconds=10))], 2, 4),
        ([*LOG, GreaterThan(("base_offset",), 500)], 0, 2),
    ],
)
def test_what_is_not_wanted_of_batches_is_not_read(disk: Path, filters: list[Filter], rows: int, most: int) -> None:
    found, planned, bytes_of_rows = read(disk, Relation.BATCHES, filters)
    assert (found, planned + bytes_of_rows <= most) == (rows, True), (planned, bytes_of_rows)


@pytest.mark.parametrize("relation", [Relation.RANGES, Relation.TRANSACTIONS])
def test_other_logs_are_not_read_for_other_relations(disk: Path, relation: Relation) -> None:
    assert [read(disk, relation, filters)[2] for filters in ([], LOG[:1], LOG)] == [36, 24, 12]


@pytest.mark.parametrize(
    ("filters", "rows", "mebibytes"),
    [
        ([], 360, 36),
        (LOG, 120, 12),
        ([*LOG, GreaterThanOrEqual(("offset",), 100)], 20, 2),
        ([*LOG, LessThan(("offset",), 20)], 20, 2),
        ([*LOG, EqualTo(("offset",), 50)], 1, 2),
        ([EqualTo(("topic",), "other")], 0, 0),
    ],
)
def test_what_is_not_wanted_of_records_is_not_read(disk: Path, filters: list[Filter], rows: int, mebibytes: int) -> None:
    found, _, bytes_of_rows = read(disk, Relation.RECORDS, filters, until="end")
    assert (found, bytes_of_rows) == (rows, mebibytes)


def test_options_spare_the_plan_of_records_too(disk: Path) -> None:
    """It looks for the end of every log that the options leave."""
    plans = [read(disk, Relation.RECORDS, LOG, until="end", **options)[1] for options in ({}, {"topics": "orders", "partitions": "1"})]
    assert plans[0] == 3 * plans[1]
