"""What pages say of retention, compaction and log dirs; the rules themselves are tested where they are."""

from typing import Any

import numpy as np
import pytest

from streaming.cluster.view.page_context import DeletableSince
from streaming.cluster.view.table import Table
from streaming.common.catalog import UNREADABLE
from streaming.common.rows import SEGMENTS
from streaming.rules.config_values import ValueSource, broker_configs
from tests.exposition.reading import named
from tests.view.reported import Facts
from tests.view.rows import Row, log, new_table, states
from tests.worlds.retention import BELOW, COMPACT, HOUR, MS, NOTHING_SET, NOW, SIZED, facts, orders

P = "segtail_partition_"


def only(table: Table, name: str, *, after: float = 0) -> float | None:
    found = named(table, P + name, now=NOW + after)
    assert len(found) <= 1
    return next(iter(found.values()), None)


def test_before_the_first_inventory_nothing_is_stated() -> None:
    table = new_table(orders(None))
    assert [only(table, name) for name in ("size_bytes", "segments", "retention_lag_seconds", "info")] == [None] * 4


def test_what_is_past_its_limit_is_overdue_by_the_clock_though_nothing_is_appended() -> None:
    table = new_table(orders(facts((0, 500, 3000), (50, 300, 10), configs=HOUR)))
    assert [only(table, name) for name in ("size_bytes", "segments", "active_segment_size_bytes")] == [800, 2, 300]
    assert [only(table, f"retention_{name}") for name in ("limit_seconds", "lag_seconds", "reclaimable_bytes")] == [3600, 0, 0]
    assert only(table, "next_deletion_timestamp_seconds") == NOW + 600.001
    assert only(table, "retention_overdue_seconds") == 0
    later = [only(table, f"retention_{name}", after=700) for name in ("lag_seconds", "overdue_seconds", "reclaimable_bytes")]
    assert later == [100, 100, 500]


def test_what_a_silent_agent_reported_last_does_not_age() -> None:
    """Its broker may have deleted it long ago. What was known stays, what follows from the present time is not known."""
    judged = ("retention_lag_seconds", "retention_overdue_seconds", "retention_reclaimable_bytes", "dirty_bytes", "dirty_ratio")
    reported = ("size_bytes", "segments", "retention_limit_seconds", "next_deletion_timestamp_seconds")
    table = new_table(orders(facts((0, 500, 3000), (50, 300, 10), configs=HOUR)))
    table.mark_agent("a1", NOW)
    known = [only(table, name) for name in reported]
    assert [only(table, name, after=9_000) for name in judged] == [None] * len(judged)
    assert [only(table, name, after=9_000) for name in reported] == known
    table.mark_agent("a1", NOW + 9_000)
    assert only(table, "retention_lag_seconds", after=9_000) == 9_000 - 600


def test_the_active_segment_grows_beyond_its_inventory() -> None:
    grown = orders(facts((0, 500, 10), (50, 300, 10)), active_segment=50, active_position=450)
    assert [only(new_table(grown), name) for name in ("size_bytes", "active_segment_size_bytes", "segments")] == [950, 450, 2]
    rolled = orders(facts((0, 500, 10), (50, 300, 10)), active_segment=80, active_position=70)
    assert [only(new_table(rolled), name) for name in ("size_bytes", "active_segment_size_bytes", "segments")] == [870, 70, 3]


def test_reasons_are_named() -> None:
    table = new_table(orders(facts((0, 500, -50), (50, 300, 9000), (90, 10, 10), configs=HOUR, oldest_timestamp=MS - 9_000_000)))
    (labels,) = named(table, f"{P}retention_blocked", now=NOW)
    assert ("reason", "future_timestamp") in labels
    assert only(table, "max_timestamp_ahead_seconds") == 50
    (labels,) = named(table, f"{P}retention_blocked", now=NOW + 51)
    assert ("reason", "head_of_line") in labels


