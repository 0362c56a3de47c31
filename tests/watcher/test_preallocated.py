"""A log with ``preallocate=true``: what is written of its file counts, not how large the file is."""

import os
from collections.abc import Sequence

import pytest

from streaming.broker.watcher.stopped_logs import SUSPECT_MS
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from streaming.simulator.batch_writer import encode
from streaming.simulator.file_writer import encode_partition_metadata
from streaming.simulator.log import PartitionLog
from streaming.simulator.log_dir import LogDir
from tests.builders import NOW, batch, partition
from tests.watcher.station import RESCAN_MS, Station

MEGABYTE = 1 << 20
FLAWED = encode(batch(2), 2)[:16] + b"\x09" + encode(batch(2), 2)[17:]


def patch(log: PartitionLog, position: int, data: bytes) -> None:
    with log.active.path("log").open("r+b") as file:
        file.seek(position)
        file.write(data)


def stored(log: PartitionLog) -> None:
    """Let the file system store the zeros too, as in a copy."""
    path = log.active.path("log")
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.write(data)


def transactions(station: Station, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many events each transaction of the journal has from here on."""
    found: list[int] = []
    publish = station.journal.publish

    def counted(events: Sequence[Event], *rest: object, merged: bool = False) -> None:
        found.append(len(events))
        publish(events, *rest, merged=merged)  # type: ignore[arg-type]

    monkeypatch.setattr(station.journal, "publish", counted)
    return found


@pytest.mark.parametrize("copied", [False, True])
def test_many_logs_that_grow_by_a_batch_are_one_transaction(
    station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch, copied: bool
) -> None:
    logs = [partition(disk, "t", number, preallocate=True, segment_bytes=16 * MEGABYTE) for number in range(3 if copied else 40)]
    for log in logs:
        log.append(batch(1))
        if copied:
            stored(log)
    station.look()
    found = transactions(station, monkeypatch)
    for log in logs:
        log.append(batch(1))
    station.turn()
    assert [count for count in found if count] == [len(logs)]


def test_new_logs_are_one_transaction(station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        partition(disk, "t", number, preallocate=True, segment_bytes=16 * MEGABYTE).append(batch(1))
    station.begin("earliest")
    found = transactions(station, monkeypatch)
    station.turn()
    assert 40 in found


def behind_a_backlog(station: Station, disk: LogDir) -> PartitionLog:
    """A preallocated log whose end was reached, beside one with much to read."""
    live = partition(disk, "live", preallocate=True, segment_bytes=512 * MEGABYTE)
    live.append(batch(2))
    station.look()
    big = partition(disk, "big", segment_bytes=1 << 30, topic_id=2)
    big.append(*[batch(1, value_bytes=MEGABYTE)] * 20)
    station.clock.now += RESCAN_MS
    station.turn(budget=MEGABYTE)
    return live


def test_an_append_is_published_at_once_however_much_others_have_to_read(station: Station, disk: LogDir) -> None:
    live = behind_a_backlog(station, disk)
    for records in (3, 4):
        live.append(batch(1))
        assert station.turn(budget=0)
        assert station.fold_of("live").records == records


def test_a_roll_is_followed_at_once_however_much_others_have_to_read(station: Station, disk: LogDir) -> None:
    live = behind_a_backlog(station, disk)
    live.append(batch(1))
    live.roll()
    live.append(batch(1))
    assert station.turn({live.directory}, budget=0)
    assert station.fold_of("live").records == 4
    assert all(tail.live for tail in station.watcher.tails() if tail.cursor.log.topic == "live")


def test_a_new_log_is_read_at_once_however_much_others_have_to_read(station: Station, disk: LogDir) -> None:
    behind_a_backlog(station, disk)
    new = partition(disk, "new", preallocate=True, segment_bytes=512 * MEGABYTE, topic_id=3)
    new.append(batch(3))
    station.clock.now += RESCAN_MS
    assert station.turn({disk.path}, budget=0)
    assert station.fold_of("new").records == 3


def test_much_that_is_written_is_a_backlog_still(station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.broker.watcher.grown_logs.LIVE_BYTES", 4 * MEGABYTE)
    live = partition(disk, "live", preallocate=True, segment_bytes=512 * MEGABYTE)
    live.append(batch(2))
    station.look()
    live.append(*[batch(1, value_bytes=MEGABYTE)] * 8)
    assert station.turn(budget=MEGABYTE)
    assert station.fold_of("live").records < 4


def stop(station: Station) -> None:
    """The look that finds the flaw, and the one that believes it."""
    station.look()
    station.clock.now += SUSPECT_MS
    for _ in range(6):
        station.turn()


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("killed", [None, False, True])
def test_behind_a_flaw_what_is_written_is_skipped_and_no_zeros(station: Station, disk: LogDir, killed: bool | None, copied: bool) -> None:
    log = partition(disk, "t", preallocate=True, segment_bytes=MEGABYTE)
    log.append(batch(2), batch(2), batch(2))
    patch(log, log.active.positions[1], FLAWED)
    if copied:
        stored(log)
    station.look()
    begins = log.active.positions[1]
    stop(station)
    for _ in range(3):
        written = len(log.active.path("log").read_bytes().rstrip(b"\0"))
        assert station.fold_of("t").skipped["corrupt"] == written - begins
        log.append(batch(5))
        if killed is not None:
            station.restart(killed=killed)
        station.look()
    assert station.fold_of("t").records == 2


def test_a_roll_behind_a_flaw_makes_the_sum_exact(station: Station, disk: LogDir) -> None:
    """A closed segment is cut to what is written of it."""
    log = partition(disk, "t", preallocate=True, segment_bytes=MEGABYTE)
    log.append(batch(2), batch(2))
    begins = log.active.positions[1]
    patch(log, begins, FLAWED)
    stop(station)
    log.append(batch(3))
    log.roll()
    station.look()
    assert station.fold_of("t").skipped["corrupt"] == log.segments[0].size - begins
    log.append(batch(4))
    station.look()
    written = len(log.active.path("log").read_bytes().rstrip(b"\0"))
    assert station.fold_of("t").skipped["corrupt"] == log.segments[0].size - begins + written


def test_a_flaw_that_retention_deletes_leaves_what_was_written_behind_it(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t", preallocate=True, segment_bytes=MEGABYTE)
    log.append(batch(2), batch(1))
    begins = log.active.positions[1]
    patch(log, begins, FLAWED)
    log.roll()
    log.append(batch(3))
    stop(station)
    before = log.segments[0].size - begins + log.active.size
    log.append(batch(4))
    log.delete_records(3)
    log.delete_old_segments(NOW)
    station.look()
    assert station.fold_of("t").skipped["corrupt"] - before in range(log.active.size - before, log.active.size)
    log.append(batch(5))
    station.look()
    assert station.fold_of("t").records == 2 + 5


def test_a_new_log_is_taken_up_once(station: Station, disk: LogDir, caplog: pytest.LogCaptureFixture) -> None:
    """A broker may write ``partition.metadata`` after the first file."""
    log = partition(disk, "t", preallocate=True, segment_bytes=MEGABYTE, topic_id=None)
    modified = station.clock.now / 1000
    os.utime(log.active.path("log"), (modified, modified))
    station.clock.now -= RESCAN_MS
    assert station.look() == []
    assert station.watcher.tails() == []
    (log.directory / "partition.metadata").write_bytes(encode_partition_metadata(disk.directory_id))
    log.append(batch(3))
    events = station.look({log.directory})
    assert [event.kind for event in events] == [Kind.APPEARED, Kind.APPENDED]
    assert len(station.folds["first"].logs) == 1
    assert "another topic id" not in caplog.text


def test_what_left_unread_of_an_open_file_is_skipped(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t", preallocate=True, segment_bytes=MEGABYTE)
    log.append(batch(2))
    station.look()
    position = log.active.size
    log.append(batch(4))
    assert station.watcher.tails()[0].bytes_left_unread() == len(log.active.path("log").read_bytes().rstrip(b"\0")) - position
