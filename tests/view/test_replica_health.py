"""What pages say of replicas that have something wrong, whether they lead or not."""

import re
from typing import Any

from streaming.cluster.view.family import Export
from streaming.cluster.view.replica_health import MOST_REPLICAS
from streaming.cluster.view.table import Replica, Table
from streaming.common.definitions import retention_metrics
from tests.exposition.reading import named
from tests.view.rows import Row, log, new_observer, new_table
from tests.worlds.retention import COMPACT, HOUR, NOTHING_SET, NOW, facts

LEADS = {"leader": 1, "leader_epoch": 5}


def reported(table: Table, name: str, *labels: str, now: float = NOW) -> dict[tuple[str, ...], float]:
    found = named(table, name, new_observer(), now=now)
    return {tuple(dict(where)[each] for each in labels): value for where, value in found.items()}


def corrupt(table: Table) -> dict[tuple[str, ...], float]:
    return reported(table, "segtail_replica_corrupt_batches", "broker", "topic", "partition", "role", "found_by")


def table() -> Table:
    made = new_table(
        log("orders", 0, topic_id="o", broker=1, **LEADS, corrupt_batches=1),
        log("orders", 0, topic_id="o", broker=2, agent="a2", **LEADS, corrupt_batches=2, truncations=3, truncated_committed=4),
        log("orders", 1, topic_id="o", broker=2, agent="a2", **LEADS),
        log("bills", 0, topic_id="b", broker=2, agent="a2", corrupt_batches=7),
    )
    made.set_scrubbed({Replica(2, "orders", 1): 5, Replica(3, "gone", 0): 1})
    return made


def test_followers_are_reported_as_leaders_are_and_only_where_there_is_something_to_show() -> None:
    assert corrupt(table()) == {
        ("1", "orders", "0", "leader", "tail"): 1,
        ("2", "orders", "0", "follower", "tail"): 2,
        ("2", "bills", "0", "unknown", "tail"): 7,
        ("2", "orders", "1", "follower", "scrub"): 5,
        ("3", "gone", "0", "unknown", "scrub"): 1,
    }
    assert reported(table(), "segtail_replica_truncations_total", "broker", "partition") == {("2", "0"): 3}
    assert reported(table(), "segtail_replica_truncated_committed_offsets_total", "broker", "partition") == {("2", "0"): 4}
    assert reported(table(), "segtail_replicas_omitted", "metric") == {}


def test_neither_the_limit_nor_the_granularity_leaves_any_out_and_topics_that_nobody_wants_are() -> None:
    rows = [log("orders", 0, corrupt_batches=1), log("bills", 0, corrupt_batches=1)]
    for made in (new_table(*rows, series_limit=0), new_table(*rows, export=Export(partitions=False))):
        made.set_scrubbed({Replica(1, "orders", 0): 2})
        assert len(corrupt(made)) == 3
    made = new_table(*rows, export=Export(exclude=re.compile("orders")))
    made.set_scrubbed({Replica(1, "orders", 0): 2})
    assert corrupt(made) == {("1", "bills", "0", "unknown", "tail"): 1}


def test_of_very_many_the_worst_are_named_and_the_others_counted() -> None:
    made = new_table(*(log("orders", number, corrupt_batches=number + 1) for number in range(MOST_REPLICAS + 5)))
    assert min(corrupt(made).values()) == 6
    assert reported(made, "segtail_replicas_omitted", "metric") == {("segtail_replica_corrupt_batches",): 5}


def test_of_two_logs_of_one_name_the_larger_value_stands() -> None:
    made = new_table(log("orders", 0, topic_id="old", corrupt_batches=3), log("orders", 0, topic_id="new", corrupt_batches=1))
    assert list(corrupt(made).values()) == [3]


OLD = ((0, 500, 9000), (50, 300, 10))
"""A closed segment that was past an hour 5,400 seconds ago, and an active one."""