def test_compacted_topics_have_dirt_and_no_retention() -> None:
    table = new_table(orders(facts((0, 500, 10), (50, 300, 10), (90, 10, 10), configs=COMPACT, cleaner_checkpoint=50)))
    assert [only(table, name) for name in ("dirty_bytes", "dirty_ratio", "cleaner_checkpoint_offset")] == [300, 0.375, 50]
    assert [only(table, f"retention_{name}") for name in ("limit_seconds", "lag_seconds", "reclaimable_bytes")] == [None] * 3
    uncleanable = named(table, f"{P}uncleanable_bytes", now=NOW)
    assert {dict(labels)["reason"]: value for labels, value in uncleanable.items()} == {
        "open_transaction": 0,
        "compaction_lag": 0,
        "moving": 0,
    }


def source(table: Table) -> str:
    (labels,) = named(table, f"{P}info", now=NOW)
    return dict(labels)["limit_source"]


def test_where_a_limit_comes_from_is_reported() -> None:
    segments = (0, 500, 10)
    assert source(new_table(orders(facts(segments, configs=HOUR)))) == "topic"
    assert source(new_table(orders(facts(segments, configs="{}")))) == "assumed"
    static = {1: broker_configs([("log.retention.hours", "2")], ValueSource.STATIC)}
    table = new_table(orders(facts(segments, configs=NOTHING_SET)), static=lambda: static)
    assert (source(table), only(table, "retention_limit_seconds")) == ("static", 7200)
    table = new_table(orders(facts(segments, configs="{}")), static=lambda: static)
    assert (source(table), only(table, "retention_limit_seconds")) == ("assumed", 7200)  # the topic may set another
    others = {2: static[1]}
    other = new_table(orders(facts(segments, configs="{}")), static=lambda: others)
    assert (source(other), only(other, "retention_limit_seconds")) == ("assumed", 604800)


def test_configurations_that_are_not_understood_are_assumed() -> None:
    assert source(new_table(orders(facts((0, 500, 10), configs="{what")))) == "assumed"


def test_a_log_dir_holds_every_replica_and_a_page_one() -> None:
    one, two = facts((0, 500, 10)), facts((0, 400, 10))
    rows = (
        orders(one),
        log("bills", 0, facts=two),
        log("bills", 1, facts=two, log_dir="/other"),
        log("orders", 0, broker=2, agent="a2", leader=1, leader_epoch=0, facts=two),
    )
    table = new_table(*rows)
    sizes = {(dict(each)["broker"], dict(each)["log_dir"]): value for each, value in named(table, "segtail_log_dir_size_bytes").items()}
    assert sizes == {("1", "/data"): 900, ("1", "/other"): 400, ("2", "/data"): 400}
    topics = {tuple(value for _, value in sorted(each)): value for each, value in named(table, "segtail_log_dir_topic_size_bytes").items()}
    assert topics == {
        ("1", "/data", "bills"): 400,
        ("1", "/data", "orders"): 500,
        ("1", "/other", "bills"): 400,
        ("2", "/data", "orders"): 400,
    }
    assert len(named(table, f"{P}size_bytes")) == 3


def test_the_metadata_log_is_none_of_a_log_dirs_replicas() -> None:
    table = new_table(
        log("__cluster_metadata", 0, facts=facts((0, 500, 10))), log("orders", 0, facts=facts((0, 400, 10)), log_dir="/other")
    )
    sizes = {dict(each)["log_dir"]: value for each, value in named(table, "segtail_log_dir_size_bytes").items()}
    assert sizes == {"/data": 0, "/other": 400}
    assert {dict(each)["topic"] for each in named(table, "segtail_log_dir_topic_size_bytes")} == {"orders"}
    assert {dict(each)["topic"] for each in named(table, f"{P}size_bytes")} == {"__cluster_metadata", "orders"}


