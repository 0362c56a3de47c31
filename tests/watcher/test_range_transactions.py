"""What events contain about transactions, and the times of appends in them."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from streaming.broker.journal.range_values import decode_steps, encode_entries
from streaming.broker.watcher.reading import SEEN_WITHIN_MS
from streaming.broker.watcher.watcher import Doubt
from streaming.common.event_row import Event
from streaming.common.rows import COORDINATOR, Kind, StartSource, Step, unpack_rows
from streaming.kafka.scan.coordinator_entries import CoordinatorEntry
from streaming.simulator.batch_writer import Batch, Record
from streaming.simulator.coordinators import IdState, StoredTransaction, transaction_record
from streaming.simulator.log import LogDir, PartitionLog
from streaming.simulator.segment_writer import LogConfig
from tests.builders import NOW, abort, batch, commit, delete, partition
from tests.watcher.coordinated import P, Q, entries, state
from tests.watcher.station import Station


def data(producer: int, records: int = 1, *, timestamp: int = NOW) -> Batch:
    return batch(records, producer=producer, transactional=True, timestamp=timestamp)


def reported(events: list[Event]) -> list[tuple[Step, int, int, int]]:
    """(step, producer, first offset, bytes before) of all that was reported appends."""
    rows = [decode_steps(event.transactions) for event in events if event.kind is Kind.APPENDED]
    names = ("step", "producer_id", "first_offset", "bytes_before")
    return [(Step(row["step"]), *(int(row[name]) for name in names[1:])) for some in rows for row in some]


def times(events: list[Event]) -> list[tuple[StartSource, int, int]]:
    rows = [decode_steps(event.transactions) for event in events if event.kind is Kind.APPENDED]
    return [(StartSource(row["source"]), int(row["start_ms"]), int(row["last_ms"])) for some in rows for row in some if not row["step"]]


def appended(station: Station, log: PartitionLog, *batches: Batch) -> list[Event]:
    log.append(*batches)
    return station.look(station.everything())


def test_a_range_shows_its_transactions_in_the_order_of_the_log(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(1), data(P, 2), data(Q), data(P), commit(P), abort(Q))
    position = log.active.positions
    assert reported(station.look()) == [
        (Step.DATA, P, 1, position[1]),
        (Step.DATA, Q, 3, position[2]),
        (Step.COMMIT, P, 5, position[4]),
        (Step.ABORT, Q, 6, position[5]),
    ]


def test_a_range_without_transactions_shows_nothing_of_them(station: Station, disk: LogDir) -> None:
    partition(disk, "t").append(batch(3), batch(1, producer=P))
    assert [event.transactions for event in station.look() if event.kind is Kind.APPENDED] == [None]


def test_ranges_that_are_reported_again_show_every_batch(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(data(P), data(P))
    station.look()
    station.begin("earliest", "second")
    events = [event for event in station.look() if event.detail is not None]
    assert reported(events) == [(Step.DATA, P, 0, 0), (Step.DATA, P, 1, log.active.positions[1])]


def test_what_grows_under_our_eyes_was_appended_when_it_was_seen(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch())
    station.look()
    events = appended(station, log, data(P, timestamp=NOW + 10**12))
    assert times(events) == [(StartSource.SEEN, station.clock.now, station.clock.now)]


def test_what_grew_between_two_looks_was_appended_between_them(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch())
    station.look()
    looked = station.clock.now
    station.clock.now += 2000
    log.append(*[data(P, timestamp=looked + at) for at in (-500, 700, 2500)])
    begun = len(station.events)
    station.turn()
    assert times(station.events[begun:]) == [(StartSource.SEEN, looked, looked + 2000)]


def test_what_lay_there_was_appended_between_the_times_of_the_files(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(data(P, timestamp=NOW - 1000))
    log.roll()
    log.append(data(P, timestamp=NOW - 1000), data(Q, timestamp=NOW + 50), data(P, timestamp=NOW + 1000))
    _modified(log.segments[0].path("log"), NOW)
    _modified(log.segments[1].path("log"), NOW + 100)
    assert times(station.look()) == [
        (StartSource.RECORDED, NOW - 1000, NOW - 1000),
        (StartSource.RECORDED, NOW, NOW + 100),
        (StartSource.RECORDED, NOW + 50, NOW + 50),
    ]


def test_what_was_not_looked_at_for_long_was_not_seen_as_it_was_appended(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch())
    station.look()
    station.clock.now += SEEN_WITHIN_MS + 1 - 1000  # the machine was asleep
    log.append(data(P, timestamp=NOW))
    _modified(log.active.path("log"), NOW + 5)
    assert times(station.look(station.everything())) == [(StartSource.RECORDED, NOW, NOW)]


def test_what_a_restart_finds_was_not_seen_as_it_was_appended(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch())
    station.look()
    log.append(data(P, timestamp=NOW))
    _modified(log.active.path("log"), NOW + 5)
    station.replace_watcher()
    assert times(station.look(station.everything())) == [(StartSource.RECORDED, NOW, NOW)]


def test_a_marker_that_is_not_understood_stops_the_log_before_it(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    bad = Batch(records=(Record(b"\x00", b"", NOW),), producer_id=P, producer_epoch=0, transactional=True, control=True)
    log.append(data(P), bad, data(P))
    station.look()
    station.look()
    counted = station.fold_of("t")
    assert (counted.next_offset, counted.corrupt_at, counted.batches) == (1, [1], 1)
    assert reported(station.events) == [(Step.DATA, P, 0, 0)]
    assert [event.reason for event in station.events if event.kind is Kind.CORRUPT] == [
        "marker of a transaction: key of a control record is too short"
    ]


# --- coordinators


@pytest.mark.parametrize("start_from", ["earliest", "active", "latest"])
def test_what_coordinators_know_is_read_from_the_first_byte_wherever_a_reader_begins(disk: LogDir, tmp_path: Path, start_from: str) -> None:
    log = partition(disk, "__transaction_state", 3)
    log.append(state("a", IdState.ONGOING), state("b", IdState.EMPTY))
    log.roll()
    log.append(state("a", IdState.PREPARE_COMMIT))
    station = Station(disk.path)
    station.begin(start_from)
    assert entries(station.look()) == [("a", "Ongoing", 0), ("b", "Empty", 1), ("a", "PrepareCommit", 2)]
    station.close()


def test_a_range_shows_the_newest_of_each_transactional_id(station: Station, disk: LogDir) -> None:
    log = partition(disk, "__transaction_state", 3)
    log.append(state("a", IdState.ONGOING))
    station.watcher.poll(set())
    log.append(state("b", IdState.ONGOING), state("a", IdState.COMPLETE_ABORT))
    events = station.look()
    assert entries(events)[-2:] == [("b", "Ongoing", 1), ("a", "CompleteAbort", 2)]
    row = [row for event in events if event.coordinator for row in unpack_rows(event.coordinator, COORDINATOR).to_pylist()][-2]
    assert row == {
        "transactional_id": "b",
        "offset": 1,
        "state": "Ongoing",
        "producer_id": P,
        "producer_epoch": 3,
        "timeout_ms": 60_000,
        "start_ms": NOW,
        "last_update_ms": NOW,
        "partitions": ["t-1"],
        "previous_producer_id": -1,
    }


def test_what_is_not_understood_is_reported_and_logged(station: Station, disk: LogDir, caplog: pytest.LogCaptureFixture) -> None:
    log = partition(disk, "__transaction_state", 3)
    record = transaction_record(
        StoredTransaction(transactional_id="a", producer_id=P, epoch=0, timeout_ms=1, state=IdState.EMPTY, updated=NOW)
    )
    later = Record(record.key, b"\x00\x63" + (record.value or b"")[2:], NOW)
    log.append(Batch(records=(later,)), Batch(records=(Record(b"\x00\x00\x7f", b"", NOW),)))
    assert entries(station.look()) == [("a", "?", 0), ("", "?", 1)]
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        "entries of a coordinator are not understood: no verdict on transactions is certain"
    ]


def test_what_stands_for_a_transactional_id_is_reported_in_its_place() -> None:
    entry = CoordinatorEntry(transactional_id="pay", offset=3, state="Ongoing", partitions=("t-1",))
    reported = encode_entries([entry, replace(entry, transactional_id="")], lambda name: name and f"hash of {name}")
    assert reported is not None
    assert unpack_rows(reported, COORDINATOR)["transactional_id"].to_pylist() == ["hash of pay", ""]
    assert encode_entries([], str) is None


def test_other_topics_show_nothing_of_coordinators(station: Station, disk: LogDir) -> None:
    partition(disk, "t").append(state("a", IdState.ONGOING))
    assert entries(station.look()) == []


def _modified(path: Path, at_ms: int) -> None:
    os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))


# --- what is open where reading begins, goes on behind a hole, or was cut off


def carried(event: Event) -> list[tuple[int, int, StartSource, int]] | None:
    """(producer, first offset, source, start) of what an event says is open."""
    if event.transactions is None:
        return None
    rows = decode_steps(event.transactions)
    assert all(row["step"] == Step.ONGOING and row["bytes_before"] == -1 for row in rows)
    return [(int(row["producer_id"]), int(row["first_offset"]), StartSource(row["source"]), int(row["start_ms"])) for row in rows]


def begun(disk: LogDir, tmp_path: Path, start_from: str) -> Event:
    station = Station(disk.path)
    station.begin(start_from)
    (appeared, *_) = station.look()
    station.close()
    return appeared


def two_segments(disk: LogDir) -> PartitionLog:
    """One transaction over both segments, one ended in the second, and one that begins there."""
    log = partition(disk, "t")
    log.append(data(P, timestamp=NOW), data(Q, timestamp=NOW + 1))
    log.roll()
    log.append(data(P, timestamp=NOW + 2), commit(Q), data(Q, timestamp=NOW + 3))
    for segment in log.segments:
        _modified(segment.path("log"), NOW + 100)
    return log


@pytest.mark.parametrize(
    ("start_from", "expected"),
    [
        ("earliest", []),
        ("active", [(P, 0, StartSource.RECORDED, NOW), (Q, 1, StartSource.RECORDED, NOW + 1)]),
        ("latest", [(P, 0, StartSource.RECORDED, NOW), (Q, 4, StartSource.RECORDED, NOW + 100)]),
    ],
)
def test_where_reading_begins_it_is_given_what_is_open_there(
    disk: LogDir, tmp_path: Path, start_from: str, expected: list[tuple[int, int, StartSource, int]]
) -> None:
    two_segments(disk)
    assert carried(begun(disk, tmp_path, start_from)) == expected


def test_a_transaction_whose_data_is_deleted_is_reported_by_the_snapshot(disk: LogDir, tmp_path: Path) -> None:
    log = two_segments(disk)
    log.config = LogConfig(retention_ms=0)
    log.delete_records(2)
    log.delete_old_segments(NOW)
    _modified(log.directory / f"{2:020d}.snapshot", NOW + 50)
    appeared = begun(disk, tmp_path, "earliest")
    assert appeared.next_offset == 2
    assert carried(appeared) == [(P, 0, StartSource.SNAPSHOT, NOW), (Q, 1, StartSource.SNAPSHOT, NOW + 1)]


def test_a_snapshot_that_cannot_be_believed_is_counted_and_the_log_itself_shows(disk: LogDir, tmp_path: Path) -> None:
    log = two_segments(disk)
    for snapshot in log.directory.glob("*.snapshot"):
        snapshot.write_bytes(snapshot.read_bytes()[:-1] + b"\x7f")
    station = Station(disk.path)
    station.begin("latest")
    station.look()
    doubts = station.watcher.doubts()
    assert doubts[Doubt.PRODUCER_SNAPSHOT] >= 1
    assert doubts[Doubt.TIME_INDEX] == 0
    delete(disk, log)
    station.look()
    assert (station.watcher.tails(), station.watcher.doubts()) == ([], doubts)  # it is a counter: it stays when the log goes
    station.close()


def test_behind_a_hole_it_is_given_what_is_open(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t", retention_bytes=0)
    log.append(data(P))
    station.look()
    station.replace_watcher()
    log.append(commit(P), data(Q))
    log.roll()
    log.append(batch())
    log.delete_records(3)
    log.delete_old_segments(NOW)
    log.unlink_deleted(NOW + 60_000)
    (skipped,) = [event for event in station.look() if event.kind is Kind.SKIPPED]
    assert carried(skipped) == [(Q, 2, StartSource.SNAPSHOT, NOW)]


def test_where_a_log_was_cut_off_it_is_given_what_is_open_again(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(data(P), commit(P), data(Q))
    station.look()
    log.truncate(1)
    _modified(log.active.path("log"), NOW)
    (truncated,) = station.look()
    assert carried(truncated) == [(P, 0, StartSource.RECORDED, NOW)]


def test_what_is_reported_between_is_reported_by_its_batches_alone(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(data(P))
    assert [carried(event) for event in station.look() if event.kind is Kind.APPEARED] == [[]]
    station.begin("latest", "second")
    (appeared,) = [event for event in station.look() if event.kind is Kind.APPEARED]
    assert carried(appeared) == [(P, 0, StartSource.RECORDED, _clamped(log))]


def _clamped(log: PartitionLog) -> int:
    """A start by the batch's own time, which is before that of its file."""
    assert log.active.path("log").stat().st_mtime * 1000 > NOW
    return NOW
