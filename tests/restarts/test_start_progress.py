"""How far a start has come, by the files that it leaves behind."""

import os
from pathlib import Path

import pytest

from streaming.broker.restarts.start_progress import LEAST_BYTES, DirRecovery, ToRecover

START = 1_700_000_000_000
SIZE = LEAST_BYTES


def write(directory: Path, name: str, at_ms: int) -> None:
    path = directory / name
    path.touch()
    os.utime(path, (at_ms / 1000, at_ms / 1000))


@pytest.fixture
def log(tmp_path: Path) -> ToRecover:
    """Three segments as a crash leaves them: the snapshots are of their rolls, the last index is preallocated."""
    directory = tmp_path / "orders-0"
    directory.mkdir()
    for base in (0, 100, 200):
        write(directory, f"{base:020}.log", START - 9_000)
        write(directory, f"{base:020}.index", START - 9_000)
        write(directory, f"{base:020}.snapshot", START - 9_000)
    return ToRecover(directory, [(0, 4 * SIZE), (100, 2 * SIZE), (200, SIZE)])


def test_a_segment_is_done_when_the_snapshot_after_it_is_of_this_start(log: ToRecover) -> None:
    recovery = DirRecovery()
    found = recovery.look(START, [log])
    assert (found.left, found.logs, found.working, found.begun) == (7 * SIZE, 1, (), False)
    write(log.directory, f"{0:020}.index", START + 100)
    found = recovery.look(START, [log])
    assert (found.left, found.working, found.begun) == (7 * SIZE, ("orders-0",), False)
    write(log.directory, f"{100:020}.snapshot", START + 1_000)
    found = recovery.look(START, [log])
    assert (found.left, found.logs, found.begun, recovery.rate) == (3 * SIZE, 1, True, -1.0)
    write(log.directory, f"{200:020}.snapshot", START + 3_000)
    assert recovery.look(START, [log]).left == SIZE
    assert recovery.rate == SIZE
    write(log.directory, f"{234:020}.snapshot", START + 4_000)
    found = recovery.look(START, [log])
    assert (found.left, found.logs, found.working) == (0, 0, ())
    assert recovery.rate == SIZE


def test_another_start_begins_anew_and_the_rate_stays(log: ToRecover) -> None:
    recovery = DirRecovery()
    for number, offset in enumerate((100, 200, 234)):
        write(log.directory, f"{offset:020}.snapshot", START + 1_000 * number)
    assert recovery.look(START, [log]).left == 0
    assert recovery.look(START + 60_000, [log]).left == 7 * SIZE
    assert recovery.rate == 1.5 * SIZE


def test_a_start_that_goes_on_after_it_seemed_to_be_over_has_its_logs_again(log: ToRecover) -> None:
    recovery = DirRecovery()
    recovery.look(START, [log])
    write(log.directory, f"{100:020}.snapshot", START + 1_000)
    recovery.end()
    found = recovery.look(START, [log])
    assert (found.left, found.logs, found.begun) == (3 * SIZE, 1, True)


def test_what_was_cut_off_or_deleted_is_not_left(log: ToRecover) -> None:
    recovery = DirRecovery()
    assert recovery.look(START, [log]).left == 7 * SIZE
    write(log.directory, f"{60:020}.snapshot", START + 1_000)  # a damaged batch: the first segment ends there
    for base in (100, 200):
        (log.directory / f"{base:020}.log").unlink()
    assert recovery.look(START, [log]).left == 0
    other = ToRecover(log.directory.with_name("gone-0"), [(0, SIZE)])
    assert recovery.look(START + 60_000, [other]).left == 0


def test_small_logs_that_are_done_first_show_no_rate_and_the_large_one_at_the_end_does(tmp_path: Path) -> None:
    small, large = (ToRecover(tmp_path / name, [(0, size)]) for name, size in (("a-0", 1000), ("b-0", 10 * SIZE)))
    others = [ToRecover(tmp_path / f"{number}-0", [(0, 1000)]) for number in range(20)]
    for each in (small, large, *others):
        each.directory.mkdir()
        write(each.directory, f"{0:020}.log", START - 9_000)
    recovery = DirRecovery()
    recovery.look(START, [small, large, *others])
    for number, each in enumerate((small, *others)):
        write(each.directory, f"{5:020}.snapshot", START + 500 * number)
    assert recovery.look(START, [small, large, *others]).left == 10 * SIZE
    assert recovery.rate == -1.0, "20 kB in 10 s"
    write(large.directory, f"{9_000:020}.snapshot", START + 20_000)
    recovery.end()
    assert recovery.rate == (10 * SIZE + 20 * 1000) / 20
    write(large.directory, f"{9_000:020}.snapshot", START + 40_000)
    recovery.end()
    assert recovery.rate == (10 * SIZE + 20 * 1000) / 20, "what is written later is none of its"


def test_little_that_takes_long_shows_no_rate(log: ToRecover) -> None:
    little = ToRecover(log.directory, [(0, 40), (100, 20), (200, 10)])
    recovery = DirRecovery()
    for number, offset in enumerate((100, 200, 234)):
        write(log.directory, f"{offset:020}.snapshot", START + 5_000 * number)
    assert recovery.look(START, [little]).left == 0
    assert recovery.rate == -1.0
