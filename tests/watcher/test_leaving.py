"""Logs that leave: what can still be read of them is counted, the rest is skipped, and only then are they gone."""

import os
from pathlib import Path

import pytest

from streaming.broker.watcher import watcher
from streaming.broker.watcher.leaving import HOLD_MS
from streaming.common.rows import Kind
from streaming.simulator.log import PartitionLog
from streaming.simulator.log_dir import LogDir
from tests.builders import batch, delete, log_dir, partition
from tests.disk.descriptors import descriptors
from tests.simulated import write_part
from tests.watcher.station import Station
from tests.watcher.test_registry import held_deleted, names, shown

BIG = 1 << 20


def size_of(log: PartitionLog) -> int:
    return sum(entry.size for segment in log.segments for entry in segment.entries)


def reported(station: Station) -> tuple[int, int]:
    """Bytes that were reported as appended and as skipped."""
    appended = sum(event.bytes for event in station.events if event.kind is Kind.APPENDED)
    return appended, sum(event.bytes for event in station.events if event.kind is Kind.SKIPPED)


def last_of(station: Station) -> list[Kind]:
    return [event.kind for event in station.events if event.kind not in (Kind.CENSUS, Kind.FOUND)]


@pytest.mark.parametrize("state", ["delete", "stray"])
@pytest.mark.parametrize("exists", [True, False])
def test_what_was_appended_last_is_counted_before_a_log_is_gone(station: Station, disk: LogDir, state: str, exists: bool) -> None:
    log = partition(disk, "t")
    log.append(batch(3))
    station.look()
    log.append(batch(4))
    log.roll()
    log.append(batch(5))
    station.cluster.topics["t"] = exists
    log.rename(f"{log.name}.{0:032x}-{state}")
    events = station.look({disk.path})
    assert [event.kind for event in events] == [Kind.APPENDED, Kind.APPENDED, Kind.GONE]
    assert events[-1].reason == ("moved" if exists else "deleted")
    assert reported(station) == (size_of(log), 0)
    assert [flags for flags in descriptors(str(disk.path), ".log") if not flags & os.O_RDWR] == []
    assert (station.journal.cursors(), station.watcher.tails()) == ([], [])


