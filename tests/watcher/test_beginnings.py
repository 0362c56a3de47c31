"""Where a new reader begins, and what that means for those that are there already."""

import threading
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from streaming.broker.journal.journal import Begun
from streaming.broker.watcher.beginnings import Beginning
from streaming.common.rows import Kind
from streaming.simulator.log import LogDir, PartitionLog
from tests.builders import batch, log_dir, partition
from tests.limits import SECONDS
from tests.simulated import write_part
from tests.tables import each_row
from tests.watcher.journalled import events_of
from tests.watcher.scene import Scene, scene
from tests.watcher.station import Station


@pytest.fixture
def bare(disk: LogDir, tmp_path: Path) -> Iterator[Station]:
    """A station that nobody reads yet."""
    made = Station(disk.path)
    yield made
    made.close()


THREE = "1 2 roll 1 2 roll 1 2"


def three_segments(disk: LogDir) -> PartitionLog:
    """Offsets 3 to 5 in an old segment that begins inside the log, 6 to 8 and 9 to 11 in the next ones."""
    log = partition(disk, "t", base_offset=3)
    for _ in range(3):
        log.append(batch(1), batch(2))
        if log.log_end_offset < 12:
            log.roll()
    return log


@each_row(("start_from", "first", "records"), [("earliest", 3, 9), ("active", 9, 3), ("latest", 12, 0)])
def test_where_the_first_reader_begins(start_from: str, first: int, records: int) -> None:
    with scene(start_from=start_from) as one:
        assert one.play(f"new1,3 {THREE} look").split()[0] == f"at{first}"
        one.play("4 look")
        counted = one.station.fold_of("t")
        assert (counted.records, counted.next_offset, counted.settled) == (records + 4, 16, True)


def test_before_anybody_reads_nothing_is_published(bare: Station, disk: LogDir) -> None:
    three_segments(disk)
    assert bare.turn() is False
    assert bare.watcher.tails() == []
    assert bare.journal.end().seq == 0
    assert not bare.watcher.caught_up


@each_row(
    ("why", "start_from", "script"),
    [
        *[("a log that appears later", start_from, f"look new1,3 {THREE} look") for start_from in ("earliest", "active", "latest")],
        ("while the agent was away", "latest", f"look replace new1,3 {THREE} look"),
    ],
)
def test_what_is_read_whole(why: str, start_from: str, script: str) -> None:
    with scene(start_from=start_from) as one:
        one.result(script)
        assert one.station.fold_of("t").records == 9, why


@each_row("start_from", ["active", "latest"])
def test_a_log_that_appears_as_a_second_reader_begins_is_read_whole_by_the_first(start_from: str) -> None:
    with scene() as one:
        one.play(f"look new1,3 {THREE}")
        one.station.begin(start_from, "second")
        one.result("look")
        assert one.station.fold_of("t").records == 9


def test_a_topic_made_anew_as_a_second_reader_begins_is_read_whole_by_the_first(world: Scene) -> None:
    world.play("1 look remove new2 3")
    world.station.begin("latest", "second")
    world.play("look look")
    assert world.station.fold_of("t").records == 3


def test_latest_is_behind_the_last_whole_batch() -> None:
    with scene(start_from="latest") as one:
        assert one.play(f"new1,3 {THREE} part100,5 look") == "at12"
        one.play("5 look")
        assert one.station.fold_of("t").records == 5


@each_row(("first", "second"), product(("earliest", "active", "latest"), repeat=2))
def test_a_second_reader_gets_what_it_asked_for_and_the_first_one_counts_nothing_twice(first: str, second: str) -> None:
    begins = {"earliest": 3, "active": 9, "latest": 12}
    with scene(start_from=first) as one:
        one.play(f"new1,3 {THREE} look 4 look")
        one.station.begin(second, "second")
        one.play("look 6 look")
        assert one.station.fold_of("t").records == 12 - begins[first] + 10
        expected = {"earliest": 13, "active": 7, "latest": 0}[second] + 6
        assert one.station.fold_of("t", name="second").records == expected


def test_two_readers_that_begin_in_the_same_look_both_get_what_they_asked_for(bare: Station, disk: LogDir) -> None:
    three_segments(disk)
    bare.begin("latest", "first")
    bare.begin("earliest", "second")
    bare.look()
    assert bare.fold_of("t", name="first").records == 0
    assert bare.fold_of("t", name="second").records == 9


def test_a_range_that_is_reported_again_carries_its_batches_and_no_other_does(station: Station, disk: LogDir) -> None:
    log = three_segments(disk)
    station.look()
    station.begin("active", "second")
    (again,) = [event for event in station.look() if event.kind is Kind.APPENDED]
    assert (again.base_offset, again.next_offset, again.detail is not None) == (9, 12, True)
    log.append(batch(1))
    assert [event.detail for event in station.look()] == [None]


