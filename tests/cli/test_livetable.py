"""What the live table is reported: rates from two looks, and the partitions worth a row."""

from typing import Any

import numpy as np
import pytest

from streaming.cluster.view.exported import Logs
from streaming.cluster.view.view import view
from streaming.terminal.cli.demo_lines import WINDOW_SECONDS, BatchPace, Doubles, Sample, rates, report, sample
from tests.view.rows import Row, log, new_table


def logs(*rows: Row) -> Logs:
    return view(new_table(*rows).snapshot(0.0)).logs


def look_at(at: float, *rows: Row) -> Sample:
    return sample(logs(*rows), at)


def grown(to: int, partition: int = 0, **values: Any) -> Row:
    return log(partition=partition, appended_bytes=1000 * to, appended_records=to, **values)


def bytes_rates(known: Doubles) -> list[float | None]:
    return [None if np.isnan(rate) else float(rate) for rate in known[0]]


def test_a_rate_is_the_growth_of_a_counter_by_the_time_between_the_looks() -> None:
    known = rates(look_at(100.0, grown(3), grown(7, partition=1)), look_at(104.0, grown(5), grown(7, partition=1)))
    assert known.tolist() == [[500.0, 0.0], [0.5, 0.0]]


def test_looks_are_matched_by_partition_and_not_by_place() -> None:
    known = rates(look_at(0.0, grown(9, partition=1)), look_at(1.0, grown(1, partition=0), grown(10, partition=1)))
    assert bytes_rates(known) == [None, 1000.0]


def test_first_backlog_is_no_traffic() -> None:
    known = rates(look_at(0.0, grown(3, settled=False)), look_at(1.0, grown(5)))
    assert bytes_rates(known) == [None]


def test_counters_that_begin_anew_have_no_rate() -> None:
    assert bytes_rates(rates(look_at(0.0, grown(9)), look_at(1.0, grown(1)))) == [None]


def test_two_looks_at_one_moment_show_no_rate() -> None:
    assert bytes_rates(rates(look_at(5.0, grown(1)), look_at(5.0, grown(2)))) == [None]


def test_pace_is_taken_over_the_window_and_not_from_the_last_look() -> None:
    pace = BatchPace()
    seconds = int(WINDOW_SECONDS)
    amounts = [100 * second for second in range(seconds)] + [100 * seconds]
    known = [pace.rates(look_at(float(second), grown(amount))) for second, amount in enumerate(amounts)]
    assert bytes_rates(known[0]) == [None]
    assert bytes_rates(known[-1]) == [100_000.0]
    stalled = pace.rates(look_at(seconds + 1.0, grown(amounts[-1])))  # a look without growth lowers it a little
    assert bytes_rates(stalled) == [pytest.approx(100_000.0 * (seconds - 1) / seconds)]


def test_pace_forgets_what_lies_before_the_window() -> None:
    pace = BatchPace()
    pace.rates(look_at(0.0, grown(0)))
    pace.rates(look_at(1.0, grown(1000)))
    assert bytes_rates(pace.rates(look_at(1.0 + WINDOW_SECONDS, grown(1000)))) == [0.0]


def test_a_partition_that_joins_later_is_measured_from_its_own_first_look() -> None:
    pace = BatchPace()
    pace.rates(look_at(0.0, grown(0)))
    pace.rates(look_at(4.0, grown(4), grown(0, partition=1)))
    assert bytes_rates(pace.rates(look_at(6.0, grown(6), grown(6, partition=1)))) == [1000.0, 3000.0]


def test_report_has_the_largest_partitions_in_the_order_of_the_page() -> None:
    shown = logs(*(log(topic, appended_bytes=size, appended_batches=2) for topic, size in (("c", 7), ("a", 5), ("b", 1), ("d", 9))))
    stated = report(shown, np.full((2, 4), np.nan), 3)
    assert [row.topic for row in stated.rows] == ["a", "c", "d"]
    assert (stated.partitions, stated.batches, stated.bytes_rate, stated.records_rate) == (4, 8, 0.0, 0.0)


def test_a_row_shows_the_partition_and_sums_are_over_all_of_them() -> None:
    rows = (
        log("orders.eu-1", 3, broker=2, log_end_offset=12, appended_bytes=10, appended_batches=4, last_append_ms=1_700_000_000_000),
        log("quiet", 0, broker=2),
    )
    (row,) = (stated := report(logs(*rows), np.array([[100.0, 20.0], [5.0, np.nan]]), 1)).rows
    assert (row.broker, row.topic, row.partition, row.end_offset, row.batches) == (2, "orders.eu-1", 3, 12, 4)
    assert (row.bytes_rate, row.records_rate, row.last_append_ms) == (100.0, 5.0, 1_700_000_000_000)
    assert (stated.bytes_rate, stated.records_rate) == (120.0, 5.0)


def test_a_rate_that_is_not_known_is_none() -> None:
    (row,) = report(logs(grown(1)), np.full((2, 1), np.nan), 1).rows
    assert (row.bytes_rate, row.records_rate) == (None, None)


def test_nothing_watched_yet_is_an_empty_report() -> None:
    stated = report(logs(), BatchPace().rates(sample(logs(), 0.0)), 5)
    assert (stated.rows, stated.partitions, stated.bytes_rate) == ((), 0, 0.0)
