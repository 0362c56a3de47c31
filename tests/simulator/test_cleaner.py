"""What cleaning does to a log."""

from pathlib import Path

from streaming.simulator.batch_writer import Batch, encode
from streaming.simulator.log import PartitionLog, clean, compact
from tests.builders import NOW, batch, log_dir, partition
from tests.formats.dumped import columns


def table(tmp_path: Path) -> PartitionLog:
    """Offsets 0, 1-2, 3-5 in a first segment, 6 in the active one."""
    log = partition(log_dir(tmp_path), "table", index_interval_bytes=0)
    for records in (1, 2, 3):
        log.append(batch(records))
    log.roll()
    log.append(batch())
    return log


def test_kept_batches_keep_their_bytes_and_the_last_one_stays_empty(tmp_path: Path) -> None:
    log = table(tmp_path)
    freed = compact(log, 0, keep={1})
    empty = Batch(records=(), last_offset_delta=2, max_timestamp=NOW + 2)
    left = encode(batch(2), 1) + encode(empty, 3)
    assert (log.directory / f"{0:020d}.log").read_bytes() == left
    assert freed == sum(len(encode(batch(records), 0)) for records in (1, 2, 3)) - len(left)
    assert log.log_end_offset == 7


def test_segment_becomes_another_file_under_the_same_name(tmp_path: Path) -> None:
    log = table(tmp_path)
    path = log.directory / f"{0:020d}.log"
    before = path.stat()
    compact(log, 0, keep=set())
    after = path.stat()
    assert after.st_ino != before.st_ino
    assert after.st_mtime_ns == before.st_mtime_ns
    assert (log.directory / f"{0:020d}.log.deleted").stat().st_ino == before.st_ino


def test_indexes_are_those_of_what_is_left(tmp_path: Path) -> None:
    log = table(tmp_path)
    compact(log, 0, keep={1, 3})
    position = len(encode(batch(2), 1))
    assert (log.directory / f"{0:020d}.index").read_bytes() == (5).to_bytes(4) + position.to_bytes(4)
    assert not list(log.directory.glob("*.cleaned"))
    assert not list(log.directory.glob("*.swap"))


def test_snapshot_of_a_replaced_segment_stays(tmp_path: Path) -> None:
    log = table(tmp_path)
    log.roll()
    compact(log, 6, keep=set())
    assert (log.directory / f"{6:020d}.snapshot").exists()


def test_second_round_finds_nothing_to_do(tmp_path: Path) -> None:
    log = table(tmp_path)
    assert clean(log, {1}, NOW) > 0
    assert clean(log, {1}, NOW) == 0
    assert log.first_dirty_offset == 6
    log.unlink_deleted(NOW + 60_000)
    assert not list(log.directory.glob("*.deleted"))


def test_an_emptied_batch_keeps_the_sequence_of_its_producer(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "table")
    log.append(batch(2, producer=5, sequence=0), batch(3, producer=5, sequence=2))
    log.roll()
    log.append(batch())
    compact(log, 0, keep=set())
    headers = columns((log.directory / f"{0:020d}.log").read_bytes()).headers
    assert (headers["producer_id"].tolist(), headers["base_sequence"].tolist()) == ([5], [2])
