"""A job whose host's clock is set: what lasts is counted by another clock, and what was then moves with the clock."""

import numpy as np
import pytest

from streaming.cluster.consumers.group_snapshot import LATE_ONES, OLD_MS, GroupBoard, GroupSnapshot
from streaming.cluster.view.observer import AgentStatus, Observer, Versions
from streaming.cluster.view.table import Table
from streaming.rules.copying import LEAST_MS, CopyingPace
from tests.clocks import Clock
from tests.view.rows import log, new_context, states

WALL = 1_800_000_000.0
HOUR = 3600.0
SET = pytest.mark.parametrize("step", [-HOUR, 0.0, HOUR], ids=["back", "not", "ahead"])


@SET
def test_an_agent_is_silent_after_as_long_as_ever(step: float) -> None:
    clock = Clock(1_000.0)
    table = Table(replicas="leaders", stale_after_s=300, series_limit=1000, context=new_context(), monotonic=clock)
    table.apply(states(log(agent="a1")))
    table.mark_agent("a1", clock())
    for passed, silent in ((299, False), (301, True)):
        clock.now = 1_000.0 + passed
        assert table.snapshot(WALL + step + passed).silent.tolist() == [silent]


@SET
def test_up_to_when_a_log_was_processed_is_shown_by_the_present_clock(step: float) -> None:
    clock = Clock(1_000.0)
    table = Table(replicas="leaders", stale_after_s=300, series_limit=1000, context=new_context(), monotonic=clock)
    table.apply(states(log(agent="a1")))
    table.set_reading({"a1": clock()})
    clock.now += 7
    snapshot = table.snapshot(WALL + step + 7)
    assert snapshot.now_ms - snapshot.read_ms.tolist()[0] == 7000


@SET
def test_a_lag_is_as_long_as_it_lasts(step: float) -> None:
    clock = Clock(1_000.0)
    observer = Observer(query="q", versions=Versions(segtail="1", spark="4", python="3"), thresholds=[], monotonic=clock)
    observer.begins("a1")
    observer.published("a1", "j", 100, clock())
    clock.now += 40
    assert observer.lags(WALL + step) == {"a1": (100, 40.0)}


@SET
def test_statuses_are_out_of_date_after_as_long_as_ever(step: float) -> None:
    clock = Clock(1_000.0)
    observer = Observer(query="q", versions=Versions(segtail="1", spark="4", python="3"), thresholds=[], monotonic=clock)
    observer.know([AgentStatus(name="a1", up=True)], clock())
    assert observer.is_stale(WALL + step) is False
    clock.now += 3600
    assert observer.is_stale(WALL + step) is True


@SET
def test_what_is_known_of_groups_is_old_after_as_long_as_ever(step: float) -> None:
    clock = Clock(1_000.0)
    board, snapshot = GroupBoard(LATE_ONES, clock), object.__new__(GroupSnapshot)
    object.__setattr__(snapshot, "at_ms", round(WALL * 1000))
    board.publish(snapshot)
    clock.now += OLD_MS / 1000
    assert board.latest(round((WALL + step) * 1000)) is snapshot
    clock.now += 1
    assert board.latest(round((WALL + step) * 1000)) is None


def test_a_speed_begins_anew_where_the_clock_is_set_back() -> None:
    pace = CopyingPace()
    for passed in range(0, 3 * LEAST_MS, 1000):
        pace.saw(HOUR_MS + passed, 1_000_000 - passed)
    assert pace.milliseconds_left > 0
    pace.saw(0, 900_000)
    assert pace.milliseconds_left == -1
    for passed in range(0, 3 * LEAST_MS, 1000):
        pace.saw(passed, 900_000 - passed)
    assert np.isclose(pace.milliseconds_left, 870_000, rtol=0.01)


HOUR_MS = round(HOUR * 1000)
