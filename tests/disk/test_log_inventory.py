"""What a log holds, looked at again and again while it changes."""

import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from streaming.broker.disk.broker_processes import was_shut_down_cleanly
from streaming.broker.disk.contents import ContentsReader
from streaming.broker.disk.log_inventory import READ_BYTES, Inventory, LogInventory, ScannedTimes
from streaming.broker.disk.logdirs import Partition, list_partitions, open_log_dirs
from streaming.broker.disk.opening import bytes_read
from streaming.broker.disk.segment_files import FileIdentity
from streaming.broker.disk.segment_times import ActiveRead
from streaming.common.rows import SEGMENTS, TIME_UNKNOWN
from streaming.kafka.formats.names import DirState
from streaming.simulator.batch_writer import Batch
from streaming.simulator.log import LogDir, PartitionLog, compact
from tests.builders import NOW, batch, delete, log_dir, partition

LATER = NOW * 2
"""A clock so late that the stamp of every directory is reliable."""


def until(newest: int, records: int = 1) -> Batch:
    """A batch whose records are a millisecond apart, the last one at ``NOW + newest``."""
    return batch(records, timestamp=NOW + newest - records + 1)


def inventory(*, thorough: bool = False, scanned: ScannedTimes | None = None) -> Inventory:
    return Inventory(clock_ms=lambda: LATER, thorough=thorough, scanned=scanned)


def found(directory: LogDir, topic: str = "t") -> Partition:
    (opened,) = open_log_dirs([directory.path])
    (one,) = [each for each in list_partitions(opened) if each.topic == topic and each.state is DirState.LIVE]
    return one


def look(log: PartitionLog, looking: Inventory | None = None) -> LogInventory:
    (opened,) = open_log_dirs([log.directory.parent])
    (one,) = [each for each in list_partitions(opened) if each.path == log.directory]
    seen = (looking or inventory(thorough=True)).look(one)
    assert seen is not None
    return seen


def scan(log: PartitionLog, looking: Inventory, *, budget: int) -> int:
    """Scan what has to be scanned; returns in how many pieces."""
    (opened,) = open_log_dirs([log.directory.parent])
    (one,) = [each for each in list_partitions(opened) if each.path == log.directory]
    pieces = 0
    while looking.unfinished(one):
        looking.scan(one, budget)
        pieces += 1
    return pieces


@pytest.fixture
def directory(tmp_path: Path) -> LogDir:
    return log_dir(tmp_path)


@pytest.fixture
def log(directory: LogDir) -> PartitionLog:
    """Two closed segments, whose newest records are at +20 and +50, and an active one up to +70 with an older record last."""
    made = partition(directory, "t", index_interval_bytes=0)
    made.append(until(10, 2), until(20))
    made.roll()
    made.append(until(50, 3), until(40, 2))
    made.roll()
    made.append(until(70), until(60))
    return made


def largest(inventory: LogInventory) -> list[int]:
    return [int(time) - NOW if time >= 0 else -1 for time in inventory.segments["largest_timestamp"]]


def test_a_log_is_its_segments_with_sizes_and_times(log: PartitionLog) -> None:
    seen = look(log)
    assert seen.segments["base_offset"].tolist() == [0, 3, 8]
    assert seen.segments["size"].tolist() == [segment.size for segment in log.segments]
    assert largest(seen) == [20, 50, 70]
    files = [log.directory / f"{base:020}.log" for base in (0, 3, 8)]
    assert seen.segments["modified_ms"].tolist() == [file.stat().st_mtime_ns // 1_000_000 for file in files]
    assert (seen.end_offset, seen.log_start_offset(), seen.cleaner_checkpoint, seen.deleted_bytes) == (10, 0, -1, 0)
    assert (seen.oldest_record_ms, seen.active_first_ms) == (NOW + 9, NOW + 70)


def test_looking_again_at_what_has_not_changed_gives_the_very_same_value(log: PartitionLog) -> None:
    looking = inventory(thorough=True)
    assert look(log, looking) is look(log, looking)


def test_a_log_that_grows_is_seen_to_grow(log: PartitionLog) -> None:
    looking = inventory(thorough=True)
    look(log, looking)
    log.append(until(90, 4))
    seen = look(log, looking)
    assert (largest(seen), seen.end_offset) == ([20, 50, 90], 14)
    log.roll()
    log.append(until(95))
    assert largest(look(log, looking)) == [20, 50, 90, 95]


def test_a_segment_that_was_active_is_not_read_again_when_it_closes(log: PartitionLog) -> None:
    looking = inventory(thorough=True)
    look(log, looking)
    log.roll()
    (log.directory / "00000000000000000008.timeindex").write_bytes(b"")
    assert largest(look(log, looking)) == [20, 50, 70, -1]


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "of another segment", "of an earlier time"])
def test_a_time_index_that_is_not_right_gives_way_to_the_segment(log: PartitionLog, damage: str) -> None:
    index = log.directory / "00000000000000000003.timeindex"
    whole = index.read_bytes()
    if damage == "missing":
        index.unlink()
    else:
        offset = 1000 if damage == "of another segment" else 2
        wrong = (NOW + 45).to_bytes(8, "big") + offset.to_bytes(4, "big")
        index.write_bytes({"empty": b"", "cut": whole[:-5]}.get(damage, wrong))
    looking = inventory(thorough=True)
    assert largest(look(log, looking)) == [20, 50, 70]
    assert looking.wrong_time_indexes == (damage == "of an earlier time")


