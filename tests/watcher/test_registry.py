"""Which logs there are, and which of them are the same."""

import logging
import os
import shutil
from pathlib import Path

import pytest

from streaming.broker.disk.locate import window
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.journal.producer_pages import KnownProducers
from streaming.broker.watcher import watcher
from streaming.broker.watcher.leaving import HOLD_MS
from streaming.broker.watcher.registry import LogRegistry
from streaming.broker.watcher.taking_up import HALF_MADE_MS
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from streaming.simulator.file_writer import encode_partition_metadata
from streaming.simulator.log import PartitionLog
from streaming.simulator.log_dir import LogDir
from tests.builders import batch, delete, partition
from tests.clocks import Clock
from tests.disk.descriptors import descriptors
from tests.watcher.station import RESCAN_MS, Station


def names(station: Station) -> set[str]:
    return {str(tail.cursor.log) for tail in station.watcher.tails()}


def shown(events: list[Event]) -> list[tuple[Kind, str, str]]:
    return [(event.kind, f"{event.topic}-{event.partition}", event.reason) for event in events]


def copied(log: PartitionLog, to: LogDir) -> Path:
    """The replica as it lies in another log dir while it moves there."""
    future = to.path / f"{log.name}.{3:032x}-future"
    shutil.copytree(log.directory, future)
    return future


def test_only_live_replicas_are_watched(station: Station, disk: LogDir) -> None:
    partition(disk, "plain").append(batch())
    partition(disk, "a.b-7", 3, topic_id=2).append(batch())
    partition(disk, "__consumer_offsets", 12, topic_id=3).append(batch())
    partition(disk, "t", 1, topic_id=4, name=f"t-1.{1:032x}-future").append(batch())
    partition(disk, "t", 2, topic_id=4, name=f"t-2.{1:032x}-stray").append(batch())
    delete(disk, partition(disk, "t", 3, topic_id=4))
    (disk.path / "foreign").mkdir()
    (disk.path / "foreign-1").touch()
    (disk.path / "foreign-2").mkdir()
    station.look()
    assert names(station) == {"plain-0", "a.b-7-3", "__consumer_offsets-12"}
    assert set(map(str, station.folds["first"].logs)) == names(station)


def test_a_new_log_dir_is_watched_until_something_appears_in_it(station: Station, disk: LogDir) -> None:
    assert station.look() == []
    assert station.watcher.caught_up
    log = partition(disk, "t")
    log.append(batch(3))
    assert [event.kind for event in station.look({disk.path})] == [Kind.APPEARED, Kind.APPENDED]


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
    assert names(station) == {"new-0"}
    station.close()


@pytest.mark.parametrize(("exists", "reason"), [(True, "moved"), (False, "deleted"), (None, "deleted")])
def test_a_log_that_left_is_reported_with_the_reason(station: Station, disk: LogDir, exists: bool | None, reason: str) -> None:
    log = partition(disk, "t")
    log.append(batch())
    station.look()
    if exists is not None:
        station.cluster.topics["t"] = exists
    delete(disk, log)
    gone = station.look({disk.path})
    assert shown(gone) == [(Kind.GONE, "t-0", reason)]
    assert gone[0].log_dir == ("" if exists is False else str(disk.path))  # else it may lie in a log dir of another agent
    assert station.watcher.tails() == []
    assert [flags for flags in descriptors(str(disk.path), "00000.log") if not flags & os.O_RDWR] == []
    assert station.journal.cursors() == []


def test_a_topic_made_anew_under_the_same_path_is_another_log(station: Station, disk: LogDir) -> None:
    first = partition(disk, "t", topic_id=1)
    first.append(batch(3))
    station.look()
    delete(disk, first)
    second = partition(disk, "t", topic_id=2)
    second.append(batch(5))
    events = station.look()
    assert [(event.kind, event.topic_id) for event in events] == [
        (Kind.GONE, "AAAAAAAAAAAAAAAAAAAAAQ"),
        (Kind.APPEARED, "AAAAAAAAAAAAAAAAAAAAAg"),
        (Kind.APPENDED, "AAAAAAAAAAAAAAAAAAAAAg"),
    ]
    assert (station.fold_of("t").records, station.fold_of("t").next_offset) == (5, 5)


def test_a_hint_at_its_directory_alone_shows_that_it_is_another_log(station: Station, disk: LogDir) -> None:
    first = partition(disk, "t", topic_id=1)
    first.append(batch(3))
    station.look()
    delete(disk, first).remove()
    second = partition(disk, "t", topic_id=2)
    second.append(batch(1))
    assert [event.kind for event in station.look({second.directory})] == [Kind.GONE, Kind.APPEARED, Kind.APPENDED]


def test_without_a_hint_nothing_of_the_new_topic_is_counted_for_the_old_one(station: Station, disk: LogDir) -> None:
    first = partition(disk, "t", topic_id=1)
    first.append(batch(3))
    station.look()
    first.roll()
    delete(disk, first).remove()
    second = partition(disk, "t", topic_id=2)
    second.append(*[batch(1)] * 9)
    second.roll()
    assert station.look(set()) == []
    station.look()
    assert station.fold_of("t").records == 9


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


