"""Log dirs that are unmounted, fail, come back or are replaced, with the watcher running or not: nothing is gone, nothing counted again."""

import base64
import errno
import io
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from streaming.broker.disk.calls import Calling
from streaming.broker.disk.logdirs import partitions_by_name
from streaming.common.rows import Kind
from streaming.simulator.log import PartitionLog
from streaming.simulator.log_dir import LogDir
from tests.agent.test_cluster_view import metadata_of
from tests.agents import Agent, Reader
from tests.builders import CLUSTER_ID, batch, log_dir, partition
from tests.events import Shard
from tests.watcher.station import Station
from tests.watcher.test_registry import names, shown


def unmount(path: Path) -> Callable[[], None]:
    """Nothing lies at the path any more, though it is there; returns what mounts it again."""
    away = path.with_name(f"{path.name}-away")
    path.rename(away)
    path.mkdir()

    def mount() -> None:
        path.rmdir()
        away.rename(path)

    return mount


@pytest.fixture
def two(tmp_path: Path) -> tuple[LogDir, LogDir]:
    return log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")


@pytest.fixture
def both(two: tuple[LogDir, LogDir], tmp_path: Path) -> Iterator[Station]:
    made = Station(*[disk.path for disk in two], journal=tmp_path / "journal")
    made.begin("earliest")
    yield made
    made.close()


@pytest.mark.parametrize("exists", [True, False, None])
def test_an_unmounted_log_dir_is_no_reason_to_let_a_log_go(both: Station, two: tuple[LogDir, LogDir], exists: bool | None) -> None:
    log, other = partition(two[0], "t"), partition(two[1], "u", topic_id=2)
    log.append(batch(3))
    both.look()
    if exists is not None:
        both.cluster.topics["t"] = exists
    mount = unmount(two[0].path)
    other.append(batch(2))
    assert shown(both.look()) == [(Kind.APPENDED, "u-0", "")]
    assert both.look({two[0].path, log.directory}) == []
    assert names(both) == {"t-0", "u-0"}
    mount()
    log.append(batch(4))
    assert shown(both.look()) == [(Kind.APPENDED, "t-0", "")]
    assert both.fold_of("t").records == 7


@pytest.mark.parametrize("killed", [True, False])
def test_what_an_earlier_process_read_in_a_log_dir_that_is_away_now_is_not_gone(
    both: Station, two: tuple[LogDir, LogDir], killed: bool
) -> None:
    log, other = partition(two[0], "t"), partition(two[1], "u", topic_id=2)
    log.append(batch(3))
    both.look()
    mount = unmount(two[0].path)
    both.restart(killed=killed)
    other.append(batch(1))
    assert shown(both.look()) == [(Kind.APPENDED, "u-0", "")]
    assert names(both) == {"t-0", "u-0"}
    assert both.watcher.caught_up
    mount()
    log.append(batch(4))
    assert shown(both.look()) == [(Kind.APPENDED, "t-0", "")]
    assert both.fold_of("t").records == 7


def test_a_log_of_a_process_before_is_not_gone_when_another_log_dir_than_its_own_comes_back(tmp_path: Path) -> None:
    disks = [log_dir(tmp_path, f"d{number}") for number in range(3)]
    station = Station(*[disk.path for disk in disks], journal=tmp_path / "journal")
    station.begin("earliest")
    log = partition(disks[1], "t")
    log.append(batch(3))
    station.look()
    mounts = [unmount(disk.path) for disk in disks[:2]]
    station.restart()
    station.look()
    mounts[0]()
    assert station.look() == []
    assert names(station) == {"t-0"}
    mounts[1]()
    log.append(batch(4))
    assert shown(station.look()) == [(Kind.APPENDED, "t-0", "")]
    station.close()


def test_a_log_dir_that_was_away_from_the_start_is_taken_in_when_it_comes(tmp_path: Path) -> None:
    first, second = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1", broker=2)
    partition(second, "t").append(batch(3))
    mount = unmount(second.path)
    third = log_dir(tmp_path, "d2", broker=3)
    station = Station(first.path, second.path, third.path, journal=tmp_path / "journal")
    station.begin("earliest")
    assert station.look() == []
    mount()
    assert [(event.kind, event.broker) for event in station.look()] == [(Kind.APPEARED, 2), (Kind.APPENDED, 2)]
    assert station.watcher.log_dirs.brokers == [1, 2, 3]
    station.close()