@pytest.mark.parametrize("thorough", [True, False])
@pytest.mark.parametrize("batch_number", [0, 1])
def test_of_a_segment_that_is_damaged_the_time_index_counts_as_it_does_for_the_broker(
    log: PartitionLog, thorough: bool, batch_number: int
) -> None:
    segment = log.segments[0]
    data = bytearray(segment.path("log").read_bytes())
    data[segment.positions[batch_number] + 16] = 77
    segment.path("log").write_bytes(data)
    for expected in (20, (-1, 10)[batch_number]):
        looking = inventory(thorough=thorough)
        for _ in range(2):  # one index is checked at a look
            look(log, looking)
        scan(log, looking, budget=1 << 20)
        assert largest(look(log, looking)) == [expected, 50, 70]
        segment.path("timeindex").unlink(missing_ok=True)


def test_a_time_index_is_believed_at_first_and_checked_one_at_a_look(log: PartitionLog) -> None:
    wrong = (NOW + 45).to_bytes(8, "big") + (2).to_bytes(4, "big")
    for base in (0, 3):
        (log.directory / f"{base:020}.timeindex").write_bytes(wrong)
    looking, counted = inventory(), []
    for _ in range(4):
        look(log, looking)
        counted.append(looking.wrong_time_indexes)
    assert counted == [1, 2, 2, 2]
    assert scan(log, looking, budget=1 << 20) == 2
    assert largest(look(log, looking)) == [20, 50, 70]


def test_a_segment_without_times_has_none(directory: LogDir) -> None:
    log = partition(directory, "t")
    log.append(batch(1, timestamp=-1))
    log.roll()
    log.append(batch(1, timestamp=-1))
    seen = look(log)
    assert (largest(seen), seen.oldest_record_ms) == ([-1, -1], -1)


def without_times(directory: LogDir, *, segments: int = 3, batches: int = 20) -> PartitionLog:
    """A log whose time indexes contain nothing about its closed segments."""
    log = partition(directory, "t")
    for _ in range(segments):
        log.append(*[batch(1, timestamp=-1, value_bytes=50_000)] * batches)
        log.roll()
    log.append(until(70))
    return log


def test_segments_whose_time_index_shows_nothing_are_scanned_in_pieces_and_unknown_until_then(directory: LogDir) -> None:
    log = without_times(directory)
    kept = ScannedTimes()
    looking = inventory(scanned=kept)
    began = bytes_read()
    seen = look(log, looking)
    assert bytes_read() - began < 2 * READ_BYTES
    assert seen.segments["largest_timestamp"].tolist() == [TIME_UNKNOWN] * 3 + [NOW + 70]
    assert look(log, looking) is seen
    assert scan(log, looking, budget=1) == 3, "a window each"
    assert largest(look(log, looking)) == [-1, -1, -1, 70]
    found, gone = kept.changes()
    assert [(key.base_offset, timestamp) for key, timestamp in found] == [(0, -1), (20, -1), (40, -1)] or len(found) == 3
    assert gone == []
    again = inventory(scanned=ScannedTimes(dict(found)))
    began = bytes_read()
    assert largest(look(log, again)) == [-1, -1, -1, 70]
    assert bytes_read() - began < 2 * READ_BYTES


def test_what_a_scan_found_is_forgotten_with_its_segment_and_its_log(directory: LogDir) -> None:
    log = without_times(directory)
    kept = ScannedTimes()
    looking = inventory(scanned=kept)
    one = look(log, looking).partition
    scan(log, looking, budget=1 << 30)
    found, _ = kept.changes()
    log.delete_records(20)
    log.config = log.config.__class__(retention_ms=-1)
    log.delete_old_segments(0)
    look(log, looking)
    assert kept.changes() == ([], [key for key, _ in found if key.base_offset == 0])
    looking.forget(one)
    assert sorted(kept.changes()[1]) == sorted(key for key, _ in found if key.base_offset)


