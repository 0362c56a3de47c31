import json
import logging
from pathlib import Path
from typing import Any

import pytest

from streaming.common.pace import LIVE_SECONDS, Freshness, Pacer, PaceReason, WorkCheck, write_check
from tests.clocks import Clock


def written(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_before_the_query_it_learns_and_writes_nothing(tmp_path: Path) -> None:
    clock = Clock()
    pacer = Pacer(clock)
    for _ in range(4):
        clock.now += 15
        pacer.scraped("prometheus")
    assert pacer.pace.reason is PaceReason.SCRAPE
    pacer.begins(tmp_path / "schedule")
    assert [each["at"] for each in written(tmp_path / "schedule")["expected"]] == [175.0]
    assert pacer.pace.reason is PaceReason.FIRST_MINUTE
    clock.now += 16
    assert pacer.pace.seconds == 1.0


def test_the_lead_is_the_longest_micro_batch_of_late_and_half_a_second_unless_one_was_held_up_by_far(tmp_path: Path) -> None:
    pacer = Pacer(Clock())
    pacer.begins(tmp_path / "schedule")
    leads = []
    for first, took in enumerate((0.4, 0.7, 60.0, *[0.2] * 6, *[0.1] * 8)):
        pacer.took(first, took)
        pacer.scraped("prometheus")
        leads.append(written(tmp_path / "schedule")["lead"])
    assert leads[:3] == pytest.approx([0.9, 1.2, 3 * 0.7 + 0.5])
    assert leads[8:11] == pytest.approx([3 * 0.2 + 0.5, 3 * 0.2 + 0.5, 0.7])
    assert leads[-1] == pytest.approx(0.6)


def test_somebody_who_looks_again_and_again_does_not_have_it_written_each_time(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "schedule"
    pacer = Pacer(clock)
    pacer.begins(path)
    pacer.watched()
    path.unlink()
    clock.now += LIVE_SECONDS / 4
    pacer.watched()
    assert not path.exists()
    clock.now += LIVE_SECONDS / 2
    pacer.watched()
    assert written(path)["live_until"] == clock.now + LIVE_SECONDS


def test_a_schedule_that_cannot_be_written_is_reported_and_fails_no_scrape(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pacer = Pacer(Clock())
    with caplog.at_level(logging.ERROR):
        pacer.begins(tmp_path / "gone" / "schedule")
        pacer.scraped("prometheus")
    assert caplog.messages == ["the schedule of scrapes cannot be written"] * 2


def test_of_very_many_scrapers_the_last_ones_are_known() -> None:
    clock = Clock()
    pacer = Pacer(clock)
    for number in range(1000):
        clock.now += 0.01
        pacer.scraped(f"visitor {number}")
    assert len(pacer._scrapers._scrapers) == 64


def test_data_is_as_old_as_the_look_of_which_everything_is_there(tmp_path: Path) -> None:
    checks = tmp_path / "checks"
    new = Freshness(checks)
    assert new.age(10.0) is None
    write_check(checks, WorkCheck(10.0, 1, idle=False, first=10.0))
    assert new.age(11.0) is None  # a micro-batch is under way
    new.arrived()
    assert new.age(12.0) == 2.0
    write_check(checks, WorkCheck(20.0, 2, idle=True, first=20.0))
    assert new.age(21.0) == 1.0
    write_check(checks, WorkCheck(30.0, 3, idle=False, first=30.0))
    assert new.age(30.5) == 20.5
    new.arrived()
    assert new.age(30.5) == 0.5
