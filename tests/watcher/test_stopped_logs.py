"""What is not understood stops that one log, visibly; the others go on."""

import logging
import struct

import pytest

from streaming.broker.watcher.stopped_logs import SUSPECT_MS
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from streaming.simulator.batch_writer import encode
from streaming.simulator.log import PartitionLog
from streaming.simulator.log_dir import LogDir
from tests.builders import NOW, batch, partition
from tests.watcher.station import RESCAN_MS, Station

GOOD = encode(batch(2), 2)
FLAWED = {
    "bad magic byte": GOOD[:16] + b"\x09" + GOOD[17:],
    "bad batch length -5": struct.pack(">qi", 2, -5) + GOOD[12:],
    "bad batch length 3": struct.pack(">qi", 2, 3) + GOOD[12:],
    "bad batch length 2147483647": struct.pack(">qi", 2, 2_147_483_647) + GOOD[12:],
    "bad codec": GOOD[:22] + b"\x07" + GOOD[23:],
    "bad records count": GOOD[:57] + b"\x00\x00\x00\x09" + GOOD[61:],
    "bad base offset": encode(batch(2), 1),
}


def write(log: PartitionLog, data: bytes) -> None:
    """Bytes that no broker writes, after the end of the log."""
    with log.active.path("log").open("ab") as file:
        file.write(data)


def patch(log: PartitionLog, position: int, data: bytes) -> None:
    with log.active.path("log").open("r+b") as file:
        file.seek(position)
        file.write(data)


def stop(station: Station) -> list[Event]:
    """The look that finds the flaw, and the one that believes it."""
    first = station.look()
    station.clock.now += SUSPECT_MS
    for _ in range(6):
        station.turn()
    assert station.watcher.caught_up is True
    return first


def losses(station: Station) -> list[tuple[Kind, str, int]]:
    return [(event.kind, event.reason, event.bytes) for event in station.events if event.kind in (Kind.CORRUPT, Kind.SKIPPED)]


@pytest.mark.parametrize("flaw", FLAWED)
def test_a_flaw_stops_its_log_and_no_other(station: Station, disk: LogDir, flaw: str, caplog: pytest.LogCaptureFixture) -> None:
    log, other = partition(disk, "t"), partition(disk, "other", topic_id=2)
    log.append(batch(2))
    write(log, FLAWED[flaw] + b"more")
    stop(station)
    corrupt, skipped = [event for event in station.events if event.kind in (Kind.CORRUPT, Kind.SKIPPED)]
    assert (corrupt.topic, corrupt.segment, corrupt.start_position, corrupt.next_offset) == ("t", 0, log.active.size, 2)
    assert flaw in corrupt.reason
    assert (skipped.reason, skipped.bytes, skipped.next_offset) == ("corrupt", len(FLAWED[flaw]) + 4, 2)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert (record.log, record.path, record.position) == ("t-0", str(log.active.path("log")), log.active.size)  # type: ignore[attr-defined]
    other.append(batch(5))
    assert [(event.topic, event.records) for event in station.look()] == [("other", 5)]
    counted = station.fold_of("t")
    assert (counted.records, counted.corrupt_at, counted.settled) == (2, [2], True)