def test_a_segment_that_is_exchanged_while_it_is_scanned(directory: LogDir) -> None:
    log = without_times(directory, batches=200)
    looking = inventory()
    one = look(log, looking).partition
    looking.scan(one, 1)
    compact(log, 0, {0})
    with pytest.raises(FileNotFoundError):
        looking.scan(one, 1)
    look(log, looking)
    scan(log, looking, budget=1)
    assert largest(look(log, looking)) == [-1, -1, -1, 70]


@pytest.mark.parametrize("budget", [1, 100_000, 1 << 30])
def test_an_active_segment_that_nobody_has_read_is_scanned_in_pieces(directory: LogDir, budget: int) -> None:
    log = partition(directory, "t", segment_bytes=1 << 30)
    log.append(*[batch(1, timestamp=NOW + n, value_bytes=50_000) for n in range(200)])
    looking = inventory()
    began = bytes_read()
    seen = look(log, looking)
    assert bytes_read() - began < 3 * READ_BYTES
    assert (seen.segments["largest_timestamp"].tolist(), seen.active_first_ms) == ([TIME_UNKNOWN], NOW)
    scan(log, looking, budget=budget)
    assert largest(look(log, looking)) == [199]
    log.append(until(300))
    assert largest(look(log, looking)) == [300]


def test_the_zeros_of_a_preallocated_segment_are_not_part_of_it(directory: LogDir) -> None:
    log = partition(directory, "t", preallocate=True)
    looking = inventory(thorough=True)
    log.append(batch(3))
    sizes = [look(log, looking).size]
    log.append(batch(2))
    sizes.append(look(log, looking).size)
    assert sizes[1] == log.segments[0].size > sizes[0]
    assert (log.directory / f"{0:020}.log").stat().st_size == 1 << 20


def test_a_log_that_is_cut_off_and_written_anew_is_read_anew(log: PartitionLog) -> None:
    looking = inventory(thorough=True)
    look(log, looking)
    log.truncate(8)
    log.append(until(61), until(62), leader_epoch=1)
    assert largest(look(log, looking)) == [20, 50, 62]
    log.truncate(4)
    seen = look(log, looking)
    assert (largest(seen), seen.end_offset) == ([20, -1], 3)


def test_a_compacted_segment_is_looked_into_again(log: PartitionLog) -> None:
    looking = inventory(thorough=True)
    look(log, looking)
    compact(log, 0, {0})
    seen = look(log, looking)
    assert seen.segments["size"].tolist() == [(log.directory / f"{base:020}.log").stat().st_size for base in (0, 3, 8)]
    assert largest(seen)[1:] == [50, 70]


def checkpoint(directory: LogDir, name: str, offset: int) -> None:
    written = directory.path / f"{name}.tmp"
    written.write_text(f"0\n1\nt 0 {offset}\n")
    written.rename(directory.path / name)


def test_the_log_start_is_raised_by_the_checkpoint_and_with_it_goes_the_oldest_record(directory: LogDir, log: PartitionLog) -> None:
    looking = inventory(thorough=True)
    look(log, looking)
    for offset, oldest in ((1, 9), (2, 20), (3, 48), (7, 39), (9, 60), (10, None)):
        checkpoint(directory, "log-start-offset-checkpoint", offset)
        seen = look(log, looking)
        assert seen.log_start_offset() == offset
        assert seen.oldest_record_ms == (-1 if oldest is None else NOW + oldest)


def test_with_remote_storage_the_checkpoint_alone_says_where_a_log_starts(directory: LogDir) -> None:
    log = partition(directory, "t", base_offset=50)
    log.append(batch(1))
    checkpoint(directory, "log-start-offset-checkpoint", 7)
    seen = look(log)
    assert (seen.log_start_offset(), seen.log_start_offset(remote_storage=True), seen.own_start_offset) == (50, 7, 50)


def test_the_cleaners_checkpoint_is_read_again_when_it_is_replaced(directory: LogDir, log: PartitionLog) -> None:
    looking = inventory(thorough=True)
    for offset in (3, 8):
        checkpoint(directory, "cleaner-offset-checkpoint", offset)
        assert look(log, looking).cleaner_checkpoint == offset


