"""The largest lag of each minute of the last hour."""

from streaming.pages.api.history import MINUTE_MS, MINUTES
from streaming.pages.api.lag_hour import LagHour

START = 1_700_000_040_000 // MINUTE_MS * MINUTE_MS


def test_each_minute_has_its_last_number_and_one_without_is_not_known() -> None:
    hour = LagHour()
    assert hour.hour(START) == ()
    for second, lag in [(0, 5), (50, 7), (60, 9), (180, 0)]:
        hour.record(START + 1000 * second, lag)
    found = hour.hour(START + 181_000)
    assert (len(found), found[-4:], set(found[:-4])) == (MINUTES, [7.0, 9.0, -1.0, 0.0], {-1.0})


def test_what_is_older_than_an_hour_is_forgotten_and_a_clock_that_was_set_back_begins_anew() -> None:
    hour = LagHour()
    hour.record(START, 5)
    hour.record(START + MINUTES * MINUTE_MS, 6)
    assert list(hour.hour(START + MINUTES * MINUTE_MS)) == [-1.0] * (MINUTES - 1) + [6.0]
    hour.record(START, 8)
    assert list(hour.hour(START))[-1] == 8.0
    assert max(hour.hour(START + MINUTES * MINUTE_MS), default=-1.0) == -1.0


def test_a_lag_that_is_not_known_is_no_number() -> None:
    hour = LagHour()
    hour.record(START, -1)
    assert hour.hour(START) == ()
