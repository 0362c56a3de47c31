"""A log followed from file to file: grown, rolled, compacted, deleted, preallocated."""

import os
import random
from pathlib import Path
from typing import Any

import pytest

from streaming.broker.disk.locate import WINDOW_BYTES
from streaming.broker.disk.segment_files import OpenSegment
from streaming.broker.watcher import watcher
from streaming.broker.watcher.reading import ZERO_TAIL_LOOK_BYTES
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from streaming.simulator.batch_writer import Record, encode
from streaming.simulator.cleaner import compact
from streaming.simulator.compressor import Codec
from streaming.simulator.log import PartitionLog
from streaming.simulator.log_dir import LogDir
from tests.builders import NOW, batch, commit, log_dir, partition
from tests.disk.descriptors import descriptors
from tests.legacy_messages import Messages
from tests.simulated import write_part
from tests.watcher.station import Station

SIZE = len(encode(batch(), 0))


def ranges(events: list[Event]) -> list[tuple[Kind, int, int, int]]:
    return [(event.kind, event.segment, event.base_offset, event.next_offset) for event in events if event.kind is not Kind.APPEARED]


def totals(station: Station, log: PartitionLog) -> tuple[int, int, int, int]:
    counted = station.fold_of(log.topic, log.partition)
    return counted.bytes, counted.batches, counted.records, counted.next_offset


def facts(log: PartitionLog) -> tuple[int, int, int, int]:
    appended = log.facts().appended
    return appended.bytes, appended.batches, appended.records, log.log_end_offset


def test_a_new_log_is_read_whole_and_then_as_it_grows(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(2), batch(3))
    log.append(batch(1, producer=7, transactional=True))
    log.append(commit(7))
    first = station.look()
    assert [event.kind for event in first] == [Kind.APPEARED, Kind.APPENDED]
    assert (first[1].start_position, first[1].end_position, first[1].bytes) == (0, log.active.size, log.active.size)
    assert (first[1].batches, first[1].records) == (3, 6)
    log.append(batch(4))
    assert ranges(station.look()) == [(Kind.APPENDED, 0, 7, 11)]
    assert totals(station, log) == facts(log)


def test_bytes_have_the_files_time_within_what_two_looks_leave_open(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch())
    os.utime(log.active.path("log"), (1_600_000_000, 1_600_000_000))
    (appended,) = [event for event in station.look() if event.kind is Kind.APPENDED]
    assert appended.seen_at == 1_600_000_000_000
    looked = station.clock.now
    for modified, seen_at in ((looked + 700, looked + 700), (looked - 5000, looked), (looked + 9000, looked + 2000)):
        station.turn()
        station.clock.now = looked + 2000
        log.append(batch())
        os.utime(log.active.path("log"), ns=(modified * 1_000_000, modified * 1_000_000))
        station.turn()
        assert station.events[-1].seen_at == seen_at
        station.clock.now = looked


