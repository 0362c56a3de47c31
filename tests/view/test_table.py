"""The table of absolute values, seen through the page it makes."""

import random
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.cluster.view.table import Table
from streaming.common.log_key import LogKey
from streaming.common.state_row import STATES
from tests.exposition.reading import named, page
from tests.view.rows import Row, departed, log, new_observer, new_table, recalled, removed, residue, states

BYTES = "segtail_partition_appended_bytes_total"
CODECS = "segtail_topic_codec_bytes_total"
END = "segtail_partition_log_end_offset"
SKIPPED = "segtail_skipped_bytes_total"


def labels(**values: object) -> frozenset[tuple[str, str]]:
    return frozenset((name, str(value)) for name, value in values.items())


def partition(broker: int, number: int = 0, topic: str = "orders") -> frozenset[tuple[str, str]]:
    return labels(broker=broker, topic=topic, partition=number)


def codec_bytes(table: Table, codec: str = "none") -> dict[tuple[str, str], float]:
    """Of one codec: (broker, topic) to bytes."""
    found = {tuple(sorted(each)): value for each, value in named(table, CODECS).items() if ("codec", codec) in each}
    return {(dict(each)["broker"], dict(each)["topic"]): value for each, value in found.items()}


def test_a_row_that_comes_again_sets_the_same_values() -> None:
    table = new_table(log(appended_bytes=10), log(partition=1, appended_bytes=3))
    before = page(table)
    table.apply(states(log(partition=1, appended_bytes=3)))
    table.apply(states(log(appended_bytes=10)))
    assert page(table) == before


def test_of_two_rows_of_one_log_the_last_counts() -> None:
    assert named(new_table(log(appended_bytes=10), log(appended_bytes=11)), BYTES) == {partition(1): 11}
    assert named(new_table(log(), removed()), BYTES) == {}
    assert named(new_table(removed(), log(appended_bytes=4)), BYTES) == {partition(1): 4}


def test_the_columns_may_come_in_the_types_that_another_engine_writes() -> None:
    elements = [
        pa.field(field.name, pa.list_(pa.field("element", pa.int64())) if pa.types.is_list(field.type) else field.type) for field in STATES
    ]
    table = new_table()
    table.apply(pa.Table.from_pylist([log(appended_bytes=10, skipped_bytes=[1, 2, 3])], schema=pa.schema(elements)))
    assert named(table, BYTES) == {partition(1): 10}


def test_many_more_logs_than_there_was_room_for() -> None:
    """There is room for 1024, and for twice as many when that is full."""
    table = new_table(*(log(partition=number, log_end_offset=number) for number in range(1100)))
    table.apply(states(*(log("late", number, log_end_offset=number) for number in range(1100))))
    found = named(table, END)
    assert found == {partition(1, number, topic): number for topic in ("orders", "late") for number in range(1100)}


def test_a_removed_log_leaves_no_series_and_its_place_to_others() -> None:
    table = new_table(log("old", 0, appended_bytes=5, share_codec_bytes=[5, 0, 0, 0, 0]), log("stays", 0))
    table.apply(states(removed("old", 0)))
    assert 'topic="old"' not in page(table)
    table.apply(states(log("new", 7, broker=2, appended_bytes=1)))
    assert named(table, BYTES) == {partition(1, 0, "stays"): 0, partition(2, 7, "new"): 1}
    assert codec_bytes(table) == {("1", "stays"): 0, ("2", "new"): 0}


def test_a_log_that_was_never_there_is_removed_without_harm() -> None:
    table = new_table(log())
    before = page(table)
    table.apply(states(removed("never")))
    assert page(table) == before


@pytest.mark.parametrize("swap", [False, True])
def test_a_topic_made_again_has_the_new_log_s_values_whatever_the_order_of_rows(swap: bool) -> None:
    table = new_table(log(topic_id="old", appended_bytes=500, share_codec_bytes=[500, 0, 0, 0, 0]))
    rows = [removed(topic_id="old"), log(topic_id="new", appended_bytes=7, share_codec_bytes=[7, 0, 0, 0, 0])]
    table.apply(states(*(reversed(rows) if swap else rows)))
    assert named(table, BYTES) == {partition(1): 7}
    assert codec_bytes(table) == {("1", "orders"): 7}


def test_while_the_old_topic_s_removal_is_on_its_way_no_series_comes_twice() -> None:
    old, new = log(topic_id="b", appended_bytes=500, last_append_ms=1000), log(topic_id="a", appended_bytes=7, last_append_ms=2000)
    for rows in ([old, new], [new, old]):
        assert named(new_table(*rows), BYTES) == {partition(1): 7}
        assert named(new_table(*rows, replicas="all"), BYTES) == {partition(1): 7}


