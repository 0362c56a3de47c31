"""What long runs are judged by: lines through samples, and counters that step back."""

import pytest

from tests.soak.sampling import Measure, trend
from tests.soak.scraping import Scraper, counters

MEMORY = Measure("memory", "", 1, 0.10, 5)


def samples(*values: float) -> list[tuple[float, float]]:
    return [(float(second), value) for second, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "flat"),
    [
        ([0, 50, 100, 100, 100, 100, 100, 100], True),  # it grew while it began
        ([100, 100, 100, 100, 100, 103, 106, 109], True),  # less than a tenth
        ([100, 100, 100, 100, 100, 110, 120, 130], False),
        ([1, 1, 1, 1, 1, 2, 3, 4], True),  # less than what is allowed in any case
        ([100, 100, 100, 100, 130, 120, 110, 100], True),
        ([100], True),
    ],
)
def test_a_measure_is_flat_if_the_line_through_the_second_half_rises_by_little(values: list[float], flat: bool) -> None:
    assert trend(MEMORY, samples(*values)).flat is flat


def test_growth_is_that_of_the_second_half() -> None:
    found = trend(MEMORY, samples(0, 10, 20, 30, 40, 50, 60, 70))
    assert (found.first, found.highest, found.last) == (0, 70, 70)
    assert found.growth == pytest.approx(30)


PAGE = """\
# TYPE segtail_partition_appended_bytes_total counter
segtail_partition_appended_bytes_total{topic="a"} %d
segtail_partition_appended_records_total{topic="a"} 3
segtail_topic_batch_records_bucket{topic="churn.1",le="1"} 2
segtail_partition_log_end_offset{topic="a"} 7
segtail_query_restarts_total{query="segtail"} 9
"""


def test_counters_are_those_of_logs_and_topics() -> None:
    assert counters(PAGE % 5, leave_out=("churn.",)) == {
        'segtail_partition_appended_bytes_total{topic="a"}': 5,
        'segtail_partition_appended_records_total{topic="a"}': 3,
    }


def test_a_counter_that_steps_back_is_noted_also_over_a_page_without_it() -> None:
    scraper = Scraper("http://127.0.0.1:1/metrics")
    for page in (PAGE % 5, "", PAGE % 5):
        scraper.take(page)
    assert (scraper.steps_back, scraper.records) == ([], 3)
    scraper.take(PAGE % 4)
    (noted,) = scraper.steps_back
    assert "fell from 5.0 to 4.0" in noted
