"""A log that lies in two log dirs of its broker: the live copy counts, whichever was found first, and it stays the one."""

import shutil
from pathlib import Path

import pytest

from streaming.common.rows import Kind
from streaming.simulator.file_writer import uuid_text
from streaming.simulator.log import PartitionLog
from streaming.simulator.log_dir import LogDir
from tests.builders import batch, partition
from tests.watcher.station import Station
from tests.watcher.test_registry import names, shown
from tests.watcher.test_unavailable import unmount


@pytest.fixture
def station(station_of_two: Station) -> Station:
    return station_of_two


def live_and_stale(station: Station, two: tuple[LogDir, LogDir]) -> tuple[PartitionLog, Path]:
    """The log goes on in the first log dir; what is watched is the copy in the second, which stays as it is."""
    live = partition(two[0], "t")
    live.append(batch(3))
    hidden = shutil.move(live.directory, two[0].path.parent / "hidden")
    stale = Path(shutil.copytree(hidden, two[1].path / "t-0"))
    station.look()
    shutil.move(hidden, live.directory)
    return live, stale


def watched(station: Station) -> Path:
    (tail,) = station.watcher.tails()
    return tail.partition.path


def test_the_copy_that_goes_further_counts_when_both_have_been_there_for_a_rescan(
    station: Station, two: tuple[LogDir, LogDir], caplog: pytest.LogCaptureFixture
) -> None:
    live, stale = live_and_stale(station, two)
    live.append(batch(4))
    assert station.look() == []
    assert watched(station) == stale  # a move between log dirs may be ending
    assert shown(station.look()) == [(Kind.APPENDED, "t-0", "")]
    assert watched(station) == live.directory
    for _ in range(3):
        live.append(batch(1))
        station.look()
    assert station.fold_of("t").records == 10
    assert watched(station) == live.directory
    (record,) = [record for record in caplog.records if record.message == "a log lies in several log dirs"]
    assert record.__dict__["paths"] == sorted([str(live.directory), str(stale)])
    assert record.__dict__["watched"] == str(live.directory)
    station.close()


def test_of_two_alike_the_one_that_is_watched_stays(station: Station, two: tuple[LogDir, LogDir]) -> None:
    _, stale = live_and_stale(station, two)
    for _ in range(4):
        assert station.look() == []
        assert watched(station) == stale
    station.close()


@pytest.mark.parametrize("named", [0, 1])
def test_the_copy_that_the_metadata_names_counts_at_once(station: Station, two: tuple[LogDir, LogDir], named: int) -> None:
    live, stale = live_and_stale(station, two)
    live.append(batch(4))
    (tail,) = station.watcher.tails()
    station.cluster.leaders[tail.cursor.log] = (1, 0)
    station.cluster.directories[tail.cursor.log] = (uuid_text(two[named].directory_id),)
    for _ in range(4):
        station.look()
        assert watched(station) == (live.directory, stale)[named]
    assert station.fold_of("t").records == (7, 3)[named]
    assert {event.kind for event in station.events} <= {Kind.APPEARED, Kind.APPENDED, Kind.CENSUS, Kind.FOUND}
    station.close()


def test_a_process_that_starts_takes_the_one_that_goes_further(station: Station, two: tuple[LogDir, LogDir]) -> None:
    live, _ = live_and_stale(station, two)
    live.append(batch(4))
    station.restart()
    assert shown(station.look()) == [(Kind.APPENDED, "t-0", "")]
    assert (watched(station), station.fold_of("t").records) == (live.directory, 7)
    station.close()


@pytest.mark.parametrize("restarted", [False, True])
def test_an_old_copy_does_not_stand_in_for_one_in_a_log_dir_that_is_away(
    station: Station, two: tuple[LogDir, LogDir], restarted: bool
) -> None:
    live, stale = live_and_stale(station, two)
    live.append(batch(4))
    station.look()
    station.look()
    mount = unmount(two[0].path)
    if restarted:
        station.restart()
    for _ in range(2):
        assert station.look() == []
        assert names(station) == {"t-0"}
    mount()
    live.append(batch(2))
    station.look()
    station.look()
    assert station.fold_of("t").records == 9
    assert station.fold_of("t").truncations == 0
    assert watched(station) == live.directory
    shutil.rmtree(stale)
    assert station.look() == []
    station.close()


@pytest.mark.parametrize("named", [0, 1])
def test_of_a_log_whose_log_dir_is_away_an_old_copy_counts_if_the_metadata_names_it(
    station: Station, two: tuple[LogDir, LogDir], named: int
) -> None:
    live, stale = live_and_stale(station, two)
    live.append(batch(4))
    station.look()
    station.look()
    (tail,) = station.watcher.tails()
    unmount(two[0].path)
    station.cluster.leaders[tail.cursor.log] = (1, 0)
    station.cluster.directories[tail.cursor.log] = (uuid_text(two[named].directory_id),)
    station.look()
    assert watched(station) == (live.directory, stale)[named]
    station.close()


def test_a_copy_that_is_as_far_stands_in_for_one_in_a_log_dir_that_is_away(station: Station, two: tuple[LogDir, LogDir]) -> None:
    live, _ = live_and_stale(station, two)
    unmount(two[1].path)
    live.append(batch(4))
    assert shown(station.look()) == [(Kind.APPENDED, "t-0", "")]
    assert (watched(station), station.fold_of("t").records) == (live.directory, 7)
    station.close()
