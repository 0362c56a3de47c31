"""The segments of a partition, and a read-only look into one."""

import os
from pathlib import Path

import numpy as np
import pytest

from streaming.broker.disk.segment_files import OpenSegment, list_segments, log_start_offset, read_leader_epochs
from streaming.kafka.formats.checkpoint_files import EpochEntry
from streaming.simulator.batch_writer import Record, encode
from streaming.simulator.log import PartitionLog, compact
from tests.builders import NOW, batch, log_dir, partition
from tests.disk.descriptors import descriptors
from tests.legacy_messages import Messages
from tests.tables import each_row


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    """Two segments of two batches each, and an empty active one."""
    made = partition(log_dir(tmp_path), "t", index_interval_bytes=0)
    for _ in range(2):
        made.append(batch(3), batch(2))
        made.roll()
    return made


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in list_segments(log.directory)]


def opened(log: PartitionLog, number: int = 0) -> OpenSegment:
    return list_segments(log.directory)[number].open()


def test_a_listed_segment_is_not_opened_once_another_file_has_its_name(log: PartitionLog) -> None:
    segment, _, _ = list_segments(log.directory)
    compact(log, 0, {0})
    held = descriptors(str(segment.path))
    with pytest.raises(FileNotFoundError, match="is another file than the one that was listed"):
        segment.open()
    assert descriptors(str(segment.path)) == held


def test_segments_are_listed_by_base_offset_and_nothing_else_is(log: PartitionLog) -> None:
    for foreign in (
        "1.log",
        "00000000000000000003.log.cleaned",
        "00000000000000000004.log.deleted",
        "notes.log",
        "00000000000000000007.snapshot",
    ):
        (log.directory / foreign).touch()
    listed = list_segments(log.directory)
    assert [segment.base_offset for segment in listed] == [0, 5, 10]
    assert [segment.size for segment in listed] == [log.segments[0].size, log.segments[1].size, 0]
    stat = listed[0].path.stat()
    assert (listed[0].identity.device, listed[0].identity.inode, listed[0].modified_ms) == (
        stat.st_dev,
        stat.st_ino,
        stat.st_mtime_ns // 10**6,
    )


def test_a_half_made_directory_has_no_segment(tmp_path: Path) -> None:
    assert list_segments(tmp_path) == ()


def test_a_compacted_segment_is_another_file_under_the_same_name(log: PartitionLog) -> None:
    before = list_segments(log.directory)[0]
    compact(log, 0, {0})
    after = list_segments(log.directory)[0]
    assert after.path == before.path
    assert after.identity != before.identity


def test_between_the_renames_of_a_compaction_the_segment_is_there_under_its_other_name(log: PartitionLog) -> None:
    live = log.directory / "00000000000000000005.log"
    live.rename(live.with_name("00000000000000000005.log.swap"))
    assert bases(log) == [0, 5, 10]
    assert list_segments(log.directory)[1].path.name == "00000000000000000005.log.swap"


@each_row(
    ("files", "suffixes"),
    [
        (("0.swap", "5.swap"), [".swap", ".swap", ".log"]),
        (("0.swap", "5.swap", "5.cleaned"), [".swap", ".log", ".log"]),
        (("5.swap", "0.cleaned"), [".log", ".log", ".log"]),
        (("5.swap", "10.cleaned"), [".log", ".swap", ".log"]),
    ],
)
def test_a_swap_file_counts_instead_of_its_segment_where_a_start_would_complete_it(
    files: tuple[str, ...], suffixes: list[str], log: PartitionLog
) -> None:
    made = [log.directory / f"{int(base):020}.log.{stage}" for base, stage in (name.split(".") for name in files)]
    for path in made:
        path.write_bytes(b"newer")
    try:
        assert [segment.path.suffix for segment in list_segments(log.directory)] == suffixes
    finally:
        for path in made:
            path.unlink()


def test_an_open_segment_stays_readable_when_it_is_renamed_and_unlinked(log: PartitionLog) -> None:
    file = opened(log)
    whole = file.read(0, 10_000)
    assert len(whole) == file.size() == log.segments[0].size
    file.path.rename(file.path.with_name(file.path.name + ".deleted"))
    assert not file.unlinked()
    file.path.with_name(file.path.name + ".deleted").unlink()
    assert file.unlinked()
    assert file.read(0, 10_000) == whole
    file.close()


