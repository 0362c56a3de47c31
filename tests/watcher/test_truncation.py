"""Logs that were cut off, also when they have grown past the place again."""

import os
import shutil
from pathlib import Path

import pytest

from streaming.broker.watcher import watcher
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from streaming.kafka.scan.detail import first_offset_above
from streaming.simulator.cleaner import compact
from streaming.simulator.log import PartitionLog
from streaming.simulator.log_dir import LogDir
from streaming.simulator.segment_writer import LogConfig
from tests.builders import NOW, batch, log_dir, partition
from tests.simulated import truncate_fully
from tests.watcher.station import RESCAN_MS, Station

STEPS = Path(__file__).parents[1] / "data" / "steps"


def shown(events: list[Event]) -> list[tuple[Kind, int, int]]:
    return [(event.kind, event.base_offset, event.next_offset) for event in events]


def log_of(disk: LogDir, *batches: int) -> PartitionLog:
    log = partition(disk, "t")
    for records in batches:
        log.append(batch(records))
    return log


def test_a_file_that_shrinks_is_a_truncated_log(station: Station, disk: LogDir) -> None:
    log = log_of(disk, 2, 3, 4)
    station.look()
    cut = log.truncate(5)
    (truncated,) = station.look()
    assert (truncated.kind, truncated.next_offset, truncated.bytes, truncated.end_position) == (Kind.TRUNCATED, 5, cut, log.active.size)
    log.append(batch(1), leader_epoch=1)
    assert shown(station.look()) == [(Kind.APPENDED, 5, 6)]
    counted = station.fold_of("t")
    assert (counted.records, counted.truncations, counted.next_offset) == (10, 1, 6)


def test_a_log_that_shrinks_into_the_middle_of_a_batch_waits_for_the_rest(station: Station, disk: LogDir) -> None:
    log = log_of(disk, 2, 3)
    station.look()
    os.truncate(log.active.path("log"), log.active.size - 10)
    assert shown(station.look()) == [(Kind.TRUNCATED, -1, 2)]
    assert station.look() == []


@pytest.mark.parametrize("regrown", [(3, 4), (9,), (1, 1), (3,), (3, 4, 1)])
def test_a_log_that_has_grown_past_the_place_again_is_known_by_the_last_batch_that_was_read(
    station: Station, disk: LogDir, regrown: tuple[int, ...]
) -> None:
    """Whether it is shorter, longer or exactly as long as it was."""
    log = log_of(disk, 2, 3, 4)
    station.look()
    log.truncate(2)
    for records in regrown:
        log.append(batch(records), leader_epoch=1)
    assert shown(station.look()) == [(Kind.TRUNCATED, -1, 2), (Kind.APPENDED, 2, log.log_end_offset)]
    assert station.fold_of("t").records == 9 + sum(regrown)


def test_with_a_hint_it_is_found_before_the_next_rescan_even_at_the_same_size(station: Station, disk: LogDir) -> None:
    log = log_of(disk, 2, 3)
    station.look()
    assert station.look(set()) == []
    log.truncate(2)
    log.append(batch(3), leader_epoch=1)
    assert station.look(set()) == []
    assert shown(station.look({log.directory})) == [(Kind.TRUNCATED, -1, 2), (Kind.APPENDED, 2, 5)]


def test_without_a_new_epoch_at_least_the_batch_that_was_read_last_is_gone(station: Station, disk: LogDir) -> None:
    log = log_of(disk, 2, 3, 4)
    station.look()
    log.truncate(5)
    log.append(batch(6), batch(1))
    assert shown(station.look()) == [(Kind.TRUNCATED, -1, 5), (Kind.APPENDED, 5, 12)]


def test_another_batch_at_the_offsets_of_the_last_one_that_was_read_is_read_in_its_place(station: Station, disk: LogDir) -> None:
    log = log_of(disk, 2, 3, 4)
    station.look()
    log.truncate(5)
    log.append(batch(4, value_bytes=7), batch(1))
    assert shown(station.look()) == [(Kind.TRUNCATED, -1, 5), (Kind.APPENDED, 5, 10)]


