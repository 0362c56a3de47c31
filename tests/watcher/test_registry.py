"""Which logs there are, and which of them are the same."""

import logging
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.disk.locate import window
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.journal.known_producers import KnownProducers
from streaming.broker.watcher import watcher
from streaming.broker.watcher.beginnings import HALF_MADE_MS
from streaming.broker.watcher.departures import HOLD_MS
from streaming.broker.watcher.registry import LogRegistry
from streaming.common.rows import TRANSACTION_STEPS, Kind
from streaming.simulator.log import LogDir, PartitionLog
from streaming.simulator.segment_writer import encode_partition_metadata
from tests.builders import batch, delete, partition
from tests.clocks import Clock
from tests.tables import each_row
from tests.watcher.scene import Scene, result
from tests.watcher.station import RESCAN_MS, Station


@each_row(
    ("why", "script", "expected"),
    [
        ("a new log dir is watched until something appears in it", "look 3 root", "- | at0 0-3"),
        ("a log that moved", "1 look exists1 delete root", "at0 0-1 | gone(moved,d0)"),  # perhaps to a log dir of another agent
        ("a topic that was deleted", "1 look exists0 delete root", "at0 0-1 | gone(deleted,)"),
        ("nobody knows", "1 look delete root", "at0 0-1 | gone(deleted,d0)"),
        ("a topic made anew under the same path is another log", "3 look delete new2 5 look", "at0 0-3 | gone(deleted,d0) at0 0-5"),
        ("a hint at its directory alone shows that", "3 look remove new2 1 hint", "at0 0-3 | gone(deleted,d0) at0 0-1"),
        (
            "without a hint nothing of the new topic is counted for the old one",
            "3 look roll remove new2 1*9 roll quick look",
            "at0 0-3 | - | gone(deleted,d0) at0 0-9",
        ),
        ("a topic without an id that is made anew is a truncated one", "new0 3 4 look remove new0 5 look", "at0 0-7 | cut0 0-5"),
        ("a log dir that goes away and comes back", "3 look away look look quick home 4 look", "at0 0-3 | - | - | - | 3-7"),
        ("grown and rolled meanwhile", "3 look away look home roll 2 away look home look", "at0 0-3 | - | - | 3-5/3"),
        ("the file of a log that was deleted is let go at once", "3 look remove new2 root", "at0 0-3 | gone(deleted,d0) at0"),
    ],
)
def test_which_logs_there_are(why: str, script: str, expected: str) -> None:
    assert result(script) == expected, why


def test_only_live_replicas_are_watched(world: Scene) -> None:
    names = {
        ("plain", 0): None,
        ("a.b-7", 3): None,
        ("__consumer_offsets", 12): None,
        ("t", 1): "future",
        ("t", 2): "stray",
        ("t", 3): "delete",
    }
    for topic_id, ((topic, number), state) in enumerate(names.items(), 1):
        partition(world.disk, topic, number, topic_id=topic_id, name=f"t-{number}.{1:032x}-{state}" if state else None).append(batch())
    (world.disk.path / "foreign").mkdir()
    (world.disk.path / "foreign-1").touch()
    (world.disk.path / "foreign-2").mkdir()
    world.look()
    assert world.names() == {"plain-0", "a.b-7-3", "__consumer_offsets-12"} == set(map(str, world.station.folds["first"].logs))


def copied(log: PartitionLog, to: LogDir) -> Path:
    """The replica as it lies in another log dir while it moves there."""
    future = to.path / f"{log.name}.{3:032x}-future"
    shutil.copytree(log.directory, future)
    return future


