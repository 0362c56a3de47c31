"""What is left out of a page because nobody wants it."""

import logging
import re
from typing import Any

import pytest

from streaming.cluster.view.family import Export
from streaming.cluster.view.view import view
from streaming.common.definitions.sections import METRICS, Section, section_of
from streaming.common.settings import MetricGroup
from streaming.pages.exposition.series import choose
from tests.exposition.reading import page, samples
from tests.view.rows import log, new_observer, new_table, states

ROWS = [log(topic, partition, appended_bytes=5, last_append_ms=1000) for topic in ("orders", "orders.retry", "__x") for partition in (0, 1)]


def exported(**export: Any) -> dict[str, set[str]]:
    """The metrics of the table that are on the page, and the topics of each."""
    table = new_table(export=Export(**export))
    table.apply(states(*ROWS))
    found: dict[str, set[str]] = {}
    for name, labels in samples(page(table)):
        if "topic" in dict(labels):
            found.setdefault(name, set()).add(dict(labels)["topic"])
    return found


def topics(**export: Any) -> set[str]:
    return set().union(*exported(**export).values())


def test_everything_is_exported_by_default() -> None:
    assert topics() == {"orders", "orders.retry", "__x"}


def test_a_topic_is_exported_if_its_whole_name_matches() -> None:
    assert topics(topics=re.compile("orders")) == {"orders"}
    assert topics(topics=re.compile("orders.*")) == {"orders", "orders.retry"}


def test_what_is_excluded_is_not_whatever_else_matches() -> None:
    assert topics(exclude=re.compile("__.*")) == {"orders", "orders.retry"}
    assert topics(topics=re.compile("orders.*"), exclude=re.compile(r".*\.retry")) == {"orders"}


def test_only_groups_that_are_wanted_are_there() -> None:
    sections = {metric.name: section_of(metric) for metric in METRICS}
    assert {sections[name] for name in exported(groups={"offsets"})} == {Section.OFFSETS}
    assert exported(groups=set()) == {}


def test_the_observer_s_own_metrics_are_in_no_group() -> None:
    table = new_table(series_limit=1, export=Export(groups=frozenset()))
    assert "segtail_build_info" in page(table)


def test_every_group_of_the_settings_has_the_name_of_a_section_that_there_is_or_will_be() -> None:
    assert {section.name.lower() for section in Section} - {"observer", "agent"} <= set(MetricGroup)


def test_topics_alone_are_exported_by_their_sums_and_nothing_counts_as_dropped() -> None:
    table = new_table(export=Export(partitions=False))
    table.apply(states(*ROWS))
    found = samples(page(table))
    assert not [labels for _, labels in found if "partition" in dict(labels)]
    whole = {dict(labels)["topic"]: value for (name, labels), value in found.items() if name == "segtail_partition_truncations_total"}
    assert whole == {"orders": 0, "orders.retry": 0, "__x": 0}
    assert {value for (name, _), value in found.items() if name == "segtail_series_dropped_total"} == {0}


def test_that_series_are_left_out_is_logged_once_with_the_largest_topic_and_again_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "streaming.cluster.view")
    observer = new_observer()
    table = new_table(series_limit=10)
    table.apply(states(*ROWS, log("__x", 2)))
    for _ in range(2):
        page(table, observer)
    (record,) = caplog.records
    assert 'topic="__x"' in record.__dict__["largest_topic"]
    table.series_limit = 1_000_000
    page(table, observer)
    assert "again" in caplog.records[-1].message


def test_what_people_are_woken_up_for_is_there_whatever_is_left_out() -> None:
    table = new_table(*(row | {"transactional": True} for row in ROWS), series_limit=0)
    shown = view(table.snapshot(0.0))
    names = {limit: {family.metric.name for family in choose(shown, limit).families} for limit in (0, 10, 18, 10_000)}
    waking = {f"segtail_partition_{name}" for name in ("hanging_transactions", "stuck_transactions", "last_stable_offset_stalled")}
    assert names[0] == waking  # a sum for each of three topics
    assert names[10] == waking | {"segtail_late_transactions_omitted"}
    assert names[10] < names[18] < names[10_000]
    assert not [family for family in choose(shown, 0).families if "partition=" in family.labels[0].as_py()]