def behind(station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> PartitionLog:
    """A log of three segments of which one window is read."""
    monkeypatch.setattr(watcher, "POLL_BYTES", 1)
    log = partition(disk, "t", segment_bytes=1 << 30)
    for _ in range(3):
        log.append(*[batch(1, value_bytes=BIG)] * 3)
        log.roll()
    station.turn()
    assert 0 < reported(station)[0] < size_of(log)
    return log


def test_a_backlog_of_a_log_that_leaves_is_read_within_the_budget_while_its_files_are_there(
    station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = behind(station, disk, monkeypatch)
    delete(disk, log)
    station.clock.now += 1000
    before = reported(station)[0]
    station.turn({disk.path})
    assert before < reported(station)[0] < size_of(log)
    assert names(station) == {"t-0"}
    station.look()
    assert reported(station) == (size_of(log), 0)
    assert last_of(station)[-1] is Kind.GONE


@pytest.mark.parametrize("killed", [True, False])
def test_an_agent_that_is_started_meanwhile_goes_on_with_it(
    station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    log = behind(station, disk, monkeypatch)
    delete(disk, log)
    station.clock.now += 1000
    station.turn({disk.path})
    station.restart(killed=killed)
    station.look()
    assert reported(station) == (size_of(log), 0)
    assert last_of(station)[-1] is Kind.GONE
    assert station.look() == []


def test_what_vanishes_before_it_is_read_is_skipped(station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    log = behind(station, disk, monkeypatch)
    size, first = size_of(log), log.segments[0].size
    delete(disk, log).remove()
    station.look()
    appended, skipped = reported(station)
    assert (appended, appended + skipped) == (first, size)  # the first segment was open
    assert shown([event for event in station.events if event.kind in (Kind.SKIPPED, Kind.GONE)]) == [
        (Kind.SKIPPED, "t-0", "deleted"),
        (Kind.GONE, "t-0", "deleted"),
    ]


def test_what_a_broker_removes_while_it_is_read_is_skipped(station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    log = behind(station, disk, monkeypatch)
    size = size_of(log)
    delete(disk, log)
    station.clock.now += 1000
    station.turn({disk.path})
    log.remove()
    station.look()
    appended, skipped = reported(station)
    assert appended + skipped == size
    assert appended >= log.segments[0].size
    assert last_of(station)[-2:] == [Kind.SKIPPED, Kind.GONE]


def test_an_open_file_of_a_log_that_left_is_not_held_for_ever(station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    log = behind(station, disk, monkeypatch)
    size = size_of(log)
    delete(disk, log).remove()
    monkeypatch.setattr(watcher, "POLL_BYTES", 0)
    station.clock.now += 1000
    station.turn({disk.path})
    assert held_deleted(disk) == 1
    station.clock.now += HOLD_MS
    station.turn()
    assert held_deleted(disk) == 0
    assert sum(reported(station)) == size
    assert last_of(station)[-2:] == [Kind.SKIPPED, Kind.GONE]


def test_a_batch_that_was_never_finished_is_skipped_with_its_log(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(3))
    station.look()
    write_part(log, batch(3), size=70)
    size = log.active.path("log").stat().st_size
    log.rename(f"{log.name}.{0:032x}-delete")
    station.look({disk.path})
    assert sum(reported(station)) == size
    assert reported(station)[1] == 70


def test_of_a_preallocated_log_nothing_is_skipped(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t", preallocate=True)
    log.append(batch(3))
    station.look()
    log.append(batch(2))
    delete(disk, log)
    station.look({disk.path})
    assert reported(station) == (size_of(log), 0)


def test_what_grew_behind_a_flaw_is_skipped_before_the_log_is_gone(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(3))
    with log.active.path("log").open("ab") as file:
        file.write(bytes(range(100)))
    station.look()
    station.clock.now += 1000
    station.look()
    assert reported(station)[1] == 100
    with log.active.path("log").open("ab") as file:
        file.write(bytes(50))
    log.rename(f"{log.name}.{0:032x}-delete")
    station.look({disk.path})
    assert reported(station)[1] == 150
    assert shown(station.events)[-1][:2] == (Kind.GONE, "t-0") or last_of(station)[-1] is Kind.GONE


def test_another_topic_of_its_name_comes_when_it_has_left(station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    log = behind(station, disk, monkeypatch)
    delete(disk, log)
    second = partition(disk, "t", topic_id=2)
    second.append(batch(7))
    station.clock.now += 1000
    station.turn({disk.path})
    assert {tail.cursor.log.topic_id for tail in station.watcher.tails()} == {"AAAAAAAAAAAAAAAAAAAAAQ"}
    station.look({disk.path})
    assert reported(station) == (size_of(log) + size_of(second), 0)
    assert station.fold_of("t").records == 7


def test_a_directory_that_gets_its_name_back_was_not_gone(station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    log = behind(station, disk, monkeypatch)
    log.rename(f"{log.name}.{0:032x}-stray")
    station.clock.now += 1000
    station.turn({disk.path})
    log.rename("t-0")
    log.append(batch(2))
    station.look()
    assert reported(station) == (size_of(log), 0)
    assert Kind.GONE not in last_of(station)


def test_a_log_that_leaves_waits_for_a_log_dir_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, other = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    station = Station(disk.path, other.path, journal=tmp_path / "journal")
    station.begin("earliest")
    log = behind(station, disk, monkeypatch)
    delete(disk, log)
    station.clock.now += 1000
    station.turn({disk.path})
    away = disk.path.rename(tmp_path / "away")
    station.look()
    assert names(station) == {"t-0"}
    away.rename(disk.path)
    station.look()
    assert reported(station) == (size_of(log), 0)
    assert last_of(station)[-1] is Kind.GONE
    station.close()
