"""How often a log that cannot be read to its end is tried again before the next rescan."""

import pytest

from streaming.broker.watcher.tail import Tail
from streaming.broker.watcher.unreadable import TRIES, Tries
from streaming.simulator.log import LogDir
from tests.builders import partition
from tests.watcher.station import Station

GONE = FileNotFoundError("deleted since it was listed")


@pytest.fixture
def tails(station: Station, disk: LogDir) -> tuple[Tail, ...]:
    for name in ("a", "b"):
        partition(disk, name)
    station.look()
    return tuple(station.watcher.tails())


def test_a_log_whose_files_are_deleted_meanwhile_is_tried_three_times(tails: tuple[Tail, ...]) -> None:
    tries, left = Tries(), []
    while tries.any_left(tails[0]):
        left.append(tries.any_left(tails[1]))
        tries.failed(tails[0], GONE)
    assert left == [True] * 3 == [True] * TRIES
    assert tries.any_left(tails[1])


def test_after_any_other_error_it_is_not_tried_again(tails: tuple[Tail, ...]) -> None:
    tries = Tries()
    tries.failed(tails[0], PermissionError())
    assert not tries.any_left(tails[0])


def test_what_was_read_to_its_end_has_all_its_tries_again(tails: tuple[Tail, ...]) -> None:
    tries = Tries()
    tries.failed(tails[0], GONE)
    tries.failed(tails[0], GONE)
    tries.succeeded(tails[0])
    tries.failed(tails[0], GONE)
    tries.failed(tails[0], GONE)
    assert tries.any_left(tails[0])
    tries.succeeded(tails[1])  # of a log that never failed


def test_a_rescan_tries_all_that_failed_again_the_longest_waiting_first(tails: tuple[Tail, ...]) -> None:
    tries, (first, second) = Tries(), reversed(tails)
    tries.failed(first, PermissionError())
    tries.failed(second, GONE)
    tries.failed(first, GONE)
    assert tries.begin_again() == (first, second)
    assert tries.any_left(first)
    assert tries.begin_again() == ()
