"""The observer's own state on the page."""

import pytest

from streaming.cluster.view.observer import AgentStatus, Observer, Threshold, Versions
from streaming.common.pace import Pace, PaceReason
from tests.exposition.reading import named, page, samples
from tests.view.rows import log, new_observer, new_table


def values(observer: Observer, name: str, label: str, *, now: float = 0.0) -> dict[str, float]:
    """Samples of a metric by one of their labels."""
    return {dict(labels)[label]: value for labels, value in named(new_table(), name, observer, now=now).items()}


def agent(name: str = "a1", **status: object) -> AgentStatus:
    return AgentStatus(**({"name": name, "up": True, "brokers": (1,), "cluster_id": "c"} | status))  # type: ignore[arg-type]


def test_event_counters_are_there_with_0_before_anything_happened() -> None:
    observer = new_observer()
    assert values(observer, "segtail_query_restarts_total", "query") == {"segtail": 0}
    assert values(observer, "segtail_series_dropped_total", "reason") == {"partition_series": 0, "topic_series": 0, "label_bytes": 0}
    assert values(observer, "segtail_query_batch_duration_seconds_count", "query") == {"segtail": 0}


def test_a_query_that_never_looked_has_no_last_look() -> None:
    observer = new_observer()
    assert values(observer, "segtail_query_last_look_timestamp_seconds", "query") == {}
    observer.checked(1_700_000_000.25)
    assert values(observer, "segtail_query_last_look_timestamp_seconds", "query") == {"segtail": 1_700_000_000.25}


def test_restarts_and_batches_are_counted() -> None:
    observer = new_observer()
    observer.restarted()
    observer.batch_took(0.2)
    observer.batch_took(400.0)
    assert values(observer, "segtail_query_restarts_total", "query") == {"segtail": 1}
    assert values(observer, "segtail_query_batch_duration_seconds_sum", "query") == {"segtail": 400.2}
    buckets = values(observer, "segtail_query_batch_duration_seconds_bucket", "le")
    assert (buckets["0.1"], buckets["0.25"], buckets["300.0"], buckets["+Inf"]) == (0, 1, 1, 2)


def test_the_pace_is_reported_with_its_reason_and_what_scrapes_saw() -> None:
    paces = [Pace(1.0, PaceReason.FIRST_MINUTE), Pace(15.0, PaceReason.SCRAPE)]
    observer = Observer(query="q", versions=Versions(segtail="1", spark="4", python="3"), thresholds=(), pace=paces.pop)
    assert values(observer, "segtail_query_pace_seconds", "reason") == {"scrape": 15.0}
    assert values(observer, "segtail_query_pace_seconds", "reason") == {"first_minute": 1.0}
    once = Observer(query="q", versions=Versions(segtail="1", spark="4", python="3"), thresholds=(), pace=lambda: None)
    assert values(once, "segtail_query_pace_seconds", "reason") == {}  # a page of --once would have the reason of how long it took
    observer = new_observer()
    for age in (0.4, 1.2, 1.9):
        observer.scraped(age)
    buckets = values(observer, "segtail_scrape_data_age_seconds_bucket", "le")
    assert (buckets["0.5"], buckets["1.0"], buckets["1.5"], buckets["2.0"]) == (1, 1, 2, 3)


@pytest.mark.parametrize(("pace", "behind"), [(1.0, 31.5), (15.0, 45.5), (30.0, 60.5)])
def test_what_waits_for_its_turn_is_no_backlog(pace: float, behind: float) -> None:
    versions = Versions(segtail="1", spark="4", python="3")
    observer = Observer(query="q", versions=versions, thresholds=(), pace=lambda: Pace(pace, PaceReason.SCRAPE))
    observer.know([agent()])
    observer.begins("a1")
    observer.published("a1", "j", 9, at=0.0)
    assert values(observer, "segtail_broker_catching_up", "broker", now=behind - 1) == {"1": 0}
    assert values(observer, "segtail_broker_catching_up", "broker", now=behind) == {"1": 1}


def test_the_last_poll_of_an_agent_stands() -> None:
    observer = new_observer()
    observer.know([agent(brokers=(1, 2))])
    observer.know([agent(brokers=(1, 2), up=False)])
    assert values(observer, "segtail_agent_up", "broker") == {"1": 0, "2": 0}
    assert [each.up for each in observer.agents] == [False]


def test_logs_a_shard_are_those_of_all_agents() -> None:
    observer = new_observer()
    observer.know([agent(logs=30_000), agent("a2", up=False, brokers=(2,), logs=15_000)])
    name = "segtail_query_logs_per_shard"
    assert named(new_table(), name, observer) == {}  # a job that is still to open its checkpoint
    observer.sharded(4)
    assert list(named(new_table(), name, observer).values()) == [11_250]


def test_an_agent_that_was_never_reached_is_seen_to_be_down() -> None:
    observer = new_observer()
    observer.know([AgentStatus(name="a9", up=False)])
    assert values(observer, "segtail_agent_up", "agent") == {"a9": 0}
    assert values(observer, "segtail_broker_info", "agent") == {}


