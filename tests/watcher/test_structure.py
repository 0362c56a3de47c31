"""Hints from the file system itself."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from watchdog.observers import Observer

from streaming.broker.disk import logdirs
from streaming.broker.disk.opening import calls_of_this_thread
from streaming.broker.disk.segment_files import STAMP_RELIABLE_MS
from streaming.broker.watcher import structure
from streaming.broker.watcher.structure import LOOK_MS, Structure
from streaming.simulator.log import LogDir
from tests.builders import batch, delete, log_dir, partition
from tests.limits import SECONDS
from tests.tools import missing, require_tool
from tests.watcher.watched import Watched, eventually

RELIABLE = STAMP_RELIABLE_MS // LOOK_MS + 1
"""Looks until nothing that has happened may have happened in the same moment as one of them."""


@pytest.fixture
def watched(disk: LogDir) -> Iterator[Watched]:
    """By inotify."""
    made = Watched(disk.path)
    made.hears(disk.path)
    yield made
    made.structure.stop()


@pytest.fixture
def deaf(disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """Without inotify."""
    _without_inotify(monkeypatch, OSError("no inotify"))
    made = Watched(disk.path)
    made.later(RELIABLE)
    yield made
    made.structure.stop()


def _without_inotify(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def refuses() -> None:
        raise error

    monkeypatch.setattr(structure, "Observer", refuses)


# --- inotify names directories at once


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


def test_a_hint_is_taken_once(watched: Watched, disk: LogDir) -> None:
    (disk.path / "t-0").mkdir()
    assert watched.until(disk.path) == {disk.path}
    assert watched.structure.take() == set()


def test_a_log_dir_behind_a_symbolic_link_is_watched_like_any_other(disk: LogDir, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(disk.path)
    watched = Watched(link)
    watched.hears(link)
    log = partition(disk, "t")
    watched.until(link)
    log.append(batch())
    log.roll()
    watched.until(link / "t-0")
    delete(disk, log)
    watched.until(link)
    watched.structure.stop()


def test_nothing_is_left_of_it_after_the_end(disk: LogDir) -> None:
    before = set(threading.enumerate())
    watched = Watched(disk.path)
    watched.hears(disk.path)
    watched.structure.stop()
    eventually(lambda: set(threading.enumerate()) <= before)
    partition(disk, "t")
    assert watched.structure.take() == set()


def test_stopping_what_never_began(disk: LogDir) -> None:
    Structure([disk], lambda: None, lambda: 0).stop()


# --- what counts is the comparison at each look


def test_without_inotify_everything_is_seen_at_the_next_look(deaf: Watched, disk: LogDir) -> None:
    log, other = partition(disk, "t"), partition(disk, "u", topic_id=2)
    assert deaf.later() == {disk.path}
    log.append(batch(), batch())
    deaf.later(RELIABLE)
    log.append(batch())
    disk.write_high_watermarks()
    assert deaf.later() <= {disk.path}, "neither appends nor checkpoints"
    log.roll()
    assert deaf.later() == {log.directory}
    deaf.later(RELIABLE)
    assert deaf.later() == set()
    log.truncate(1)
    assert deaf.later() == {log.directory}
    delete(disk, other)
    assert deaf.later() >= {disk.path}


def test_everything_is_hinted_at_at_the_first_look(deaf: Watched, disk: LogDir) -> None:
    assert deaf.first == {disk.path}


def test_a_change_in_the_moment_of_a_look_is_seen_at_the_next_ones(deaf: Watched, disk: LogDir) -> None:
    """A file system's times are coarse: one may stay the same although something has changed since."""
    log = partition(disk, "t")
    deaf.later()
    written = deaf.now * 1_000_000
    os.utime(log.directory, ns=(written, written))
    assert deaf.later() == {log.directory}
    for _ in range(STAMP_RELIABLE_MS // LOOK_MS):
        assert deaf.later() == {log.directory}
    assert deaf.later() == set()


def test_a_topic_that_is_made_again_between_two_looks_is_seen(deaf: Watched, disk: LogDir) -> None:
    log = partition(disk, "t")
    deaf.later(RELIABLE)
    written = log.directory.stat().st_mtime_ns
    log.directory.rename(disk.path / f"t-0.{1:032x}-delete")
    log.directory.mkdir()
    os.utime(log.directory, ns=(written, written))
    assert deaf.later() == {disk.path}


def test_a_directory_that_comes_and_goes_between_two_looks_is_nothing(deaf: Watched, disk: LogDir) -> None:
    (disk.path / "t-0").mkdir()
    (disk.path / "t-0").rmdir()
    assert deaf.later() == set()


def test_a_directory_that_goes_in_the_middle_of_a_look_is_missed_at_the_next(
    deaf: Watched, disk: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_them = logdirs.live_directories

    def list_and_remove(path: Path, before: dict[str, int]) -> dict[str, int]:
        found = list_them(path, before)
        shutil.rmtree(path / "gone-0", ignore_errors=True)
        return found

    monkeypatch.setattr(structure, "live_directories", list_and_remove)
    (disk.path / "gone-0").mkdir()
    assert deaf.later() == {disk.path}
    assert deaf.later() == {disk.path}
    assert deaf.later(RELIABLE) == set()


def test_a_log_dir_that_cannot_be_listed_is_listed_at_the_next_look(deaf: Watched, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    partition(disk, "t")
    deaf.now += 2 * STAMP_RELIABLE_MS  # its time would not make anybody list it again
    with monkeypatch.context() as patch:
        patch.setattr(structure, "live_directories", _fails)
        assert deaf.later() == set()
    assert deaf.later() == {disk.path}


def test_what_changes_while_a_directory_cannot_be_asked_is_seen_when_it_can(
    deaf: Watched, disk: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = partition(disk, "t")
    deaf.later(RELIABLE)
    with monkeypatch.context() as patch:
        _on_stat(patch, log.directory, _fails)
        log.append(batch())
        log.roll()
        assert deaf.later() == set()
    deaf.now += 2 * STAMP_RELIABLE_MS
    assert deaf.later() == {log.directory}


def test_many_directories_are_compared_at_longer_intervals(deaf: Watched, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(10):
        (disk.path / f"t-{number}").mkdir()
    monkeypatch.setattr(structure, "LOOKED_AT_PER_MS", 10 / (3 * LOOK_MS))
    assert deaf.later() == {disk.path}
    (disk.path / "t-10").mkdir()
    assert deaf.later(2) == set()
    assert disk.path in deaf.later()


def test_a_log_dir_in_which_nothing_comes_or_goes_is_not_listed(deaf: Watched, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    log = partition(disk, "t")
    deaf.later(RELIABLE)
    listed = []
    monkeypatch.setattr(structure, "live_directories", lambda path, _: listed.append(path))
    log.append(batch())
    log.roll()
    assert deaf.later() == {log.directory}
    assert not listed


def test_a_clock_that_is_set_back_holds_up_no_look(deaf: Watched, disk: LogDir) -> None:
    deaf.now -= 3_600_000
    partition(disk, "t")
    assert disk.path in deaf.structure.take()


# --- log dirs that go and come


def test_a_link_that_leads_elsewhere_is_followed(disk: LogDir, tmp_path: Path) -> None:
    link, other = tmp_path / "link", log_dir(tmp_path, "other")
    link.symlink_to(disk.path)
    watched = Watched(link)
    link.unlink()
    link.symlink_to(other.path)
    assert watched.later() == {link}
    watched.hears(link)
    partition(other, "t")
    watched.until(link)
    watched.structure.stop()


def test_a_log_dir_that_is_renamed_away_and_back_is_watched_again(disk: LogDir, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    watched = Watched(disk.path)
    watched.hears(disk.path)
    partition(disk, "t")
    watched.until(disk.path)
    disk.path.rename(tmp_path / "away")
    assert watched.later() >= {disk.path}
    assert watched.later() == set()
    eventually(lambda: set(threading.enumerate()) <= before)
    (tmp_path / "away").rename(disk.path)
    assert watched.later() >= {disk.path}
    watched.hears(disk.path)
    log = partition(disk, "u", topic_id=2)
    watched.until(disk.path)
    log.append(batch())
    log.roll()
    watched.until(log.directory)
    watched.structure.stop()


def test_a_disk_that_is_replaced_between_two_looks_has_changed_everywhere(deaf: Watched, disk: LogDir, tmp_path: Path) -> None:
    partition(disk, "t")
    deaf.later(RELIABLE)
    disk.path.rename(tmp_path / "away")
    shutil.copytree(tmp_path / "away", disk.path)
    assert deaf.later() == {disk.path, disk.path / "t-0"}


def test_a_log_dir_that_is_made_anew_is_compared_on(watched: Watched, disk: LogDir, tmp_path: Path) -> None:
    """It may have got the number of the one that is gone: then inotify names nothing in it."""
    partition(disk, "t")
    watched.until(disk.path)
    shutil.rmtree(disk.path)
    again = log_dir(tmp_path)
    eventually(lambda: disk.path in watched.later())
    log = partition(again, "u", topic_id=2)
    assert disk.path in watched.later()
    log.append(batch())
    log.roll()
    assert log.directory in watched.later()


def test_a_log_dir_that_is_away_at_the_start_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    gone, there = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    away = gone.path.rename(tmp_path / "away")
    watched = Watched(gone.path, there.path)
    assert watched.first == {there.path}
    watched.hears(there.path)
    partition(there, "t")
    watched.until(there.path)
    away.rename(gone.path)
    assert watched.later() >= {gone.path}
    watched.hears(gone.path)
    partition(gone, "u")
    watched.until(gone.path)
    watched.structure.stop()


def test_no_call_is_made_into_a_log_dir_that_is_barred(tmp_path: Path) -> None:
    stuck, there = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    barred = {stuck.path}
    watched = Watched(stuck.path, there.path, barred=barred)
    watched.hears(there.path)
    partition(stuck, "t")
    partition(there, "u")
    watched.until(there.path)
    assert watched.later(3) <= {there.path, there.path / "u-0"}
    barred.clear()
    assert stuck.path in watched.later()
    watched.hears(stuck.path)
    partition(stuck, "v", topic_id=2)
    watched.until(stuck.path)
    watched.structure.stop()


# --- where inotify does not work


@pytest.mark.parametrize("name", ["few_watches", "no_watches", "no_instances", "remounted"])
def test_in_a_namespace_of_its_own(name: str, tmp_path: Path) -> None:
    unshare = require_tool("unshare")
    if subprocess.run([unshare, "-Urm", "true"], check=False, capture_output=True).returncode:
        missing("no user and mount namespace may be made here")
    done = subprocess.run(
        [unshare, "-Urm", sys.executable, "-m", "tests.watcher.spaces", name, tmp_path], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    reasons = {"no_watches": "[Errno 28] inotify watch limit reached", "no_instances": "[Errno 24] inotify instance limit reached"}
    if name in reasons:
        (line,) = done.stderr.splitlines()
        assert line == f"inotify does not work here: changes are found by comparing directories {tmp_path / 'd0'}: {reasons[name]}"


def test_that_inotify_does_not_work_is_logged_once_for_a_log_dir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log_dirs = [log_dir(tmp_path, name).path for name in ("d0", "d1")]
    _without_inotify(monkeypatch, OSError(38, "Function not implemented"))
    watched = Watched(*log_dirs)
    watched.later(100)
    eventually(lambda: len(caplog.records) == 2)
    assert sorted((each.__dict__["log_dir"], each.__dict__["error"]) for each in caplog.records) == [
        (str(path), "[Errno 38] Function not implemented") for path in log_dirs
    ]


def test_a_watch_that_cannot_be_set_is_logged_and_leaves_no_thread(
    disk: LogDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Observer, "schedule", _fails)
    before = set(threading.enumerate())
    Watched(disk.path)
    eventually(lambda: "not now" in [each.__dict__.get("error") for each in caplog.records])
    eventually(lambda: set(threading.enumerate()) <= before)


@pytest.mark.parametrize("starts", [0, 1], ids=["its own", "watchdog's"])
def test_a_thread_that_cannot_be_started_costs_hints_and_nothing_else(
    starts: int, disk: LogDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    start, left = threading.Thread.start, iter(range(starts))

    def no_more(thread: threading.Thread) -> None:
        if next(left, None) is None:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", no_more)
    watched = Watched(disk.path)
    eventually(lambda: "can't start new thread" in [each.__dict__.get("error") for each in caplog.records])
    partition(disk, "t")
    assert watched.later() == {disk.path}


def test_a_disk_that_hangs_in_the_middle_of_a_look_is_named_and_holds_up_no_other_log_dir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, there = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    log = partition(dead, "t")
    watched = Watched(there.path, dead.path)
    calls, answers, hangs = [], threading.Event(), threading.Event()

    def hang() -> None:
        calls.append(calls_of_this_thread().path)
        hangs.set()
        answers.wait(SECONDS)

    with monkeypatch.context() as patch:
        _on_stat(patch, log.directory, hang)
        look = threading.Thread(target=watched.later)
        look.start()
        assert hangs.wait(SECONDS)
        assert calls == [dead.path]
        partition(there, "u")
        instead = Watched(dead.path, there.path, barred={dead.path})  # as of the thread that replaces the first one
        partition(there, "v", topic_id=2)
        assert instead.later() >= {there.path}
        assert look.is_alive()
    answers.set()
    look.join(SECONDS)
    for each in (watched, instead):
        each.structure.stop()


def test_an_observer_that_hangs_on_its_disk_costs_the_hints_of_this_one_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead, there = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    answers = threading.Event()

    class Hanging(Observer):  # type: ignore[valid-type, misc]
        def schedule(self, handler: object, path: str, **options: object) -> object:
            if path == str(dead.path):
                answers.wait(SECONDS)
            return super().schedule(handler, path, **options)

    monkeypatch.setattr(structure, "Observer", Hanging)
    watched = Watched(dead.path, there.path)
    watched.hears(there.path)
    partition(there, "t")
    watched.until(there.path)
    partition(dead, "t")
    assert dead.path in watched.later(), "it is compared all the same"
    watched.structure.stop()
    assert not answers.is_set(), "nobody has waited for it"
    answers.set()


def _fails(*_: object, **__: object) -> dict[str, int]:
    raise OSError("not now")


def _on_stat(patch: pytest.MonkeyPatch, directory: Path, then: Callable[[], object]) -> None:
    """Let something happen whenever the status of this directory is asked."""
    ask = os.stat

    def asks(path: str, **options: object) -> os.stat_result:
        if path == str(directory):
            then()
        return ask(path, **options)  # type: ignore[arg-type]

    patch.setattr(os, "stat", asks)
