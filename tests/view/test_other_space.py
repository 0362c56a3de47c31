"""What else takes space on the disks of log dirs, and what that does to a forecast."""

import pytest

from streaming.cluster.usage.reckoning import DirFacts
from streaming.cluster.view.disk_forecasts import LEAST_MS, MOST_MS, OtherSpace
from tests.tables import each_row

HOUR = 3_600_000
NOW = 1_700_000_000_000


def log_dir(free: int, held: int = 100, *, device: int = 7, up: bool = True, path: str = "/d0") -> DirFacts:
    kinds = {"segment": (held, held)} if up else {}
    return DirFacts(
        broker=1, log_dir=path, up=up, problem="", device=device, free=free, capacity=1000, checkpoint_ms=-1, kinds=kinds, unread={}
    )


def day(space: OtherSpace, at_ms: int, *dirs: DirFacts) -> list[int]:
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
    space = OtherSpace()
    assert day(space, NOW, log_dir(800)) == [-1]
    assert day(space, NOW + round(hours * HOUR), log_dir(free, held)) == [expected]


def test_log_dirs_of_one_disk_are_no_others_of_each_other() -> None:
    space = OtherSpace()
    day(space, NOW, log_dir(700), log_dir(700, path="/d1"), log_dir(50, device=8, path="/d2"))
    found = day(space, NOW + LEAST_MS, log_dir(600, 150), log_dir(600, 120, path="/d1"), log_dir(40, device=8, path="/d2"))
    assert found == [24 * 30, 24 * 30, 24 * 10]
    assert day(space, NOW + 2 * LEAST_MS, log_dir(600, up=False), log_dir(600, path="/d1")) == [-1, -1]


@pytest.mark.parametrize("apart_ms", [60_000, HOUR])
def test_a_day_is_remembered_however_often_somebody_asks(apart_ms: int) -> None:
    space, found = OtherSpace(), -1
    for number in range(2 * MOST_MS // apart_ms):
        burst = min(number * apart_ms, MOST_MS) * 100 // MOST_MS  # others take 100 bytes on the first day, and nothing on the second
        (found,) = day(space, NOW + number * apart_ms, log_dir(700 - burst))
    assert 0 <= found <= 5
