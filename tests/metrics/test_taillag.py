"""How far the metrics are behind what an agent has published."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.metrics.taillag import TailLag


def test_nothing_published_is_no_lag() -> None:
    lag = TailLag()
    assert (lag.size, lag.seconds(100.0)) == (0, 0.0)


def test_lag_is_what_waits_and_how_long_its_oldest_part_has_waited() -> None:
    lag = TailLag()
    lag.published(1000, at=10.0)
    lag.published(1500, at=12.0)
    assert (lag.size, lag.seconds(15.0)) == (1500, 5.0)
    lag.processed(400)
    assert (lag.size, lag.seconds(15.0)) == (1100, 5.0)
    lag.processed(1000)
    assert (lag.size, lag.seconds(15.0)) == (500, 3.0)
    lag.processed(1500)
    assert (lag.size, lag.seconds(15.0)) == (0, 0.0)


def test_polls_that_find_nothing_new_do_not_make_waiting_bytes_younger() -> None:
    lag = TailLag()
    for at in (10.0, 11.0, 12.0):
        lag.published(1000, at)
    assert lag.seconds(13.0) == 3.0


def test_what_was_processed_before_it_was_said_to_be_published_does_not_wait() -> None:
    lag = TailLag()
    lag.processed(1000)
    lag.published(900, at=10.0)
    assert (lag.size, lag.seconds(20.0)) == (0, 0.0)


def test_a_journal_made_anew_starts_from_nothing() -> None:
    lag = TailLag()
    lag.published(1000, at=10.0)
    lag.processed(900)
    lag.published(50, at=20.0)
    assert (lag.size, lag.seconds(21.0)) == (50, 1.0)


def test_a_clock_set_back_makes_no_negative_lag() -> None:
    lag = TailLag()
    lag.published(10, at=100.0)
    assert lag.seconds(50.0) == 0.0


def test_a_long_lag_keeps_its_oldest_point_and_loses_only_resolution() -> None:
    lag = TailLag()
    for second in range(1, 50_001):
        lag.published(second, at=float(second))
    assert lag.seconds(50_000.0) == 49_999.0
    lag.processed(25_000)
    assert lag.seconds(50_000.0) == pytest.approx(25_000, rel=0.01)


def test_points_that_are_joined_wait_as_long_as_the_first_and_until_the_last_is_processed() -> None:
    lag = TailLag()
    for second in range(1, 1026):
        lag.published(second, at=float(second))
    lag.processed(1023)
    assert lag.seconds(1026.0) == 3.0
    lag.processed(1024)
    assert lag.seconds(1026.0) == 1.0


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50))))
def test_there_is_time_lag_exactly_while_there_are_bytes(steps: list[tuple[bool, int]]) -> None:
    lag = TailLag()
    published = processed = 0
    for now, (is_published, count) in enumerate(steps, start=1):
        if is_published:
            published += count
            lag.published(published, float(now))
        else:
            processed = min(published, processed + count)
            lag.processed(processed)
        assert lag.size == published - processed
        assert (lag.seconds(now + 1.0) > 0) == (lag.size > 0)