def test_one_replica_of_a_partition_is_exported_the_leader() -> None:
    rows = [log(broker=broker, topic_id="t", leader=2, leader_epoch=3, appended_bytes=broker) for broker in (1, 2, 3)]
    assert named(new_table(*rows), BYTES) == {partition(2): 2}


def test_topics_of_one_name_with_different_ids_are_different_partitions() -> None:
    rows = [log(broker=broker, topic_id=f"t{broker}", appended_bytes=broker) for broker in (1, 2)]
    assert named(new_table(*rows), BYTES) == {partition(1): 1, partition(2): 2}


def test_replicas_without_a_topic_id_are_replicas_by_their_topic_s_name() -> None:
    rows = [log(broker=broker, log_end_offset=broker) for broker in (1, 2)]
    assert named(new_table(*rows), END) == {partition(2): 2}


def test_all_replicas_are_exported_on_demand_and_one_of_them_leads() -> None:
    rows = [log(broker=broker, topic_id="t", leader=2, leader_epoch=broker) for broker in (1, 2)]
    table = new_table(*rows, replicas="all")
    assert named(table, "segtail_partition_leader") == {partition(1): 0, partition(2): 1}
    assert named(table, "segtail_partition_leader_epoch") == {partition(1): 2, partition(2): 2}


def test_of_a_log_in_its_first_backlog_of_which_no_leader_was_reported_yet_nothing_is_stated_that_would_be_false() -> None:
    table = new_table(log(partition=0, settled=False, log_end_offset=7), log(partition=1, settled=True, log_end_offset=7))
    for name in ("high_watermark", "last_stable_offset"):
        assert [dict(of)["partition"] for of in named(table, f"segtail_partition_{name}")] == ["1"]
    assert len(named(table, "segtail_partition_log_end_offset")) == 2


def test_nobody_leads_the_leader_is_not_observed_and_nobody_knows_who_leads_are_three_values() -> None:
    rows = [log(partition=number, log_end_offset=7, leader=leader, leader_epoch=4) for number, leader in enumerate((1, -1, 9))]
    table = new_table(*rows, log(partition=3, log_end_offset=7))

    def reported(name: str) -> dict[str, float]:
        return {dict(labels)["partition"]: value for labels, value in named(table, f"segtail_partition_{name}").items()}

    assert reported("leader_id") == {"0": 1, "1": -1, "2": 9}
    assert reported("leader") == {"0": 1, "1": 0, "2": 0}


def test_a_partition_passes_on_when_its_leader_s_agent_is_silent_and_back_when_it_answers() -> None:
    table = new_table(*(log(broker=broker, agent=f"a{broker}", leader=1, leader_epoch=1, log_end_offset=5) for broker in (1, 2)))
    table.mark_agent("a1", 1000.0)
    table.mark_agent("a2", 1290.0)
    assert named(table, END, now=1300.0) == {partition(1): 5}
    assert named(table, END, now=1300.5) == {partition(2): 5}
    table.mark_agent("a1", 1300.0)
    assert named(table, END, now=1300.5) == {partition(1): 5}


def test_the_partitions_of_an_agent_stay_when_nobody_else_has_them() -> None:
    table = new_table(log(log_end_offset=5))
    table.mark_agent("a1", 0.0)
    assert named(table, END, now=1e6) == {partition(1): 5}


def test_a_log_s_counters_wait_for_its_backlog_and_its_gauges_do_not() -> None:
    table = new_table(log(settled=False, appended_bytes=10, log_end_offset=3))
    assert named(table, BYTES) == {}
    assert named(table, END) == {partition(1): 3}
    table.apply(states(log(settled=True, appended_bytes=12, log_end_offset=4)))
    assert named(table, BYTES) == {partition(1): 12}


def test_a_topic_s_counters_wait_for_the_backlog_of_all_its_logs_so_that_they_never_jump() -> None:
    first = log(partition=0, share_codec_bytes=[10, 0, 0, 0, 0])
    table = new_table(first, log(partition=1, settled=False, share_codec_bytes=[100, 0, 0, 0, 0]))
    assert codec_bytes(table) == {}
    table.apply(states(log(partition=1, share_codec_bytes=[100, 0, 0, 0, 0])))
    assert codec_bytes(table) == {("1", "orders"): 110}


