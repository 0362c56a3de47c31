"""Bytes of labels on a page: whole metrics go, the largest first, those that wake people up last."""

import pytest

from streaming.cluster.view.family import bounded, label_bytes
from streaming.cluster.view.view import view
from streaming.pages.exposition.kept_lines import lines_of
from streaming.pages.exposition.series import choose
from tests.exposition.reading import page
from tests.view.rows import ROWS, new_observer, new_table

WHOLE = 1_000_000


def test_whatever_the_limit_the_labels_fit_and_what_is_left_out_is_counted() -> None:
    shown = view(new_table(*ROWS).snapshot(0.0))
    every = choose(shown, WHOLE).families
    total, series = sum(map(label_bytes, every)), sum(family.series for family in every)
    limits = sorted({0, 1, *(total * part // 50 for part in range(51))})
    for limit in limits:
        chosen = choose(shown, WHOLE, label_limit=limit)
        assert sum(map(label_bytes, chosen.families)) <= limit
        assert sum(family.series for family in chosen.families) + chosen.label_series_dropped == series
        assert len(chosen.families) + len(chosen.label_dropped) == len(every)
    assert choose(shown, WHOLE, label_limit=total).label_dropped == ()
    assert len(choose(shown, WHOLE, label_limit=total - 1).label_dropped) == 1


def test_the_bytes_are_those_that_stand_on_the_page() -> None:
    for family in choose(view(new_table(*ROWS).snapshot(0.0)), WHOLE).families:
        text = "".join(lines_of(family).to_pylist())
        between = sum(len(line.partition("{")[2].rpartition("} ")[0].encode()) for line in text.splitlines())
        commas = sum(len(family.labels) for samples in family.samples if samples.label)
        assert label_bytes(family) == between - commas


def test_the_largest_goes_first_and_what_wakes_people_up_last() -> None:
    every = choose(view(new_table(*ROWS).snapshot(0.0)), WHOLE).families
    by_size = sorted(every, key=label_bytes)
    largest, next_one = by_size[-1], by_size[-2]
    total = sum(map(label_bytes, every))
    assert bounded(every, total - 1, ()).dropped == (largest.metric.name,)
    assert bounded(every, total - 1, {largest.metric}).dropped == (next_one.metric.name,)
    assert bounded(every, 0, {largest.metric}).families == ()


def test_what_is_left_out_is_logged_when_it_begins_changes_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    table, observer = new_table(*ROWS), new_observer()
    for limit in (WHOLE, 1000, 1000, 10, WHOLE):
        table.label_limit = limit
        page(table, observer)
    assert [each.message.partition(":")[2] for each in caplog.records if "label_limit" in each.message] == [
        " whole metrics are left out",
        " whole metrics are left out",
        " every metric is exported again",
    ]