def test_what_is_fetched_again_as_it_was_is_no_truncation(station: Station, disk: LogDir) -> None:
    log = log_of(disk, 2, 3, 4)
    station.look()
    log.truncate(2)
    log.append(batch(3))
    log.append(batch(4))
    log.append(batch(1))
    assert shown(station.look()) == [(Kind.APPENDED, 9, 10)]


def test_several_segments_that_were_cut_off_are_reported_with_all_their_bytes(station: Station, disk: LogDir) -> None:
    log = log_of(disk, 2, 3)
    for _ in range(3):
        log.roll()
        log.append(batch(4), batch(4))
    station.look()
    cut = log.truncate(2)
    (truncated,) = station.look()
    assert (truncated.kind, truncated.next_offset, truncated.bytes, truncated.segment) == (Kind.TRUNCATED, 2, cut, 0)


def test_several_segments_that_were_cut_off_and_rolled_anew(station: Station, disk: LogDir) -> None:
    log = log_of(disk, 2, 3)
    for _ in range(3):
        log.roll()
        log.append(batch(4), batch(4))
    station.look()
    log.truncate(5)
    for _ in range(4):
        log.append(batch(9), leader_epoch=2)
        log.roll()
    assert shown(station.look())[:2] == [(Kind.TRUNCATED, -1, 5), (Kind.APPENDED, 5, 14)]
    assert station.fold_of("t").records == 5 + 24 + 36


def test_a_truncation_above_what_was_read_cuts_nothing_that_was(station: Station, disk: LogDir) -> None:
    log = log_of(disk, 2)
    station.look()
    log.append(batch(3))
    log.truncate(2)
    log.append(batch(7), leader_epoch=1)
    assert shown(station.look()) == [(Kind.APPENDED, 2, 9)]
    assert station.fold_of("t").truncations == 0


@pytest.mark.parametrize("regrown", [0, 1, 9])
@pytest.mark.parametrize("killed", [True, False])
def test_a_truncation_while_the_agent_was_away(station: Station, disk: LogDir, killed: bool, regrown: int) -> None:
    log = log_of(disk, 2, 3)
    log.roll()
    log.append(batch(4))
    station.look()
    station.restart(killed=killed)
    log.truncate(2)
    for _ in range(regrown):
        log.append(batch(1), leader_epoch=1)
    assert shown(station.look())[0] == (Kind.TRUNCATED, -1, 2)
    counted = station.fold_of("t")
    assert (counted.records, counted.next_offset) == (9 + regrown, 2 + regrown)


def test_everything_dropped_and_begun_anew_further_on_is_a_skip(station: Station, disk: LogDir) -> None:
    """A follower that is too far behind its leader drops all and starts at the leader's log start (`truncateFullyAndStartAt`)."""
    log = log_of(disk, 2, 3)
    station.look()
    for path in log.directory.glob("0*"):
        path.unlink()
    log.close()
    shutil.rmtree(log.directory)
    disk.forget(log)
    later = partition(disk, "t", base_offset=100)
    later.append(batch(2), leader_epoch=3)
    assert shown(station.look()) == [(Kind.SKIPPED, 5, 100), (Kind.APPENDED, 100, 102)]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("preallocate", [False, True])
