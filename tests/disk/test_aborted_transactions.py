"""The aborted transactions of a part of a log, from the indexes of its segments."""

from pathlib import Path

import pytest

from streaming.broker.disk.producer_files import aborted_transactions
from streaming.broker.disk.segment_files import list_segments
from streaming.errors import FormatError
from streaming.simulator.log import PartitionLog
from tests.builders import abort, batch, commit, log_dir, partition


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    """Segments at 0, 3 and 6: producer 7 aborts in each of them, producer 8 over all."""
    log = partition(log_dir(tmp_path), "orders")
    one = batch(1, producer=7, transactional=True)
    log.append(batch(1, producer=8, transactional=True), one, abort(7))
    log.roll()
    log.append(one, abort(7), batch(1))
    log.roll()
    log.append(abort(8), one, abort(7), one, commit(7))
    return log


def found(log: PartitionLog, first: int, upto: int) -> list[tuple[int, int, int]]:
    entries = aborted_transactions(list_segments(log.directory)[first:], upto)
    return list(zip(*(entries[name].tolist() for name in ("producer_id", "first_offset", "last_offset")), strict=True))


def test_a_transaction_is_in_the_index_of_the_segment_of_its_marker(log: PartitionLog) -> None:
    assert found(log, 0, 3) == [(7, 1, 2), (7, 3, 4), (8, 0, 6), (7, 7, 8)]
    assert found(log, 2, 100) == [(8, 0, 6), (7, 7, 8)]
    assert found(log, 3, 100) == []


def test_later_indexes_are_not_read_once_everything_below_is_decided(log: PartitionLog) -> None:
    later = log.directory / "00000000000000000003.txnindex"
    first = log.directory / "00000000000000000000.txnindex"
    first.write_bytes(first.read_bytes()[:-8] + (3).to_bytes(8, "big"))  # as if nothing else had been open then
    later.write_bytes(b"\xff" * 34)
    assert found(log, 0, 3) == [(7, 1, 2)]
    with pytest.raises(FormatError, match="version -1"):
        found(log, 0, 4)


def test_an_index_may_have_the_name_that_it_has_while_a_compaction_ends(log: PartitionLog) -> None:
    for path in log.directory.glob("00000000000000000003.*"):
        if path.suffix in (".log", ".txnindex"):
            path.rename(f"{path}.swap")
    assert found(log, 1, 6) == [(7, 3, 4), (8, 0, 6), (7, 7, 8)]
