"""Which series a page has when there would be too many."""

import re

from streaming.cluster.view.family import Family
from streaming.cluster.view.view import view
from streaming.pages.exposition.series import choose
from tests.exposition.reading import named, page, samples
from tests.view.rows import ROWS, new_observer, new_table

TOTALS = (
    "segtail_partition_appended_bytes_total",
    "segtail_partition_appended_batches_total",
    "segtail_partition_appended_records_total",
    "segtail_partition_last_append_timestamp_seconds",
    "segtail_partition_max_record_timestamp_seconds",
    "segtail_partition_last_stable_offset_lag",
    "segtail_partition_last_stable_offset_lag_bytes",
    "segtail_partition_segments_rolled_total",
    "segtail_partition_segments_deleted_total",
    "segtail_partition_truncations_total",
    "segtail_partition_truncated_committed_offsets_total",
    "segtail_partition_truncated_bytes_total",
    "segtail_partition_corrupt_batches_total",
)
DROPPED = "segtail_series_dropped_total"


SERIES_OF_A_TOPIC = 5 + 11 + 11
LATE_OMITTED = 1  # the one series that is always there besides
TOTAL_SERIES = 2 * 9 + 2 + 2
"""Nine for each of the two brokers that have the topic, times and lags for the one whose partitions are exported."""
ALL_TOTALS = TOTAL_SERIES + 2 * SERIES_OF_A_TOPIC + LATE_OMITTED


def total(limit: int, name: str) -> dict[tuple[str, ...], float]:
    found = named(new_table(*ROWS, series_limit=limit), name)
    return {tuple(value for _, value in sorted(labels)): value for labels, value in found.items()}


def of_the_table(text: str) -> int:
    return sum(bool(re.match("segtail_(partition|topic|late)_", name)) for name, _ in samples(text))


def test_at_the_limit_all_series_of_partitions_are_there_and_one_below_none() -> None:
    whole = page(new_table(*ROWS))
    assert 'partition="0"' in whole
    count = of_the_table(whole)
    assert page(new_table(*ROWS, series_limit=count)) == whole
    below = samples(page(new_table(*ROWS, series_limit=count - 1)))
    assert {name.split("_")[1] for name, labels in below if "partition" in dict(labels)} == {"replica"}  # few, and always there


def test_totals_keep_the_names_and_drop_the_label_partition() -> None:
    text = page(new_table(*ROWS, series_limit=90))
    families = set(re.findall(r"^# TYPE (segtail_partition_\S+)", text, re.MULTILINE))
    assert families == set(TOTALS)
    assert all({label for label, _ in labels} == {"broker", "topic"} for name, labels in samples(text) if name in TOTALS)


def test_totals_of_what_was_appended_count_every_broker_s_share_so_that_elections_move_none() -> None:
    assert total(90, TOTALS[0]) == {("1", "a"): 1300, ("2", "a"): 100}
    assert total(90, TOTALS[1]) == {("1", "a"): 13, ("2", "a"): 1}
    assert total(90, TOTALS[2]) == {("1", "a"): 13, ("2", "a"): 1}


def test_totals_of_times_are_the_largest_of_the_exported_partitions() -> None:
    assert total(90, TOTALS[3]) == {("1", "a"): 6.0}
    assert total(90, TOTALS[4]) == {("1", "a"): 4.0}


def test_totals_of_what_happened_to_logs_count_followers_too() -> None:
    assert total(90, TOTALS[9]) == {("1", "a"): 0, ("2", "a"): 1}
    assert total(90, TOTALS[12]) == {("1", "a"): 2, ("2", "a"): 0}


def test_below_the_totals_too_whole_families_go_the_largest_first() -> None:
    table = new_table(*ROWS)
    shown = view(table.snapshot(0.0))
    always = sum(family.series for family in choose(shown, 0).families)
    everything = choose(shown, ALL_TOTALS)
    assert everything.topic_series_dropped == 0
    assert sum(family.series for family in everything.families) == ALL_TOTALS + always
    for limit in range(ALL_TOTALS):
        chosen = choose(shown, limit)
        kept = sum(family.series for family in chosen.families) - always
        assert kept <= limit
        more = chosen.partition_series_dropped - everything.partition_series_dropped
        assert more == (0 if limit else LATE_OMITTED)
        assert kept + chosen.topic_series_dropped + more == ALL_TOTALS
    names = [family.metric.name for family in choose(shown, TOTAL_SERIES + LATE_OMITTED + 10).families if not _is_always(family)]
    assert names == [*TOTALS, "segtail_topic_codec_bytes_total", "segtail_late_transactions_omitted"]
    assert [family.metric.name for family in choose(shown, 1).families if not _is_always(family)] == ["segtail_late_transactions_omitted"]


def _is_always(family: Family) -> bool:
    return family.metric.name.startswith("segtail_replica")


def test_what_is_left_out_is_counted_at_every_page_and_the_observer_s_own_series_stay() -> None:
    table, observer = new_table(*ROWS, series_limit=0), new_observer()
    whole = of_the_table(page(new_table(*ROWS)))
    partitions = whole - 2 * SERIES_OF_A_TOPIC - LATE_OMITTED
    for pages in (1, 2):
        text = page(table, observer)
        assert of_the_table(text) == 0
        found = {dict(labels)["reason"]: value for (name, labels), value in samples(text).items() if name == DROPPED}
        by_number = {"partition_series": pages * (partitions + LATE_OMITTED), "topic_series": pages * (ALL_TOTALS - LATE_OMITTED)}
        assert found == by_number | {"label_bytes": 0}
    assert "segtail_build_info" in page(table, observer)


def test_nothing_dropped_is_reported_as_0() -> None:
    assert set(named(new_table(*ROWS), DROPPED).values()) == {0.0}