def test_a_follower_that_was_read_to_its_end_and_begins_anew_further_on_has_lost_nothing(
    station: Station, disk: LogDir, restarted: bool, preallocate: bool
) -> None:
    """It never held the offsets between. What it held lies there as ``.deleted`` for a minute and shows that it was read."""
    log = partition(disk, "t", preallocate=preallocate)
    log.append(batch(2), batch(3))
    station.look()
    if restarted:
        station.restart()
    truncate_fully(log, 100, NOW)
    log.append(batch(2), leader_epoch=3)
    skipped, appended = station.look()
    assert (skipped.kind, skipped.base_offset, skipped.next_offset, skipped.bytes) == (Kind.SKIPPED, 5, 100, 0)
    assert (appended.base_offset, appended.next_offset) == (100, 102)
    counted = station.fold_of("t")
    assert (counted.records, counted.next_offset, sum(counted.skipped.values())) == (7, 102, 0)


def test_what_a_follower_held_unread_when_it_began_anew_further_on_is_skipped_exactly(station: Station, disk: LogDir) -> None:
    log = log_of(disk, 2)
    station.look()
    station.restart()
    before = log.active.size
    log.append(batch(3))
    held = log.active.size - before
    log.roll()
    log.append(batch(9), batch(9))
    held += log.active.size
    truncate_fully(log, 100, NOW)
    log.append(batch(2), leader_epoch=3)
    skipped, _ = station.look()
    assert (skipped.reason, skipped.base_offset, skipped.next_offset, skipped.bytes) == ("deleted", 2, 100, held)


