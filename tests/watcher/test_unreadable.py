"""Logs that the file system refuses to give: they are named, and nobody else waits for them."""

import errno
from pathlib import Path
from typing import Any

import pytest

from streaming.broker.disk.segment_files import OpenSegment
from streaming.broker.watcher.unreadable import StuckTail
from streaming.common.log_key import LogKey
from streaming.simulator.log_dir import LogDir
from tests.builders import batch, partition
from tests.watcher.station import Station


def named(station: Station) -> list[tuple[str, str, str]]:
    return [(str(each.log), Path(each.path).name, each.error) for each in station.watcher.unreadable()]


def test_a_log_that_cannot_be_read_is_named_until_it_can(station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = partition(disk, "bad", topic_id=2), partition(disk, "good", topic_id=3)
    station.look()
    assert station.watcher.unreadable() == []
    read_into = OpenSegment.read_into

    def fails(file: OpenSegment, *args: Any, **kwargs: Any) -> int:
        if file.path.parent == bad.directory:
            raise OSError(errno.EIO, "Input/output error")
        return read_into(file, *args, **kwargs)

    monkeypatch.setattr(OpenSegment, "read_into", fails)
    for _ in range(3):
        bad.append(batch(2))
        good.append(batch(3))
        station.look()
        assert named(station) == [("bad-0", f"{0:020}.log", "Input/output error")]
    assert station.watcher.caught_up
    assert station.fold_of("good").records == 9
    monkeypatch.undo()
    station.look()
    assert station.watcher.unreadable() == []
    assert station.fold_of("bad").records == 6


def test_a_log_that_cannot_be_opened_is_named(station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = partition(disk, "bad", topic_id=2)
    bad.append(batch(2))
    station.look()
    for tail in station.watcher.tails():
        tail.close()
    segment = bad.active.path("log")
    kept = segment.rename(segment.with_suffix(".kept"))
    segment.symlink_to(segment)  # which nobody can open, whoever asks
    station.turn()
    assert named(station) == [("bad-0", segment.name, "Too many levels of symbolic links")]
    station.look()
    assert named(station) == [("bad-0", segment.name, "Too many levels of symbolic links")]
    segment.unlink()
    kept.rename(segment)
    bad.append(batch(3))
    station.look()
    assert station.watcher.unreadable() == []
    assert station.fold_of("bad").records == 5


def test_a_log_that_cannot_be_taken_up_is_named_until_it_can_or_is_gone(station: Station, disk: LogDir) -> None:
    logs = [partition(disk, topic, topic_id=number) for number, topic in enumerate(("bad", "gone", "good"), 1)]
    for log in logs[:2]:
        log.append(batch(2))
        log.active.path("log").rename(log.directory / "kept")
        log.active.path("log").symlink_to(log.active.path("log"))
    logs[2].append(batch(3))
    station.look()
    assert station.fold_of("good").records == 3
    assert station.watcher.caught_up
    assert {name for name, _, _ in named(station)} == {"bad-0", "gone-0"}
    logs[1].remove()
    (logs[0].directory / "kept").rename(logs[0].active.path("log"))
    station.look()
    assert station.watcher.unreadable() == []
    assert station.fold_of("bad").records == 2


def test_a_directory_whose_topic_id_cannot_be_read_is_named(station: Station, disk: LogDir) -> None:
    bad = partition(disk, "bad", topic_id=2)
    (bad.directory / "partition.metadata").write_text("nonsense")
    station.look()
    (found,) = station.watcher.unreadable()
    assert found == StuckTail(LogKey(1, "bad", 0, ""), str(bad.directory), found.error)
    assert found.error.startswith("partition.metadata: ")
