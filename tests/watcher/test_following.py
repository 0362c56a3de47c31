"""A log followed from file to file: grown, rolled, compacted, deleted, preallocated."""

import os
import random
from pathlib import Path
from typing import Any

import pytest

from streaming.broker.disk.locate import WINDOW_BYTES
from streaming.broker.disk.segment_files import OpenSegment
from streaming.broker.watcher import watcher
from streaming.broker.watcher.departures import HOLD_MS
from streaming.broker.watcher.reading import ZERO_TAIL_LOOK_BYTES
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from streaming.simulator.batch_writer import Codec, Record
from streaming.simulator.log import LogDir, PartitionLog
from tests.builders import NOW, batch, log_dir, partition
from tests.facts import facts_of
from tests.legacy_messages import Messages
from tests.simulated import write_part
from tests.tables import each_row
from tests.watcher.scene import result, scene, size
from tests.watcher.station import Station

SIZE = size(1)
EMPTY = 61
"""What compaction leaves of the last batch of a segment: its header."""


@each_row(
    ("why", "script", "expected"),
    [
        ("a new log is read whole and then as it grows", "2 3 1^7 commit7 look 4 look", "at0 0-7 | 7-11"),
        (
            "a short tail waits until it is whole",
            f"2 look part1 look part11 look part12 look part17 look part60 look part61 look part{SIZE - 1} look 1 look",
            "at0 0-2 | - | - | - | - | - | - | - | 2-3",
        ),
        ("the zero tail of a preallocated file is its end", "pre look 2 look 2*3 look 2*2 look look", "at0 | 0-2 | 2-8 | 8-12 | -"),
        *[
            (
                "a batch half written into a preallocated file is not there yet; with its length alone it looks like a message of magic 0",
                f"pre part{written} look look 1 look 1 part{written} look look 1 look",
                "at0 | - | 0-1 | 1-2 | - | 2-3",
            )
            for written in (1, 12, 13, 17, 30, 58, 61, 100, SIZE - 2)
        ],
        ("up to the very end of a preallocated file", f"pre{2 * SIZE} 1 part30 look 1 look", "at0 0-1 | 1-2"),
        ("and more of it", f"pre{2 * SIZE} 1 part90 look 1 look", "at0 0-1 | 1-2"),
        ("a rolled segment is read to its end before the next one", "2 look 3 roll 4 roll roll 5 look", "at0 0-2 | 2-5 5-9/5 9-14/9"),
        ("a roll that no one shows is found by the next rescan", "1 look roll 1 quick look", "at0 0-1 | - | 1-2/1"),
        ("a hint at the directory finds a roll at once", "1 look roll 1 hint", "at0 0-1 | 1-2/1"),
        ("what lies in a segment that was renamed is still read", "2 look 3 roll 4 from5 look", "at0 0-2 | 2-5 5-9/5"),
        ("or unlinked", "2 look 3 roll 4 from5 unlink look", "at0 0-2 | 2-5 5-9/5"),
        (  # a leader may roll and delete between two looks: its log has lost offsets that it held, unlike a follower's that begins anew
            "segments that came and went unseen are skipped exactly until they are unlinked",
            "2 look roll 2*10 roll 7 from22 look",
            "at0 0-2 | skip2-22(deleted) 22-29/22",
        ),
        ("then by estimate", "2 look roll 2*10 roll 2*10 from22 unlink look", "at0 0-2 | skip2-22(deleted) 22-42/22"),
        *[
            (f"what grew and went unread while the reading was held up, {why}", f"1*7 look {script} look", f"at0 0-7 | {expected}")
            for why, script, expected in (
                ("unlisted", "roll ( 1*50 roll 1*50 roll 1*9 from107 unlink )", "skip7-107(deleted) 107-116/107"),
                ("listed with a part", "roll 1 ( 1*50 roll 1*50 roll 1*9 from108 unlink )", "skip7-108(deleted) 108-117/108"),
                ("and is not unlinked yet", "roll 1 ( 1*50 roll 2*50 roll 3*9 from158 )", "skip7-158(deleted) 158-185/158"),
                ("in the file that is open", "( 1*50 roll 1*50 roll 1*9 from107 unlink ) look", "7-57 | skip57-107(deleted) 107-116/107"),
                (
                    "and twice it was listed in part",
                    "replace roll 1 turn0 1*9 roll 1 from17 unlink wait60000 turn0 1*9 roll 1*5 from27 unlink",
                    "- | - | skip7-27(deleted) 27-32/27",
                ),
            )
        ],
        (
            "of a preallocated file its size says nothing of that",
            "pre 1*7 look roll 1 ( 1*50 roll 1*50 roll 1*9 from108 unlink ) look",
            "at0 0-7 | skip7-108(deleted) 108-117/108",
        ),
        ("deleted while no agent ran", "2*2 look replace 2*4 roll 2*6 from12 look", "at0 0-4 | skip4-12(deleted) 12-24/12"),
        (
            "compaction puts other files under the same names and nothing is read twice",
            "2*3 roll 2*3 look keep2 look roll 1 keep6/6 look replace look",
            "at0 0-6 6-12/6 | - | 12-13/12 | -",
        ),
        (
            "a backlog goes on behind what compaction left of it",
            "2 2 look replace 2 2 2 roll 2 keep0,6 look",
            f"at0 0-4 | 6-10 10-12/10; {2 * size(2) - EMPTY} missing",
        ),
        (
            "a compacted file is not taken for the one that was open before an error",
            "2 3 look 4 5 6 roll 1 keep2,9 shut look",
            f"at0 0-5 | 9-20 20-21/20; {size(4) + size(6) - EMPTY} missing",
        ),
        ("gaps that compaction left are no loss", "2 2#10 roll 2#40 look", "at0 0-12 40-42/12"),
    ],
)
def test_what_is_published_of_a_log_that_changes(why: str, script: str, expected: str) -> None:
    assert result(script) == expected, why


