"""Producer state and its snapshot, against bytes that Kafka's own classes made."""

from streaming.simulator.batch_writer import Batch, BatchEntry, Record, end_transaction
from streaming.simulator.segment_writer import ClosedTransaction, Producer, ProducerTable, encode_aborted, encode_snapshot

T = 1_700_000_000_000


def test_snapshot_with_an_open_transaction() -> None:
    producer = Producer(producer_id=4000, epoch=3, last_sequence=1, last_offset=101, offset_delta=1, timestamp=T + 7, first_offset=100)
    expected = "0001 518fa82a 00000001 0000000000000fa0 0003 00000001 0000000000000065 00000001 0000018bcfe56807 ffffffff 0000000000000064"
    assert encode_snapshot([producer]) == bytes.fromhex(expected)


def test_snapshot_without_producers() -> None:
    assert encode_snapshot([]) == bytes.fromhex("0001 48674bc7 00000000")


def test_aborted_transaction_in_the_index() -> None:
    expected = "0000 0000000000000fa1 000000000000005a 0000000000000067 0000000000000068"
    assert encode_aborted(ClosedTransaction(4001, 90, 103, 104, committed=False)) == bytes.fromhex(expected)


def test_transaction_opens_with_its_first_batch_and_ends_with_its_marker() -> None:
    producers = ProducerTable()
    producers.append(_data(100, records=2))
    producers.append(_data(102, records=1, sequence=2))
    assert producers.first_unstable_offset() == 100
    assert producers.append(_marker(103, epoch=3)) == ClosedTransaction(4000, 100, 103, 104, committed=True)
    assert producers.first_unstable_offset() is None


def test_marker_of_the_next_epoch_forgets_the_batches() -> None:
    producers = ProducerTable()
    producers.append(_data(100, records=2))
    producers.append(_marker(102, epoch=4))
    assert producers.values() == (Producer(producer_id=4000, epoch=4, timestamp=T, coordinator_epoch=9),)


def test_marker_of_the_same_epoch_keeps_them() -> None:
    producers = ProducerTable()
    producers.append(_data(100, records=2))
    producers.append(_marker(102, epoch=3))
    (producer,) = producers.values()
    assert (producer.last_offset, producer.last_sequence, producer.offset_delta) == (101, 1, 1)


def test_marker_without_data_ends_nothing() -> None:
    assert ProducerTable().append(_marker(100, epoch=1)) is None


def test_last_stable_offset_of_an_end_is_that_of_the_oldest_other_transaction() -> None:
    producers = ProducerTable()
    producers.append(_data(100, producer_id=1))
    producers.append(_data(101, producer_id=2))
    assert producers.append(_marker(102, epoch=3, producer_id=2)) == ClosedTransaction(2, 101, 102, 100, committed=True)
    assert producers.open_transactions() == ((1, 100),)


def test_batch_without_a_producer_leaves_no_trace() -> None:
    producers = ProducerTable()
    ((entry, _),) = Batch(records=(Record(None, b"v", T),)).entries(0, 0)
    assert producers.append(entry) is None
    assert producers.values() == ()


def _data(base_offset: int, *, records: int = 1, sequence: int = 0, producer_id: int = 4000) -> BatchEntry:
    batch = Batch(
        records=(Record(None, b"v", T),) * records,
        producer_id=producer_id,
        producer_epoch=3,
        base_sequence=sequence,
        transactional=True,
    )
    return next(batch.entries(base_offset, 0))[0]


def _marker(base_offset: int, *, epoch: int, producer_id: int = 4000) -> BatchEntry:
    marker = end_transaction(committed=True, producer_id=producer_id, producer_epoch=epoch, coordinator_epoch=9, timestamp=T)
    return next(marker.entries(base_offset, 0))[0]
