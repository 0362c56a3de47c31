"""How far the metrics are behind what an agent has published."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.cluster.view.taillag import TailLag

J = "a journal"


def test_nothing_published_is_no_lag() -> None:
    lag = TailLag()
    assert (lag.size, lag.seconds(100.0)) == (0, 0.0)


def test_lag_is_what_waits_and_how_long_its_oldest_part_has_waited() -> None:
    lag = TailLag()
    lag.published(J, 1000, at=10.0)
    lag.published(J, 1500, at=12.0)
    assert (lag.size, lag.seconds(15.0), lag.totals) == (1500, 5.0, (0, 1500))
    lag.processed(J, 400)
    assert (lag.size, lag.seconds(15.0), lag.totals) == (1100, 5.0, (400, 1500))
    lag.processed(J, 1000)
    assert (lag.size, lag.seconds(15.0)) == (500, 3.0)
    lag.processed(J, 1500)
    assert (lag.size, lag.seconds(15.0)) == (0, 0.0)


def test_polls_that_find_nothing_new_do_not_make_waiting_bytes_younger() -> None:
    lag = TailLag()
    for at in (10.0, 11.0, 12.0):
        lag.published(J, 1000, at)
    assert lag.seconds(13.0) == 3.0


def test_what_was_processed_before_it_was_stated_to_be_published_does_not_wait() -> None:
    lag = TailLag()
    lag.processed(J, 1000)
    lag.published(J, 900, at=10.0)
    assert (lag.size, lag.seconds(20.0)) == (0, 0.0)


@pytest.mark.parametrize(("journal", "total"), [(J, 50), ("another", 50), ("another", 5000)])
def test_a_journal_made_anew_or_set_back_starts_from_nothing(journal: str, total: int) -> None:
    lag = TailLag()
    lag.published(J, 1000, at=10.0)
    lag.processed(J, 900)
    lag.published(journal, total, at=20.0)
    assert (lag.size, lag.seconds(21.0)) == (total, 1.0)


def test_what_is_reported_late_of_a_journal_that_is_no_more_says_nothing_of_the_next() -> None:
    lag = TailLag()
    lag.published(J, 1000, at=10.0)
    lag.published("another", 500, at=20.0)
    lag.processed(J, 1000)
    lag.published(J, 1100, at=21.0)
    assert (lag.size, lag.seconds(22.0)) == (500, 2.0)
    lag.processed("another", 500)
    assert (lag.size, lag.seconds(23.0)) == (0, 0.0)


def test_a_journal_of_which_something_arrives_before_its_agent_was_asked_again() -> None:
    lag = TailLag()
    lag.published(J, 1000, at=10.0)
    lag.processed("another", 300)
    assert (lag.size, lag.seconds(11.0)) == (0, 0.0)
    lag.published("another", 400, at=12.0)
    assert (lag.size, lag.seconds(13.0)) == (100, 1.0)


def test_of_a_new_job_nothing_is_in_the_metrics() -> None:
    lag = TailLag()
    lag.published(J, 1000, at=10.0)
    assert not lag.known
    lag.begins()
    assert (lag.known, lag.size) == (True, 1000)
    lag.processed(J, 400)
    lag.begins()
    assert lag.size == 600


def test_a_clock_set_back_makes_no_negative_lag() -> None:
    lag = TailLag()
    lag.published(J, 10, at=100.0)
    assert lag.seconds(50.0) == 0.0


def test_a_long_lag_keeps_its_oldest_point_and_loses_only_resolution() -> None:
    lag = TailLag()
    for second in range(1, 50_001):
        lag.published(J, second, at=float(second))
    assert lag.seconds(50_000.0) == 49_999.0
    lag.processed(J, 25_000)
    assert lag.seconds(50_000.0) == pytest.approx(25_000, rel=0.01)


def test_points_that_are_joined_wait_as_long_as_the_first_and_until_the_last_is_processed() -> None:
    lag = TailLag()
    for second in range(1, 1026):
        lag.published(J, second, at=float(second))
    lag.processed(J, 1023)
    assert lag.seconds(1026.0) == 3.0
    lag.processed(J, 1024)
    assert lag.seconds(1026.0) == 1.0


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50))))
@example([(True, 0)])
def test_there_is_time_lag_exactly_while_there_are_bytes(steps: list[tuple[bool, int]]) -> None:
    lag = TailLag()
    published = processed = 0
    for now, (is_published, count) in enumerate(steps, start=1):
        if is_published:
            published += count
            lag.published(J, published, float(now))
        else:
            processed = min(published, processed + count)
            lag.processed(J, processed)
        assert lag.size == published - processed
        assert (lag.seconds(now + 1.0) > 0) == (lag.size > 0)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=60))
def test_everything_is_taken_in_of_the_last_answer_that_reported_no_more_than_was_processed(steps: list[tuple[bool, int]]) -> None:
    lag = TailLag()
    lag.begins()
    reported: list[tuple[int, float]] = []
    published = processed = 0
    for now, (is_published, count) in enumerate(steps, start=1):
        if is_published:
            published += count
            reported.append((published, float(now)))
            lag.published(J, published, float(now))
        else:
            processed = min(published, processed + count)
            lag.processed(J, processed)
        whole = [at for total, at in reported if total <= processed]
        assert (lag.whole_at is None) == (not whole)
        if lag.whole_at is not None:
            assert lag.whole_at <= max(whole)  # never later
        if published == processed and reported:
            assert lag.whole_at is not None
            assert lag.whole_at >= min(at for total, at in reported if total == published)


def test_until_it_is_given_what_is_processed_nothing_is_stated_of_it_and_another_journal_begins_anew() -> None:
    lag = TailLag()
    lag.published(J, 0, 1.0)
    lag.published(J, 10, 2.0)
    assert lag.whole_at is None
    lag.processed(J, 10)
    assert lag.whole_at == 2.0
    lag.published("another", 5, 3.0)
    assert lag.whole_at is None
    lag.processed("another", 5)
    assert lag.whole_at == 3.0
    lag.published("another", 4, 4.0)  # set back
    assert lag.whole_at is None
