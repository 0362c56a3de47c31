import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.pace import (
    FALLBACK_SECONDS,
    LATE_SECONDS,
    LONGEST_SECONDS,
    QUICK_SECONDS,
    ExpectedScrape,
    Pace,
    PaceReason,
    Schedule,
    WorkCheck,
    last_check,
    read_schedule,
    write_check,
    write_schedule,
)

SCHEDULE = Schedule(written=100.0, lead=0.8, expected=(ExpectedScrape(115.0, 15.0), ExpectedScrape(120.5, 30.0)))


def test_a_schedule_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "schedule"
    assert read_schedule(path, 100.0) is None
    write_schedule(path, SCHEDULE)
    assert read_schedule(path, 100.0) == SCHEDULE
    write_schedule(path, replace(SCHEDULE, expected=()))
    assert read_schedule(path, 1e6) == replace(SCHEDULE, expected=())
    assert [each.name for each in tmp_path.iterdir()] == ["schedule"]


def test_one_of_before_the_host_was_started_is_none(tmp_path: Path) -> None:
    path = tmp_path / "schedule"
    write_schedule(path, SCHEDULE)
    assert read_schedule(path, 99.0) is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "null", "[]", "{}", '{"written": 1}', '{"written": 1, "lead": 1, "expected": [1]}'),
        '{"written": 1, "lead": NaN, "expected": []}',
        '{"written": 1, "lead": "1", "expected": []}',
        '{"written": 1, "lead": 1, "expected": [{"at": 1, "period": 0}]}',
        '{"written": 1, "lead": 1, "expected": [{"at": Infinity, "period": 1}]}',
        '{"written": 1, "lead": 1, "expected": [], "another": 1}',
    ],
)
def test_what_is_no_schedule_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "schedule"
    path.write_text(text)
    assert read_schedule(path, 100.0) is None


def test_a_look_replaces_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "checks"
    assert last_check(path) is None
    for check in (WorkCheck(123456.75, 99999, idle=True, first=123400.5), WorkCheck(2.5, 1, idle=False, first=2.5)):
        write_check(path, check)
        assert last_check(path) == check
    path.write_text("")
    assert last_check(path) is None


def test_the_pace_is_that_of_the_shortest_period_and_a_long_one_is_parted() -> None:
    assert SCHEDULE.pace(101.0) == Pace(15.0, PaceReason.SCRAPE)
    assert replace(SCHEDULE, expected=(ExpectedScrape(115.0, 45.0),)).pace(101.0) == Pace(22.5, PaceReason.SCRAPE)


def test_somebody_who_is_late_or_not_known_means_the_fallback() -> None:
    fallback = Pace(10.0, PaceReason.FALLBACK)
    assert SCHEDULE.pace(117.0).reason is PaceReason.SCRAPE
    assert SCHEDULE.pace(117.1) == fallback
    assert replace(SCHEDULE, restless_until=110.0).pace(109.0) == fallback
    assert replace(SCHEDULE, restless_until=110.0).pace(110.0).reason is PaceReason.SCRAPE
    assert replace(SCHEDULE, expected=()).pace(100.0) == fallback


def test_the_next_look_comes_a_lead_before_the_next_scrape_that_the_last_one_does_not_serve() -> None:
    assert SCHEDULE.due(101.0, 101.0) == pytest.approx(114.2)
    assert SCHEDULE.due(114.3, 114.4) == pytest.approx(119.7)
    assert SCHEDULE.due(117.0, 117.5) == pytest.approx(119.7)  # one is late, the other still comes
    assert SCHEDULE.due(118.5, 118.6) == pytest.approx(118.5 + (149.7 - 118.5) / 4)  # and is served: the fallback, in even parts


_time = st.floats(0, 1e7)


@given(
    st.builds(
        Schedule,
        written=_time,
        lead=st.floats(0, 1e4),
        young_until=_time,
        live_until=_time,
        restless_until=_time,
        expected=st.lists(st.builds(ExpectedScrape, _time, st.floats(0.001, 1e5)), max_size=4).map(tuple),
    ),
    _time,
    st.floats(0, 1e3),
)
def test_whatever_it_says_the_next_look_is_due_within_half_a_minute(schedule: Schedule, since: float, passed: float) -> None:
    due = schedule.due(since, since + passed)
    assert math.isfinite(due)
    assert QUICK_SECONDS - 1e-3 <= due - since <= LONGEST_SECONDS + 1e-3
    assert 0 < schedule.pace(since).seconds <= LONGEST_SECONDS


def test_a_young_jvm_and_a_person_who_watches_are_served_quickly_until_then() -> None:
    for name, reason in (("young_until", PaceReason.FIRST_MINUTE), ("live_until", PaceReason.LIVE)):
        quick = replace(SCHEDULE, **{name: 105.0})
        assert quick.pace(104.9) == Pace(QUICK_SECONDS, reason)
        assert quick.pace(105.0) == SCHEDULE.pace(105.0)
        assert quick.due(104.0, 104.9) == 104.0 + QUICK_SECONDS
        assert quick.due(104.0, 105.0) == SCHEDULE.due(104.0, 105.0) > 104.0 + QUICK_SECONDS


def test_a_scrape_is_waited_for_until_it_is_late_and_not_longer() -> None:
    schedule = replace(SCHEDULE, expected=(ExpectedScrape(115.0, 15.0),))
    late = 115.0 + LATE_SECONDS
    assert schedule.pace(late) == Pace(15.0, PaceReason.SCRAPE)
    assert schedule.pace(late + 0.1) == Pace(FALLBACK_SECONDS, PaceReason.FALLBACK)
    assert schedule.due(114.2, late) == 130.0 - schedule.lead
    assert schedule.due(114.2, late + 0.1) == 114.2 + FALLBACK_SECONDS
