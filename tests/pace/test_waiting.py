"""When the source waits, and when it does not."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.common.pace import FALLBACK_SECONDS, QUICK_SECONDS, ExpectedScrape, Schedule, WorkCheck, write_schedule
from streaming.spark.source.stream import Hurry, Turns
from tests.clocks import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


def turns(clock: Clock, schedule: Path | None, parent: Callable[[], int] = lambda: 1) -> Turns:
    return Turns(schedule, clock, clock.sleep, parent)


def test_the_first_look_of_a_run_and_one_without_a_pace_are_not_waited_for(clock: Clock, tmp_path: Path) -> None:
    assert turns(clock, tmp_path / "none").wait()
    fixed = turns(clock, None)
    for _ in range(3):
        assert fixed.wait()
        fixed.checked(Hurry.NOT, idle=False)
    assert clock.slept == []


@pytest.mark.parametrize(("hurry", "seconds"), [(Hurry.NOW, 0.0), (Hurry.SOON, QUICK_SECONDS), (Hurry.NOT, 14.2)])
def test_it_waits_as_long_as_the_last_look_allows(clock: Clock, tmp_path: Path, hurry: Hurry, seconds: float) -> None:
    write_schedule(tmp_path / "schedule", Schedule(written=100.0, lead=0.8, expected=(ExpectedScrape(115.0, 15.0),)))
    source = turns(clock, tmp_path / "schedule")
    check = source.checked(hurry, idle=True)
    assert check == WorkCheck(100.0, 1, idle=True, first=100.0)
    assert source.wait()
    assert clock.now - 100.0 == pytest.approx(seconds)


def test_looks_that_follow_each_other_at_once_have_one_first_look(clock: Clock, tmp_path: Path) -> None:
    source, firsts = turns(clock, tmp_path / "none"), []
    for hurry in (Hurry.NOW, Hurry.NOW, Hurry.NOT, Hurry.SOON, Hurry.NOT):
        firsts.append(source.checked(hurry, idle=False).first)
        clock.now += 1.0
    assert firsts == [100.0, 100.0, 100.0, 103.0, 104.0]


def test_in_another_process_they_begin_anew(clock: Clock, tmp_path: Path) -> None:
    source = turns(clock, tmp_path / "schedule")
    source.checked(Hurry.NOT, idle=False)
    again = pickle.loads(pickle.dumps(source))
    assert (again._schedule, again._due()) == (tmp_path / "schedule", 0.0)
    assert again.checked(Hurry.NOT, idle=False).number == 1


def test_without_a_schedule_it_is_the_fallback(clock: Clock, tmp_path: Path) -> None:
    source = turns(clock, tmp_path / "none")
    source.checked(Hurry.NOT, idle=False)
    assert source.wait()
    assert clock.now - 100.0 == pytest.approx(FALLBACK_SECONDS)


def test_what_a_micro_batch_took_is_part_of_the_pause(clock: Clock, tmp_path: Path) -> None:
    source = turns(clock, tmp_path / "none")
    source.checked(Hurry.NOT, idle=False)
    clock.now += 7.0
    assert source.wait()
    assert clock.now - 100.0 == pytest.approx(FALLBACK_SECONDS)


def test_a_person_who_comes_meanwhile_is_not_kept_waiting(clock: Clock, tmp_path: Path) -> None:
    source = turns(clock, tmp_path / "schedule")
    source.checked(Hurry.NOT, idle=False)

    def come(seconds: float) -> None:
        clock.now += seconds
        if clock.now >= 103.0:
            write_schedule(tmp_path / "schedule", Schedule(written=clock.now, lead=0.8, live_until=200.0))

    source._sleep = come
    assert source.wait()
    assert clock.now == pytest.approx(103.0)


def test_it_ends_when_spark_is_gone(clock: Clock, tmp_path: Path) -> None:
    source = turns(clock, tmp_path / "none", lambda: 0 if clock.slept else 1)
    source.checked(Hurry.NOT, idle=False)
    assert not source.wait()
    assert clock.now < 101.0
