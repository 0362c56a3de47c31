"""How far a start has come, by the files that it leaves behind."""

import os
from pathlib import Path

import pytest

from streaming.broker.agent.recovery_progress import DirRecovery, ToRecover

START = 1_700_000_000_000
KB = 1 << 10


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
    return ToRecover(directory, [(0, 4 * KB), (100, 2 * KB), (200, KB)])


def test_a_segment_is_done_when_the_snapshot_after_it_is_of_this_start(log: ToRecover) -> None:
    recovery = DirRecovery()
    found = recovery.look(START, [log])
    assert (found.left, found.logs, found.working, found.begun) == (7 * KB, 1, (), False)
    write(log.directory, f"{0:020}.index", START + 100)
    found = recovery.look(START, [log])
    assert (found.left, found.working, found.begun) == (7 * KB, ("orders-0",), False)
    write(log.directory, f"{100:020}.snapshot", START + 1_000)
    found = recovery.look(START, [log])
    assert (found.left, found.logs, found.begun, recovery.rate) == (3 * KB, 1, True, -1.0)
    write(log.directory, f"{200:020}.snapshot", START + 3_000)
    assert recovery.look(START, [log]).left == KB
    assert recovery.rate == KB
    write(log.directory, f"{234:020}.snapshot", START + 4_000)
    found = recovery.look(START, [log])
    assert (found.left, found.logs, found.working) == (0, 0, ())
    assert recovery.rate == KB


def test_another_start_begins_anew_and_the_rate_stays(log: ToRecover) -> None:
    recovery = DirRecovery()
    for number, offset in enumerate((100, 200, 234)):
        write(log.directory, f"{offset:020}.snapshot", START + 1_000 * number)
    assert recovery.look(START, [log]).left == 0
    assert recovery.look(START + 60_000, [log]).left == 7 * KB
    assert recovery.rate == 1.5 * KB


def test_what_was_cut_off_or_deleted_is_not_left(log: ToRecover) -> None:
    recovery = DirRecovery()
    assert recovery.look(START, [log]).left == 7 * KB
    write(log.directory, f"{60:020}.snapshot", START + 1_000)  # a damaged batch: the first segment ends there
    for base in (100, 200):
        (log.directory / f"{base:020}.log").unlink()
    assert recovery.look(START, [log]).left == 0
    other = ToRecover(log.directory.with_name("gone-0"), [(0, KB)])
    assert recovery.look(START + 60_000, [other]).left == 0
