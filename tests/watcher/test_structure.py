"""Hints from the file system itself."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.disk.logdirs import open_log_dirs
from streaming.simulator.log_dir import LogDir
from streaming.watcher.structure import Structure
from tests.builders import batch, delete, log_dir, partition

PATIENCE_SECONDS = 30.0


class Watched:
    """The hints of a real observer, waited for as they come."""

    def __init__(self, *disks: LogDir) -> None:
        self._come = threading.Condition()
        self._hints: set[Path] = set()
        self.structure = Structure(open_log_dirs([disk.path for disk in disks]), self._wake)
        self.structure.start()

    def _wake(self) -> None:
        with self._come:
            self._hints |= self.structure.take()
            self._come.notify_all()

    def until(self, *expected: Path) -> set[Path]:
        """Wait until all of these were hinted at; returns all hints so far and forgets them."""
        with self._come:
            assert self._come.wait_for(lambda: self._hints >= set(expected), PATIENCE_SECONDS), (self._hints, expected)
            hints, self._hints = self._hints, set()
        return hints


@pytest.fixture
def watched(disk: LogDir) -> Iterator[Watched]:
    made = Watched(disk)
    yield made
    made.structure.stop()


def test_a_new_partition_is_a_hint_at_its_log_dir(watched: Watched, disk: LogDir) -> None:
    partition(disk, "t")
    assert watched.until(disk.path) <= {disk.path, disk.path / "t-0"}


def test_a_roll_is_a_hint_at_its_partition(watched: Watched, disk: LogDir) -> None:
    log = partition(disk, "t")
    watched.until(disk.path)
    log.append(batch())
    log.roll()
    watched.until(log.directory)


def test_a_topic_that_is_deleted_is_a_hint_at_the_log_dir(watched: Watched, disk: LogDir) -> None:
    log = partition(disk, "t")
    watched.until(disk.path)
    delete(disk, log)
    watched.until(disk.path)


def test_a_truncation_is_a_hint_by_its_leader_epochs(watched: Watched, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(), batch())
    watched.until(log.directory)
    log.truncate(1)
    watched.until(log.directory)


def test_appends_and_checkpoints_at_the_root_are_no_hints(watched: Watched, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch())
    watched.until(disk.path)
    last = partition(disk, "last", topic_id=2)
    watched.until(disk.path)
    last.append(batch())
    watched.until(last.directory)
    for _ in range(20):
        log.append(batch())
        disk.write_high_watermarks()
    last.roll()
    hints = watched.until(last.directory)
    assert hints <= {last.directory, disk.path}
    assert log.directory not in hints


def test_a_log_dir_that_cannot_be_watched_does_not_keep_the_others_from_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    gone, there = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    dirs = open_log_dirs([gone.path, there.path])
    gone.path.rename(tmp_path / "away")
    come = threading.Event()
    structure = Structure(dirs, come.set)
    structure.start()
    partition(there, "t")
    assert come.wait(PATIENCE_SECONDS)
    assert there.path in structure.take()
    assert "changes here are found once a minute only" in caplog.text
    structure.stop()


def test_stopping_what_never_started() -> None:
    Structure([], lambda: None).stop()


def test_a_hint_is_taken_once(disk: LogDir) -> None:
    structure = Structure(open_log_dirs([disk.path]), lambda: None)
    structure.hint(disk.path / "t-0" / "00000000000000000000.log")
    structure.hint(disk.path / "u-1")
    structure.hint(disk.path / "replication-offset-checkpoint")
    structure.hint(disk.path)
    structure.hint(Path("/elsewhere/t-0"))
    assert structure.take() == {disk.path / "t-0", disk.path}
    assert structure.take() == set()