def test_what_may_only_be_half_written_is_looked_at_again_before_it_is_called_corrupt(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t", preallocate=True)
    log.append(batch(2))
    data = encode(batch(3), 2)
    patch(log, log.active.size, data[:22] + b"\x07" + data[23:40])  # a codec that does not exist
    station.look()
    assert losses(station) == []
    station.clock.now += SUSPECT_MS - 1
    station.turn()
    log.append(batch(3))
    station.clock.now += SUSPECT_MS
    station.turn()
    assert losses(station) == []
    assert station.fold_of("t").records == 5


def test_what_is_half_written_behind_what_was_half_written_is_given_its_own_time(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t", preallocate=True)
    log.append(batch(2))
    for records in (3, 4):
        data = encode(batch(records), log.log_end_offset)
        patch(log, log.active.size, data[:22] + b"\x07" + data[23:40])
        station.turn(station.everything())
        assert losses(station) == []
        station.clock.now += SUSPECT_MS
        log.append(batch(records))
    station.look(set())
    assert losses(station) == []
    assert station.fold_of("t").records == 9


def test_what_grows_behind_a_flaw_is_counted_as_skipped_and_nothing_twice(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(2))
    write(log, FLAWED["bad magic byte"])
    stop(station)
    write(log, b"x" * 100)
    assert [(event.reason, event.bytes) for event in station.look()] == [("corrupt", 100)]
    assert station.look() == []
    station.fold_of("t")
    assert station.fold_of("t").skipped["corrupt"] == len(GOOD) + 100


@pytest.mark.parametrize("killed", [True, False])
def test_a_restart_counts_neither_the_flaw_nor_its_bytes_again(station: Station, disk: LogDir, killed: bool) -> None:
    log = partition(disk, "t")
    log.append(batch(2))
    write(log, FLAWED["bad magic byte"])
    stop(station)
    station.restart(killed=killed)
    write(log, b"x" * 100)
    assert [event for event in station.look() if event.kind is Kind.CORRUPT] == []
    station.restart(killed=killed)
    assert [event for event in station.look() if event.kind in (Kind.CORRUPT, Kind.SKIPPED)] == []
    counted = station.fold_of("t")
    assert (counted.corrupt_at, counted.skipped["corrupt"]) == ([2], len(GOOD) + 100)


def test_a_journal_made_anew_shows_the_flaw_again_and_it_is_counted_once(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(2))
    write(log, FLAWED["bad magic byte"])
    stop(station)
    station.lose_journal()
    write(log, b"x" * 100)
    stop(station)
    assert len([event for event in station.events if event.kind is Kind.CORRUPT]) == 2
    counted = station.fold_of("t")
    assert (counted.corrupt_at, counted.skipped["corrupt"]) == ([2], len(GOOD) + 100)


def test_a_second_reader_learns_of_the_flaw_and_the_first_one_counts_nothing_twice(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(2))
    write(log, FLAWED["bad magic byte"])
    stop(station)
    station.begin("earliest", "second")
    stop(station)
    for name in ("first", "second"):
        counted = station.fold_of("t", name=name)
        assert (counted.records, counted.corrupt_at, counted.skipped["corrupt"]) == (2, [2], len(GOOD))
    station.begin("latest", "third")
    station.look()
    third = station.fold_of("t", name="third")
    assert (third.records, third.corrupt_at, third.settled) == (0, [2], True)
    assert station.fold_of("t").corrupt_at == [2]


def test_a_segment_that_ends_inside_a_batch_although_the_log_goes_on_stops_it(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(2))
    station.look()
    log.roll()
    first = log.segments[0]
    with first.path("log").open("ab") as file:
        file.write(GOOD[:100])
    log.append(batch(7))
    stop(station)
    assert losses(station)[0] == (Kind.CORRUPT, "the segment ends inside a batch although the log goes on after it", 0)
    assert losses(station)[1] == (Kind.SKIPPED, "corrupt", 100 + log.active.size)


def test_an_old_epoch_behind_a_newer_one_is_no_reason_to_look_for_a_truncation_for_ever(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(2), leader_epoch=5)
    write(log, FLAWED["bad base offset"])
    (log.directory / "leader-epoch-checkpoint").write_text("0\n2\n5 0\n6 1\n")
    stop(station)
    kinds = [event.kind for event in station.events if event.kind not in (Kind.CENSUS, Kind.FOUND)]
    assert kinds[-2:] == [Kind.CORRUPT, Kind.SKIPPED]
    assert len(kinds) < 10


def test_a_flaw_that_goes_away_lets_the_log_be_read_on(station: Station, disk: LogDir, caplog: pytest.LogCaptureFixture) -> None:
    log = partition(disk, "t")
    log.append(batch(2))
    write(log, FLAWED["bad magic byte"])
    stop(station)
    patch(log, log.active.size, GOOD)
    assert [(event.kind, event.next_offset) for event in station.look()] == [(Kind.APPENDED, 4)]
    assert "read on again" in caplog.text
    counted = station.fold_of("t")
    assert counted.records == 4
    assert (counted.bytes, counted.skipped["corrupt"]) == (2 * len(GOOD), len(GOOD)), "a counter of what was skipped cannot fall"


def test_a_flaw_that_a_recovery_cuts_off_lets_the_log_be_read_on(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(2), batch(3))
    write(log, FLAWED["bad magic byte"])
    stop(station)
    log.truncate(2)
    assert [(event.kind, event.next_offset) for event in station.look()] == [(Kind.TRUNCATED, 2)]
    log.append(batch(4), leader_epoch=1)
    station.look()
    assert station.fold_of("t").records == 9


def test_a_flaw_that_retention_deletes_lets_the_log_be_read_on_at_its_end(station: Station, disk: LogDir) -> None:
    """What lies between is counted as skipped already, and nothing is both."""
    log = partition(disk, "t")
    log.append(batch(2))
    station.look()
    write(log, FLAWED["bad magic byte"])
    log.append(batch(1))
    patch(log, log.segments[0].positions[1], FLAWED["bad magic byte"])
    flawed_bytes = log.active.path("log").stat().st_size - log.segments[0].positions[1]
    log.roll()
    log.append(batch(3))
    stop(station)
    log.append(batch(4))
    log.delete_records(3)
    log.delete_old_segments(NOW)
    (skipped,) = station.look()
    assert (skipped.reason, skipped.base_offset, skipped.next_offset) == ("corrupt", 2, 10)
    log.append(batch(5))
    station.look()
    counted = station.fold_of("t")
    behind = log.active.size - len(encode(batch(5), 0))
    assert counted.skipped["corrupt"] == flawed_bytes + behind
    assert (counted.records, counted.next_offset) == (2 + 5, 15)


def test_a_log_that_stops_does_not_hold_up_the_full_picture(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    write(log, FLAWED["bad magic byte"])
    stop(station)
    assert station.watcher.caught_up
    station.clock.now += RESCAN_MS
    assert station.turn() is False