def test_a_range_that_is_reported_again_ends_where_what_was_reported_before_does(station: Station, disk: LogDir) -> None:
    log = three_segments(disk)
    station.look()
    log.append(batch(2))
    station.begin("active", "second")
    reported = [event for event in station.look() if event.kind is Kind.APPENDED]
    assert [(each.base_offset, each.next_offset, each.detail is not None) for each in reported] == [(9, 12, True), (12, 14, False)]


def test_a_reader_that_resumes_gets_what_comes_after_its_end_and_no_more(station: Station, disk: LogDir) -> None:
    log = three_segments(disk)
    station.look()
    log.append(batch(2))
    station.restart()
    appended = [event for event in station.look() if event.kind is Kind.APPENDED]
    assert [(event.base_offset, event.detail) for event in appended] == [(12, None)]
    log.append(batch(2))
    assert [event.detail for event in station.look()] == [None]
    assert station.fold_of("t").records == 13


def test_a_reader_that_resumes_while_the_log_is_at_its_beginning_anyway_is_reported_with_batches_too(bare: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    bare.begin("earliest", "other")
    bare.look()
    log.append(batch(2), batch(3))
    bare.begin("earliest", "resumed", resumed=True)
    (appended,) = [event for event in bare.look() if event.kind is Kind.APPENDED]
    assert appended.detail is not None


def test_an_empty_log_is_caught_up_with_for_a_reader_that_resumes(bare: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    bare.begin("earliest", resumed=True)
    bare.look()
    log.append(batch(2))
    assert [event.detail for event in bare.look()] == [None]


def test_bytes_that_a_new_reader_finds_there_are_no_settled_traffic(bare: Station, disk: LogDir) -> None:
    log = three_segments(disk)
    bare.begin("earliest")
    settled = [event.settled for event in bare.look() if event.kind is Kind.APPENDED]
    assert settled == [False, False, True]
    log.append(batch(1))
    assert [event.settled for event in bare.look()] == [True]


def test_a_log_with_half_a_batch_at_its_end_is_settled(bare: Station, disk: LogDir) -> None:
    log = three_segments(disk)
    write_part(log, batch(5), size=100)
    bare.begin("earliest")
    bare.look()
    assert [tail.cursor.settled for tail in bare.watcher.tails()] == [True]


def test_the_reader_stands_right_before_its_beginning(bare: Station, disk: LogDir) -> None:
    three_segments(disk)
    bare.begin("earliest")
    bare.look()
    begun = bare.watcher.begin(Beginning("earliest", resumed=False))
    assert not begun.done.is_set()
    assert not bare.watcher.caught_up
    before = bare.journal.end().seq
    bare.look()
    assert begun.done.is_set()
    assert begun.seq == before
    assert events_of(bare.journal, before, before + 1)[0][1].kind is Kind.APPEARED
    assert bare.watcher.caught_up


def test_a_beginning_from_another_thread_is_done_in_the_next_turn(bare: Station, disk: LogDir) -> None:
    three_segments(disk)
    done: list[Begun] = []
    thread = threading.Thread(target=lambda: done.append(bare.watcher.begin(Beginning("earliest", resumed=False))))
    thread.start()
    thread.join(SECONDS)
    bare.turn()
    assert done[0].done.wait(SECONDS)
    assert len(bare.watcher.tails()) == 1


def test_a_new_log_dir_among_others_brings_its_logs_whole(tmp_path: Path) -> None:
    first, second = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    station = Station(first.path)
    station.begin("latest")
    station.look()
    partition(second, "t").append(batch(3))
    station.paths = (first.path, second.path)
    station.replace_watcher()
    station.look()
    assert station.fold_of("t").records == 3
    station.close()


def test_readers_that_resume_a_log_that_was_away_all_go_on_where_none_of_them_is_in_doubt(tmp_path: Path) -> None:
    for epoch_of_second, begins in ((0, 12), (7, 3)):  # the log has no epoch 7: what was counted in it may not be in this log
        disk, other = (log_dir(tmp_path / str(epoch_of_second), name) for name in ("away", "other"))
        log, station = three_segments(disk), Station(disk.path, other.path)
        station.begin("earliest", "first")
        station.begin("earliest", "second")
        station.look()
        station.fold_of("t", name="second").log_epoch = epoch_of_second
        station.leave()
        away = disk.path.rename(tmp_path / "elsewhere")
        disk.path.mkdir()
        station.come_back()
        assert station.look() == []
        disk.path.rmdir()
        away.rename(disk.path)
        log.append(batch(1))
        assert min(event.base_offset for event in station.look() if event.kind is Kind.APPENDED) == begins
        station.close()
