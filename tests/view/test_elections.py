"""What pages say of unclean elections."""

import re
from typing import Any

from streaming.broker.protocol.cluster_messages import PartitionName
from streaming.cluster.view.elections import MOST_PARTITIONS
from streaming.cluster.view.family import Export
from streaming.cluster.view.observer import Observer
from streaming.cluster.view.table import Table
from tests.exposition.reading import named
from tests.view.rows import departed, log, new_observer, new_table
from tests.worlds.counts import HEALTHY, ORDERS, counting
from tests.worlds.hosts import agent, observer, reported

PARTITION, TOPIC = "segtail_partition_", "segtail_topic_"


def unclean(elections: int, at: int, *, by: int = 1, upper: int = -1, acknowledged: int = -1) -> dict[str, Any]:
    lost = {"unclean_lost_upper": upper, "unclean_lost_acknowledged": acknowledged}
    return {"unclean_elections": elections, "unclean_ms": at, "unclean_from": by, **lost}


def values(table: Table, name: str, *labels: str, of: Observer | None = None) -> dict[tuple[str, ...], float]:
    return {tuple(dict(found)[each] for each in labels): value for found, value in named(table, name, of or new_observer()).items()}


def test_what_all_replicas_of_a_partition_had_counts_also_of_those_that_have_left() -> None:
    table = new_table(
        log("orders", 3, broker=1, topic_id="t", **unclean(1, 5_000, by=2, upper=10, acknowledged=4)),
        log("orders", 3, broker=2, topic_id="t", **unclean(0, -1)),
        departed("orders", 3, broker=3, topic_id="t", **unclean(2, 9_000, by=1, upper=7)),
        log("orders", 4, broker=1, topic_id="t", **unclean(1, 1_000, by=-1)),
        log("clicks", 0),
    )
    where = ("topic", "partition")
    assert values(table, f"{PARTITION}unclean_elections_total", *where) == {("orders", "3"): 3, ("orders", "4"): 1}
    last = values(table, f"{PARTITION}last_unclean_election_timestamp_seconds", *where, "last_in_sync")
    assert last == {("orders", "3", "1"): 9, ("orders", "4", ""): 1}
    lost = values(table, f"{PARTITION}unclean_lost_offsets_total", *where, "bound")
    assert lost == {("orders", "3", "upper"): 17, ("orders", "3", "acknowledged"): 4}
    assert values(table, f"{TOPIC}unclean_elections_total", "topic") == {("orders",): 4}
    assert values(table, f"{TOPIC}last_unclean_election_timestamp_seconds", "topic") == {("orders",): 9}


def test_neither_the_limit_nor_the_granularity_leaves_any_out_and_topics_that_nobody_wants_are() -> None:
    rows = [log("orders", 0, **unclean(1, 5_000, upper=10, acknowledged=4)), log("clicks", 0)]
    for table in (new_table(*rows, series_limit=0), new_table(*rows, export=Export(partitions=False))):
        assert values(table, f"{PARTITION}unclean_lost_offsets_total", "bound") == {("upper",): 10, ("acknowledged",): 4}
        assert values(table, f"{TOPIC}unclean_elections_total", "topic") == {("orders",): 1}
    assert values(new_table(*rows, export=Export(exclude=re.compile("orders"))), f"{TOPIC}unclean_elections_total", "topic") == {}


def test_of_very_many_partitions_those_of_the_last_elections_are_named() -> None:
    table = new_table(*(log("orders", number, **unclean(1, 1_000 + number)) for number in range(MOST_PARTITIONS + 5)))
    found = values(table, f"{PARTITION}unclean_elections_total", "partition")
    assert sorted(int(partition) for (partition,) in found) == list(range(5, MOST_PARTITIONS + 5))
    assert values(table, f"{TOPIC}unclean_elections_total", "topic") == {("orders",): MOST_PARTITIONS + 5}


def test_partitions_that_recover_are_named() -> None:
    made = observer(agent("a1", counting(1, 10, ORDERS, HEALTHY, recovering=(PartitionName("orders", 3),))))
    assert reported(made, f"{PARTITION}recovering", "topic", "partition") == {("orders", "3"): 1}