def test_deleted_segments_wait_beside_the_log(log: PartitionLog) -> None:
    looking = inventory(thorough=True)
    look(log, looking)
    size = log.segments[0].size
    doomed = log.directory / f"{0:020}.log"
    doomed.rename(doomed.with_name(f"{doomed.name}.deleted"))
    seen = look(log, looking)
    assert (seen.segments["base_offset"].tolist(), seen.deleted_bytes) == ([3, 8], size)


def test_a_directory_that_was_just_written_is_listed_again(log: PartitionLog) -> None:
    stat = log.directory.stat()
    looking = Inventory(clock_ms=lambda: stat.st_mtime_ns // 1_000_000)
    look(log, looking)
    (log.directory / f"{0:020}.log").unlink()
    os.utime(log.directory, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # as if both had come in one tick of the clock
    assert look(log, looking).segments["base_offset"].tolist() == [3, 8]


def test_a_half_made_directory_has_no_inventory(directory: LogDir, log: PartitionLog) -> None:
    one = found(directory)
    for file in log.directory.glob("*.log"):
        file.unlink()
    assert inventory().look(one) is None


def test_a_directory_that_is_gone_is_an_error_and_forgotten(directory: LogDir, log: PartitionLog) -> None:
    one, looking = found(directory), inventory()
    looking.look(one)
    delete(directory, log)
    with pytest.raises(FileNotFoundError):
        looking.look(one)


def test_what_somebody_else_has_scanned_is_not_scanned_again(log: PartitionLog) -> None:
    looking = inventory(thorough=True)
    looked = look(log, looking)
    log.append(until(99))
    path = log.directory / "00000000000000000008.log"
    stat = path.stat()
    read = ActiveRead(
        identity=FileIdentity(stat.st_dev, stat.st_ino),
        base_offset=8,
        position=stat.st_size,
        next_offset=11,
        first_timestamp=NOW + 70,
        largest_timestamp=NOW + 1234,
    )
    looking.note_active(looked.partition, read)
    assert largest(look(log, looking)) == [20, 50, 1234]


def test_a_batch_that_is_none_ends_what_is_known_of_the_active_segment(log: PartitionLog, caplog: pytest.LogCaptureFixture) -> None:
    with (log.directory / "00000000000000000008.log").open("ab") as file:
        file.write(b"\xff" * 100)
    looking = inventory(thorough=True)
    seen = look(log, looking)
    assert (largest(seen), seen.end_offset) == ([20, 50, 70], 10)
    assert seen.size == sum(segment.size for segment in log.segments) + 100
    look(log, looking)
    assert len([record for record in caplog.records if "not understood" in record.message]) == 1


def test_a_log_dir_shows_what_takes_its_space(directory: LogDir, log: PartitionLog) -> None:
    gone = partition(directory, "gone", topic_id=2)
    gone.append(batch(5))
    delete(directory, gone)
    for suffix in ("future", "stray"):
        other = directory.path / f"t-1.{0:032x}-{suffix}"
        other.mkdir()
        (other / f"{0:020}.log").write_bytes(b"x" * 5000)
    (opened,) = open_log_dirs([directory.path])
    reader = ContentsReader(opened.path)
    seen = reader.read(opened)
    assert seen.delete >= gone.segments[0].size
    assert (seen.future, seen.stray) == (5000, 5000)
    assert seen.capacity >= seen.free > 0
    (directory.path / "replication-offset-checkpoint").write_text("0\n0\n")
    os.utime(directory.path / "replication-offset-checkpoint", ns=(NOW * 10**6, NOW * 10**6))
    assert reader.read(opened).checkpoint_ms == NOW


def test_directories_that_come_and_go_within_a_tick_of_the_clock_are_seen(directory: LogDir, log: PartitionLog) -> None:
    (opened,) = open_log_dirs([directory.path])
    reader = ContentsReader(opened.path)
    before, seen = directory.path.stat().st_mtime_ns, reader.read(opened)
    assert seen.live == (("t", 0),)
    partition(directory, "new", 3)
    os.utime(directory.path, ns=(before, before))
    assert set(reader.read(opened).live) == {("t", 0), ("new", 3)}
    (directory.path / "new-3").rename(directory.path / "other-3")  # as many names as before
    (directory.path / ".kafka_cleanshutdown").touch()
    os.utime(directory.path, ns=(before, before))
    seen = reader.read(opened)
    assert (set(seen.live), seen.clean) == ({("t", 0), ("other", 3)}, True)
    (directory.path / "other-3").rename(directory.path / f"other-3.{0:032x}-delete")
    os.utime(directory.path, ns=(before, before))
    seen = reader.read(opened)
    assert (seen.live, seen.delete > 0) == ((("t", 0),), True)


def test_a_log_dir_that_was_away_shows_what_it_has_when_it_is_back(directory: LogDir, log: PartitionLog) -> None:
    (opened,) = open_log_dirs([directory.path])
    reader, away = ContentsReader(opened.path), directory.path.with_name("away")
    reader.read(opened)
    directory.path.rename(away)
    with pytest.raises(FileNotFoundError):
        reader.read(opened)
    (away / "t-0").rename(away / "t-1")
    away.rename(directory.path)
    assert reader.read(opened).live == (("t", 1),)


def test_holes_of_a_preallocated_index_take_no_space(log: PartitionLog) -> None:
    before = look(log).index_bytes
    with (log.directory / "00000000000000000008.index").open("ab") as file:
        file.truncate(10 << 20)
    after = look(log).index_bytes
    assert after - before < 1 << 20


def test_segments_are_an_array_of_the_shared_type(log: PartitionLog) -> None:
    assert look(log).segments.dtype == np.dtype(SEGMENTS)


def test_what_was_wrong_may_be_asked_for_while_logs_come(directory: LogDir) -> None:
    """By the threads that answer jobs."""
    logs = [partition(directory, "t", number) for number in range(150)]
    looking, over = inventory(), threading.Event()
    (opened,) = open_log_dirs([directory.path])
    partitions = [each for each in list_partitions(opened) if each.state is DirState.LIVE]

    def look_at_all() -> None:
        for each in partitions:
            looking.look(each)
        over.set()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        thread = threading.Thread(target=look_at_all)
        thread.start()
        while not over.is_set():
            assert looking.wrong_time_indexes == 0
        thread.join()
    finally:
        sys.setswitchinterval(before)
    assert len(partitions) == len(logs)


def test_the_active_segment_is_as_old_as_the_snapshot_of_its_roll_or_as_its_log(log: PartitionLog) -> None:
    made = log.directory / "partition.metadata"
    made.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    os.utime(made, ns=(0, 7_000_000))
    seen = look(log)
    snapshot = log.directory / f"{int(seen.segments['base_offset'][-1]):020d}.snapshot"
    snapshot.write_bytes(b"")
    os.utime(snapshot, ns=(0, 9_000_000))
    expected = 7 if seen.segments["base_offset"][-1] == 0 else 9
    assert look(log).active_created_ms == expected
    (snapshot if expected == 9 else made).unlink()
    assert look(log).active_created_ms == -1


def test_an_empty_segment_whose_snapshot_a_start_removed_is_as_old_as_its_file(log: PartitionLog) -> None:
    for old in log.directory.glob("*.log"):
        old.unlink()
    empty = log.directory / f"{50:020d}.log"
    empty.write_bytes(b"")
    os.utime(empty, ns=(0, 7_000_000))
    assert look(log).active_created_ms == 7


def test_a_log_dir_that_cannot_be_asked_does_not_say_that_its_broker_was_shut_down_cleanly(tmp_path: Path) -> None:
    (here,) = open_log_dirs([log_dir(tmp_path).path])
    assert not was_shut_down_cleanly(here.path)
    (here.path / ".kafka_cleanshutdown").touch()
    assert was_shut_down_cleanly(here.path)
    assert not was_shut_down_cleanly(here.path / ("x" * 5000))


def test_a_log_start_that_fell_with_a_truncation_is_believed_again(log: PartitionLog) -> None:
    """Only what a checkpoint takes back is not."""
    looking = inventory()
    log.delete_records(log.log_end_offset)
    start = look(log, looking).log_start_offset()
    log.truncate(log.log_start_offset)
    assert look(log, looking).log_start_offset() < start
    log.append(batch(1))
    assert look(log, looking).log_start_offset() == look(log).log_start_offset()


def test_a_log_start_that_fell_with_what_a_compaction_has_left_is_believed_again(directory: LogDir) -> None:
    """While no batch is below it, the leader epochs show nothing; but no checkpoint has taken it back."""
    log, looking = partition(directory, "t"), inventory()
    log.append(batch(1), batch(1), batch(1))
    log.roll()
    log.delete_records(1)
    assert look(log, looking).log_start_offset() == 1
    compact(log, 0, set())
    assert look(log, looking).log_start_offset() == 0
    log.truncate(2)
    log.append(batch(1), leader_epoch=1)
    assert look(log, looking).log_start_offset() == look(log).log_start_offset() == 1