def totals(station: Station, log: PartitionLog) -> tuple[int, int, int, int]:
    counted = station.fold_of(log.topic, log.partition)
    return counted.bytes, counted.batches, counted.records, counted.next_offset


def facts(log: PartitionLog) -> tuple[int, int, int, int]:
    appended = facts_of(log).appended
    return appended.bytes, appended.batches, appended.records, log.log_end_offset


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
    station.cluster.leaders[station.watcher.tails()[0].cursor.log] = (2, 7)
    skipped, _ = station.look()
    assert (skipped.kind, skipped.reason, skipped.bytes) == (Kind.SKIPPED, "deleted", sizes[1] + sizes[2])
    assert (skipped.leader, skipped.leader_epoch) == (2, 7)  # by which it shows whose bytes these are
    assert (skipped.base_offset, skipped.next_offset, skipped.segment) == (4, 24, 24)
    assert totals(station, log)[3] == log.log_end_offset


@pytest.mark.slow
@each_row(
    ("why", "script"),
    [
        ("all goes that was listed", "1*7 look 1*3 roll 1 ({} 1*50 roll 1*50 roll 1*9 from111 unlink ) look"),
        ("it goes and is not unlinked yet", "1*7 look 1*3 roll 1 ({} 1*50 roll 1*50 roll 1*9 from111 ) look"),
        ("they go one after the other", "1*7 look 1*3 roll 1 ({} roll 1*50 from11 unlink roll 1*50 from61 unlink ) hint 1*5 roll 1 look"),
    ],
)
def test_no_byte_is_in_no_counter_at_whichever_call_the_agent_is_held_up(why: str, script: str) -> None:
    for at in range(60):  # after that the turn is over
        with scene() as one:
            said = one.result(f"{script.format(at)} look")
        assert "missing" not in said, at
        assert one.reached


def test_a_deleted_file_is_read_to_its_end_before_it_is_given_up_however_long_that_was_held_up(
    station: Station, disk: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = partition(disk, "t")
    log.append(batch(2))
    station.look()
    log.append(batch(3))
    log.roll()
    log.delete_records(5)
    log.delete_old_segments(NOW)
    log.unlink_deleted(NOW + 60_000)
    registry = station.watcher._registry
    release = registry.release

    def held_up() -> list[Event]:
        station.clock.now += 2 * HOLD_MS
        return release()

    monkeypatch.setattr(registry, "release", held_up)
    assert [(event.kind, event.next_offset) for event in station.look()] == [(Kind.APPENDED, 5)]
    assert totals(station, log) == facts(log)


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
    station.replace_watcher()
    log.append(batch(1))
    station.look()
    assert totals(station, log) == facts(log)
    assert station.fold_of("t").truncations == 0


def test_logs_of_several_dirs_and_brokers_are_distinguished(tmp_path: Path) -> None:
    disks = [log_dir(tmp_path, "d0", broker=1), log_dir(tmp_path, "d1", broker=1), log_dir(tmp_path, "d2", broker=2)]
    station = Station(*[disk.path for disk in disks])
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


def test_what_came_and_went_while_nobody_looked_is_told_by_what_was_read_before() -> None:
    """The segment that is read is empty, and all others are gone."""
    with scene() as world:
        world.play("1*4 roll look replace 1*20 roll from24 unlink")
        (skipped,) = world.look()
    assert (skipped.kind, skipped.base_offset, skipped.next_offset, skipped.bytes) == (Kind.SKIPPED, 4, 24, 20 * size(1))
