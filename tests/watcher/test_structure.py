"""Hints from the file system itself."""

import errno
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from streaming.broker.watcher.structure import LOOK_MS, RETRY_MS, ROUNDS, LogDirWatch
from streaming.simulator.log import LogDir
from tests.builders import batch, delete, log_dir, partition
from tests.tools import missing, require_tool
from tests.watcher.watched import Watched, eventually


@pytest.fixture
def watched(disk: LogDir) -> Iterator[Watched]:
    made = Watched(disk.path)
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


def test_a_log_dir_behind_a_symbolic_link_is_watched_like_any_other(disk: LogDir, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(disk.path)
    watched = Watched(link)
    log = partition(disk, "t")
    watched.until(link)
    log.append(batch())
    log.roll()
    watched.until(link / "t-0")
    delete(disk, log)
    watched.until(link)
    watched.structure.stop()


def test_a_link_that_leads_elsewhere_is_followed(disk: LogDir, tmp_path: Path) -> None:
    link, other = tmp_path / "link", log_dir(tmp_path, "other")
    link.symlink_to(disk.path)
    watched = Watched(link)
    link.unlink()
    link.symlink_to(other.path)
    assert watched.later() == {link}
    partition(other, "t")
    watched.until(link)
    watched.structure.stop()


def test_a_log_dir_that_is_renamed_away_and_back_is_watched_again(watched: Watched, disk: LogDir, tmp_path: Path) -> None:
    log = partition(disk, "t")
    watched.until(disk.path)
    disk.path.rename(tmp_path / "away")
    assert watched.later() >= {disk.path}
    assert watched.later() == set()
    assert watched.structure.unwatched == 0  # nobody knows what there is
    (tmp_path / "away").rename(disk.path)
    assert watched.later() >= {disk.path}
    watched.structure.take()
    log.append(batch())
    log.roll()
    watched.until(log.directory)


def test_a_log_dir_that_is_made_anew_is_watched_again(watched: Watched, disk: LogDir, tmp_path: Path) -> None:
    partition(disk, "t")
    watched.until(disk.path)
    shutil.rmtree(disk.path)
    again = log_dir(tmp_path)
    eventually(lambda: disk.path in watched.later())
    partition(again, "u", topic_id=2)
    eventually(lambda: disk.path / "u-0" in watched.later() | watched.structure.take())


def test_a_log_dir_that_is_away_at_the_start_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    gone, there = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    watched = Watched(gone.path, there.path, start=False)
    gone.path.rename(tmp_path / "away")
    watched.structure.start()
    watched.structure.take()
    partition(there, "t")
    watched.until(there.path)
    (tmp_path / "away").rename(gone.path)
    assert watched.later() >= {gone.path}
    partition(gone, "u")
    watched.until(gone.path)
    watched.structure.stop()


@pytest.mark.parametrize("name", ["few_watches", "no_instances", "remounted"])
def test_in_a_namespace_of_its_own(name: str, tmp_path: Path) -> None:
    unshare = require_tool("unshare")
    if subprocess.run([unshare, "-Urm", "true"], check=False, capture_output=True).returncode:
        missing("no user and mount namespace may be made here")
    done = subprocess.run(
        [unshare, "-Urm", sys.executable, "-m", "tests.watcher.spaces", name, tmp_path], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    stated = [line for line in done.stderr.splitlines() if not line.startswith("InotifyEmitter.")]  # watchdog's own, while it stops
    if name == "few_watches":
        assert stated == ["directories have no inotify watch: they are compared at each poll instead ()"]
    elif name == "no_instances":
        assert stated == ["inotify does not work here: directories are compared at each poll instead ()"]


def test_what_is_short_and_what_helps_is_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, disk: LogDir) -> None:
    log = partition(disk, "t")
    watched = Watched(disk.path)
    monkeypatch.setattr("streaming.broker.watcher.structure.watched", lambda descriptors: {disk.path.stat().st_ino})
    watched.later(2 * ROUNDS)
    assert watched.structure.unwatched == 1
    (record,) = [record for record in caplog.records if "have no inotify watch" in record.message]
    assert record.__dict__["directories"] == 1
    assert record.__dict__["remedy"].startswith("sysctl -w fs.inotify.max_user_watches=")
    assert record.__dict__["limit_of_watches"].startswith("fs.inotify.max_user_watches = ")
    log.append(batch())
    log.roll()
    assert log.directory in watched.later()
    watched.structure.stop()


def test_a_directory_that_may_not_be_read_is_not_put_down_to_a_limit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, disk: LogDir
) -> None:
    log = partition(disk, "t")
    watched = Watched(disk.path)
    monkeypatch.setattr("streaming.broker.watcher.structure.watched", lambda descriptors: {disk.path.stat().st_ino})
    monkeypatch.setattr("os.access", lambda path, mode, **_: path != log.directory or mode == os.F_OK)  # the tests may run as root
    watched.later(2 * ROUNDS)
    (record,) = [record for record in caplog.records if "have no inotify watch" in record.message]
    reported = record.__dict__
    assert (reported["directories"], reported["error"], reported["first"]) == (1, "Permission denied", str(log.directory))
    assert reported["remedy"] == "let the agent's user read and enter them"
    assert "limit_of_watches" not in reported
    watched.structure.stop()