def test_everything_dropped_and_begun_anew_further_back_is_a_truncation(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t", base_offset=50)
    log.append(batch(9))
    station.look()
    log.close()
    shutil.rmtree(log.directory)
    disk.forget(log)
    earlier = partition(disk, "t", base_offset=20)
    earlier.append(batch(2), leader_epoch=3)
    assert shown(station.look()) == [(Kind.TRUNCATED, -1, 20), (Kind.APPENDED, 20, 22)]


def test_a_truncation_between_a_restart_from_further_back_and_its_end(
    station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second reader has set the log back; what the first one has counted is cut off before the reading gets there again."""
    log = log_of(disk, 2)
    log.roll()
    log.append(batch(3), batch(4))
    station.look()
    monkeypatch.setattr(watcher, "POLL_BYTES", 1)
    station.begin("earliest", "second")
    station.clock.now += RESCAN_MS
    assert station.turn()
    log.truncate(5)
    log.append(batch(1), leader_epoch=1)
    station.look()
    first, second = station.fold_of("t"), station.fold_of("t", name="second")
    assert (first.records, first.next_offset, first.truncations) == (10, 6, 1)
    assert (second.records, second.next_offset) == (6, 6)


def test_a_log_that_ends_before_what_was_reported_once_says_so_when_it_is_read_again(station: Station, disk: LogDir) -> None:
    log = log_of(disk, 2, 3)
    station.look()
    log.truncate(2)
    station.lose_journal()
    assert shown(station.look())[-1] == (Kind.TRUNCATED, -1, 2)
    assert station.fold_of("t").next_offset == 2


def test_a_range_reported_again_shows_where_the_log_parts_from_what_was_counted(station: Station, disk: LogDir) -> None:
    log = log_of(disk, 2, 3, 4)
    station.look()
    log.truncate(2)
    log.append(*[batch(5)] * 3, leader_epoch=1)
    station.lose_journal()
    before, appended = [event for event in station.look() if event.kind is Kind.APPENDED]
    assert before.detail is not None
    assert appended.detail is not None
    assert (before.next_offset, first_offset_above(before.detail, 0)) == (2, None)
    assert first_offset_above(appended.detail, 0) == 2
    assert station.fold_of("t").records == 9 + 15


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("restarted", [False, True])
def test_bytes_of_a_lower_epoch_that_replace_higher_ones_are_read(station: Station, disk: LogDir, looks: bool, restarted: bool) -> None:
    """Two unclean elections, to and fro: what the leader of epoch 5 appended gives way to epoch 4, and that is followed by epoch 6."""
    log = log_of(disk, 2, 3)
    log.append(batch(10), leader_epoch=5)
    station.look()
    if restarted:
        station.restart()
    log.truncate(5)
    log.append(batch(3), batch(4), leader_epoch=4)
    if looks:
        station.look()
    log.append(batch(8), leader_epoch=6)
    station.look()
    counted = station.fold_of("t")
    assert (counted.records, counted.next_offset, counted.truncations) == (5 + 10 + 7 + 8, 20, 1)
    assert station.look() == []


def test_an_epoch_whose_first_batches_were_cleaned_before_it_was_read_is_no_truncation(station: Station, disk: LogDir) -> None:
    log = log_of(disk, 2)
    log.append(batch(3), leader_epoch=1)
    log.append(batch(4), batch(5), leader_epoch=2)
    log.roll()
    compact(log, 0, {0, 9})
    station.look()
    log.append(batch(1), leader_epoch=3)
    station.look()
    station.restart()
    compact(log, 0, {9})
    assert station.look() == []
    assert station.fold_of("t").truncations == 0


def test_an_epoch_that_was_read_still_counts_when_its_last_batches_are_cleaned(station: Station, disk: LogDir) -> None:
    log = log_of(disk, 2)
    log.append(batch(3), leader_epoch=5)
    station.look()
    log.append(batch(4), leader_epoch=5)
    log.roll()
    compact(log, 0, {0})
    station.restart()
    station.turn(budget=0)
    (tail,) = station.watcher.tails()
    assert (tail.cursor.log_epoch, tail.cursor.next_offset) == (5, 5)


def test_segments_deleted_with_their_epochs_are_no_truncation(station: Station, disk: LogDir) -> None:
    log = log_of(disk, 2)
    for epoch in (1, 2, 3):
        log.roll()
        log.append(batch(3), leader_epoch=epoch)
    station.look()
    log.delete_records(8)
    log.config = LogConfig(compacted=True, retention_ms=-1)
    log.delete_old_segments(NOW)
    station.restart()
    assert station.look() == []
    assert station.fold_of("t").truncations == 0


def put(step: Path, directory: Path) -> None:
    """What a broker left at that moment, in place: the same files, other contents."""
    for source in step.iterdir():
        with (directory / source.name).open("r+b" if (directory / source.name).exists() else "wb") as file:
            file.write(source.read_bytes())
            file.truncate()


@pytest.fixture
def steps(tmp_path: Path) -> Station:
    made = Station(log_dir(tmp_path).path, journal=tmp_path / "journal")
    made.begin("earliest")
    return made


def test_a_real_replica_after_an_unclean_election(steps: Station) -> None:
    directory = steps.paths[0] / "tr-0"
    directory.mkdir()
    put(STEPS / "unclean_election" / "1_ahead", directory)
    steps.look()
    counted = steps.fold_of("tr")
    assert (counted.next_offset, counted.bytes) == (86, 22_885)
    put(STEPS / "unclean_election" / "2_truncated", directory)
    truncated, appended = steps.look()
    assert (truncated.kind, truncated.next_offset, truncated.bytes) == (Kind.TRUNCATED, 32, 22_885 - 6_960)
    assert (appended.base_offset, appended.next_offset, appended.bytes, appended.log_epoch) == (32, 40, 756, 1)
    assert steps.fold_of("tr").next_offset == 40
    steps.close()


def test_a_real_log_before_a_crash_torn_by_it_and_recovered(steps: Station) -> None:
    directory = steps.paths[0] / "cr-A-1"
    directory.mkdir()
    put(STEPS / "crash" / "1_before_kill", directory)
    steps.look()
    assert (steps.fold_of("cr-A", 1).next_offset, steps.fold_of("cr-A", 1).bytes) == (452, 525)
    put(STEPS / "crash" / "2_torn", directory)
    assert shown(steps.look()) == [(Kind.TRUNCATED, -1, 448)]
    put(STEPS / "crash" / "3_recovered", directory)
    assert steps.look() == []
    assert not steps.watcher.tails()[0].cursor.stopped
    steps.close()