def test_the_logs_of_a_disk_that_was_replaced_are_gone(station: Station, disk: LogDir) -> None:
    partition(disk, "t").append(batch(3))
    partition(disk, "u", topic_id=2).append(batch(3))
    station.look()
    station.cluster.topics.update(t=True, u=False)
    disk.release()
    shutil.rmtree(disk.path)
    new = LogDir(disk.path, 1, CLUSTER_ID, UUID(int=99))
    partition(new, "t").append(batch(2))
    partition(new, "w", topic_id=3).append(batch(1))
    (new.path / "t-0").rename(new.path / "v-0")  # not there yet
    assert sorted(found for found in shown(station.look()) if found[0] is Kind.GONE) == [
        (Kind.GONE, "t-0", "moved"),
        (Kind.GONE, "u-0", "deleted"),
    ]
    (new.path / "v-0").rename(new.path / "t-0")
    station.look()
    assert station.fold_of("t").records == 2


def test_a_log_dir_that_is_emptied_while_it_is_listed_is_unavailable(
    both: Station, two: tuple[LogDir, LogDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    from streaming.broker.watcher import log_listing

    log = partition(two[0], "t")
    log.append(batch(3))
    both.look()
    mounts: list[Callable[[], None]] = []

    def listed_while_it_goes(log_dir: Any, *args: Any) -> Any:
        if log_dir.path == two[0].path:
            mounts.append(unmount(log_dir.path))
        return partitions_by_name(log_dir, *args)

    monkeypatch.setattr(log_listing, "partitions_by_name", listed_while_it_goes)
    assert both.look() == []
    monkeypatch.undo()
    mounts[0]()
    log.append(batch(4))
    assert shown(both.look()) == [(Kind.APPENDED, "t-0", "")]


CALLS = ("stat", "lstat", "scandir", "listdir", "open", "statvfs", "access", "pread", "preadv", "fstat", "readlink")


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that this process makes calls about."""
    found: list[str] = []

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(path: Any, *args: Any, **kwargs: Any) -> Any:
            found.append(readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else str(path))
            return call(path, *args, **kwargs)

        return noted

    readlink = os.readlink
    for name in CALLS:
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    monkeypatch.setattr(io, "open", watched(io.open))
    return found


def test_into_a_log_dir_that_is_barred_no_call_is_made(both: Station, two: tuple[LogDir, LogDir], called: list[str]) -> None:
    log, other = partition(two[0], "t"), partition(two[1], "u", topic_id=2)
    log.append(batch(3))
    both.look()
    assert any(path.startswith(str(two[0].path)) for path in called)
    both.watcher.log_dirs.bar(two[0].path, "a call does not come back")
    log.append(batch(4))
    log.roll()
    other.append(batch(2))
    called.clear()
    assert shown(both.look({two[0].path, log.directory})) == [(Kind.APPENDED, "u-0", "")]
    assert both.look() == []
    both.begin("earliest", "second")
    both.watcher.appear_again()
    both.look()
    assert [path for path in called if path.startswith(str(two[0].path))] == []
    assert any(path.startswith(str(two[1].path)) for path in called)
    assert names(both) == {"t-0", "u-0"}
    both.watcher.log_dirs.unbar(two[0].path)
    reported = shown(both.look())
    assert set(reported) == {(Kind.APPEARED, "t-0", ""), (Kind.APPENDED, "t-0", "")}, "the second reader gets its beginning now"


# --- with all that an agent has around the watcher

TOPIC, TOPIC_ID = "__transaction_state", UUID(bytes=base64.urlsafe_b64decode("zXvQ3BXZRYeZQRauezreYQ=="))


@pytest.mark.parametrize("metadata", [True, False])
def test_topic_counters_do_not_double_when_a_log_dir_was_unmounted(tmp_path: Path, metadata: bool) -> None:
    first, second = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    if metadata:
        metadata_of(first, "kafka_3_9")
    log = partition(second, TOPIC, topic_id=TOPIC_ID)
    log.append(batch(100))
    agent, shard = Agent(first.path, second.path, journal=tmp_path / "journal"), Shard()
    reader = Reader(agent).begin()
    shard.fold(*reader.step())
    mount = unmount(second.path)
    agent.look()
    shard.fold(*reader.step())
    assert [(status.up, "meta.properties" in status.problem) for status in agent.service.status().log_dirs] == [
        (True, False),
        (False, True),
    ]
    mount()
    agent.look()
    shard.fold(*reader.step())
    (state,) = [state for key, state in shard.states.items() if key.topic == TOPIC]
    assert (state.share_records, state.appended_records, state.departed) == (100, 100, False)
    agent.close()


MOUNTS = """
import subprocess, sys
from pathlib import Path
from tests.agent.test_cluster_view import metadata_of
from tests.agents import Agent, Reader
from tests.builders import batch, log_dir, partition

def run(*command): subprocess.run(command, check=True)

root = Path(sys.argv[1])
disk, path = root / "disk", root / "d1"
disk.mkdir(), path.mkdir()
run("mount", "-t", "tmpfs", "segtail", disk)
run("mount", "--bind", disk, path)
(path / "lost+found").mkdir()
other = log_dir(root, "d0")
run("umount", path)
real = log_dir(disk, "log")
run("mount", "--bind", disk, path)
log = partition(real, "t")
log.append(batch(100))
agent = Agent(other.path, path / "log", journal=root / "journal")
reader = Reader(agent).begin()
rows = reader.step()
run("umount", "-l", path)
agent.look()
rows += reader.step()
print([each.up for each in agent.service.status().log_dirs])
log.append(batch(1))
run("mount", "--bind", disk, path)
agent.look()
rows += reader.step()
print([each.up for each in agent.service.status().log_dirs])
print([str(row.kind) for row in rows if row.kind in ("gone", "appeared")], sum(row.records for row in rows if row.kind == "appended"))
"""


def test_a_file_system_that_is_unmounted_and_mounted_again(tmp_path: Path) -> None:
    command = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    if subprocess.run([*command, "mount", "-t", "tmpfs", "segtail", str(tmp_path)], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody mount here")
    done = subprocess.run([*command, sys.executable, "-c", MOUNTS, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[True, False]", "[True, True]", "['appeared'] 101"]


# --- calls that fail


class FailingCalls:
    """Lets one call into a file system fail that comes after so many others."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, below: Path) -> None:
        self.left = -1
        self._below = str(below)
        enter = Calling.__enter__

        def entered(calling: Calling) -> None:
            if str(calling._path).startswith(self._below):
                self.left -= 1
                if self.left == 0:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
            enter(calling)

        monkeypatch.setattr(Calling, "__enter__", entered)


def moves(station: Station, first: LogDir, second: LogDir) -> list[PartitionLog]:
    """A log that moves to another log dir, cut off meanwhile, one that is stopped and grows, one that is compacted below its place."""
    moved, stopped, rolled = partition(first, "moved"), partition(first, "stopped", topic_id=2), partition(first, "rolled", topic_id=3)
    for log in (moved, stopped, rolled):
        log.append(batch(3), batch(2))
    station.look()
    with stopped.active.path("log").open("ab") as file:
        file.write(bytes(range(100)))
    station.look()
    station.clock.now += 1000
    station.look()
    moved.truncate(3)
    moved.append(batch(1), leader_epoch=1)
    shutil.copytree(moved.directory, second.path / "moved-0")
    moved.rename(f"{moved.name}.{0:032x}-delete")
    with stopped.active.path("log").open("ab") as file:
        file.write(bytes(100))
    rolled.roll()
    rolled.append(batch(4))
    return [moved, stopped, rolled]


@pytest.mark.parametrize("restarted", [False, True])
def test_whichever_call_fails_while_logs_are_taken_up_nothing_is_lost_or_twice(
    tmp_path: Path, restarted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = os.environ.get("HYPOTHESIS_PROFILE") == "exhaustive"
    for number in itertools.count(1, 1 if every else 9):
        root = tmp_path / str(number)
        first, second = log_dir(root, "d0"), log_dir(root, "d1")
        station = Station(first.path, second.path, journal=root / "journal")
        station.begin("earliest")
        moves(station, first, second)
        if restarted:
            station.restart(killed=True)
        with monkeypatch.context() as patched:
            failing = FailingCalls(patched, root)
            failing.left = number
            station.look()
            reached = failing.left <= 0
        station.look()
        station.look()
        reported = [
            (event.kind, event.topic, event.reason, event.bytes if event.kind is Kind.SKIPPED else 0)
            for event in station.events
            if event.kind not in (Kind.CENSUS, Kind.FOUND, Kind.APPENDED, Kind.APPEARED)
        ]
        assert {topic: station.fold_of(topic).records for topic in ("moved", "stopped", "rolled")} == {
            "moved": 6,
            "stopped": 5,
            "rolled": 9,
        }
        assert station.fold_of("stopped").skipped == {"corrupt": 200}
        assert sorted(reported) == [
            (Kind.CORRUPT, "stopped", next(each[2] for each in reported if each[0] is Kind.CORRUPT), 0),
            (Kind.SKIPPED, "stopped", "corrupt", 100),
            (Kind.SKIPPED, "stopped", "corrupt", 100),
            (Kind.TRUNCATED, "moved", "", 0),
        ], number
        # a replay that failed is made up for, and then publishes once more what is open
        assert sum(event.kind is Kind.APPEARED for event in station.events) - 3 in (0, 1), number
        station.close()
        for directory in (first, second):
            directory.release()
        if not reached:
            return
