"""What is reported logs besides what is appended to them: when it changes, and no more often."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from streaming.broker.watcher import grown_logs
from streaming.broker.watcher.found_events import CHECK_MS, QUIET_MS
from streaming.broker.watcher.stopped_logs import SUSPECT_MS
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import SEGMENTS, Kind
from streaming.simulator.log import LogDir, PartitionLog
from streaming.simulator.segment_writer import LogConfig
from tests.builders import NOW, batch, partition
from tests.watcher.scene import Scene
from tests.watcher.station import Station

REMOTE = '{"topic":{"remote.storage.enable":"true"}}'


@pytest.fixture
def log(disk: LogDir) -> PartitionLog:
    made = partition(disk, "t", segment_bytes=600)
    made.append(batch(2, timestamp=NOW + 5))
    return made


def reported(station: Station, *, after_ms: int = CHECK_MS, hinted: bool = True) -> list[Event]:
    """What the next looks publish, without a survey."""
    begun = len(station.events)
    station.clock.now += after_ms
    for _ in range(2):
        station.turn(station.everything() if hinted else None)
    return [event for event in station.events[begun:] if event.kind is Kind.FOUND]


def listed(event: Event) -> NDArray[np.void]:
    assert event.segments is not None
    return np.frombuffer(event.segments, SEGMENTS)


def segments_of(event: Event) -> list[tuple[int, int, int]]:
    """(base offset, size, largest timestamp) of each."""
    return [tuple(map(int, row))[:3] for row in listed(event)]  # type: ignore[misc]


def key(station: Station) -> LogKey:
    (tail,) = station.watcher.tails()
    return tail.cursor.log


def test_the_first_look_shows_the_facts_of_every_log(station: Station, log: PartitionLog) -> None:
    station.look()
    (reported,) = [event for event in station.events if event.kind is Kind.FOUND]
    assert listed(reported)["size"].tolist() == [log.active.size]
    station.replace_watcher()
    begun = len(station.events)
    station.look()
    (again,) = [event for event in station.events[begun:] if event.kind is Kind.FOUND]
    assert replace(again, seen_at=reported.seen_at) == reported


def test_the_facts_of_every_log_are_reported_again_where_somebody_has_not_had_them(station: Station, log: PartitionLog) -> None:
    station.look()
    begun = len(station.events)
    station.begin("latest", "second")
    station.look()
    reported = [event for event in station.events[begun:] if event.kind in (Kind.CENSUS, Kind.FOUND)]
    assert [event.kind for event in reported] == [Kind.CENSUS, Kind.FOUND]
    assert listed(reported[1])["size"].tolist() == [log.active.size]
    assert station.watcher.caught_up


def test_a_log_that_appears_later_is_reported_at_once(station: Station, disk: LogDir) -> None:
    station.look()
    partition(disk, "new").append(batch())
    (event,) = reported(station)
    assert (event.topic, [row[0] for row in segments_of(event)]) == ("new", [0])


def test_growth_alone_is_not_reported(station: Station, log: PartitionLog) -> None:
    station.look()
    log.append(batch())
    assert reported(station) == []


def test_a_roll_is_reported_with_the_segment_that_was_closed(station: Station, log: PartitionLog) -> None:
    station.look()
    log.append(batch(1, timestamp=NOW + 9))
    reported(station)
    closed = log.active.size
    log.roll()
    log.append(batch(1, timestamp=NOW + 7))
    event = reported(station)[-1]
    assert segments_of(event) == [(0, closed, NOW + 9), (3, log.active.size, NOW + 7)]
    assert (event.oldest_timestamp, event.active_first_timestamp) == (NOW + 5, NOW + 7)
    assert reported(station) == []


def test_a_deletion_is_reported_with_the_new_start(station: Station, log: PartitionLog) -> None:
    log.roll()
    log.append(batch(1, timestamp=NOW + 7))
    station.look()
    log.config = LogConfig(retention_ms=-1)
    log.delete_records(2)
    log.delete_old_segments(NOW)
    (event,) = reported(station)
    assert (event.log_start_offset, [row[0] for row in segments_of(event)]) == (2, [2])
    assert event.oldest_timestamp == NOW + 7


def test_a_log_start_inside_a_segment_is_reported_by_the_checkpoint(station: Station, log: PartitionLog, disk: LogDir) -> None:
    station.look()
    disk.write_checkpoint("log-start-offset-checkpoint", [("t", 0, 1)])
    (event,) = reported(station)
    assert (event.log_start_offset, event.segments) == (1, None)
    disk.write_checkpoint("log-start-offset-checkpoint", [("t", 0, 1)])
    assert reported(station) == []


def test_a_log_start_that_no_checkpoint_confirms_is_taken_back_when_one_is_written(
    station: Station, log: PartitionLog, disk: LogDir
) -> None:
    """The broker was killed before its checkpoint had the log start, and does not know of it any more."""
    log.delete_records(1)
    station.look()
    (seen,) = (event for event in station.events if event.kind is Kind.FOUND)
    assert (seen.log_start_offset, seen.start_after_crash, reported(station, hinted=False)) == (1, 0, [])
    disk.write_checkpoint("log-start-offset-checkpoint", [])
    (event,) = reported(station, hinted=False)
    assert (event.log_start_offset, event.start_after_crash) == (0, -1)
    epochs = log.directory / "leader-epoch-checkpoint"
    before = epochs.read_text()
    epochs.unlink()
    epochs.write_text(before)  # as each later start writes it again, newer than the checkpoint
    assert reported(station) == []


def test_a_log_start_that_a_checkpoint_has_is_taken_back_by_no_crash(station: Station, log: PartitionLog, disk: LogDir) -> None:
    log.delete_records(1)
    station.look()
    disk.write_checkpoint("log-start-offset-checkpoint", [("t", 0, 1)])
    (event,) = reported(station, hinted=False)
    assert (event.log_start_offset, event.start_after_crash) == (1, -1)


def test_with_remote_storage_the_checkpoint_alone_says_where_a_log_starts(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t", base_offset=7)
    log.append(batch())
    station.cluster.set_for["t"] = REMOTE
    disk.write_checkpoint("log-start-offset-checkpoint", [("t", 0, 2)])
    station.look()
    (tail,) = station.watcher.tails()
    assert tail.last_found is not None
    assert (tail.last_found.log_start_offset, tail.last_found.local_log_start_offset) == (2, 7)


def test_what_the_cleaner_has_done_only_the_catalog_shows(station: Station, log: PartitionLog, disk: LogDir) -> None:
    station.look()
    disk.write_checkpoint("cleaner-offset-checkpoint", [("t", 0, 2)])
    assert reported(station) == []


def test_a_checkpoint_that_is_replaced_while_its_log_is_behind_is_compared_once_it_is_read(
    station: Station, log: PartitionLog, disk: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    station.look()
    reported(station)
    monkeypatch.setattr(grown_logs, "LIVE_BYTES", 0)
    monkeypatch.setattr(grown_logs, "SEEDED_BYTES", 0)  # else it is read with others, whatever it has grown by
    log.append(batch())
    station.turn(budget=0)
    (tail,) = station.watcher.tails()
    assert not tail.live
    disk.write_checkpoint("log-start-offset-checkpoint", [("t", 0, 1)])
    for _ in range(2):
        station.clock.now += CHECK_MS
        station.turn(budget=0)
    assert not tail.live
    station.turn()
    assert [event.log_start_offset for event in reported(station, hinted=False)] == [1]


def test_a_high_watermark_goes_with_what_is_appended(station: Station, log: PartitionLog, disk: LogDir) -> None:
    station.look()
    disk.write_high_watermarks()
    reported(station)
    log.append(batch())
    station.turn(station.everything())
    (appended,) = [event for event in station.events[-1:] if event.kind is Kind.APPENDED]
    assert appended.high_watermark == 2
    assert reported(station, after_ms=QUIET_MS) == []


def test_a_high_watermark_that_nothing_is_appended_behind_is_reported_alone(station: Station, log: PartitionLog, disk: LogDir) -> None:
    disk.write_high_watermarks()
    station.look()
    log.append(batch())
    station.turn()
    disk.write_high_watermarks()
    assert reported(station, hinted=False) == []
    (event,) = reported(station, after_ms=QUIET_MS, hinted=False)
    assert (event.high_watermark, event.segments, event.log_start_offset) == (3, None, 0)
    assert reported(station, after_ms=QUIET_MS, hinted=False) == []


def test_of_a_damaged_checkpoint_no_high_watermark_is_published_until_it_is_whole_again(
    station: Station, log: PartitionLog, disk: LogDir
) -> None:
    checkpoint = disk.path / "replication-offset-checkpoint"
    checkpoint.write_text("7\n1\nt 0 2\n")
    station.look()
    for _ in range(2):
        log.append(batch())
        station.turn(station.everything())
        reported(station, after_ms=QUIET_MS)
    assert {event.high_watermark for event in station.events} == {-1}
    checkpoint.unlink()
    disk.write_high_watermarks()
    assert [event.high_watermark for event in reported(station, after_ms=QUIET_MS, hinted=False)] == [4]


def test_a_change_of_leader_is_reported_and_of_replicas_only_by_the_catalog(station: Station, log: PartitionLog) -> None:
    station.look()
    station.cluster.leaders[key(station)], station.cluster.changes = (2, 5), 1
    (event,) = reported(station, hinted=False)
    assert (event.leader, event.leader_epoch, event.segments) == (2, 5, None)
    station.cluster.replicas[key(station)], station.cluster.changes = (2, 3), 2
    assert reported(station) == []


def test_without_metadata_nobody_is_stated_to_lead(station: Station, log: PartitionLog) -> None:
    station.look()
    (tail,) = station.watcher.tails()
    assert tail.last_found is not None
    assert (tail.last_found.leader, tail.last_found.leader_epoch) == (-2, -1)


def test_after_a_restart_the_same_is_reported_without_reading_the_active_segment_again(
    station: Station, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append(batch(1, timestamp=NOW + 3))
    station.look()
    (tail,) = station.watcher.tails()
    before = tail.last_found
    station.replace_watcher()
    monkeypatch.setattr("streaming.broker.disk.segment_times.scan_on", None)
    station.look()
    (tail,) = station.watcher.tails()
    assert before is not None
    assert tail.last_found is not None
    assert tail.last_found.event(tail.event(Kind.FOUND), before, NOW) is None


def test_where_reading_began_at_the_end_the_active_segment_is_looked_through_all_the_same(
    disk: LogDir, tmp_path: Path, log: PartitionLog
) -> None:
    station = Station(disk.path)
    station.begin("latest")
    station.look()
    (tail,) = station.watcher.tails()
    assert tail.last_found is not None
    assert tail.last_found.inventory.active_first_ms == NOW + 6
    station.close()


def test_behind_a_flaw_the_active_segment_is_looked_through_once(world: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read of the segment before it does not take the place of what is known of it."""
    world.play(f"2 flaw look wait{SUSPECT_MS} look roll 3 look hint")
    scans: list[object] = []
    monkeypatch.setattr("streaming.broker.disk.segment_times.scan_on", lambda *given, **_: scans.append(given))
    world.play("look")
    assert scans == []


def test_a_log_that_cannot_be_looked_at_holds_up_nobody(station: Station, log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise PermissionError(13, "no")

    monkeypatch.setattr("streaming.broker.disk.log_inventory.Inventory.look", gone)
    station.look()
    assert station.watcher.caught_up
