"""What pages say of all partitions of the cluster, by topic."""

import re

from streaming.broker.protocol.cluster_messages import AffectedPartition, TopicCounts
from streaming.cluster.view.family import Export
from streaming.common.definitions.sections import Section
from streaming.rules.config_values import Configs, ValueSource, broker_configs
from tests.exposition.reading import named
from tests.view.rows import log, new_table
from tests.worlds.counts import HEALTHY, ORDERS, counting
from tests.worlds.hosts import agent, broker, observer, reported

OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED = (f"segtail_topic_{name}_partitions" for name in ("offline", "under_min_isr", "under_replicated"))


AFFECTED = AffectedPartition(topic="orders", partition=7, problem="offline", leader=-1, in_sync=[2], out_of_sync=[1, 3], electable=[2, 3])


def test_the_newest_copy_among_agents_that_are_up_counts_and_where_nothing_is_wrong_there_is_no_series() -> None:
    stale = counting(2, 8, TopicCounts(topic="orders", partitions=12))
    ahead = counting(3, 20, TopicCounts(topic="orders", partitions=12, offline=9))
    made = observer(agent("a1", counting(1, 10, ORDERS, HEALTHY)), agent("a2", stale), agent("a3", ahead, up=False))
    assert reported(made, "segtail_topic_partitions", "topic") == {("orders",): 12, ("clicks",): 5}
    assert reported(made, OFFLINE, "topic") == {("orders",): 2}
    assert reported(made, UNDER_MIN_ISR, "topic") == {("orders",): 3}
    assert reported(made, UNDER_REPLICATED, "topic") == {("orders",): 4}


def test_where_the_metadata_sets_no_min_isr_the_broker_s_own_counts() -> None:
    open_topic = TopicCounts(topic="open", partitions=10, under_replicated=4, in_sync={"3/3": 5, "1/3": 3, "2/3": 1, "1/1": 1, "1/": 0})
    short = AffectedPartition(
        topic="open", partition=7, problem="under_replicated", leader=1, in_sync=[1], out_of_sync=[2, 3], electable=[1]
    )
    fewer = AffectedPartition(
        topic="open", partition=8, problem="under_replicated", leader=1, in_sync=[1, 2], out_of_sync=[3], electable=[1]
    )
    made = observer(agent("a1", counting(1, 10, open_topic, ORDERS, affected=(short, fewer))))

    def under(static: dict[int, Configs]) -> tuple[dict[tuple[str, ...], float], set[str]]:
        table = new_table(static=lambda: static)
        found = named(table, UNDER_MIN_ISR, made)
        problems = named(table, "segtail_affected_partition_info", made)
        return {(dict(labels)["topic"],): value for labels, value in found.items()}, {dict(labels)["problem"] for labels in problems}

    assert under({}) == ({("orders",): 3}, {"under_replicated"})
    two = broker_configs([("min.insync.replicas", "2")], ValueSource.STATIC)
    assert under({1: two}) == under({2: two}) == ({("orders",): 3, ("open",): 3}, {"under_min_isr", "under_replicated"})
    assert under({1: broker_configs([], ValueSource.STATIC), 2: two})[0] == {("orders",): 3}


def test_before_3_7_fully_replicated_partitions_may_be_under_min_isr() -> None:
    made = observer(agent("a1", counting(1, 10, TopicCounts(topic="old", partitions=2, in_sync={"1/": 2}))))
    two = broker_configs([("min.insync.replicas", "2")], ValueSource.STATIC)
    assert list(named(new_table(static=lambda: {1: two}), UNDER_MIN_ISR, made).values()) == [2]


def test_some_partitions_are_named_with_the_brokers_that_matter() -> None:
    made = observer(agent("a1", counting(1, 10, ORDERS, affected=(AFFECTED,))))
    labels = ("topic", "partition", "problem", "leader", "in_sync", "out_of_sync", "electable")
    assert reported(made, "segtail_affected_partition_info", *labels) == {("orders", "7", "offline", "-1", "2", "1,3", "2,3"): 1}


def test_agents_of_before_and_copies_that_cannot_be_read_show_nothing_and_hide_nothing() -> None:
    made = observer(agent("old", broker(1, metadata_offset=99)), agent("new", counting(2, 10, ORDERS)))
    assert reported(made, OFFLINE, "topic") == {("orders",): 2}
    for silent in (broker(1, metadata_offset=99), broker(1, counts="{not packed", counts_name="x")):
        made = observer(agent("a1", silent))
        assert reported(made, "segtail_topic_partitions", "topic") == {}


def test_neither_the_limit_nor_the_granularity_leaves_any_out() -> None:
    made = observer(agent("a1", counting(1, 10, ORDERS, affected=(AFFECTED,))))
    for table in (new_table(log(), series_limit=1), new_table(log(), export=Export(partitions=False))):
        found = {name: named(table, name, made) for name in (OFFLINE, "segtail_affected_partition_info", "segtail_partition_leader_id")}
        assert [len(found[name]) for name in found] == [1, 1, 0]


def test_topics_and_groups_that_nobody_wants_are_left_out() -> None:
    made = observer(agent("a1", counting(1, 10, ORDERS, HEALTHY, affected=(AFFECTED,))))

    def topics(export: Export) -> set[frozenset[tuple[str, str]]]:
        return set(named(new_table(export=export), "segtail_topic_partitions", made))

    assert len(topics(Export())) == 2
    assert topics(Export(exclude=re.compile("ord.*"))) == topics(Export(topics=re.compile("clicks"))) != set()
    assert named(new_table(export=Export(exclude=re.compile("ord.*"))), "segtail_affected_partition_info", made) == {}
    assert topics(Export(groups=(Section.TRANSACTIONS.name.lower(),))) == set()
