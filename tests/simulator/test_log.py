"""What a partition leaves on disk."""

from pathlib import Path
from uuid import UUID

import pytest

from streaming.simulator.batch_writer import Batch, Codec, Record, encode
from streaming.simulator.log import FactTotals, PartitionLog
from streaming.simulator.segment_writer import LogConfig
from tests.builders import NOW, abort, batch, commit, delete, log_dir, partition
from tests.facts import facts_of
from tests.legacy_messages import Messages
from tests.simulated import truncate_fully, write_part

INDEX_BYTES, TIME_INDEX_BYTES = 10_485_760, 10_485_756


def names(log: PartitionLog) -> list[str]:
    return sorted(path.name for path in log.directory.iterdir())


def content(log: PartitionLog, name: str) -> bytes:
    return (log.directory / name).read_bytes()


def index_entries(log: PartitionLog, name: str, size: int, count: int) -> list[bytes]:
    data = content(log, name)
    return [data[size * n : size * (n + 1)] for n in range(count)]


def small_segments(tmp_path: Path, *, retention_ms: int = -1, retention_bytes: int = -1) -> PartitionLog:
    """A log whose segments hold two batches of one record each."""
    size = len(encode(batch(), 0))
    config = LogConfig(segment_bytes=2 * size, retention_ms=retention_ms, retention_bytes=retention_bytes)
    return PartitionLog(tmp_path / "t-0", "t", 0, None, config)