def test_a_topic_without_an_id_that_is_made_anew_is_a_truncated_one(station: Station, disk: LogDir) -> None:
    first = partition(disk, "t", topic_id=None)
    first.append(batch(3), batch(4))
    station.look()
    delete(disk, first).remove()
    partition(disk, "t", topic_id=None).append(batch(5))
    assert shown(station.look())[0][0] is Kind.TRUNCATED
    assert station.fold_of("t").records == 12


def test_a_directory_that_gets_its_topic_id_a_moment_after_its_segment_is_one_log(station: Station, disk: LogDir) -> None:
    """A broker writes ``partition.metadata`` before the first data, and may do it after the first file."""
    log = partition(disk, "t", topic_id=None)
    modified = station.clock.now / 1000
    os.utime(log.active.path("log"), (modified, modified))
    station.clock.now -= RESCAN_MS
    assert station.look() == []
    (log.directory / "partition.metadata").write_bytes(encode_partition_metadata(disk.directory_id))
    log.append(batch())
    assert [event.kind for event in station.look({log.directory})] == [Kind.APPEARED, Kind.APPENDED]
    assert len(station.watcher.tails()) == 1


def test_an_empty_log_from_before_topics_had_ids_is_taken_up_in_the_end(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t", topic_id=None)
    modified = station.clock.now / 1000
    os.utime(log.active.path("log"), (modified, modified))
    station.clock.now += HALF_MADE_MS
    assert [event.kind for event in station.look()] == [Kind.APPEARED]


def test_a_directory_without_a_segment_is_no_log_yet(station: Station, disk: LogDir) -> None:
    (disk.path / "t-0").mkdir()
    assert station.look() == []


# --- moves between log dirs


@pytest.mark.parametrize("restarted", [True, False])
def test_a_log_that_moves_to_another_log_dir_is_counted_once(station_of_two: Station, two: tuple[LogDir, LogDir], restarted: bool) -> None:
    station, (old, new) = station_of_two, two
    log = partition(old, "t")
    log.append(batch(3), batch(4))
    log.roll()
    log.append(batch(1))
    station.look()
    future = copied(log, new)
    assert station.look() == []
    if restarted:
        station.restart()
    log.rename(f"{log.name}.{0:032x}-delete")
    future.rename(new.path / "t-0")
    assert station.look() == []
    assert [tail.partition.path for tail in station.watcher.tails()] == [new.path / "t-0"]
    with (new.path / "t-0" / "00000000000000000007.log").open("ab") as file:
        for _, data in batch(5).entries(8, 0):
            file.write(data)
    (appended,) = station.look()
    assert (appended.log_dir, appended.base_offset, appended.records) == (str(new.path), 8, 5)
    assert station.fold_of("t").records == 13
    station.close()


def test_while_a_move_ends_and_both_are_there_the_one_that_is_watched_is(station_of_two: Station, two: tuple[LogDir, LogDir]) -> None:
    station, (old, new) = station_of_two, two
    log = partition(new, "t")
    log.append(batch(3))
    station.look()
    shutil.copytree(log.directory, old.path / "t-0")
    assert station.look() == []
    assert [tail.partition.path for tail in station.watcher.tails()] == [log.directory]
    station.close()


# --- what cannot be read


def test_a_log_dir_that_goes_away_and_comes_back_loses_nothing(
    station_of_two: Station, two: tuple[LogDir, LogDir], caplog: pytest.LogCaptureFixture
) -> None:
    station, (first, second) = station_of_two, two
    log, other = partition(first, "t"), partition(second, "u", topic_id=2)
    log.append(batch(3))
    station.look()
    away = first.path.with_name("away")
    first.path.rename(away)
    other.append(batch(2))
    assert shown(station.look()) == [(Kind.APPENDED, "u-0", "")]
    assert station.look() == []
    assert station.look(set()) == []
    assert names(station) == {"t-0", "u-0"}
    away.rename(first.path)
    log.append(batch(4))
    assert shown(station.look()) == [(Kind.APPENDED, "t-0", "")]
    assert station.fold_of("t").records == 7
    reported = [record.message for record in caplog.records if record.message.startswith("log dir")]
    assert reported == ["log dir cannot be read", "log dir can be read again"]
    station.close()


def test_a_log_that_grew_and_rolled_while_its_log_dir_was_away(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(3))
    station.look()
    away = disk.path.with_name("away")
    disk.path.rename(away)
    station.look()
    away.rename(disk.path)
    log.roll()
    log.append(batch(2))
    away_again = disk.path.rename(away)
    station.look()
    away_again.rename(disk.path)
    station.look()
    assert station.fold_of("t").records == 5


def test_a_topic_id_that_cannot_be_read_for_a_while_is_no_reason_to_let_a_log_go(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(3))
    station.look()
    metadata = (log.directory / "partition.metadata").read_bytes()
    (log.directory / "partition.metadata").write_bytes(b"half")
    assert station.look() == []
    station.restart()
    assert station.look() == []
    (log.directory / "partition.metadata").write_bytes(metadata)
    log.append(batch(2))
    station.look()
    assert station.fold_of("t").records == 5


def test_a_log_that_cannot_be_taken_up_at_the_start_is_in_the_picture_all_the_same(
    station: Station, disk: LogDir, caplog: pytest.LogCaptureFixture
) -> None:
    """A reader drops what is reported as gone."""
    log = partition(disk, "t")
    log.append(batch(3))
    station.look()
    station.restart()
    segment = log.active.path("log")
    hidden = segment.rename(segment.with_name("hidden"))
    segment.symlink_to(segment)  # opening it fails, and not as if it were gone
    station.look()
    assert names(station) == {"t-0"}
    assert "log cannot be taken up now" in caplog.text
    assert station.fold_of("t").records == 3
    segment.unlink()
    hidden.rename(segment)
    log.append(batch(2))
    station.look()
    assert station.fold_of("t").records == 5


def test_a_single_log_that_cannot_be_read_does_not_hold_up_the_others(
    station: Station, disk: LogDir, caplog: pytest.LogCaptureFixture
) -> None:
    log, other = partition(disk, "t"), partition(disk, "u", topic_id=2)
    log.append(batch(3))
    station.look()
    (tail,) = [tail for tail in station.watcher.tails() if tail.cursor.log.topic == "t"]
    tail.close()
    segment = log.active.path("log")
    hidden = segment.rename(segment.with_name("hidden"))
    segment.symlink_to(segment)
    other.append(batch(2))
    for _ in range(3):
        station.look()
    assert station.fold_of("u").records == 2
    assert [record.levelno for record in caplog.records if "cannot be listed" in record.message] == [logging.WARNING]
    segment.unlink()
    hidden.rename(segment)
    log.append(batch(1))
    station.look()
    assert station.fold_of("t").records == 4


def test_hints_in_directories_that_are_deleted_or_moved_are_no_reason_to_list_the_log_dirs(disk: LogDir) -> None:
    log = partition(disk, "t")
    registry = LogRegistry(open_log_dirs([disk.path]), [], lambda _: None, lambda _: None, lambda _: KnownProducers(10), Clock(), window())
    registry.rescan()
    assert not registry.take_hints({log.directory, disk.path / f"t-1.{1:032x}-delete", disk.path / f"t-2.{1:032x}-future", disk.path / "x"})
    assert registry.take_hints({disk.path})
    assert registry.take_hints({disk.path / "new-0"})
    log.rename(f"{log.name}.{0:032x}-delete")
    assert registry.take_hints({disk.path / "t-0"})


# --- descriptors


def held_deleted(disk: LogDir) -> int:
    return len([flags for flags in descriptors(str(disk.path), ".log", "(deleted)") if not flags & os.O_RDWR])


def test_the_file_of_a_log_that_was_deleted_is_let_go_at_once(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(3))
    station.look()
    delete(disk, log).remove()
    assert held_deleted(disk) == 1
    station.look({disk.path})
    assert held_deleted(disk) == 0


def test_the_file_of_a_deleted_segment_is_let_go_within_a_minute_even_if_it_is_not_read_to_its_end(
    station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = partition(disk, "t", segment_bytes=1 << 30)
    log.append(batch())
    station.look()
    log.append(*[batch(1, value_bytes=1 << 20)] * 40)
    monkeypatch.setattr(watcher, "POLL_BYTES", 1)
    station.clock.now += 1000
    station.turn()
    size = log.active.size
    log.roll()
    log.append(batch())
    log.delete_records(41)
    log.delete_old_segments(station.clock.now)
    log.unlink_deleted(station.clock.now + 60_000)
    monkeypatch.setattr(watcher, "POLL_BYTES", 0)
    station.turn({log.directory})
    assert held_deleted(disk) == 1
    station.clock.now += HOLD_MS
    station.turn()
    assert held_deleted(disk) == 0
    (skipped,) = [event for event in station.events if event.kind is Kind.SKIPPED]
    read = sum(event.bytes for event in station.events if event.kind is Kind.APPENDED)
    assert (skipped.reason, skipped.bytes, skipped.next_offset) == ("deleted", size - read, 41)


def test_nothing_is_held_open_of_ten_logs_that_left(station: Station, disk: LogDir) -> None:
    logs = [partition(disk, "t", number) for number in range(10)]
    for log in logs:
        log.append(batch())
    station.look()
    before = len([flags for flags in descriptors(str(disk.path), ".log") if not flags & os.O_RDWR])
    assert before == 10
    for log in logs:
        delete(disk, log).remove()
    station.look()
    assert [flags for flags in descriptors(str(disk.path), ".log") if not flags & os.O_RDWR] == []


def test_an_unreadable_topic_id_is_reported_once_however_often_topics_come_and_go(
    station: Station, disk: LogDir, caplog: pytest.LogCaptureFixture
) -> None:
    (partition(disk, "bad", topic_id=8).directory / "partition.metadata").write_text("nonsense")
    for number in range(5):
        partition(disk, f"t{number}", topic_id=10 + number)
        assert [event.topic for event in station.look({disk.path})] == [f"t{number}"]
    assert len([record for record in caplog.records if "partition.metadata cannot be read" in record.message]) == 1
