"""Counters that step back are noted."""

from tests.worlds.scraping import Scraper, counters

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
