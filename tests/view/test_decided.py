"""What a page says is decided: by the round that speaks, never later than the truth, and never of another topic of the same name."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.cluster.view.decisions import End
from streaming.cluster.view.table import Table
from streaming.cluster.view.view import view
from streaming.common.catalog import NOTHING_DECIDED, Catalog
from tests.catalog.catalogs import Row, catalog
from tests.view.rows import log, states, untold_table
from tests.worlds.retention import HOUR, facts


def table(*rows: Row) -> Table:
    """One that is reported catalogs apart from its rows."""
    made = untold_table()
    made.apply(states(*rows))
    return made


def arrived(to: Table, seq: int, journal: str = "j", agent: str = "a1") -> None:
    to.apply(states({"change": "arrived", "agent": agent, "topic_id": journal, "log_end_offset": seq}))


def led(isr: list[int] | None, *, leader: int = 1, checkpoint: int = 10, topic_id: str = "") -> Catalog:
    partition = {"leader": leader, "leader_epoch": 3, "isr": isr, "replicas": isr, "adding_replicas": [], "topic_id": topic_id}
    return catalog(partitions=[partition], logs=[{"high_watermark": checkpoint, "topic_id": topic_id}])


def high_watermark(of: Table) -> int:
    """Of the only log, -1 where it is absent."""
    return int(view(of.snapshot(0.0)).logs["high_watermark"][0])


def test_until_its_agent_has_reported_nothing_is_stated_and_0_least_of_all() -> None:
    made = table(log(log_end_offset=100, log_start_offset=5))
    logs = view(made.snapshot(0.0)).logs
    assert [int(logs[name][0]) for name in ("high_watermark", "last_stable_offset", "leader", "replicas", "in_sync_replicas")] == [-1] * 5
    made.take_catalog("a1", catalog())
    assert high_watermark(made) == -1
    made.take_catalog("a1", led(None, leader=-2))
    logs = view(made.snapshot(0.0)).logs
    assert [int(logs[name][0]) for name in ("high_watermark", "leader", "replicas", "in_sync_replicas")] == [10, -1, -1, -1]


def test_a_round_that_the_fold_has_not_reached_does_not_speak() -> None:
    made = table(log(log_end_offset=100))
    arrived(made, 5)
    made.take_catalog("a1", led([1]), End("j", 5))
    assert int(view(made.snapshot(0.0)).logs["in_sync_replicas"][0]) == 1
    made.take_catalog("a1", led([1, 2]), End("j", 6))
    assert int(view(made.snapshot(0.0)).logs["in_sync_replicas"][0]) == 1
    arrived(made, 6, "another")
    assert int(view(made.snapshot(0.0)).logs["in_sync_replicas"][0]) == 1
    arrived(made, 6)
    assert int(view(made.snapshot(0.0)).logs["in_sync_replicas"][0]) == 2


def test_of_two_rounds_the_smaller_high_watermark_counts() -> None:
    made = table(log(log_end_offset=100))
    arrived(made, 5)
    made.take_catalog("a1", led([1]), End("j", 5))
    assert high_watermark(made) == 100  # alone in sync
    made.take_catalog("a1", led([1, 2], checkpoint=70), End("j", 6))
    assert high_watermark(made) == 70  # another one is by now, and is not observed: what is written down counts
    made.take_catalog("a1", led([1]), End("j", 7))
    assert high_watermark(made) == 70


def test_no_high_watermark_is_below_the_one_by_which_ended_transactions_were_let_go() -> None:
    made = table(log(log_end_offset=100, high_watermark=80))
    made.take_catalog("a1", led([1, 2], checkpoint=70))
    logs = view(made.snapshot(0.0)).logs
    assert [int(logs[name][0]) for name in ("high_watermark", "last_stable_offset")] == [80, 80]


@given(st.lists(st.tuples(st.sampled_from([(1,), (1, 2)]), st.integers(0, 100)), min_size=1, max_size=4))
def test_no_round_that_waits_makes_it_later(reported: list[tuple[tuple[int, ...], int]]) -> None:
    made = table(log(log_end_offset=100))
    arrived(made, 0)
    spoken = None
    for number, (isr, checkpoint) in enumerate(reported):
        made.take_catalog("a1", led(list(isr), checkpoint=checkpoint), End("j", number))
        spoken = spoken if number else high_watermark(made)
        assert spoken is not None
        assert high_watermark(made) <= min(spoken, 100 if isr == (1,) else checkpoint)


def test_a_topic_that_is_made_anew_has_not_the_limits_of_the_one_before() -> None:
    assert _limits_of("new", reported_of="old") != _limits_of("new", reported_of="new")
    assert _limits_of("old", reported_of="old") == _limits_of("new", reported_of="new")


def _limits_of(topic_id: str, *, reported_of: str) -> int:
    made = table(log(topic_id=topic_id, log_end_offset=100, facts=facts((0, 500, 10))))
    topic = {"topic_id": reported_of, "configs": HOUR}
    made.take_catalog("a1", catalog(topics=[topic], logs=[{"topic_id": topic_id}], partitions=[{"topic_id": topic_id}]))
    return int(view(made.snapshot(0.0)).logs["retention_limit_ms"][0])


def test_what_a_round_knows_and_the_fold_does_not_is_passed_over() -> None:
    made = table(log(log_end_offset=100))
    unknown: list[dict[str, object]] = [{"topic": "another"}, {"partition": 7}, {"topic_id": "x"}]
    made.take_catalog("a1", catalog(partitions=[{**each, "leader": 1} for each in unknown], logs=[*unknown]))
    assert len(view(made.snapshot(0.0)).logs.labels) == 1


def test_what_another_agent_knows_of_a_partition_counts_for_all_its_replicas() -> None:
    made = table(log(log_end_offset=100), log(broker=2, agent="a2", log_end_offset=90))
    made.take_catalog("a2", led([1, 2], leader=2))
    found = view(made.snapshot(0.0)).logs
    assert [int(found["broker"][0]), int(found["leader"][0])] == [2, 1]


def test_it_is_ready_once_what_is_decided_speaks_of_each_agent_that_takes_part() -> None:
    made = untold_table()
    made.set_whole()
    made.take_catalog("a1", NOTHING_DECIDED, End("j", 5))
    made.set_agents(["a1"])
    assert not made.ready
    arrived(made, 5)
    made.set_agents(["a1", "a2"])
    assert not made.ready
    made.set_agents(["a1"])
    assert made.ready
    made.set_agents(["a1", "a2"])
    assert made.ready