def test_a_broker_that_begins_with_another_configuration_has_its_limits_from_then_on() -> None:
    given = {1: broker_configs([("log.retention.hours", "2")], ValueSource.STATIC)}
    table = new_table(orders(facts((0, 500, 10), configs="{}")), static=lambda: given)
    assert only(table, "retention_limit_seconds") == 7200
    given = {1: broker_configs([("log.retention.hours", "3")], ValueSource.STATIC)}
    assert only(table, "retention_limit_seconds") == 10800


def test_a_broker_that_is_fenced_leads_nothing_though_its_own_disk_says_so() -> None:
    table = new_table(
        log("alone", 0, leader=1, leader_epoch=0),
        log("shared", 0, leader=1, leader_epoch=0),
        log("shared", 0, broker=2, agent="a2", leader=2, leader_epoch=1),
    )
    table.set_context(fenced=frozenset({1}))
    found = named(table, f"{P}leader")
    assert {(dict(each)["topic"], dict(each)["broker"]): value for each, value in found.items()} == {("alone", "1"): 0, ("shared", "2"): 1}
    table.set_context(fenced=frozenset())
    assert set(named(table, f"{P}leader").values()) == {1}


def alone_in_sync(version: int, **values: Any) -> Row:
    """A leader whose two followers are gone, to which acks=1 producers have written on."""
    reported = facts((0, 500, 9000), (90, 300, 9000), configs=BELOW, replicas=(1, 2, 3), isr=(1,), leader_metadata_version=version)
    return orders(reported, high_watermark=60, **values)


def test_below_min_isr_everything_goes_by_the_leaders_checkpoint_since_kafka_3_7() -> None:
    names = ("high_watermark", "last_stable_offset", "last_stable_offset_lag", "retention_reclaimable_bytes", "retention_overdue_seconds")
    for version in (15, 30, -1):
        table = new_table(alone_in_sync(version))
        assert [only(table, name) for name in names] == [60, 60, 0, 0, 0]
        (labels,) = named(table, f"{P}retention_blocked", now=NOW)
        assert ("reason", "high_watermark") in labels
        assert only(table, "min_in_sync_replicas") == 2
    before = new_table(alone_in_sync(14))
    assert [only(before, name) for name in names[:4]] == [100, 100, 0, 800]
    assert only(before, "min_in_sync_replicas") == 2


def test_a_backfill_past_its_limit_is_blocked_only_when_two_checks_have_passed_since_it_was_written() -> None:
    made, old = np.array([(0, 500, MS - 9_000_000, MS - 5000)], SEGMENTS), MS - 9_000_000
    reported = Facts(segments=made, configs=BELOW, replicas=(1, 2, 3), isr=(1,), leader_metadata_version=15, oldest_timestamp=old).encode()
    table = new_table(orders(reported, high_watermark=60))
    blocked = [len(named(table, f"{P}retention_blocked", now=NOW + after)) for after in (0, 595, 596)]
    assert blocked == [0, 0, 1]


def test_fewer_replicas_than_min_isr_asks_for_are_enough_since_kafka_3_7() -> None:
    for version, expected in ((15, 1), (14, 2)):
        reported = facts((0, 500, 10), configs=BELOW, replicas=(1,), isr=(1,), leader_metadata_version=version)
        assert only(new_table(orders(reported)), "min_in_sync_replicas") == expected


def test_a_limit_that_was_lowered_makes_nothing_overdue_at_once() -> None:
    table = new_table(orders(facts((0, 500, 36_000), (50, 300, 10), configs=NOTHING_SET)), deletable=DeletableSince())
    assert only(table, "retention_overdue_seconds") == 0
    table.apply(states(orders(facts((0, 500, 36_000), (50, 300, 10), configs=HOUR))))
    assert [only(table, "retention_overdue_seconds", after=each) for each in (60, 90, 2000)] == [0, 30, 1940]
    assert only(table, "retention_reclaimable_bytes", after=60) == 500