def test_an_append_knows_whether_its_replica_led(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    station.look()
    key = station.watcher.tails()[0].cursor.log
    for leader, leads in ((1, 1), (2, 0), (-1, 0), (-2, -1)):
        station.cluster.leaders[key] = (leader, 5)
        station.cluster.changes += 1
        log.append(batch())
        assert [event.leads for event in station.look()] == [leads]


def test_a_short_tail_waits_until_it_is_whole(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(2))
    station.look()
    for size in (1, 11, 12, 17, 60, 61, SIZE - 1):
        write_part(log, batch(), size=size)
        assert station.look() == []
        assert not station.watcher.tails()[0].cursor.stopped
    log.append(batch())
    assert ranges(station.look()) == [(Kind.APPENDED, 0, 2, 3)]


def test_the_zero_tail_of_a_preallocated_file_is_its_end(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t", preallocate=True, segment_bytes=1 << 20)
    assert station.look()[0].kind is Kind.APPEARED
    for count in (1, 3, 2):
        log.append(*[batch(2)] * count)
        (appended,) = station.look()
        assert (appended.batches, appended.end_position) == (count, log.active.size)
    assert station.look() == []


def test_more_than_one_look_holds_is_read_from_a_preallocated_file_too(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t", preallocate=True, segment_bytes=16 << 20)
    log.append(batch())
    station.look()
    log.append(*[batch(1, value_bytes=20_000)] * 30)
    log.append(batch(1, value_bytes=3 << 20))
    station.look()
    assert totals(station, log) == facts(log)


def test_an_append_to_a_preallocated_file_costs_no_look_at_the_whole_of_it(
    station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = partition(disk, "t", preallocate=True, segment_bytes=16 << 20)
    log.append(batch())
    station.look()
    read: list[int] = []
    read_into = OpenSegment.read_into

    def counted(self: OpenSegment, *rest: Any, **more: Any) -> int:
        read.append(read_into(self, *rest, **more))
        return read[-1]

    monkeypatch.setattr(OpenSegment, "read_into", counted)
    log.append(batch())
    station.look(set())
    assert totals(station, log) == facts(log)
    assert 0 < sum(read) <= 2 * ZERO_TAIL_LOOK_BYTES


@pytest.mark.parametrize("written", [1, 12, 13, 17, 30, 58, 61, 100, SIZE - 2])
@pytest.mark.parametrize("before", [0, 1])
def test_a_batch_half_written_into_a_preallocated_file_is_not_there_yet(station: Station, disk: LogDir, before: int, written: int) -> None:
    """Its length says that it is whole; with only its length written it looks like a message of magic 0."""
    log = partition(disk, "t", preallocate=True)
    log.append(*[batch()] * before) if before else None
    write_part(log, batch(), size=written)
    station.look()
    assert totals(station, log) == facts(log)
    station.look()
    log.append(batch())
    station.look()
    assert totals(station, log) == facts(log)
    assert not [event for event in station.events if event.kind in (Kind.CORRUPT, Kind.TRUNCATED)]


@pytest.mark.parametrize("written", [30, 90])
def test_a_batch_half_written_up_to_the_very_end_of_a_preallocated_file(station: Station, disk: LogDir, written: int) -> None:
    log = partition(disk, "t", preallocate=True, segment_bytes=2 * SIZE)
    log.append(batch())
    write_part(log, batch(), size=written)
    station.look()
    log.append(batch())
    station.look()
    assert totals(station, log) == facts(log)
    assert station.fold_of("t").truncations == 0


def test_an_old_message_half_written_into_a_preallocated_file(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t", preallocate=True)
    old = Messages(magic=1, records=(Record(value=b"v" * 100, timestamp=NOW),))
    log.append(old)
    write_part(log, old, size=60)
    station.look()
    assert totals(station, log) == facts(log)
    log.append(old)
    station.look()
    assert totals(station, log) == facts(log)
    assert station.fold_of("t").batches == 2


def test_a_half_written_batch_in_a_preallocated_file_lets_the_watcher_rest(station: Station, disk: LogDir) -> None:
    """A broker that died in the middle of a write leaves it so for ever."""
    log = partition(disk, "t", preallocate=True)
    log.append(batch())
    write_part(log, batch(), size=100)
    station.look()
    assert station.watcher.caught_up
    assert station.turn() is False


def test_a_rolled_segment_is_read_to_its_end_before_the_next_one(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(2))
    station.look()
    log.append(batch(3))
    log.roll()
    log.append(batch(4))
    log.roll()
    log.roll()
    log.append(batch(5))
    assert ranges(station.look()) == [(Kind.APPENDED, 0, 2, 5), (Kind.APPENDED, 5, 5, 9), (Kind.APPENDED, 9, 9, 14)]


def test_a_roll_that_no_one_shows_is_found_by_the_next_rescan(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch())
    station.look()
    log.roll()
    log.append(batch())
    assert station.look(set()) == []
    assert ranges(station.look()) == [(Kind.APPENDED, 1, 1, 2)]


def test_a_hint_at_the_directory_finds_a_roll_at_once(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch())
    station.look()
    log.roll()
    log.append(batch())
    assert ranges(station.look({log.directory})) == [(Kind.APPENDED, 1, 1, 2)]


def test_what_lies_in_a_segment_that_was_renamed_is_still_read(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(2))
    station.look()
    log.append(batch(3))
    log.roll()
    log.append(batch(4))
    log.delete_records(5)
    assert log.delete_old_segments(NOW) == 1
    assert ranges(station.look()) == [(Kind.APPENDED, 0, 2, 5), (Kind.APPENDED, 5, 5, 9)]
    assert totals(station, log) == facts(log)


def test_what_lies_in_a_segment_that_was_unlinked_is_still_read(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(2))
    station.look()
    log.append(batch(3))
    log.roll()
    log.append(batch(4))
    log.delete_records(5)
    log.delete_old_segments(NOW)
    assert log.unlink_deleted(NOW + 60_000) == 1
    station.look()
    assert totals(station, log) == facts(log)
    assert descriptors(str(log.directory), "(deleted)") == []


def test_segments_deleted_before_they_were_read_are_skipped_with_their_exact_size(
    station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "POLL_BYTES", 1)
    log = partition(disk, "t")
    for count in (1, 2, 3):
        log.append(*[batch(4)] * count)
        log.roll()
    log.append(batch())
    assert station.turn()
    assert [event.next_offset for event in station.events if event.kind is Kind.APPENDED] == [4]
    sizes = [segment.size for segment in log.segments]
    log.delete_records(24)
    log.delete_old_segments(NOW)
    log.unlink_deleted(NOW + 60_000)
    skipped, _ = station.look()
    assert (skipped.kind, skipped.reason, skipped.bytes) == (Kind.SKIPPED, "deleted", sizes[1] + sizes[2])
    assert (skipped.base_offset, skipped.next_offset, skipped.segment) == (4, 24, 24)
    assert totals(station, log)[3] == log.log_end_offset


def test_segments_that_came_and_went_unseen_are_skipped_by_estimate(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(2))
    station.look()
    log.roll()
    log.append(*[batch(2)] * 10)
    log.roll()
    log.append(*[batch(2)] * 10)
    log.delete_records(22)
    log.delete_old_segments(NOW)
    log.unlink_deleted(NOW + 60_000)
    skipped, appended = station.look()
    assert (skipped.reason, skipped.base_offset, skipped.next_offset) == ("deleted", 2, 22)
    assert skipped.bytes == appended.bytes


def test_segments_that_came_and_went_unseen_are_skipped_exactly_until_they_are_unlinked(station: Station, disk: LogDir) -> None:
    """A leader may roll and delete between two looks: its log has lost offsets that it held, unlike a follower's that begins anew."""
    log = partition(disk, "t")
    log.append(batch(2))
    station.look()
    log.roll()
    log.append(*[batch(2)] * 10)
    unseen = log.active.size
    log.roll()
    log.append(batch(7))
    log.delete_records(22)
    log.delete_old_segments(NOW)
    skipped, appended = station.look()
    assert (skipped.reason, skipped.base_offset, skipped.next_offset, skipped.bytes) == ("deleted", 2, 22, unseen)
    assert (appended.base_offset, appended.next_offset) == (22, 29)


def test_deletions_while_the_agent_was_away_are_skipped_by_estimate(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(*[batch(2)] * 2)
    station.look()
    station.restart()
    log.append(*[batch(2)] * 4)
    log.roll()
    log.append(*[batch(2)] * 6)
    log.delete_records(12)
    log.delete_old_segments(NOW)
    skipped, appended = station.look()
    assert (skipped.kind, skipped.base_offset, skipped.next_offset, skipped.bytes) == (Kind.SKIPPED, 4, 12, appended.bytes * 4 // 6)


def test_compaction_puts_other_files_under_the_same_names_and_nothing_is_read_twice(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(*[batch(2)] * 3)
    log.roll()
    log.append(*[batch(2)] * 3)
    station.look()
    compact(log, 0, {2})
    assert station.look() == []
    log.roll()
    log.append(batch())
    compact(log, 6, {6})
    assert ranges(station.look()) == [(Kind.APPENDED, 12, 12, 13)]
    station.restart()
    assert station.look() == []
    assert totals(station, log) == facts(log)


def test_a_backlog_goes_on_behind_what_compaction_left_of_it(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(2), batch(2))
    station.look()
    station.restart()
    log.append(batch(2), batch(2), batch(2))
    log.roll()
    log.append(batch(2))
    compact(log, 0, {0, 6})
    assert ranges(station.look()) == [(Kind.APPENDED, 0, 6, 10), (Kind.APPENDED, 10, 10, 12)]
    assert station.fold_of("t").skipped == {}


def test_a_compacted_file_is_not_taken_for_the_one_that_was_open_before_an_error(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(2), batch(3))
    station.look()
    log.append(batch(4), batch(5), batch(6))
    log.roll()
    log.append(batch(1))
    compact(log, 0, {2, 9})
    station.watcher.tails()[0].close()
    assert ranges(station.look()) == [(Kind.APPENDED, 0, 9, 20), (Kind.APPENDED, 20, 20, 21)]


def test_gaps_that_compaction_left_between_segments_are_no_loss(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    log.append(batch(2))
    log.append(batch(2), base_offset=10)
    log.roll()
    log.append(batch(2), base_offset=40)
    station.look()
    counted = station.fold_of("t")
    assert (counted.records, counted.next_offset, counted.skipped) == (6, 42, {})


def test_while_compaction_renames_its_files_nothing_is_passed_over(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    for _ in range(3):
        log.append(batch(2), batch(2))
        log.roll()
    middle = log.segments[1].path("log")
    middle.rename(middle.with_name(middle.name + ".swap"))
    station.look()
    middle.with_name(middle.name + ".swap").rename(middle)
    station.look()
    assert totals(station, log) == facts(log)


def test_segments_that_overlap_while_compaction_merges_them(station: Station, disk: LogDir) -> None:
    """All that three segments held lies in the first one already, and the others are not removed yet."""
    log = partition(disk, "t")
    for _ in range(3):
        log.append(batch(2), batch(2))
        log.roll()
    log.append(batch(1))
    merged = b"".join(segment.path("log").read_bytes() for segment in log.segments[:3])
    cleaned = log.directory / "00000000000000000000.log.swap"
    cleaned.write_bytes(merged)
    log.segments[0].path("log").unlink()
    log.segments[2].path("log").unlink()
    station.look()
    assert totals(station, log) == facts(log)
    cleaned.rename(log.segments[0].path("log"))
    log.segments[1].path("log").unlink()
    assert station.look() == []


def test_a_batch_larger_than_the_window_is_counted_by_its_header(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t", segment_bytes=1 << 30)
    log.append(batch(2), batch(1, value_bytes=WINDOW_BYTES + 1000), batch(3))
    log.append(batch(1, value_bytes=WINDOW_BYTES * 2), batch(1, value_bytes=WINDOW_BYTES - 30), batch(1))
    station.look()
    assert totals(station, log) == facts(log)
    write_part(log, batch(1, value_bytes=WINDOW_BYTES * 2), size=WINDOW_BYTES + 5000)
    assert station.look() == []
    log.append(batch(1, value_bytes=WINDOW_BYTES * 2))
    station.look()
    assert totals(station, log) == facts(log)


def test_an_old_wrapper_larger_than_the_window_is_opened(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t", segment_bytes=1 << 30)
    noise = random.Random(1).randbytes(WINDOW_BYTES + 1000)
    log.append(Messages(magic=1, records=(Record(value=noise, timestamp=NOW), Record(value=b"2", timestamp=NOW)), codec=Codec.GZIP))
    log.append(batch(1))
    station.look()
    assert totals(station, log) == facts(log)


def test_old_messages_shorter_than_a_header_are_followed(station: Station, disk: LogDir) -> None:
    log = partition(disk, "t")
    for count in (1, 2, 1):
        for _ in range(count):
            log.append(Messages(magic=0, records=(Record(value=b"v", timestamp=NOW),)))
        station.look()
    station.restart()
    log.append(batch(1))
    station.look()
    assert totals(station, log) == facts(log)
    assert station.fold_of("t").truncations == 0


def test_logs_of_several_dirs_and_brokers_are_distinguished(tmp_path: Path) -> None:
    disks = [log_dir(tmp_path, "d0", broker=1), log_dir(tmp_path, "d1", broker=1), log_dir(tmp_path, "d2", broker=2)]
    station = Station(*[disk.path for disk in disks], journal=tmp_path / "journal")
    station.begin("earliest")
    for number, one in enumerate(disks):
        partition(one, "t", number // 2).append(*[batch()] * (number + 1))
    partition(disks[0], "t", 7).append(batch())
    appended = {(event.broker, event.partition, event.log_dir): event.batches for event in station.look() if event.kind is Kind.APPENDED}
    d0, d1, d2 = (str(disk.path) for disk in disks)
    assert appended == {(1, 0, d1): 2, (1, 7, d0): 1, (2, 1, d2): 3}  # of two copies the one that goes further
    station.close()


def test_for_an_epoch_that_the_metadata_lacks_it_is_read_once_more_before_anything_waits(
    station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = partition(disk, "t")
    log.append(batch(1), leader_epoch=5)
    station.look()
    (tail,) = station.watcher.tails()
    station.cluster.leaders[tail.cursor.log], refreshed = (1, 5), []

    def learn() -> None:
        refreshed.append(station.clock.now)
        station.cluster.leaders[tail.cursor.log] = (1, 5 + len(refreshed) // 2)

    monkeypatch.setattr(station.cluster, "refresh", learn)
    log.append(batch(2), leader_epoch=6)
    began = len(station.events)
    station.turn({log.directory})
    assert [event.leads for event in station.events[began:] if event.kind is Kind.APPENDED] == [1]