def test_the_list_of_logs_is_the_same_until_something_happens_to_one_of_them(
    station_of_two: Station, two: tuple[LogDir, LogDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    station, (disk, other) = station_of_two, two
    log = partition(disk, "t")
    log.append(batch())
    station.look()

    def is_another() -> bool:
        before = station.watcher.tails()
        assert station.watcher.tails() is before
        station.look()
        after = station.watcher.tails()
        assert after == list(station.watcher._registry.tails.values())
        return after is not before

    assert not is_another()
    log.append(batch())
    log.roll()
    log.append(batch())
    assert not is_another()
    partition(disk, "new", topic_id=2)
    assert is_another(), "one has come"
    disk.path.rename(disk.path.with_name("away"))
    assert is_another(), "they are away"
    disk.path.with_name("away").rename(disk.path)
    assert is_another(), "they are back"
    future = copied(log, other)
    log.rename(f"{log.name}.{0:032x}-delete")
    future.rename(other.path / "t-0")
    assert is_another(), "one has moved"
    monkeypatch.setattr("streaming.broker.watcher.departures.is_over", lambda *_: False)
    (other.path / "t-0").rename(other.path / f"t-0.{0:032x}-delete")
    assert is_another(), "it leaves"
    (other.path / f"t-0.{0:032x}-delete").rename(other.path / "t-0")
    assert is_another(), "it is back"
    monkeypatch.undo()
    (other.path / "t-0").rename(other.path / f"t-0.{0:032x}-delete")
    assert is_another(), "it is gone"
    assert {str(tail.cursor.log) for tail in station.watcher.tails()} == {"new-0"}
    station.close()


def test_a_backlog_does_not_go_on_in_the_files_of_another_topic(station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "POLL_BYTES", 1)
    first = partition(disk, "t", topic_id=1)
    for _ in range(3):
        first.append(batch(3))
        first.roll()
    station.turn()
    delete(disk, first).remove()
    second = partition(disk, "t", topic_id=2)
    for _ in range(9):
        second.append(batch(1))
        second.roll()
    begun = len(station.events)
    station.turn()
    assert [event for event in station.events[begun:] if event.kind not in (Kind.CENSUS, Kind.FOUND)] == []
    station.look()
    assert station.fold_of("t").records == 9


@pytest.mark.parametrize("preallocate", [False, True])
@pytest.mark.parametrize("passed_ms", [-RESCAN_MS, HALF_MADE_MS])
def test_a_directory_without_a_topic_id_is_a_log_in_the_end_or_when_it_gets_it(
    world: Scene, passed_ms: int, preallocate: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker writes ``partition.metadata`` before the first data, and may do it after the first file."""
    log, station = world.make("t", topic_id=None, preallocate=preallocate), world.station
    os.utime(log.active.path("log"), (station.clock.now / 1000, station.clock.now / 1000))
    station.clock.now += passed_ms
    assert world.play("look") == ("-" if passed_ms < 0 else "at0")
    if passed_ms < 0:
        assert station.watcher.tails() == []
        (log.directory / "partition.metadata").write_bytes(encode_partition_metadata(world.disk.directory_id))
        assert world.play("1 hint") == "at0 0-1"
    assert len(station.watcher.tails()) == len(station.folds["first"].logs) == 1
    assert "another topic id" not in caplog.text


def test_a_directory_without_a_segment_is_no_log_yet(world: Scene) -> None:
    (world.disk.path / "t-0").mkdir()
    assert world.play("look") == "-"


# --- moves between log dirs


@pytest.mark.parametrize("restarted", ["", "replace"])
def test_a_log_that_moves_to_another_log_dir_is_counted_once(worlds: Scene, restarted: str) -> None:
    new = worlds.disks[1]
    worlds.play("3 4 roll 1 look")
    future = copied(worlds.log(), new)
    assert worlds.play(f"look {restarted}") == "-"
    worlds.play("delete")
    future.rename(new.path / "t-0")
    assert worlds.play("look") == "-"
    assert worlds.watched() == new.path / "t-0"
    with (new.path / "t-0" / "00000000000000000007.log").open("ab") as file:
        for _, data in batch(5).entries(8, 0):
            file.write(data)
    (appended,) = worlds.look()
    assert (appended.log_dir, appended.base_offset, appended.records) == (str(new.path), 8, 5)
    assert worlds.station.fold_of("t").records == 13


def test_a_log_that_was_copied_without_the_beginning_of_a_transaction_knows_nothing_of_it(worlds: Scene) -> None:
    """A broker learns what is open in the copy from what it copies (`ReplicaAlterLogDirsThread`)."""
    worlds.play("2^7 look roll 3^8 from2 unlink look")
    future = copied(worlds.log(), worlds.disks[1])
    for snapshot in future.glob("*.snapshot"):
        snapshot.unlink()
    worlds.play("delete")
    future.rename(worlds.disks[1].path / "t-0")
    (appeared,) = worlds.look()
    assert (appeared.kind, appeared.next_offset) == (Kind.APPEARED, 5)
    assert [*np.frombuffer(appeared.transactions or b"", TRANSACTION_STEPS)["producer_id"]] == [8]


def test_while_a_move_ends_and_both_are_there_the_one_that_is_watched_is(worlds: Scene) -> None:
    log = worlds.make("t", 1)
    worlds.play("3 look")
    shutil.copytree(log.directory, worlds.disks[0].path / "t-0")
    assert worlds.play("look") == "-"
    assert worlds.watched() == log.directory


# --- what cannot be read


def test_a_log_dir_that_goes_away_and_comes_back_is_logged(world: Scene, caplog: pytest.LogCaptureFixture) -> None:
    world.play("3 look away look look quick")
    assert world.names() == {"t-0"}
    world.play("home look look")
    reported = [record.message for record in caplog.records if record.message.startswith("log dir")]
    assert reported == ["log dir cannot be read", "log dir can be read again"]


def test_a_topic_id_that_cannot_be_read_for_a_while_is_no_reason_to_let_a_log_go(world: Scene) -> None:
    world.play("3 look")
    metadata = world.log().directory / "partition.metadata"
    content = metadata.read_bytes()
    metadata.write_bytes(b"half")
    assert world.play("look replace look") == "- | -"
    metadata.write_bytes(content)
    assert world.result("2 look") == "3-5"


def test_a_log_that_cannot_be_taken_up_at_the_start_is_in_the_picture_all_the_same(world: Scene, caplog: pytest.LogCaptureFixture) -> None:
    """A reader drops what is reported as gone."""
    assert world.play("3 look replace hide look") == "at0 0-3 | -"
    assert world.names() == {"t-0"}
    assert "log cannot be taken up now" in caplog.text
    assert world.station.fold_of("t").records == 3
    assert world.result("show 2 look") == "3-5"


def test_a_single_log_that_cannot_be_read_does_not_hold_up_the_others(world: Scene, caplog: pytest.LogCaptureFixture) -> None:
    assert world.play("3 u:new2 look shut hide u:2 look look look") == "at0 0-3 u:at0 | u:0-2 | - | -"
    assert [record.levelno for record in caplog.records if "cannot be listed" in record.message] == [logging.WARNING]
    assert world.result("show 1 look") == "3-4"


def test_hints_in_directories_that_are_deleted_or_moved_are_no_reason_to_list_the_log_dirs(disk: LogDir) -> None:
    log = partition(disk, "t")
    log_dirs = open_log_dirs([disk.path])
    registry = LogRegistry(log_dirs, [], ClusterView(log_dirs), lambda _: KnownProducers(10), Clock(), window())
    registry.rescan()
    assert not registry.take_hints({log.directory, disk.path / f"t-1.{1:032x}-delete", disk.path / f"t-2.{1:032x}-future", disk.path / "x"})
    assert registry.take_hints({disk.path})
    assert registry.take_hints({disk.path / "new-0"})
    log.rename(f"{log.name}.{0:032x}-delete")
    assert registry.take_hints({disk.path / "t-0"})


# --- descriptors


def test_the_file_of_a_deleted_segment_is_let_go_within_a_minute_even_if_it_is_not_read_to_its_end(
    world: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, station = world.make("t", segment_bytes=1 << 30), world.station
    world.play("1 look 1*40~1048576 wait1000")
    monkeypatch.setattr(watcher, "POLL_BYTES", 1)
    world.turn()
    size = log.active.size
    world.play("roll 1 from41 unlink")
    monkeypatch.setattr(watcher, "POLL_BYTES", 0)
    station.turn({log.directory})
    assert world.held("(deleted)") == 1
    world.play(f"wait{HOLD_MS} turn")
    assert world.held("(deleted)") == 0
    (skipped,) = [event for event in station.events if event.kind is Kind.SKIPPED]
    read = sum(event.bytes for event in station.events if event.kind is Kind.APPENDED)
    assert (skipped.reason, skipped.bytes, skipped.next_offset) == ("deleted", size - read, 41)


def test_nothing_is_held_open_of_ten_logs_that_left(world: Scene) -> None:
    world.play(" ".join(f"t{number}:1" for number in range(10)) + " look")
    assert world.held() == 10
    world.play(" ".join(f"t{number}:remove" for number in range(10)) + " look")
    assert world.held() == 0


def test_an_unreadable_topic_id_is_reported_once_however_often_topics_come_and_go(world: Scene, caplog: pytest.LogCaptureFixture) -> None:
    (world.make("bad").directory / "partition.metadata").write_text("nonsense")
    assert world.play(" ".join(f"t{number}:new{number + 10} root" for number in range(5))) == " | ".join(
        f"t{number}:at0" for number in range(5)
    )
    assert len([record for record in caplog.records if "partition.metadata cannot be read" in record.message]) == 1
