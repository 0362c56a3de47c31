"""Logs that the file system refuses to give: they are named, and nobody else waits for them."""

import errno
from pathlib import Path
from typing import Any

import pytest

from streaming.broker.disk.segment_files import OpenSegment
from streaming.broker.watcher.unreadable import StuckTail
from streaming.common.log_key import LogKey
from tests.watcher.scene import Scene

LOG = f"{0:020}.log"


def named(world: Scene) -> list[tuple[str, str, str]]:
    return [(str(each.log), Path(each.path).name, each.error) for each in world.station.watcher.unreadable()]


def test_a_log_that_cannot_be_read_is_named_until_it_can(world: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    world.play("new2 u:new3 look")
    assert named(world) == []
    read_into = OpenSegment.read_into

    def fails(file: OpenSegment, *args: Any, **kwargs: Any) -> int:
        if file.path.parent == world.log().directory:
            raise OSError(errno.EIO, "Input/output error")
        return read_into(file, *args, **kwargs)

    monkeypatch.setattr(OpenSegment, "read_into", fails)
    for offset in (0, 3, 6):
        assert world.play("2 u:3 look") == f"u:{offset}-{offset + 3}"
        assert named(world) == [("t-0", LOG, "Input/output error")]
    assert world.station.watcher.caught_up
    monkeypatch.undo()
    assert world.result("look") == "0-6"
    assert named(world) == []


def test_a_log_that_cannot_be_opened_is_named(world: Scene) -> None:
    world.play("2 look shut hide")
    for how in ("turn", "look"):
        assert world.play(how) == "-"
        assert named(world) == [("t-0", LOG, "Too many levels of symbolic links")]
    assert world.result("show 3 look") == "2-5"
    assert named(world) == []


def test_a_log_that_cannot_be_taken_up_is_named_until_it_can_or_is_gone(world: Scene) -> None:
    assert world.play("2 hide gone:2 gone:hide good:3 look") == "good:at0 good:0-3"
    assert world.station.watcher.caught_up
    assert {name for name, _, _ in named(world)} == {"t-0", "gone-0"}
    assert world.result("gone:remove show look") == "at0 0-2"
    assert named(world) == []


def test_a_directory_whose_topic_id_cannot_be_read_is_named(world: Scene) -> None:
    bad = world.make("bad")
    (bad.directory / "partition.metadata").write_text("nonsense")
    world.look()
    (found,) = world.station.watcher.unreadable()
    assert found == StuckTail(LogKey(1, "bad", 0, ""), str(bad.directory), found.error)
    assert found.error.startswith("partition.metadata: ")
