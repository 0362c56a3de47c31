"""What a producer snapshot shows of what was deleted before it."""

from pathlib import Path

from streaming.broker.disk.segment_files import list_segments
from streaming.broker.ladder.positions import DeletedRecords, deleted_records
from streaming.simulator.batch_writer import Batch
from tests.builders import abort, batch, commit, log_dir, partition


def deleted(path: Path, offset: int, *batches: Batch, reads_uncommitted: bool = False) -> DeletedRecords:
    log = partition(log_dir(path), "orders")
    log.append(*batches)
    log.roll()
    return deleted_records(list_segments(log.directory)[-1], offset, reads_uncommitted=reads_uncommitted)


def test_the_offset_after_the_last_record_of_a_closed_transaction_is_its_marker_or_one_is_after_it(tmp_path: Path) -> None:
    for number, end in enumerate((commit(9, epoch=0), abort(9, epoch=0))):
        log = tmp_path / str(number)
        records = batch(5, producer=9, transactional=True)
        assert [deleted(log / str(offset), offset, records, end) for offset in (5, 4, 0)] == [(0, 0), (0, 2), (0, 6)]


def test_who_reads_uncommitted_gets_records_however_their_transaction_ends(tmp_path: Path) -> None:
    records = batch(5, producer=9, transactional=True)
    for number, end in enumerate((commit(9, epoch=0), abort(9, epoch=0))):
        log = tmp_path / str(number)
        found = [deleted(log / str(offset), offset, records, end, reads_uncommitted=True) for offset in (5, 4, 0)]
        assert found == [(0, 0), (1, 2), (1, 6)]


def test_of_a_producer_whose_epoch_the_marker_has_raised_nothing_is_known(tmp_path: Path) -> None:
    assert deleted(tmp_path, 5, batch(5, producer=9, transactional=True), commit(9, epoch=1)) == (0, 1)


def test_an_open_transaction_has_no_marker(tmp_path: Path) -> None:
    assert deleted(tmp_path, 5, batch(5, producer=9, transactional=True), batch(1)) == (0, 1)


def test_nor_has_a_producer_without_transactions_and_one_without_an_id_is_not_there(tmp_path: Path) -> None:
    assert deleted(tmp_path / "idempotent", 4, batch(5, producer=9), batch(1)) == (1, 2)
    assert deleted(tmp_path / "plain", 4, batch(5), batch(1)) == (0, 2)


def test_each_producer_has_a_record_of_its_own(tmp_path: Path) -> None:
    assert deleted(tmp_path, 2, batch(2, producer=7), batch(2, producer=8), batch(2, producer=9)) == (2, 4)


def test_without_a_sound_snapshot_nothing_is_known(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(batch(5, producer=9))
    log.roll()
    first = list_segments(log.directory)[-1]
    snapshot = first.path.with_suffix(".snapshot")
    snapshot.write_bytes(snapshot.read_bytes()[:-1])
    assert deleted_records(first, 4) == (-1, -1)
    snapshot.unlink()
    assert deleted_records(first, 4) == (-1, -1)