def replica(broker: int, packed: bytes, topic: str = "orders", **values: Any) -> Row:
    reported = {**LEADS, "topic_id": topic, "log_start_offset": 0, "log_end_offset": 100, "high_watermark": 100, "facts": packed, **values}
    return log(topic, 0, broker=broker, agent=f"a{broker}", **reported)


def both(configs: str, topic: str = "orders", **values: Any) -> list[Row]:
    """A leader whose broker has deleted what is old, and a follower whose broker has not."""
    follower = facts(*OLD, configs=configs, isr=(1, 2), replicas=(1, 2), **values)
    leader = facts((50, 300, 10), configs=configs, isr=(1, 2), replicas=(1, 2), **values)
    return [replica(1, leader, topic, log_start_offset=50), replica(2, follower, topic)]


def test_a_follower_whose_broker_deletes_nothing_is_reported_and_its_topic_counted() -> None:
    for options in ({}, {"series_limit": 0}, {"export": Export(partitions=False)}):
        made = new_table(*both(HOUR), *both(HOUR, "bills"), *both(NOTHING_SET, "assumed"), **options)
        overdue = reported(made, "segtail_replica_retention_overdue_seconds", "broker", "topic", "role")
        assert overdue == {("2", "bills", "follower"): 5400, ("2", "orders", "follower"): 5400}
        assert reported(made, "segtail_topic_retention_overdue_partitions", "broker", "topic") == {("2", "bills"): 1, ("2", "orders"): 1}


def test_a_topic_is_not_counted_before_overdue_after_nor_a_replica_reported_before_two_checks() -> None:
    made = new_table(*both(HOUR), overdue_after_ms=6_000_000)
    assert len(reported(made, "segtail_replica_retention_overdue_seconds", "broker")) == 1
    assert reported(made, "segtail_topic_retention_overdue_partitions", "broker") == {}
    assert reported(made, "segtail_replica_retention_overdue_seconds", "broker", now=NOW - 4900) == {}
    at_once = new_table(*both(HOUR), overdue_after_ms=0)
    assert reported(at_once, "segtail_topic_retention_overdue_partitions", "broker", now=NOW - 4900) == {}
    assert "longer than overdue_after and two checks of the broker" in retention_metrics.TOPIC_OVERDUE.help


def test_a_follower_of_which_nothing_is_heard_any_more_is_of_the_past() -> None:
    made = new_table(*both(HOUR))
    made.mark_agent("a1", NOW)
    made.mark_agent("a2", NOW - 1000)
    assert reported(made, "segtail_replica_retention_overdue_seconds", "broker") == {}


def test_blocked_partitions_are_counted_by_topic_and_reason_where_the_limit_is_known() -> None:
    ahead = ((0, 500, -9000), (50, 300, 9000))
    rows = [replica(broker, facts(*ahead, configs=HOUR, isr=(1, 2), replicas=(1, 2))) for broker in (1, 2)]
    active = replica(1, facts((0, 500, 9000), configs=HOUR, isr=(1,), replicas=(1,)), "growing", high_watermark=50)
    made = new_table(*rows, active, *both(NOTHING_SET, "assumed"), series_limit=0)
    assert reported(made, "segtail_topic_retention_blocked_partitions", "broker", "topic", "reason") == {
        ("1", "orders", "future_timestamp"): 1
    }


def test_a_follower_that_is_not_compacted_is_reported_with_its_checkpoint_and_a_clean_one_is_not() -> None:
    made = new_table(
        *both(COMPACT, "never", cleaner_checkpoint=-1),
        *both(COMPACT, "dirty", cleaner_checkpoint=0),
        *both(COMPACT, "clean", cleaner_checkpoint=50),
    )
    where = ("broker", "topic", "role")
    assert reported(made, "segtail_replica_dirty_ratio", *where) == {("2", "never", "follower"): 1, ("2", "dirty", "follower"): 1}
    assert reported(made, "segtail_replica_cleaner_checkpoint_offset", *where) == {("2", "dirty", "follower"): 0}