def test_new_partition(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders", 3, topic_id=UUID(bytes=bytes(range(16))))
    assert log.directory == tmp_path / "d0" / "orders-3"
    assert names(log) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert content(log, "partition.metadata") == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert content(log, "leader-epoch-checkpoint") == b""


def test_appended_batches_stand_back_to_back(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t")
    assert log.append(batch(3), batch(2), leader_epoch=4) == 0
    assert log.append(batch(1), leader_epoch=4) == 5
    expected = encode(batch(3), 0, 4) + encode(batch(2), 3, 4) + encode(batch(1), 5, 4)
    assert content(log, "00000000000000000000.log") == expected
    assert content(log, "leader-epoch-checkpoint") == b"0\n1\n4 0\n"


def test_index_entry_has_the_last_offset_and_the_position_of_its_batch(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", base_offset=100, index_interval_bytes=84)
    log.append(
        Batch(
            records=(Record(b"k1", b"v1", NOW), Record(None, b"v2", NOW + 7, (("h", b"x"),))),
            producer_id=4000,
            producer_epoch=3,
            base_sequence=0,
            transactional=True,
        )
    )
    log.append(commit(4000, epoch=4, timestamp=NOW + 50))
    assert index_entries(log, "00000000000000000100.index", 8, 2) == [bytes.fromhex("00000002 00000055"), bytes(8)]
    assert index_entries(log, "00000000000000000100.timeindex", 12, 2) == [bytes.fromhex("0000018bcfe56832 00000002"), bytes(12)]


def test_every_batch_of_an_append_can_be_indexed(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", index_interval_bytes=0)
    log.append(batch(2), batch(3), batch(1))
    first, second = len(encode(batch(2), 0)), len(encode(batch(3), 0))
    expected = [(4).to_bytes(4) + first.to_bytes(4), (5).to_bytes(4) + (first + second).to_bytes(4), bytes(8)]
    assert index_entries(log, "00000000000000000000.index", 8, 3) == expected


def test_indexes_are_large_and_sparse_until_the_roll(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t")
    log.append(batch(), batch())
    index, times = (log.directory / f"{0:020d}.{kind}" for kind in ("index", "timeindex"))
    assert (index.stat().st_size, times.stat().st_size) == (INDEX_BYTES, TIME_INDEX_BYTES)
    assert index.stat().st_blocks * 512 < 100_000
    log.roll()
    assert index.read_bytes() == b""
    assert times.read_bytes() == NOW.to_bytes(8) + (0).to_bytes(4)  # the largest timestamp, first seen in the first batch


def test_rolled_segment_gets_its_indexes_with_the_first_append(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t")
    log.append(batch(7))
    log.roll()
    assert names(log)[3:6] == ["00000000000000000007.log", "00000000000000000007.snapshot", "leader-epoch-checkpoint"]
    log.append(batch())
    assert (log.directory / "00000000000000000007.index").stat().st_size == INDEX_BYTES
    assert (log.directory / "00000000000000000007.timeindex").stat().st_size == TIME_INDEX_BYTES


def test_append_that_does_not_fit_rolls_first(tmp_path: Path) -> None:
    log = small_segments(tmp_path)
    for _ in range(5):
        log.append(batch())
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]


def test_append_of_several_batches_is_not_spread_over_segments(tmp_path: Path) -> None:
    log = small_segments(tmp_path)
    log.append(batch())
    log.append(batch(), batch())
    assert [segment.base_offset for segment in log.segments] == [0, 1]


def test_snapshot_holds_the_producers_before_its_offset(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", base_offset=100)
    log.append(
        Batch(
            records=(Record(None, b"", NOW), Record(None, b"", NOW + 7)),
            producer_id=4000,
            producer_epoch=3,
            base_sequence=0,
            transactional=True,
        )
    )
    log.roll()
    assert content(log, "00000000000000000102.snapshot") == bytes.fromhex(
        "0001 518fa82a 00000001 0000000000000fa0 0003 00000001 0000000000000065 00000001 0000018bcfe56807 ffffffff 0000000000000064"
    )


def test_only_aborted_transactions_are_indexed(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", base_offset=90)
    log.append(batch(producer=1, transactional=True))
    log.append(commit(1))
    assert not (log.directory / "00000000000000000090.txnindex").exists()
    log.append(batch(producer=2, transactional=True))
    log.append(abort(2))
    expected = "0000 0000000000000002 000000000000005c 000000000000005d 000000000000005e"
    assert content(log, "00000000000000000090.txnindex") == bytes.fromhex(expected)


def test_a_record_too_far_from_the_first_of_its_segment_rolls(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "t-0", "t", 0, None, LogConfig(roll_ms=1000))
    for timestamp in (NOW, NOW + 1000, NOW + 1001, NOW + 2001):
        log.append(batch(timestamp=timestamp))
    assert [len(segment.entries) for segment in log.segments] == [2, 2]


def test_nothing_is_far_from_messages_without_a_time(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "t-0", "t", 0, None, LogConfig(roll_ms=1000))
    records = (Record(value=b"v", timestamp=NOW),)
    for magic in (0, 1):
        log.append(Messages(magic=magic, records=records, codec=Codec.NONE))
    assert [len(segment.entries) for segment in log.segments] == [2]


def test_files_are_dated_as_their_last_append_whatever_its_records_claim(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "t-0", "t", 0, None)
    log.append(batch(timestamp=NOW))
    log.roll()
    log.append(batch(timestamp=NOW + 9_000))
    log.date_files(NOW + 5_000)
    names = ("log", "index", "timeindex")
    for segment, written in zip(log.segments, (NOW, NOW + 5_000), strict=True):
        assert {segment.path(name).stat().st_mtime_ns for name in names} == {written * 1_000_000}


def test_preallocated_log_ends_in_zeros_until_the_roll(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", preallocate=True, segment_bytes=65_536)
    log.append(batch())
    size = len(encode(batch(), 0))
    assert len(content(log, f"{0:020d}.log")) == 65_536
    assert not any(content(log, f"{0:020d}.log")[size:])
    log.roll()
    assert len(content(log, f"{0:020d}.log")) == size
    assert len(content(log, f"{1:020d}.log")) == 65_536


def test_part_of_an_append_is_seen_and_then_all_of_it(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t")
    log.append(batch())
    whole = encode(batch(9), 1)
    write_part(log, batch(9), size=30)
    assert content(log, f"{0:020d}.log") == encode(batch(), 0) + whole[:30]
    log.append(batch(9))
    assert content(log, f"{0:020d}.log") == encode(batch(), 0) + whole


def test_follower_may_leave_a_gap(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t")
    log.append(batch(2))
    assert log.append(batch(2), base_offset=10) == 10
    assert log.log_end_offset == 12


def test_old_messages_need_no_leader_epoch(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", topic_id=None)
    log.append(Messages(magic=1, records=(Record(None, b"a", NOW), Record(None, b"b", NOW + 1))))
    assert facts_of(log).appended == FactTotals(bytes=2 * 35, batches=2, records=2)
    assert content(log, "leader-epoch-checkpoint") == b""
    assert not (log.directory / "partition.metadata").exists()


def test_retention_by_size_keeps_at_least_the_limit(tmp_path: Path) -> None:
    size = len(encode(batch(), 0))
    log = small_segments(tmp_path, retention_bytes=4 * size - 1)
    for _ in range(5):
        log.append(batch())
    assert log.delete_old_segments(NOW) == 0
    log.append(batch())
    assert log.delete_old_segments(NOW) == 1
    assert log.log_start_offset == 2
    assert content(log, "leader-epoch-checkpoint") == b"0\n1\n0 2\n"


def test_retention_by_time_goes_by_the_largest_timestamp_of_a_segment(tmp_path: Path) -> None:
    log = small_segments(tmp_path, retention_ms=1000)
    for timestamp in (NOW, NOW + 10, NOW + 20, NOW + 30, NOW + 5_000):
        log.append(batch(timestamp=timestamp))
    assert log.delete_old_segments(NOW + 1010) == 0
    assert log.delete_old_segments(NOW + 1011) == 1
    assert log.delete_old_segments(NOW + 1031) == 1


def test_newer_segment_protects_the_older_ones_behind_it(tmp_path: Path) -> None:
    log = small_segments(tmp_path, retention_ms=1000)
    for timestamp in (NOW + 9_000, NOW, NOW, NOW, NOW):
        log.append(batch(timestamp=timestamp))
    assert log.delete_old_segments(NOW + 5_000) == 0


def test_active_segment_expires_too(tmp_path: Path) -> None:
    log = small_segments(tmp_path, retention_ms=1000)
    log.append(batch())
    assert log.delete_old_segments(NOW + 1001) == 1
    assert (log.log_start_offset, log.log_end_offset, log.active.base_offset) == (1, 1, 1)
    assert log.delete_old_segments(NOW + 9999) == 0


def test_compacted_log_is_only_cut_at_its_start(tmp_path: Path) -> None:
    log = PartitionLog(tmp_path / "t-0", "t", 0, None, LogConfig(compacted=True, retention_ms=0, retention_bytes=0))
    log.append(batch())
    log.roll()
    log.append(batch())
    assert log.delete_old_segments(NOW + 9999) == 0
    log.delete_records(1)
    assert log.delete_old_segments(NOW + 9999) == 1


def test_deleted_records_move_the_start_inside_a_segment(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    log.append(batch(5))
    log.append(batch(5), leader_epoch=3)
    log.append(batch(5))
    log.delete_records(7)
    assert log.delete_old_segments(NOW) == 0
    assert content(log, "leader-epoch-checkpoint") == b"0\n1\n3 7\n"
    disk.write_log_starts()
    assert (disk.path / "log-start-offset-checkpoint").read_bytes() == b"0\n1\nt 0 7\n"


def test_deleted_segment_stays_under_another_name_for_a_while(tmp_path: Path) -> None:
    log = small_segments(tmp_path, retention_bytes=1)
    for _ in range(4):
        log.append(batch(producer=1, transactional=True))
        log.append(abort(1))
    log.delete_old_segments(NOW)
    gone = [f"{0:020d}.{kind}.deleted" for kind in ("index", "log", "timeindex", "txnindex")]
    assert [name for name in names(log) if name.startswith(f"{0:020d}")] == gone
    assert log.unlink_deleted(NOW + 59_999) == 0
    assert log.unlink_deleted(NOW + 60_000) > 0
    assert not [name for name in names(log) if name.endswith(".deleted")]


def test_truncation_cuts_in_place_at_the_start_of_a_batch(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", index_interval_bytes=0)
    for _ in range(3):
        log.append(batch(10))
    log.append(batch(10), leader_epoch=2)
    path = log.directory / f"{0:020d}.log"
    inode, before = path.stat().st_ino, path.read_bytes()
    size = len(encode(batch(10), 0))
    assert log.truncate(25) == 2 * size
    assert (path.stat().st_ino, path.read_bytes()) == (inode, before[: 2 * size])
    assert (log.log_end_offset, log.append(batch(), leader_epoch=3)) == (20, 20)
    assert content(log, "leader-epoch-checkpoint") == b"0\n2\n0 0\n3 20\n"


def test_truncated_index_keeps_stale_entries(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", index_interval_bytes=0)
    for _ in range(4):
        log.append(batch(10))
    before = index_entries(log, f"{0:020d}.index", 8, 3)
    log.truncate(15)
    assert index_entries(log, f"{0:020d}.index", 8, 3) == before
    log.append(batch(2), batch(1))
    position = len(encode(batch(10), 0)) + len(encode(batch(2), 0))
    assert index_entries(log, f"{0:020d}.index", 8, 3) == [(12).to_bytes(4) + position.to_bytes(4), *before[1:]]


def test_truncation_to_an_earlier_segment_drops_the_later_ones(tmp_path: Path) -> None:
    log = small_segments(tmp_path)
    for _ in range(6):
        log.append(batch())
    log.truncate(3)
    assert [segment.base_offset for segment in log.segments] == [0, 2]
    assert [name for name in names(log) if name.endswith(".snapshot")] == [f"{2:020d}.snapshot", f"{3:020d}.snapshot"]
    assert f"{4:020d}.log.deleted" in names(log)
    assert (log.directory / f"{2:020d}.index").stat().st_size == INDEX_BYTES


def test_truncation_forgets_what_was_cut_off(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t")
    log.append(batch(2, producer=1, transactional=True))
    log.append(batch(2, producer=2, transactional=True))
    log.append(abort(1))
    log.truncate(4)
    assert facts_of(log).open_transactions == ((1, 0), (2, 2))
    assert content(log, f"{0:020d}.txnindex") == b""
    log.truncate(2)
    assert facts_of(log).open_transactions == ((1, 0),)


def test_full_truncation_begins_a_new_log(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t")
    log.append(batch(5, producer=1, transactional=True))
    truncate_fully(log, 200)
    assert (log.log_start_offset, log.append(batch(), leader_epoch=9)) == (200, 200)
    assert [name for name in names(log) if name.endswith((".log", ".log.deleted"))] == [f"{0:020d}.log.deleted", f"{200:020d}.log"]
    assert facts_of(log).open_transactions == ()
    assert content(log, "leader-epoch-checkpoint") == b"0\n1\n9 200\n"


def test_empty_segment_is_not_rolled(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", segment_bytes=10)
    log.roll()
    log.append(batch())  # larger than a whole segment
    log.roll()
    assert [segment.base_offset for segment in log.segments] == [0, 1]


def test_deleted_topic_keeps_its_files_under_another_name(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t", 5)
    log.append(batch())
    gone = delete(disk, log)
    again = partition(disk, "t", 5, topic_id=2)
    assert sorted(path.name for path in disk.path.glob("t-*")) == ["t-5", f"t-5.{0:032x}-delete"]
    assert (gone.log_end_offset, again.log_end_offset) == (1, 0)
    gone.remove()
    assert [path.name for path in disk.path.glob("t-*")] == ["t-5"]


def test_log_keeps_growing_after_its_directory_was_renamed(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t", name=f"t-0.{1:032x}-future")
    log.append(batch())
    log.rename("t-0")
    log.append(batch())
    log.roll()
    log.append(batch())
    assert log.directory.name == "t-0"
    assert len(content(log, f"{0:020d}.log")) == 2 * len(encode(batch(), 0))
    assert f"{2:020d}.log" in names(log)


def test_clean_end_trims_the_indexes_and_takes_a_snapshot(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t")
    log.append(batch(4))
    log.shut_down()
    assert (log.directory / f"{0:020d}.index").stat().st_size == 0
    assert (log.directory / f"{0:020d}.timeindex").stat().st_size == 12
    assert f"{4:020d}.snapshot" in names(log)


def test_facts(tmp_path: Path) -> None:
    log = small_segments(tmp_path, retention_bytes=1)
    log.append(batch())
    log.append(batch())
    log.append(batch(2, producer=1, transactional=True))
    log.append(commit(1))
    log.append(commit(1))
    log.append(batch(producer=2, transactional=True, timestamp=NOW + 5))
    log.delete_old_segments(NOW)
    facts = facts_of(log)
    assert (facts.log_start_offset, facts.log_end_offset, facts.last_stable_offset) == (4, 7, 6)
    assert (facts.committed, facts.aborted, facts.empty_markers, facts.open_transactions) == (1, 0, 1, ((2, 6),))
    assert (facts.appended.batches, facts.appended.records) == (4, 5)
    assert facts.held == FactTotals(bytes=2 * 78 + len(encode(batch(), 0)), batches=1, records=1)
    assert facts.max_timestamp == NOW + 5


@pytest.mark.parametrize(("start", "expected"), [(0, 1), (4, 4)])
def test_last_stable_offset_is_never_below_the_log_start(tmp_path: Path, start: int, expected: int) -> None:
    log = partition(log_dir(tmp_path), "t")
    log.append(batch())
    log.append(batch(5, producer=1, transactional=True))
    if start:
        log.delete_records(start)
    assert log.last_stable_offset() == expected
