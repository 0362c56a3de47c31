"""Filters of a query that spare reading, and what Spark still has to check of them."""

from datetime import UTC, datetime, timedelta

from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, IsNotNull, LessThan, LessThanOrEqual, Not

from streaming.broker.protocol.consumer_messages import Selection
from streaming.broker.protocol.excerpt_messages import EVERYTHING, Excerpt
from streaming.spark.source.at_once import PushedFilters, take
from streaming.spark.source.relations import Relation

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
    assert not PushedFilters(topics=frozenset(["u"])).has(excerpt)


def test_a_filter_chooses_no_log_that_its_relation_leaves_out() -> None:
    wanted = PushedFilters(topics=frozenset(["a", "__cluster_metadata"]))
    assert wanted.narrowed(Selection()) == Selection(topics=("a",))
    assert PushedFilters(topics=frozenset(["__cluster_metadata"])).narrowed(Selection()) is None
    assert wanted.narrowed(Selection(topics=("b", "__cluster_metadata"))) == Selection(topics=("__cluster_metadata",))