def test_a_log_whose_backlog_cannot_be_read_hides_nobody_else_s_counters() -> None:
    first, second = log(share_codec_bytes=[5, 0, 0, 0, 0]), log(partition=1, settled=False, share_codec_bytes=[100, 0, 0, 0, 0])
    table = new_table(first, second)
    assert codec_bytes(table) == {}
    key = LogKey(second["broker"], second["topic"], second["partition"], second["topic_id"])
    other = LogKey(second["broker"], "other", 0, "")
    table.set_unreadable([key, other])
    assert codec_bytes(table) == {("1", "orders"): 5}
    table.set_unreadable([])
    table.apply(states(second))
    assert codec_bytes(table) == {("1", "orders"): 5}  # it must not vanish again
    table.apply(states(second | {"settled": True}))
    assert codec_bytes(table) == {("1", "orders"): 105}


def test_a_run_that_goes_on_shows_no_topic_s_counters_before_all_its_logs_have_come_again() -> None:
    table = new_table()
    table.recalls(2)
    table.apply(states(log(agent="a1", share_codec_bytes=[10, 0, 0, 0, 0])))
    assert codec_bytes(table) == {}  # its other log, which was counted before, has not come yet
    table.apply(states(recalled(0)))
    assert codec_bytes(table) == {}
    table.apply(states(recalled(0)))
    assert codec_bytes(table) == {}
    table.apply(states(log(partition=1, agent="a1", share_codec_bytes=[100, 0, 0, 0, 0]), recalled(1)))
    assert codec_bytes(table) == {("1", "orders"): 110}


def test_a_topic_of_which_no_backlog_can_be_read_has_no_counters() -> None:
    row = log(settled=False)
    table = new_table(row)
    table.set_unreadable([LogKey(row["broker"], row["topic"], row["partition"], row["topic_id"])])
    assert codec_bytes(table) == {}


def test_a_log_that_appears_later_joins_its_topic_s_counters_when_its_backlog_is_read() -> None:
    table = new_table(log(share_codec_bytes=[10, 0, 0, 0, 0]))
    table.apply(states(log(partition=1, settled=False, share_codec_bytes=[3, 0, 0, 0, 0])))
    assert codec_bytes(table) == {("1", "orders"): 10}
    table.apply(states(log(partition=1, share_codec_bytes=[4, 0, 0, 0, 0])))
    assert codec_bytes(table) == {("1", "orders"): 14}


def test_a_topic_that_comes_back_waits_for_its_backlog_again() -> None:
    table = new_table(log("a"))
    table.apply(states(removed("a"), log("b", settled=False, share_codec_bytes=[3, 0, 0, 0, 0])))
    assert codec_bytes(table) == {}


def test_the_share_of_a_log_that_left_stays_in_its_topic_s_counters() -> None:
    table = new_table(*(log(partition=number, share_codec_bytes=[10, 0, 0, 0, 1]) for number in (0, 1)))
    table.apply(states(departed(partition=1, share_codec_bytes=[10, 0, 0, 0, 1])))
    assert codec_bytes(table) == {("1", "orders"): 20}
    assert codec_bytes(table, "zstd") == {("1", "orders"): 2}
    assert named(table, BYTES).keys() == {partition(1, 0)}


def test_a_topic_without_a_log_on_the_broker_is_not_exported_there() -> None:
    table = new_table(log(broker=1, share_codec_bytes=[10, 0, 0, 0, 0]), log(broker=2))
    table.apply(states(departed(broker=1, share_codec_bytes=[10, 0, 0, 0, 0])))
    assert codec_bytes(table) == {("2", "orders"): 0}
    table.apply(states(log(broker=1, share_codec_bytes=[11, 0, 0, 0, 0])))
    assert codec_bytes(table) == {("1", "orders"): 11, ("2", "orders"): 0}


def test_a_topic_s_counters_count_every_broker_s_share_whoever_leads_now() -> None:
    rows = [log(broker=broker, topic_id="t", leader=1, leader_epoch=1, share_codec_bytes=[broker, 0, 0, 0, 0]) for broker in (1, 2)]
    assert codec_bytes(new_table(*rows)) == {("1", "orders"): 1, ("2", "orders"): 2}


def test_skipped_bytes_are_summed_over_everything_a_broker_had() -> None:
    table = new_table(
        log(settled=False, skipped_bytes=[1, 0, 0]),
        departed(partition=1, skipped_bytes=[0, 20, 0]),
        residue(0, [300, 0, 4000]),
        residue(1, [50000, 0, 0]),
        log(broker=2, skipped_bytes=[0, 0, 7]),
    )
    expected = {"deleted": 50301, "corrupt": 20, "agent_lost": 4000}
    found = named(table, SKIPPED)
    assert {reason: found[labels(broker=1, reason=reason, copy="exported")] for reason in expected} == expected
    assert found[labels(broker=2, reason="agent_lost", copy="exported")] == 7