def test_a_broker_has_its_cluster_its_agent_and_whether_its_metadata_could_be_read() -> None:
    observer = new_observer()
    observer.know([agent(brokers=(1, 2), metadata_brokers=frozenset({2}))])
    assert values(observer, "segtail_broker_info", "cluster_id") == {"c": 1}
    assert values(observer, "segtail_broker_metadata_readable", "broker") == {"1": 0, "2": 1}


def test_a_broker_is_behind_by_what_its_agent_published_and_nobody_folded() -> None:
    observer = new_observer()
    observer.know([agent()])
    observer.published("a1", "j", 1000, at=50.0)
    observer.processed("a1", "j", 300)
    assert values(observer, "segtail_tail_lag_bytes", "broker", now=53.0) == {"1": 700}
    assert values(observer, "segtail_tail_lag_seconds", "broker", now=53.0) == {"1": 3.0}


def test_before_it_is_known_what_the_metrics_hold_only_the_time_is_reported_for_which_nothing_has_arrived() -> None:
    observer = new_observer()
    observer.know([agent()])
    observer.published("a1", "j", 1000, at=20.0)
    assert values(observer, "segtail_tail_lag_bytes", "broker", now=60.0) == {}
    assert values(observer, "segtail_tail_lag_seconds", "broker", now=60.0) == {"1": 40.0}
    assert values(observer, "segtail_broker_catching_up", "broker", now=60.0) == {"1": 1}
    observer.processed("a1", "j", 1000)
    assert values(observer, "segtail_tail_lag_bytes", "broker", now=60.0) == {"1": 0}


@pytest.mark.parametrize(("own_word", "now", "expected"), [(False, 79.0, 0), (False, 81.0, 1), (True, 50.0, 1)])
def test_a_broker_catches_up_while_its_agent_says_so_or_the_metrics_are_behind(own_word: bool, now: float, expected: float) -> None:
    observer = new_observer()
    observer.know([agent(catching_up=own_word)])
    observer.begins("a1")
    observer.published("a1", "j", 1000, at=50.0)
    assert values(observer, "segtail_broker_catching_up", "broker", now=now) == {"1": expected}


def test_what_keeps_agents_away_and_how_their_clocks_differ_is_reported() -> None:
    observer = new_observer()
    observer.know([agent("a0")])
    observer.know(
        [
            agent("a1", clock_ahead_seconds=-12.5, problems=("clock", "shared_log_dir")),
            agent("a2", up=False, brokers=(), problems=("refused",), clock_ahead_seconds=3.0),
            agent("a3", clock_ahead_seconds=None),
        ]
    )
    assert values(observer, "segtail_agent_up", "agent") == {"a1": 1, "a2": 0, "a3": 1}
    found = {tuple(value for _, value in sorted(labels)) for labels in named(new_table(), "segtail_agent_problem", observer)}
    assert found == {("a1", "clock"), ("a1", "shared_log_dir"), ("a2", "refused")}
    assert values(observer, "segtail_agent_clock_ahead_seconds", "agent") == {"a1": -12.5}


def test_two_agents_of_one_broker_make_no_series_twice() -> None:
    observer = new_observer()
    observer.know([agent("a1", metadata_brokers=frozenset({1})), agent("a2")])
    observer.begins("a2")
    observer.published("a2", "j", 9, at=0.0)
    assert values(observer, "segtail_tail_lag_bytes", "broker") == {"1": 9}
    assert values(observer, "segtail_broker_metadata_readable", "broker") == {"1": 1}
    assert values(observer, "segtail_agent_up", "agent") == {"a1": 1, "a2": 1}


def test_a_broker_that_has_skipped_nothing_says_so_from_the_first_poll_on() -> None:
    observer = new_observer()
    observer.know([agent(brokers=(7,))])
    found = named(new_table(log(broker=8, skipped_bytes=[0, 3, 0])), "segtail_skipped_bytes_total", observer)
    by_place = {
        (dict(labels)["broker"], dict(labels)["reason"]): value for labels, value in found.items() if ("copy", "exported") in labels
    }
    reasons = ("deleted", "corrupt", "agent_lost")
    assert by_place == {(broker, reason): 3.0 * (broker == "8" and reason == "corrupt") for broker in ("7", "8") for reason in reasons}


def test_thresholds_are_reported_by_their_unit() -> None:
    thresholds = [
        Threshold(name="trigger", unit="seconds", value=0.0),
        Threshold(name="full", unit="ratio", value=0.8),
    ]
    observer = Observer(query="q", versions=Versions(segtail="1", spark="4", python="3"), thresholds=thresholds)
    for each in thresholds:
        assert values(observer, f"segtail_config_threshold_{each.unit}", "name") == {each.name: each.value}


def test_the_versions_that_run_are_reported() -> None:
    found = {name: dict(labels) for name, labels in samples(page(new_table()))}
    assert found["segtail_build_info"] == {"version": "0.1.0", "spark_version": "4.3.0", "python_version": "3.11.7"}


def test_when_the_process_began_is_reported_where_it_is_known() -> None:
    versions = Versions(segtail="1", spark="1", python="1")
    name = "segtail_start_timestamp_seconds"
    assert set(named(new_table(), name, Observer(query="q", versions=versions, thresholds=(), started=5.0)).values()) == {5.0}
    assert named(new_table(), name, Observer(query="q", versions=versions, thresholds=())) == {}
