"""From which offset to which ``relation=records`` reads: watermarks, transactions, deleted records, times, segments that go meanwhile."""

import logging
import os
import shutil
from pathlib import Path

import pytest

from streaming.errors import LogDirError, UsageError
from streaming.kafka.formats.names import HIGH_WATERMARK_CHECKPOINT, FileKind
from streaming.simulator.batch_writer import Codec, Record
from tests.builders import NOW, abort, batch, commit, log_dir, partition
from tests.legacy_messages import Messages
from tests.source.record_reading import record_rows, records_reader


def offsets(*log_dirs: Path, **options: str) -> list[int]:
    return [row["offset"] for row in record_rows(*log_dirs, **options)]


def test_of_a_running_broker_nothing_above_the_high_watermark_comes(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    log.append(batch(3), batch(2))
    disk.write_high_watermarks()
    log.append(batch(4))
    for until in ("high_watermark", "end"):
        assert offsets(disk.path, until=until) == [0, 1, 2, 3, 4], until
    partition(disk, "whole").append(batch(1))
    disk.release()
    assert offsets(disk.path, topics="t") == [0, 1, 2, 3, 4]
    assert offsets(disk.path, topics="t", until="end") == list(range(9))


def test_what_a_log_at_rest_has_after_its_high_watermark_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = log_dir(tmp_path)
    for number in range(12):
        partition(disk, "t", number).append(batch(3))
    partition(disk, "whole").append(batch(3))
    disk.write_high_watermarks()
    for each in disk.partitions[:12]:
        each.append(batch(2))
    assert (len(offsets(disk.path)), caplog.messages) == (39, []), "of a broker that runs it is there soon"
    disk.release()
    assert len(offsets(disk.path)) == 39
    (message,) = caplog.messages
    assert message.startswith("not read is what comes after the high watermark: t-0 from offset 3 to 4, t-1 from offset 3 to 4, ")
    assert message.endswith(" and 2 more; until=end reads it")
    caplog.clear()
    assert (len(offsets(disk.path, until="end")), caplog.messages) == (63, [])


def test_without_an_entry_nothing_is_known_to_be_replicated_which_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = log_dir(tmp_path)
    partition(disk, "t").append(batch(3))
    partition(disk, "empty")
    assert offsets(disk.path) == []
    assert any("t-0" in message and "no high watermark" in message for message in caplog.messages)
    disk.release()  # of a broker that has ended none will be written any more
    with pytest.raises(UsageError, match=r"option until: of .*t-0 no high watermark was written before its broker ended.*until=end"):
        offsets(disk.path)
    assert offsets(disk.path, until="end") == [0, 1, 2]
    assert offsets(disk.path, topics="empty") == []


def test_one_partition_without_an_entry_keeps_no_other_from_being_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = log_dir(tmp_path)
    partition(disk, "t").append(batch(3))
    disk.write_high_watermarks()
    partition(disk, "t", 1).append(batch(2))
    disk.release()
    assert offsets(disk.path) == [0, 1, 2]
    assert any("nothing is read of t-1: no high watermark" in message for message in caplog.messages)


@pytest.mark.parametrize("cut", [0, 10])
def test_a_log_whose_end_is_missing_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture, cut: int) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    log.append(batch(2), batch(3))
    disk.write_high_watermarks()
    disk.release()
    assert offsets(disk.path) == [0, 1, 2, 3, 4]
    assert not caplog.messages
    first = log.active.entries[0].size
    os.truncate(next(log.directory.glob("*.log")), first + cut)
    assert offsets(disk.path) == [0, 1]
    (message,) = [each for each in caplog.messages if "ends at offset" in each]
    assert message.startswith(f"{log.directory} ends at offset 2, or is damaged there, and offsets up to 5 were replicated")