def test_files_are_opened_for_reading_and_never_inherited(log: PartitionLog) -> None:
    path = str(log.segments[0].path("log"))
    before = descriptors(path)
    file = opened(log)
    after = descriptors(path)
    for flags in before:
        after.remove(flags)
    (flags,) = after
    assert flags & os.O_ACCMODE == os.O_RDONLY
    assert flags & os.O_CLOEXEC
    file.close()
    assert descriptors(path) == before


@pytest.mark.parametrize("spare_cache", [False, True])
def test_a_window_is_filled_as_far_as_the_file_goes(log: PartitionLog, spare_cache: bool) -> None:
    file, buffer = opened(log), np.zeros(100, np.uint8)
    size = file.size()
    assert file.read_into(buffer, 40, spare_cache=spare_cache) == 100
    assert buffer.tobytes() == file.read(40, 100)
    assert file.read_into(buffer, size - 30, spare_cache=spare_cache) == 30
    assert file.read_into(buffer, size, spare_cache=spare_cache) == 0
    assert file.read_into(buffer, size + 5, spare_cache=spare_cache) == 0
    file.close()


def test_the_log_start_is_the_first_segment_or_where_records_were_deleted_inside_it(log: PartitionLog) -> None:
    assert log_start_offset(log.directory, list_segments(log.directory)) == 0
    log.delete_records(3)
    assert log_start_offset(log.directory, list_segments(log.directory)) == 3
    log.delete_records(5)
    log.delete_old_segments(NOW)
    assert log_start_offset(log.directory, list_segments(log.directory)) == 5


def test_an_epoch_that_begins_behind_old_messages_moves_no_log_start(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t")
    log.append(Messages(records=(Record(value=b"old", timestamp=NOW),), magic=1))
    log.append(batch(1), leader_epoch=4)
    assert read_leader_epochs(log.directory) == (EpochEntry(4, 1),)
    assert log_start_offset(log.directory, list_segments(log.directory)) == 0


def test_a_replica_that_was_made_of_a_compacted_log_begins_its_epochs_with_its_first_batch(tmp_path: Path) -> None:
    """Kafka 3.9.2: after a move between log dirs, or to another broker, the log start stayed 0, and the file had ``0 12``."""
    log = partition(log_dir(tmp_path), "t")
    log.segments[0].path("log").write_bytes(encode(batch(2), 12, 0))
    (log.directory / "leader-epoch-checkpoint").write_text("0\n1\n0 12\n")
    assert log_start_offset(log.directory, list_segments(log.directory)) == 0
    (log.directory / "leader-epoch-checkpoint").write_text("0\n1\n0 13\n")
    assert log_start_offset(log.directory, list_segments(log.directory)) == 13


def test_a_checkpoint_that_was_written_later_takes_a_log_start_back_that_only_the_epochs_have(log: PartitionLog) -> None:
    """Kafka 4.4.0, killed in the minute after DeleteRecords: its log began at 57 again, and the file had ``2 80`` for good."""
    log.delete_records(3)
    checkpoint, written_ns = log.directory.parent / "log-start-offset-checkpoint", 10**18
    checkpoint.write_text("0\n0\n")
    os.utime(log.directory / "leader-epoch-checkpoint", ns=(written_ns, written_ns))
    for later, start in ((-1, 3), (0, 3), (1, 0)):
        os.utime(checkpoint, ns=(written_ns + later, written_ns + later))
        assert log_start_offset(log.directory, list_segments(log.directory)) == start


def test_leader_epochs_that_cannot_be_read_are_none_and_reported(log: PartitionLog, caplog: pytest.LogCaptureFixture) -> None:
    assert read_leader_epochs(log.directory) == (EpochEntry(0, 0),)
    (log.directory / "leader-epoch-checkpoint").write_text("nonsense")
    assert read_leader_epochs(log.directory) == ()
    assert "leader epochs cannot be read" in caplog.text
    (log.directory / "leader-epoch-checkpoint").unlink()
    assert read_leader_epochs(log.directory) == ()
