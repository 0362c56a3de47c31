"""What the doctor says of brokers by the locks in their log dirs."""

import os
from pathlib import Path

import pytest

from streaming.broker.disk.broker_processes import RunningLogDirs
from streaming.common.settings import Settings
from streaming.simulator.log import LogDir
from streaming.terminal.doctor import examination, log_dir_checks
from tests.builders import log_dir
from tests.doctor.examined import FINE, NOT_APPLICABLE, NOW, UNKNOWN, WARNING, examined, only


def rest(disk: LogDir, seconds: float) -> None:
    """Nobody holds it, and its files were written so long ago."""
    disk.release()
    for path in disk.path.rglob("*"):
        os.utime(path, (NOW - seconds, NOW - seconds))


def test_one_that_runs_is_named_with_its_log_dirs(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    found = only(log_dir_checks.check_brokers, disk.path)
    assert (found.state, found.what) == (FINE, f"broker 1 runs: it holds the lock of {disk.path}")


def test_a_log_dir_that_it_does_not_hold_is_a_warning(tmp_path: Path) -> None:
    held, other = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    other.release()
    first, second = examined(log_dir_checks.check_brokers, held.path, other.path)
    assert (first.state, second.state) == (FINE, WARNING)
    assert f"does not hold the lock of {other.path}" in second.what


def test_one_that_is_stopped_is_a_warning(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    disk.write_high_watermarks()
    disk.release()
    written = max(path.stat().st_mtime for path in disk.path.glob("*-checkpoint"))
    found = only(log_dir_checks.check_brokers, disk.path, now=written + 3600)
    assert found.state is WARNING
    assert found.what.startswith("broker 1 does not run, or its log dirs are a copy, as of the last write ")
    assert found.what.endswith(" (1h ago): nobody holds their locks")
    (disk.path / ".lock").unlink()
    (disk.path / ".kafka_cleanshutdown").touch()
    assert only(log_dir_checks.check_brokers, disk.path, now=written + 3600).state is WARNING


def test_a_copy_with_the_dates_of_its_files_is_none(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    rest(disk, 3600)
    found = only(log_dir_checks.check_brokers, disk.path)
    assert found.state is NOT_APPLICABLE
    assert found.what.startswith(
        "the log dirs of broker 1 are a copy, as of the last write 2023-11-14T21:13:20Z (1h ago), it seems: nobody holds their locks, "
    )


def test_what_cannot_be_known_has_its_reason(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    rest(disk, 10)
    found = only(log_dir_checks.check_brokers, disk.path)
    assert (found.state, "within the last minute" in found.what) == (UNKNOWN, True)
    (disk.path / ".lock").unlink()
    assert "within the last minute" in only(log_dir_checks.check_brokers, disk.path).what


def test_without_log_dirs_nothing_is_asked() -> None:
    assert examined(log_dir_checks.check_brokers) == []


def test_brokers_that_run_here_are_looked_at_only_where_nothing_else_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job, or agents, may be of another cluster; and that two clusters have brokers on a host is no fault."""
    one, other = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1", cluster_id="another-cluster-00000g")
    for paths, job, states in (
        ((one.path,), "", [FINE]),
        ((one.path, other.path), "", [FINE, UNKNOWN]),
        ((one.path, other.path), "http://127.0.0.1:1", []),
    ):
        monkeypatch.setattr(examination, "running_log_dirs", lambda paths=paths: RunningLogDirs(paths))
        found = examination.examine(Settings(), {}, NOW, job=job)
        assert [each.state for each in found if each.check == "log dirs"] == states