def test_a_log_that_was_copied_in_part_is_an_error_unless_data_may_be_lost(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    for _ in range(3):
        log.append(batch(2))
        log.roll()
    log.append(batch(2))
    disk.write_high_watermarks()
    lost = log.directory / "00000000000000000002.log"
    lost.unlink()
    assert offsets(disk.path) == [0, 1, 4, 5, 6, 7]  # while a broker runs, it may be in the middle of a deletion
    disk.release()
    with pytest.raises(LogDirError, match=r"t-0 has 00000000000000000002\.index, .* without the \.log beside: it was copied in part"):
        offsets(disk.path)
    assert offsets(disk.path, failOnDataLoss="false") == [0, 1, 4, 5, 6, 7]
    assert any("without the .log" in message for message in caplog.messages)


@pytest.mark.parametrize("content", [None, b"what is this"])
def test_without_the_checkpoint_the_option_is_named_that_reads_on(tmp_path: Path, content: bytes | None) -> None:
    disk = log_dir(tmp_path)
    partition(disk, "t").append(batch(3))
    disk.release()
    checkpoint = disk.path / HIGH_WATERMARK_CHECKPOINT
    checkpoint.unlink() if content is None else checkpoint.write_bytes(content)
    with pytest.raises(UsageError, match=r"option until: .*replication-offset-checkpoint .*until=end"):
        offsets(disk.path)
    assert offsets(disk.path, until="end") == [0, 1, 2]


def test_committed_records_end_where_the_first_transaction_is_open(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    log.append(batch(2, producer=1, transactional=True), commit(1), batch(1))  # 0, 1, marker 2, 3
    log.append(batch(2, producer=2, transactional=True))  # 4, 5: open over a segment
    log.roll()
    log.append(batch(1, producer=3, transactional=True), abort(3), batch(1))  # 6, marker 7, 8
    disk.write_high_watermarks()
    assert offsets(disk.path) == [0, 1, 3]
    assert any("offset 4" in message and "producer 2" in message for message in caplog.messages)
    assert offsets(disk.path, isolation="read_uncommitted") == [0, 1, 3, 4, 5, 6, 8]
    log.append(commit(2))  # marker 9, which is not replicated yet
    assert offsets(disk.path) == [0, 1, 3]
    disk.write_high_watermarks()
    assert offsets(disk.path) == [0, 1, 3, 4, 5, 8]


@pytest.mark.parametrize("indexes", [True, False])
def test_aborted_transactions_are_left_out_over_segments(tmp_path: Path, indexes: bool) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    log.append(batch(2, producer=1, transactional=True), batch(1), batch(1, producer=2, transactional=True))  # 0, 1; 2; 3
    log.roll()
    log.append(batch(1, producer=1, transactional=True), commit(2), batch(1))  # 4, marker 5, 6
    log.roll()
    log.append(abort(1), batch(2, producer=1, epoch=1, transactional=True), commit(1, epoch=2))  # marker 7, 8, 9, marker 10
    disk.write_high_watermarks()
    if not indexes:
        for index in disk.path.glob("*/*.txnindex"):
            index.unlink()
    assert offsets(disk.path) == [2, 3, 6, 8, 9]
    assert offsets(disk.path, startingPosition="active") == [8, 9]


def test_deleted_records_do_not_come_back(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    log.append(batch(6), batch(2))
    log.delete_records(3)
    disk.write_high_watermarks()
    assert offsets(disk.path) == [3, 4, 5, 6, 7], "by the leader epochs, as long as the checkpoint is not written"
    disk.write_log_starts()
    assert offsets(disk.path) == [3, 4, 5, 6, 7]


def test_starting_positions(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    log.append(batch(2))
    log.roll()
    log.append(batch(2))
    disk.write_high_watermarks()
    assert offsets(disk.path) == offsets(disk.path, startingPosition="earliest") == [0, 1, 2, 3]
    assert offsets(disk.path, startingPosition="active") == [2, 3]
    assert offsets(disk.path, startingTimestamp=str(1 << 50)) == []


@pytest.mark.parametrize("indexes", [True, False])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_a_time_is_the_first_record_of_that_time_and_all_after_it(tmp_path: Path, indexes: bool, codec: Codec) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    log.append(batch(3, timestamp=NOW, codec=codec), batch(3, timestamp=NOW + 100, codec=codec))  # 0 to 2, 3 to 5
    log.roll()
    log.append(batch(3, timestamp=NOW + 50, codec=codec))  # 6 to 8: earlier than those before
    log.roll()
    log.append(batch(2, timestamp=NOW + 200, codec=codec))  # 9, 10
    disk.write_high_watermarks()
    if not indexes:
        for index in disk.path.glob("*/*.timeindex"):
            index.unlink()
    for timestamp, first in (
        (0, 0),
        (NOW, 0),
        (NOW + 2, 2),
        (NOW + 3, 3),
        (NOW + 101, 4),
        (NOW + 103, 9),
        (NOW + 201, 10),
        (NOW + 202, 11),
    ):
        assert offsets(disk.path, startingTimestamp=str(timestamp)) == list(range(first, 11)), timestamp - NOW


def test_an_unfinished_batch_at_the_end_is_none(tmp_path: Path) -> None:
    for preallocate in (False, True):
        disk = log_dir(tmp_path, f"d{preallocate}")
        log = partition(disk, "t", preallocate=preallocate)
        log.append(batch(2))
        whole = log.active.path(FileKind.LOG).read_bytes().rstrip(b"\0") if preallocate else log.active.path(FileKind.LOG).read_bytes()
        log.append(batch(3))
        disk.release()
        content = bytearray(log.active.path(FileKind.LOG).read_bytes())
        cut = len(whole) + 150
        log.active.path(FileKind.LOG).write_bytes(bytes(content[:cut]) + bytes(len(content) - cut) * preallocate)
        assert offsets(disk.path, until="end", mode="FAILFAST") == [0, 1], preallocate


def test_a_segment_that_is_deleted_meanwhile_fails_with_a_sentence_and_one_that_is_cleaned_does_not(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    for _ in range(3):
        log.append(batch(2))
        log.roll()
    disk.write_high_watermarks()
    reader = records_reader(disk.path)
    (task,) = reader.partitions()
    merged = b"".join(each.path(FileKind.LOG).read_bytes() for each in log.segments[:2])
    first, second = (each.path(FileKind.LOG) for each in log.segments[:2])
    first.unlink()
    first.write_bytes(merged)
    second.unlink()
    assert [row["offset"] for each in reader.read(task) for row in each.to_pylist()] == list(range(6))
    first.unlink()
    with pytest.raises(LogDirError, match="t-0: offsets 0 to 1 were deleted after the read was planned, its log begins at 4 now"):
        list(reader.read(task))


def test_a_query_that_may_lose_data_goes_on_with_what_is_left(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    for _ in range(3):
        log.append(batch(2))
        log.roll()
    log.append(batch(1))
    disk.write_high_watermarks()
    reader = records_reader(disk.path, failOnDataLoss="false")
    (task,) = reader.partitions()
    for each in log.segments[:2]:
        each.path(FileKind.LOG).unlink()
    assert [row["offset"] for each in reader.read(task) for row in each.to_pylist()] == [4, 5, 6]
    assert "t-0: offsets 0 to 1 were deleted after the read was planned, its log begins at 4 now" in caplog.text
    assert "t-0: offsets 2 to 3 were deleted" in caplog.text
    shutil.rmtree(log.directory)
    log.directory.mkdir()
    assert [each.num_rows for each in reader.read(task)] == [0]


def test_old_messages_between_others(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    records = tuple(Record(key=b"k", value=b"%d" % number, timestamp=NOW + number) for number in range(3))
    log.append(Messages(magic=0, records=records), Messages(magic=1, records=records, codec=Codec.GZIP, log_append_time=NOW + 9))
    log.append(Messages(magic=1, records=records, codec=Codec.LZ4), batch(2))
    disk.write_high_watermarks()
    found = record_rows(disk.path)
    assert [row["offset"] for row in found] == list(range(11))
    assert [row["timestampType"] for row in found] == [-1] * 3 + [1] * 3 + [0] * 5
    assert {row["timestamp"].timestamp() for row in found[3:6]} == {(NOW + 9) / 1000}
    assert offsets(disk.path, startingTimestamp=str(NOW + 1)) == list(range(3, 11))


def test_replicas_of_several_brokers_come_once_from_the_one_that_led_last(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stale, current = log_dir(tmp_path, "d1", broker=1), log_dir(tmp_path, "d2", broker=2)
    old, new = partition(stale, "t"), partition(current, "t")
    old.append(batch(9))
    new.append(batch(2))
    new.append(batch(2), leader_epoch=1)
    for disk in (stale, current):
        disk.write_high_watermarks()
    with caplog.at_level(logging.WARNING):
        assert offsets(stale.path, current.path) == [0, 1, 2, 3]
    assert any(f"{new.directory} is read, and not {old.directory}" in message for message in caplog.messages)
    assert offsets(current.path, current.path) == [0, 1, 2, 3], "a log dir that is given twice is one"


def test_a_topic_that_was_made_again_is_not_mixed_with_its_namesake(tmp_path: Path) -> None:
    for name, topic_id in (("d1", 1), ("d2", 2)):
        disk = log_dir(tmp_path, name)
        partition(disk, "t", topic_id=topic_id).append(batch(1))
        disk.write_high_watermarks()
    with pytest.raises(LogDirError, match="option log_dirs: topic t has several topic ids"):
        offsets(tmp_path / "d1", tmp_path / "d2")
