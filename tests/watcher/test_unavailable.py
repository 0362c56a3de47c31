"""Log dirs that are unmounted, fail, come back or are replaced, with the watcher running or not: nothing is gone, nothing counted again."""

import base64
import errno
import io
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from streaming.broker.disk.logdirs import partitions_by_name
from streaming.broker.disk.opening import Calling
from streaming.broker.watcher import registry
from streaming.common.rows import Kind
from streaming.simulator.log import LogDir
from tests.agents import Agent, Reader
from tests.builders import CLUSTER_ID, batch, log_dir, partition
from tests.events import Shard
from tests.formats.real_clusters import metadata_of
from tests.watcher.scene import Scene, scene
from tests.watcher.station import Station


@pytest.mark.parametrize("exists", ["", "exists1", "exists0"])
@pytest.mark.parametrize("ended", ["", "replace"])
def test_an_unmounted_log_dir_is_no_reason_to_let_a_log_go(worlds: Scene, ended: str, exists: str) -> None:
    worlds.make("u", 1)
    assert worlds.play(f"3 {exists} look unmount {ended} u:2 look") == "at0 0-3 u:at0 | u:0-2"
    assert worlds.station.look({worlds.disk.path, worlds.log().directory}) == []
    assert worlds.names() == {"t-0", "u-0"}
    assert worlds.station.watcher.caught_up
    assert worlds.result("home 4 look") == "3-7"


def test_a_log_of_a_process_before_is_not_gone_when_another_log_dir_than_its_own_comes_back() -> None:
    with scene(3) as three:
        three.make("t", 1)
        assert three.play("3 look unmount unmount1 replace look home look") == "at0 0-3 | - | -"
        assert three.names() == {"t-0"}
        assert three.result("home1 4 look") == "3-7"


def test_a_log_dir_that_was_away_from_the_start_is_taken_in_when_it_comes(tmp_path: Path) -> None:
    disks = [log_dir(tmp_path, f"d{number}", broker=number + 1) for number in range(3)]
    partition(disks[1], "t").append(batch(3))
    away = disks[1].path.rename(tmp_path / "away")
    disks[1].path.mkdir()
    station = Station(*[disk.path for disk in disks])
    station.begin("earliest")
    assert station.look() == []
    disks[1].path.rmdir()
    away.rename(disks[1].path)
    assert [(event.kind, event.broker) for event in station.look()] == [(Kind.APPEARED, 2), (Kind.APPENDED, 2)]
    assert station.watcher.log_dirs.brokers == [1, 2, 3]
    station.close()


def test_the_logs_of_a_disk_that_was_replaced_are_gone(world: Scene) -> None:
    world.play("3 u:3 look exists1 u:exists0")
    world.disk.release()
    shutil.rmtree(world.disk.path)
    new = world.disks[0] = LogDir(world.disk.path, 1, CLUSTER_ID, UUID(int=99))
    world.play("new1 2 w:1")
    (new.path / "t-0").rename(new.path / "v-0")  # not there yet
    assert {word for word in world.play("look").split() if "gone" in word} == {"gone(moved,d0)", "u:gone(deleted,)"}
    (new.path / "v-0").rename(new.path / "t-0")
    world.look()
    assert world.station.fold_of("t").records == 2


