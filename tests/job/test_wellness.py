"""When the query is well."""

from pyspark.sql.streaming.listener import QueryIdleEvent, QueryStartedEvent

from streaming.job.progress import Progress
from streaming.job.wellness import FAILURES, Wellness
from tests.metrics.reading import named
from tests.metrics.rows import new_observer, new_table


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_one_that_looks_is_well_and_one_that_does_not_is_not() -> None:
    clock = Clock()
    query = Wellness(120.0, clock)
    clock.now += 119.0
    assert query.well
    query.looked()
    clock.now += 119.0
    assert query.well
    clock.now += 1.0
    assert not query.well
    query.looked()
    assert query.well


def test_one_that_fails_again_and_again_is_not_well_however_soon_it_is_started_again() -> None:
    query = Wellness(120.0, Clock())
    for _ in range(FAILURES - 1):
        query.failed()
        assert query.well
    query.failed()
    assert not query.well


def test_failures_count_only_while_it_does_not_get_as_far_as_looking() -> None:
    query = Wellness(120.0, Clock())
    for _ in range(3 * FAILURES):
        query.failed()
        query.looked()
    assert query.well


def test_that_it_was_started_is_no_look() -> None:
    looks: list[int] = []
    observer = new_observer()
    progress = Progress(observer, lambda: 5.0, lambda: looks.append(1))
    number = "00000000-0000-0000-0000-000000000001"
    told = {"id": number, "runId": number, "name": "segtail", "timestamp": "2026-01-01T00:00:00.000Z", "jobTags": []}
    progress.onQueryStarted(QueryStartedEvent.fromJson(told))
    assert (looks, named(new_table(), "segtail_query_last_look_timestamp_seconds", observer)) == ([], {})
    progress.onQueryIdle(QueryIdleEvent.fromJson(told))
    assert (looks, list(named(new_table(), "segtail_query_last_look_timestamp_seconds", observer).values())) == ([1], [5.0])