def test_where_the_high_watermark_is_not_known_nothing_is_stated_of_what_depends_on_it() -> None:
    reported = facts((0, 500, 9000), (50, 300, 9000), configs=HOUR, replicas=(1, 2), isr=(1, 2))
    table = new_table(orders(reported, high_watermark=UNREADABLE))
    names = ("high_watermark", "high_watermark_checkpoint", "last_stable_offset", "last_stable_offset_lag", "retention_overdue_seconds")
    assert [only(table, name) for name in (*names, "retention_reclaimable_bytes", "retention_blocked")] == [None] * 7
    assert only(table, "retention_lag_seconds") == 5400


def test_where_nobody_leads_the_newest_metadata_among_agents_that_are_up_says_who_is_in_sync() -> None:
    def replica(broker: int, agent: str, leader: int, epoch: int, *isr: int) -> Row:
        reported = facts((0, 500, 10), replicas=(1, 2), isr=isr)
        return orders(reported, broker=broker, agent=agent, leader=leader, leader_epoch=epoch)

    table = new_table(replica(1, "a1", 1, 5, 1, 2), replica(2, "a2", -1, 6))
    assert only(table, "in_sync_replicas") == 0
    table.apply(states(replica(2, "a2", -1, 6, 1)))
    assert only(table, "in_sync_replicas") == 1


def test_the_next_deletion_is_by_size_where_that_comes_first() -> None:
    """500 bytes an hour after the first segment: it is not needed once 1,000 come after it."""
    grown = orders(facts((0, 500, 3600), (50, 300, 10), configs=SIZED), last_append_ms=MS - 10_000)
    table = new_table(grown)
    soon = only(table, "next_deletion_timestamp_seconds")
    assert soon is not None
    assert NOW < soon < NOW + 86_400
    idle = orders(facts((0, 500, 3600), configs=SIZED))
    assert only(new_table(idle), "next_deletion_timestamp_seconds") == pytest.approx(NOW - 3600 + 604_800, abs=0.01)


def test_the_next_deletion_by_size_of_what_a_silent_agent_reported_is_not_known() -> None:
    table = new_table(orders(facts((0, 500, 3600), (50, 300, 10), configs=SIZED), last_append_ms=MS - 10_000))
    table.mark_agent("a1", NOW)
    assert only(table, "next_deletion_timestamp_seconds", after=9_000) is None


NEXT = ("next_deletion_timestamp_seconds", "retention_overdue_seconds", "retention_reclaimable_bytes")


def test_a_broker_without_a_process_deletes_nothing_until_it_is_started() -> None:
    """Nothing is overdue by the time in which it was away, neither then nor when it runs again."""
    table = new_table(orders(facts((0, 500, 3000), (50, 300, 10), configs=HOUR)), deletable=DeletableSince())
    assert [only(table, name) for name in NEXT] == [NOW + 600.001, 0, 0]
    table.set_context(away=frozenset({1}))
    assert [only(table, name, after=100) for name in NEXT] == [None, 0, 0]
    assert [only(table, name, after=9_000) for name in NEXT] == [None, 0, 800]
    table.set_context(away=frozenset())
    assert [only(table, name, after=9_001) for name in NEXT] == [NOW + 600.001, 0, 800]
    assert only(table, "retention_overdue_seconds", after=9_061) == 60


def test_where_another_broker_leads_its_log_decides() -> None:
    def replica(broker: int, age: int, leader: int) -> Row:
        packed = facts((0, 500, age), (50, 300, 10), configs=HOUR, replicas=(1, 2))
        return orders(packed, broker=broker, agent=f"a{broker}", leader=leader, leader_epoch=leader)

    table = new_table(replica(1, 3000, 1), replica(2, 2000, 1))
    table.set_context(away=frozenset({1}))
    assert only(table, "next_deletion_timestamp_seconds") is None
    table.apply(states(replica(2, 2000, 2)))
    assert only(table, "next_deletion_timestamp_seconds") == NOW + 1600.001
