"""How long the job waits before it starts something again, and when a query is not well."""

from streaming.spark.job.child import FAILURES, BackOff, Wellness
from tests.clocks import Clock


def test_pauses_grow_and_stay_at_the_last() -> None:
    back_off = BackOff((0.0, 1.0, 5.0), well_seconds=60.0)
    assert [back_off.ended(3.0) for _ in range(5)] == [0.0, 1.0, 5.0, 5.0, 5.0]


def test_one_that_ran_well_for_a_while_begins_at_the_first_again() -> None:
    back_off = BackOff((0.0, 1.0, 5.0), well_seconds=60.0)
    assert [back_off.ended(ran) for ran in (3.0, 3.0, 59.9, 60.0, 3.0)] == [0.0, 1.0, 5.0, 0.0, 1.0]


def test_one_that_looks_is_well_and_one_that_does_not_is_not() -> None:
    clock = Clock()
    query = Wellness(120.0, clock)
    clock.now += 119.0
    assert query.well
    query.checked()
    clock.now += 119.0
    assert query.well
    clock.now += 1.0
    assert not query.well
    query.checked()
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
        query.checked()
    assert query.well
