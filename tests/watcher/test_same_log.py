"""A log whose topic id is lost for a while, comes late, or is another one by then: the files show that it is the same log."""

from pathlib import Path
from uuid import UUID

import pytest

from streaming.common.rows import Kind
from streaming.simulator.file_writer import encode_partition_metadata
from streaming.simulator.log import PartitionLog
from streaming.simulator.log_dir import LogDir
from tests.agents import Agent, Reader
from tests.builders import batch, delete, log_dir, partition
from tests.events import Shard
from tests.watcher.station import Station
from tests.watcher.test_registry import shown

NEW = UUID(int=77)


def metadata(log: PartitionLog) -> Path:
    return log.directory / "partition.metadata"


def appended(station: Station) -> int:
    return sum(event.records for event in station.events if event.kind is Kind.APPENDED)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_directory_without_its_topic_id_holds_the_log_that_it_held(station: Station, disk: LogDir, restarted: bool) -> None:
    log = partition(disk, "t")
    log.append(batch(3))
    station.look()
    kept = metadata(log).read_bytes()
    metadata(log).unlink()
    if restarted:
        station.restart()
    assert station.look() == []
    assert station.look({disk.path, log.directory}) == []
    log.append(batch(1))
    log.roll()
    log.append(batch(1))
    station.look({log.directory})
    metadata(log).write_bytes(kept)
    log.append(batch(2))
    station.look()
    assert (station.fold_of("t").records, appended(station)) == (7, 7)
    assert [event.kind for event in station.events if event.kind in (Kind.APPEARED, Kind.GONE)] == [Kind.APPEARED]


@pytest.mark.parametrize("seen_without", [False, True])
def test_files_under_another_topic_id_are_read_on(station: Station, disk: LogDir, seen_without: bool) -> None:
    log = partition(disk, "t")
    log.append(batch(3))
    station.look()
    metadata(log).unlink()
    if seen_without:
        station.look()
    metadata(log).write_bytes(encode_partition_metadata(NEW))
    log.append(batch(4))
    assert shown(station.look({log.directory})) == [(Kind.GONE, "t-0", "moved"), (Kind.APPEARED, "t-0", ""), (Kind.APPENDED, "t-0", "")]
    assert appended(station) == 7
    assert station.fold_of("t").next_offset == 7
    station.restart(killed=True)
    log.append(batch(1))
    station.look()
    assert appended(station) == 8


@pytest.mark.parametrize("restarted", [False, True])
def test_a_log_from_before_topics_had_ids_goes_on_when_it_gets_one(station: Station, disk: LogDir, restarted: bool) -> None:
    log = partition(disk, "t", topic_id=None)
    log.append(batch(3))
    station.look()
    if restarted:
        station.close()
    metadata(log).write_bytes(encode_partition_metadata(NEW))
    log.append(batch(4))
    if restarted:
        station._open()
    station.look()
    assert appended(station) == 7
    assert [tail.cursor.log.topic_id for tail in station.watcher.tails()] == ["AAAAAAAAAAAAAAAAAAAATQ"]


def test_the_files_of_another_log_under_another_topic_id_are_another_log(station: Station, disk: LogDir) -> None:
    """Also where they have the numbers of the old files."""
    first = partition(disk, "t")
    first.append(batch(3))
    station.look()
    delete(disk, first).remove()
    partition(disk, "t", topic_id=NEW).append(batch(3))
    station.look()
    assert appended(station) == 6
    assert station.fold_of("t").records == 3


def test_topic_counters_neither_fall_nor_double_when_a_topic_id_is_lost_and_comes_back(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    log.append(batch(100))
    agent, shard = Agent(disk.path, journal=tmp_path / "journal"), Shard()
    reader = Reader(agent).begin()
    shard.fold(*reader.step())
    kept = metadata(log).read_bytes()
    for content in (None, encode_partition_metadata(NEW), kept):
        if content is None:
            metadata(log).unlink()
        else:
            metadata(log).write_bytes(content)
        agent.look()
        shard.fold(*reader.step())
    assert sum(state.share_records for state in shard.states.values()) == 100
    agent.close()
