"""What else takes space on the disks of log dirs, and what that does to a forecast."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.cluster.usage.reckoning import DirFacts, Reckoning
from streaming.cluster.view.disk_forecasts import LEAST_MS, MOST_MS, DiskHistory, Space
from streaming.cluster.view.disk_use import disk_found
from streaming.cluster.view.view import view
from streaming.rules.space_outlook import NEVER
from tests.tables import each_row
from tests.view.rows import new_table

HOUR = 3_600_000
NOW = 1_700_000_000_000
NOTHING_THERE = disk_found(view(new_table().snapshot(NOW / 1000)), [], NOW)


def log_dir(free: int, held: int = 100, *, device: int = 7, up: bool = True, path: str = "/d0") -> DirFacts:
    kinds = {"segment": (held, held)} if up else {}
    return DirFacts(
        broker=1, log_dir=path, up=up, problem="", device=device, free=free, capacity=1000, checkpoint_ms=-1, kinds=kinds, unread={}
    )


def day(space: DiskHistory, at_ms: int, *dirs: DirFacts) -> list[int]:
    return [each.others_day for each in space.within(dirs, at_ms)]


@each_row(
    ("hours", "free", "held", "expected"),
    [
        (0, 700, 100, -1),
        (0.99, 700, 100, -1),  # nobody knows whether it lasts
        (1, 700, 100, 24 * 100),
        (1, 700, 200, 0),  # Kafka took it
        (1, 900, 100, 0),  # they take less
        (4, 700, 150, 24 * 50 // 4),
        (24, 700, 100, 100),
        (25, 700, 100, -1),  # too long ago
    ],
)
def test_what_is_taken_and_held_by_no_log_dir_is_others(hours: float, free: int, held: int, expected: int) -> None:
    space = DiskHistory()
    assert day(space, NOW, log_dir(800)) == [-1]
    assert day(space, NOW + round(hours * HOUR), log_dir(free, held)) == [expected]


def test_log_dirs_of_one_disk_are_no_others_of_each_other() -> None:
    space = DiskHistory()
    day(space, NOW, log_dir(700), log_dir(700, path="/d1"), log_dir(50, device=8, path="/d2"))
    found = day(space, NOW + LEAST_MS, log_dir(600, 150), log_dir(600, 120, path="/d1"), log_dir(40, device=8, path="/d2"))
    assert found == [24 * 30, 24 * 30, 24 * 10]
    assert day(space, NOW + 2 * LEAST_MS, log_dir(600, up=False), log_dir(600, path="/d1")) == [-1, -1]


@pytest.mark.parametrize("apart_ms", [60_000, HOUR])
def test_a_day_is_remembered_however_often_somebody_asks(apart_ms: int) -> None:
    space, found = DiskHistory(), -1
    for number in range(2 * MOST_MS // apart_ms):
        burst = min(number * apart_ms, MOST_MS) * 100 // MOST_MS  # others take 100 bytes on the first day, and nothing on the second
        (found,) = day(space, NOW + number * apart_ms, log_dir(700 - burst))
    assert 0 <= found <= 5


def seen(space: DiskHistory, at_ms: int, free: int, *, capacity: int = 1000, device: int = 7, lacks: int = 0) -> DirFacts:
    (found,) = space.within([replace(log_dir(free, device=device), capacity=capacity, lacks=lacks)], at_ms)
    return found


def test_a_flood_is_seen_after_half_a_minute_and_is_none_when_it_is_over() -> None:
    space, paces = DiskHistory(), {}
    free = 200_000
    for second in range(0, 400, 5):
        free -= 5_000 if 100 < second <= 200 else 0
        found = seen(space, NOW + 1000 * second, free, capacity=220_000)
        paces[second] = [(round(each.pace * 1000), each.over_ms) for each in found.falls]
    assert [paces[second] for second in (0, 20, 100)] == [[]] * 3
    assert [paces[second] for second in (130, 135)] == [[(1000, 30_000), (500, 60_000)], [(1000, 30_000), (583, 60_000)]]
    assert [paces[second] for second in (250, 300, 395)] == [[]] * 3


def test_a_disk_that_is_larger_or_was_freed_begins_anew() -> None:
    space = DiskHistory()
    for second in range(0, 60, 5):
        seen(space, NOW + 1000 * second, 100_000 - 1_000 * second, capacity=200_000)
    assert seen(space, NOW + 55_000, 45_000, capacity=200_000).falls
    assert [seen(space, NOW + at, free, capacity=200_000).falls for at, free in ((60_000, 150_000), (65_000, 149_000))] == [()] * 2
    assert [space.look({7: Space(free, 200_000)}, at) for at, free in ((NOW + 95_000, 143_000), (NOW + 155_000, 10_000))] == [False, True]
    assert [space.look({7: Space(9_990, 200_000)}, NOW + at) for at in (215_000, 275_000, 335_000)] == [True, False, False], (
        "once more at its end"
    )


@each_row(
    ("free", "lacks", "flood", "paces"),
    [
        (300_000, 200_000, 0, []),  # what is copied ends where it is copied
        (300_000, 0, 0, [1000, 1000]),  # the same, and nobody lacks anything
        (300_000, 200_000, 500, [500, 500]),  # a flood beside it
        (150_000, 200_000, 0, [1000, 1000]),  # there is no room for what it lacks
    ],
)
def test_what_replicas_copy_that_were_away_is_no_flood(free: int, lacks: int, flood: int, paces: list[int]) -> None:
    space = DiskHistory()
    for second in range(0, 65, 5):
        copied = min(1_000 * second, lacks or 10**9)
        found = seen(space, NOW + 1000 * second, free - copied - flood * second, capacity=400_000, lacks=max(0, lacks - copied))
    assert [round(each.pace * 1000) for each in found.falls] == paces


def test_a_replica_that_is_to_be_copied_from_now_on_hides_no_flood() -> None:
    space = DiskHistory()
    for second in range(0, 65, 5):
        found = seen(space, NOW + 1000 * second, 300_000 - 1_000 * second, capacity=400_000, lacks=100_000 if second > 40 else 0)
    assert [round(each.pace * 1000) for each in found.falls] == [1000, 1000]


@given(
    flood=st.integers(1_000, 50_000),
    begins=st.integers(0, 60),
    lasts=st.integers(8, 60),
    freed=st.integers(0, 500_000),
    slow=st.integers(0, 100),
    asked=st.integers(0, 160),
)
def test_while_a_flood_lasts_no_forecast_is_later_than_the_truth_and_after_it_there_is_none(
    flood: int, begins: int, lasts: int, freed: int, slow: int, asked: int
) -> None:
    """A disk that others and logs that nobody knows fill: slowly, then fast, then no more; then something is deleted."""
    space, free, capacity = DiskHistory(), 4_000_000, 4_000_000
    for look in range(asked + 1):
        during = begins < look <= begins + lasts
        free = max(0, free - (flood if during else 0) - slow)
        if look == begins + lasts + 8:
            free = min(capacity, free + freed)
        found = seen(space, NOW + 5_000 * look, free, capacity=capacity)
    full = Reckoning([found], NOTHING_THERE.replicas, NOTHING_THERE.logs, NOW + 5_000 * asked).full(0)
    assert full is not None
    left_ms, true_ms = full.at_ms - NOW - 5_000 * asked, 5_000 * free / (flood + slow)
    if free == 0:
        assert left_ms == 0
    elif during and asked > begins + 6:  # half a minute of it
        assert true_ms > 100 * 30_000 or full.earliest_ms - NOW - 5_000 * asked <= true_ms + 1
        assert true_ms > 10 * 30_000 or left_ms <= true_ms + 1
    elif asked > begins + lasts + 16 and not slow:
        assert (full.at_ms, full.earliest_ms) == (NEVER, NEVER)
