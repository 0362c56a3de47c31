"""Segments whose time index contains nothing are scanned within the budget of a turn, once, and nobody waits for them."""

from pathlib import Path

import numpy as np
import pytest

from streaming.broker.disk.opening import bytes_read
from streaming.common.rows import SEGMENTS, TIME_UNKNOWN, Kind
from streaming.simulator.log import LogDir, PartitionLog
from tests.builders import NOW, batch, delete, log_dir, partition
from tests.watcher.station import RESCAN_MS, Station

MEGABYTE = 1 << 20
PIECE = 9 * MEGABYTE
"""A window, and what a turn reads besides."""


def without_times(disk: LogDir, *, segments: int = 4, megabytes: int = 5) -> PartitionLog:
    log = partition(disk, "t", segment_bytes=1 << 30)
    for _ in range(segments):
        log.append(*[batch(1, timestamp=-1, value_bytes=MEGABYTE)] * megabytes)
        log.roll()
    log.append(batch(1, timestamp=NOW))
    return log


@pytest.fixture
def bare(disk: LogDir, tmp_path: Path) -> Station:
    return Station(disk.path, cache=tmp_path / "cache")


def times(station: Station) -> list[list[int]]:
    """The largest timestamps of the segments, each time that they were reported."""
    reported = [event.segments for event in station.events if event.kind is Kind.FOUND and event.segments is not None]
    return [np.frombuffer(segments, SEGMENTS)["largest_timestamp"].tolist() for segments in reported]


def known(station: Station) -> list[int]:
    (tail,) = station.watcher.tails()
    assert tail.last_found is not None
    found: list[int] = tail.last_found.inventory.segments["largest_timestamp"].tolist()
    return found


def rest(station: Station, *, budget: int) -> int:
    """Turn until there is no more to do; returns how many bytes that took."""
    station.clock.now += RESCAN_MS
    began = bytes_read()
    for _ in range(1000):
        before = bytes_read()
        more = station.turn(budget=budget)
        assert bytes_read() - before <= budget + PIECE
        station.clock.now += 1000
        if not more and not any(tail.list_due for tail in station.watcher.tails()):
            return bytes_read() - began
    raise AssertionError("the watcher never rests")


def test_a_turn_scans_no_more_than_it_may_and_the_picture_does_not_wait(bare: Station, disk: LogDir) -> None:
    without_times(disk)
    bare.begin("latest")
    while not bare.watcher.caught_up:
        assert bare.turn(budget=1)
    assert known(bare) == [TIME_UNKNOWN] * 4 + [NOW]
    assert rest(bare, budget=1) >= 4 * 5 * MEGABYTE
    assert known(bare) == [-1] * 4 + [NOW]
    assert times(bare)[-1] == [-1] * 4 + [NOW]
    bare.close()


def test_what_was_scanned_is_not_scanned_again_by_another_watcher(bare: Station, disk: LogDir) -> None:
    log = without_times(disk)
    bare.begin("latest")
    bare.turn(budget=1)
    while len(bare.cache.times()) < 2:
        bare.turn(budget=1)
    bare.replace_watcher()
    assert rest(bare, budget=MEGABYTE) <= 2 * 5 * MEGABYTE + PIECE
    assert known(bare) == [-1] * 4 + [NOW]
    bare.replace_watcher()
    assert rest(bare, budget=MEGABYTE) <= PIECE
    assert known(bare) == [-1] * 4 + [NOW]
    assert len(bare.cache.times()) == 4
    delete(disk, log)
    bare.look()
    bare.clock.now += 1000
    bare.look()
    assert bare.cache.times() == {}
    bare.close()


def test_what_was_deleted_while_no_agent_ran_is_forgotten(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = without_times(disk)
    station = Station(disk.path, cache=tmp_path / "cache")
    station.begin("latest")
    rest(station, budget=1 << 30)
    station.leave()
    log.delete_records(10)
    log.config = log.config.__class__(retention_ms=-1)
    log.delete_old_segments(0)
    station.come_back()
    rest(station, budget=1)
    assert sorted(key.base_offset for key in station.cache.times()) == [10, 15]
    station.close()


def test_live_logs_go_on_while_segments_are_scanned(bare: Station, disk: LogDir) -> None:
    without_times(disk)
    live = partition(disk, "live", topic_id=2)
    bare.begin("latest")
    while not bare.watcher.caught_up:
        bare.turn(budget=1)
    for records in range(1, 4):
        live.append(batch(1))
        assert bare.turn(budget=1)
        assert bare.fold_of("live").records == records
    bare.close()


def test_an_active_segment_is_not_read_in_one_look_for_its_times(bare: Station, disk: LogDir) -> None:
    log = partition(disk, "t", segment_bytes=1 << 30)
    log.append(*[batch(1, timestamp=NOW + n, value_bytes=MEGABYTE) for n in range(20)])
    bare.begin("latest")
    bare.look()
    bare.replace_watcher()
    (cursor,) = bare.journal.cursors()
    assert cursor.largest_timestamp == NOW + 19
    bare.close()