@pytest.mark.parametrize(("replicas", "exported", "follower"), [("leaders", 5, 2), ("all", 7, 0)])
def test_what_is_skipped_of_a_follower_s_copy_is_told_from_what_is_exported(
    replicas: Literal["leaders", "all"], exported: int, follower: int
) -> None:
    table = new_table(log(skipped_bytes=[7, 0, 0], follower_skipped_bytes=[2, 0, 0]), replicas=replicas)
    found = named(table, SKIPPED)
    assert [found[labels(broker=1, reason="deleted", copy=copy)] for copy in ("exported", "follower")] == [exported, follower]


def test_residue_makes_no_series_of_a_topic() -> None:
    assert 'topic=""' not in page(new_table(residue(0, [1, 0, 0]), log()))


def test_skipped_bytes_of_a_removed_log_move_to_the_residue_in_one_step() -> None:
    table = new_table(log(skipped_bytes=[0, 9, 0]))
    table.apply(states(removed(), residue(0, [0, 9, 0])))
    assert named(table, SKIPPED)[labels(broker=1, reason="corrupt", copy="exported")] == 9


def test_an_empty_table_makes_a_page() -> None:
    assert "segtail_partition" not in page(new_table())
    table = new_table()
    table.apply(states())
    assert page(table) == page(new_table())


def test_a_run_that_goes_on_is_ready_when_every_shard_has_been_recalled_whatever_agents_do() -> None:
    table = new_table()
    table.recalls(2)
    table.set_whole()
    table.set_agents([])
    for row in (recalled(1), recalled(1), log()):
        assert not table.ready
        table.apply(states(row))
    assert not table.ready
    table.apply(states(recalled(0), log()))
    assert table.ready


def test_a_first_run_is_ready_when_it_is_asked_to_be() -> None:
    table = new_table(log(), recalled(0))
    table.set_agents([])
    assert not table.ready
    table.set_whole()
    assert table.ready


def test_a_snapshot_is_not_touched_by_later_rows() -> None:
    table = new_table(log(appended_bytes=1))
    snapshot = table.snapshot(0.0)
    table.apply(states(removed(), log("other")))
    assert snapshot.columns["appended_bytes"].tolist() == [1]
    assert snapshot.topic_counted.tolist() == [True]
    assert snapshot.topic_labels == ['broker="1",topic="orders"']


def _life(draw: Any, batch: int) -> list[Row]:
    """What the fold says of a handful of logs, one micro-batch after the other: in each, a log has one row at most. No two were appended to
    at one time: of two with the same labels the later one is shown. A partition has one leader in an epoch, whoever tells of it."""
    named = st.sampled_from((("a", "x"), ("a", "y"), ("b", "")))  # where a topic has ids, all of its logs have one
    keys = [(*key[0], *key[1:]) for key in draw(st.lists(st.tuples(named, st.integers(0, 1), st.integers(1, 2)), unique=True, max_size=6))]
    rows: list[Row] = []
    leaders = {partition: draw(st.integers(-2, 2)) for partition in sorted({(topic, partition) for topic, _, partition, _ in keys})}
    for number, (topic, topic_id, partition, broker) in enumerate(keys, start=10 * batch):
        row = draw(st.sampled_from((log, log, departed, removed)))(topic, partition, broker=broker, topic_id=topic_id)
        if row["change"] != "removed":
            value = draw(st.integers(0, 1000))
            row |= {"appended_bytes": value, "share_codec_bytes": [value] * 5, "skipped_bytes": [value] * 3, "last_append_ms": number}
            row |= {"settled": draw(st.booleans()), "leader": leaders[topic, partition], "leader_epoch": batch, "log_end_offset": number}
        rows.append(row)
    return rows


@given(data=st.data(), seed=st.randoms(use_true_random=False))
def test_rows_in_any_order_and_micro_batches_repeated_leave_the_same_page(data: st.DataObject, seed: random.Random) -> None:
    batches = [_life(data.draw, batch) for batch in range(data.draw(st.integers(1, 4)))]
    once, again = new_table(), new_table()
    for rows in batches:
        once.apply(states(*rows))
        for _ in range(seed.randint(1, 3)):
            again.apply(states(*seed.sample(rows, len(rows))))
        again.apply(states(*seed.sample(rows, seed.randint(0, len(rows)))))
    observer = new_observer()
    assert page(again, observer) == page(once, observer)


def test_an_agent_that_is_recalled_and_never_answers_falls_silent() -> None:
    table = new_table()
    table.recalls(1)
    table.apply(states(log(agent="a1"), log(broker=2, agent="a2"), recalled(0)))
    table.mark_agent("a1", 1000.0)
    assert table.snapshot(1000.0).silent.tolist()[:2] == [False, False]
    table.mark_agent("a1", 1301.0)
    assert table.snapshot(1301.0).silent.tolist()[:2] == [False, True]