def test_a_log_dir_that_is_emptied_while_it_is_listed_is_unavailable(worlds: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    worlds.play("3 look")

    def listed_while_it_goes(log_dir: Any, *args: Any) -> Any:
        if log_dir.path == worlds.disk.path and any(log_dir.path.iterdir()):
            worlds.play("unmount")
        return partitions_by_name(log_dir, *args)

    with monkeypatch.context() as going:
        going.setattr(registry, "partitions_by_name", listed_while_it_goes)
        assert worlds.play("look") == "-"
    assert worlds.result("home 4 look") == "3-7"


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


def test_into_a_log_dir_that_is_barred_no_call_is_made(worlds: Scene, called: list[str]) -> None:
    station, (first, second) = worlds.station, (str(disk.path) for disk in worlds.disks)
    worlds.make("u", 1)
    worlds.play("3 look")
    assert any(path.startswith(first) for path in called)
    station.watcher.log_dirs.bar(worlds.disk.path, "a call does not come back")
    worlds.play("4 roll u:2")
    called.clear()
    assert worlds.play("hint look") == "u:0-2 | -"
    station.begin("earliest", "second")
    worlds.play("look")
    assert [path for path in called if path.startswith(first)] == []
    assert any(path.startswith(second) for path in called)
    assert worlds.names() == {"t-0", "u-0"}
    station.watcher.log_dirs.unbar(worlds.disk.path)
    assert worlds.play("look") == "at0 0-3 3-7", "the second reader gets its beginning now"


# --- with all that an agent has around the watcher

TOPIC, TOPIC_ID = "__transaction_state", UUID(bytes=base64.urlsafe_b64decode("zXvQ3BXZRYeZQRauezreYQ=="))


@pytest.mark.parametrize("metadata", [True, False])
def test_topic_counters_do_not_double_when_a_log_dir_was_unmounted(tmp_path: Path, metadata: bool) -> None:
    first, second = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    if metadata:
        metadata_of(first, "kafka_3_9")
    partition(second, TOPIC, topic_id=TOPIC_ID).append(batch(100))
    agent, shard = Agent(first.path, second.path), Shard()
    reader = Reader(agent).begin()
    shard.fold(*reader.step())
    away = second.path.rename(tmp_path / "away")
    second.path.mkdir()
    agent.look()
    shard.fold(*reader.step())
    problems = [(status.up, "meta.properties" in status.problem) for status in agent.service.status().log_dirs]
    assert problems == [(True, False), (False, True)]
    second.path.rmdir()
    away.rename(second.path)
    agent.look()
    shard.fold(*reader.step())
    (state,) = [state for key, state in shard.states.items() if key.topic == TOPIC]
    assert (state.share_records, state.appended_records, state.departed) == (100, 100, False)
    agent.close()


MOUNTS = """
import subprocess, sys
from pathlib import Path
from tests.formats.real_clusters import metadata_of
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
agent = Agent(other.path, path / "log")
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


REPORTED = "moved:cut3 stopped:flaw5 stopped:skip5-5(corrupt) stopped:skip5-5(corrupt)"


def moved(worlds: Scene) -> None:
    """A log that moves to another log dir, cut off meanwhile, one that is stopped and grows, one that rolls."""
    worlds.play("moved:3 moved:2 stopped:3 stopped:2 rolled:3 rolled:2 look stopped:x100 look wait1000 look moved:cut3 moved:1@1")
    shutil.copytree(worlds.log("moved").directory, worlds.disks[1].path / "moved-0")
    worlds.play("moved:delete stopped:x100 rolled:roll rolled:4")


@pytest.mark.parametrize("restarted", [False, True])
def test_whichever_call_fails_while_logs_are_taken_up_nothing_is_lost_or_twice(restarted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    every = os.environ.get("HYPOTHESIS_PROFILE") == "exhaustive"
    for number in itertools.count(1, 1 if every else 9):
        with scene(2) as worlds:
            moved(worlds)
            if restarted:
                worlds.station.replace_watcher()
            with monkeypatch.context() as patched:
                failing = FailingCalls(patched, worlds.root)
                failing.left = number
                worlds.play("look")
                reached = failing.left <= 0
            worlds.play("look look")
            station = worlds.station
            assert [station.fold_of(topic).records for topic in ("moved", "stopped", "rolled")] == [6, 5, 9]
            assert station.fold_of("stopped").skipped == {"corrupt": 200}
            assert {event.bytes for event in station.events if event.kind is Kind.SKIPPED} == {100}
            words = " | ".join(worlds.reports).split()
            assert " ".join(sorted(word for word in words if re.search("cut|flaw|skip|gone", word))) == REPORTED, number
            # a replay that failed is made up for, and then publishes once more what is open
            assert sum(event.kind is Kind.APPEARED for event in station.events) - 3 in (0, 1), number
        if not reached:
            return
