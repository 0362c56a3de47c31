"""How fast a backlog is read."""

from streaming.agent.backlog_pace import PAUSE_SECONDS, Pace

RATE, TURN = 1000, 10_000


def test_a_backlog_is_read_half_of_the_time_at_most() -> None:
    pace = Pace(10**9, TURN)
    assert pace.budget(5.0) == TURN
    pace.read(100, 5.0, 5.25)
    assert pace.budget(5.49) == 0
    assert pace.rest(5.25) == 0.25
    assert pace.budget(5.5) == TURN


def test_a_rest_for_its_own_sake_is_short() -> None:
    pace = Pace(10**9, TURN)
    pace.read(100, 0.0, 60.0)
    assert pace.rest(60.0) == PAUSE_SECONDS


def test_no_more_bytes_a_second_than_the_rate() -> None:
    pace = Pace(RATE, TURN)
    now, read = 0.0, 0
    while now < 100:
        budget = pace.budget(now)
        if budget:
            read += budget
            pace.read(budget, now, now + 0.01)
        now += 0.01 + pace.rest(now + 0.01)
    assert 0.9 * RATE * 100 <= read <= RATE * 100 + TURN


def test_a_turn_is_small_where_the_rate_is() -> None:
    assert Pace(RATE, TURN).budget(0.0) == RATE // 2
    assert Pace(1, TURN).budget(0.0) == 1


def test_the_time_that_reading_took_counts_for_the_rate() -> None:
    pace = Pace(RATE, TURN)
    pace.read(RATE, 0.0, 0.25)
    assert pace.rest(0.25) == 0.75