def test_inotify_that_fails_by_no_limit_names_none(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, disk: LogDir) -> None:
    def fail(code: int) -> dict[str, object]:
        def raising(*_: object) -> None:
            raise OSError(code, "")

        monkeypatch.setattr("streaming.broker.watcher.structure.Observation", raising)
        caplog.clear()
        Watched(disk.path)
        (record,) = [record for record in caplog.records if "inotify does not work here" in record.message]
        return record.__dict__

    denied, short = fail(errno.EACCES), fail(errno.EMFILE)
    assert denied["error"] == "Permission denied"
    assert "limit_of_watches" not in denied
    assert "limit_of_watches" in short


def test_inotify_that_goes_on_failing_is_tried_after_twice_the_time_up_to_an_hour(monkeypatch: pytest.MonkeyPatch, disk: LogDir) -> None:
    tried = []

    def failing(*_: object) -> None:
        tried.append(minute)
        raise OSError(errno.EMFILE, "")

    monkeypatch.setattr("streaming.broker.watcher.structure.Observation", failing)
    watch = LogDirWatch(disk.path, lambda _: None)
    for minute in range(250):
        watch.look(minute * 60_000, everything=False)
    assert [after - before for before, after in pairwise(tried)] == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_an_observer_of_which_a_thread_has_ended_is_replaced(watched: Watched, disk: LogDir, caplog: pytest.LogCaptureFixture) -> None:
    log = partition(disk, "t")
    watched.until(disk.path)
    watched.later(2 * ROUNDS)
    assert watched.structure.unwatched == 0
    watched.deaf()
    watched.later()
    assert watched.structure.unwatched == 1
    assert "inotify does not work here" in caplog.text
    log.append(batch())
    log.roll()
    assert watched.later() == {log.directory}  # by comparing
    watched.later(RETRY_MS // LOOK_MS + 2)
    assert watched.structure.unwatched == 0
    log.append(batch())
    log.roll()
    watched.until(log.directory)  # by inotify


def test_inotify_that_does_not_report_a_change_is_done_without(watched: Watched, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a network file system, where another host makes the changes."""
    log = partition(disk, "t")
    watched.until(disk.path)
    watched.later(2 * ROUNDS)
    assert watched.structure.unwatched == 0
    monkeypatch.setattr("streaming.broker.watcher.structure.Observation.on_any_event", lambda self, event: None)
    log.append(batch())
    log.roll()
    assert log.directory in watched.later(ROUNDS + 3)
    watched.later()
    assert watched.structure.unwatched == 1
    log.append(batch())
    log.roll()
    assert watched.later() == {log.directory}


def test_inotify_that_reports_all_changes_is_kept(watched: Watched, disk: LogDir, caplog: pytest.LogCaptureFixture) -> None:
    logs = [partition(disk, f"t{number}", topic_id=number + 1) for number in range(20)]
    watched.until(disk.path)
    for count in range(5):
        for log in logs:
            log.append(batch())
            log.roll()
        last = partition(disk, f"last{count}", topic_id=100 + count)
        watched.until(last.directory)  # so it has reported all before
        watched.later(ROUNDS)
    assert watched.structure.unwatched == 0
    assert "inotify does not work" not in caplog.text


def test_after_an_overflow_everything_is_compared(watched: Watched, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [partition(disk, f"t{number}", topic_id=number + 1) for number in range(3 * ROUNDS)]
    watched.until(disk.path)
    watched.later(2 * ROUNDS)
    monkeypatch.setattr("streaming.broker.watcher.structure.Observation.on_any_event", lambda self, event: None)
    for log in logs:
        log.append(batch())
        log.roll()
    logging.getLogger("watchdog.observers.inotify_c").warning("Inotify queue overflowed; filesystem events were lost")
    assert watched.later() >= {log.directory for log in logs}


def test_no_call_is_made_into_a_log_dir_that_is_barred(tmp_path: Path) -> None:
    stuck, there = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    barred = {stuck.path}
    watched = Watched(stuck.path, there.path, barred=barred)
    partition(stuck, "t")
    partition(there, "u")
    watched.until(there.path)
    assert watched.later(3) <= {there.path, there.path / "u-0"}
    barred.clear()
    watched.later()
    partition(stuck, "v", topic_id=2)
    watched.until(stuck.path)
    watched.structure.stop()


def test_stopping_what_never_started(disk: LogDir) -> None:
    Watched(disk.path, start=False).structure.stop()


def test_a_hint_is_taken_once(watched: Watched, disk: LogDir) -> None:
    (disk.path / "t-0").mkdir()
    assert watched.until(disk.path) == {disk.path}
    assert watched.structure.take() == set()
