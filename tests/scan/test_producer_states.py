"""The producers of one log, range after range."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.formats.producer_snapshot import ProducerState
from streaming.kafka.scan.headers import Batches, read_headers
from streaming.kafka.scan.producer_states import EXPIRATION_MS, Producers, Taken
from streaming.simulator.batch_writer import Batch
from tests.builders import NOW, abort, batch, commit
from tests.formats.segments import written
from tests.tables import each_row

LIMIT = 100
MOST = 2**31 - 1
MANY = [batch()] * 20


def data(producer: int, sequence: int, *, epoch: int = 0, records: int = 1, transactional: bool = False, timestamp: int = NOW) -> Batch:
    return batch(records, producer=producer, epoch=epoch, sequence=sequence, transactional=transactional, timestamp=timestamp)


def headers(*batches: Batch) -> Batches:
    content = written(batches)
    return read_headers(content.buffer, np.array(content.positions, np.int64))


def after(*batches: Batch, limit: int = LIMIT) -> Producers:
    return Producers.none(limit).take(headers(*batches)).producers


def reported(producers: Producers) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = producers.entries.tolist()
    return found


def gaps(*batches: Batch, compacted: bool = False) -> int:
    """Counted in one range, which others make a large one, and batch by batch: the same."""
    together = Producers.none(LIMIT).take(headers(*batches, *MANY), compacted=compacted)
    taken, found = Taken(Producers.none(LIMIT), 0), 0
    for one in batches:
        taken = taken.producers.take(headers(one), compacted=compacted)
        found += taken.gaps
    assert together.gaps == found
    assert reported(together.producers) == reported(taken.producers)
    return together.gaps


@each_row(
    ("batches", "expected"),
    [
        pytest.param([data(7, 0, records=3), data(7, 3)], 0, id="one after the other"),
        pytest.param([data(7, 0, records=3), data(7, 4)], 1, id="one is missing"),
        pytest.param([data(7, 0), data(8, 0), data(7, 5), data(8, 1), data(8, 3)], 2, id="each producer for itself"),
        pytest.param([data(7, 500)], 0, id="a first sighting"),
        pytest.param([data(7, 0, records=3), data(7, 9, epoch=1)], 0, id="another epoch"),
        pytest.param(
            [data(7, 0, transactional=True), commit(7, epoch=1), data(7, 0, epoch=1, transactional=True)], 0, id="a marker raised it"
        ),
        pytest.param([data(7, 0, transactional=True), commit(7, epoch=0), data(7, 1, transactional=True)], 0, id="a marker left it"),
        pytest.param([data(7, 0, transactional=True), abort(7, epoch=0), data(7, 2, transactional=True)], 1, id="missing behind a marker"),
        pytest.param([data(7, MOST), data(7, 0)], 0, id="behind the largest comes 0"),
        pytest.param([data(7, MOST - 1, records=3), data(7, 1)], 0, id="a batch goes past the largest"),
        pytest.param([data(7, MOST - 1, records=3), data(7, 2)], 1, id="missing behind the largest"),
        pytest.param([data(7, 5), data(7, 5)], 0, id="written again"),
        pytest.param([data(7, 500), data(7, 0)], 0, id="begun anew"),
        pytest.param([batch(3), batch(2)], 0, id="nobody's batches"),
    ],
)
def test_gaps(batches: list[Batch], expected: int) -> None:
    assert gaps(*batches) == expected


def test_what_compaction_has_removed_is_no_gap() -> None:
    assert gaps(data(7, 0), data(7, 9), compacted=True) == 0


def test_a_marker_that_compaction_has_emptied_says_nothing() -> None:
    emptied = replace(commit(7, epoch=5), records=(), last_offset_delta=0, max_timestamp=NOW)
    assert reported(after(data(7, 4, epoch=2), emptied)) == [(7, 2, 0, 4, NOW)]


def test_of_each_producer_its_last_epoch_sequence_and_time_are_kept() -> None:
    producers = after(
        data(9, 0, records=3, timestamp=NOW),
        data(7, 5, epoch=2, transactional=True, timestamp=NOW + 10),
        commit(9, epoch=4, timestamp=NOW + 20),
        batch(1),
    )
    assert reported(producers) == [(7, 2, 1, 5, NOW + 10), (9, 4, 0, -1, NOW + 20)]
    assert producers.active == 2


def test_a_range_without_producers_changes_nothing() -> None:
    producers = after(data(7, 0), data(8, 0), data(9, 0))
    taken = producers.take(headers(data(8, 1), data(5, 0), data(11, 3)))
    assert [entry[0] for entry in reported(taken.producers)] == [5, 7, 8, 9, 11]
    assert producers.take(headers(batch(1))).producers is producers


def test_a_snapshot_is_where_it_goes_on_from() -> None:
    def state(producer: int, *, sequence: int, first: int = -1) -> ProducerState:
        return ProducerState(
            producer_id=producer,
            producer_epoch=1,
            last_sequence=sequence,
            last_offset=20,
            offset_delta=0,
            timestamp=NOW,
            coordinator_epoch=-1,
            current_txn_first_offset=first,
        )

    producers = Producers.of([state(9, sequence=4), state(7, sequence=-1, first=11)], LIMIT)
    assert reported(producers) == [(7, 1, 1, -1, NOW), (9, 1, 0, 4, NOW)]
    taken = producers.take(headers(data(9, 6, epoch=1), data(7, 30, epoch=1)))
    assert taken.gaps == 1
    assert Producers.of([], LIMIT).active == 0


def test_the_silent_ones_expire_unless_their_transaction_is_open() -> None:
    producers = after(data(7, 0), data(8, 0, transactional=True), data(9, 0, timestamp=NOW + 1))
    expired = producers.expired(NOW + EXPIRATION_MS)
    assert [entry[0] for entry in reported(expired)] == [8, 9]
    assert producers.expired(NOW + EXPIRATION_MS - 1) is producers


def test_above_the_limit_the_longest_silent_ones_go_and_nobody_can_show_how_many_there_are() -> None:
    batches = [data(producer, 0, timestamp=NOW + producer) for producer in (4, 1, 3, 2)]
    taken = Producers.none(3).take(headers(*batches, data(0, 0, transactional=True)))
    assert [entry[0] for entry in reported(taken.producers)] == [0, 3, 4]  # what has a transaction open stays
    assert taken.producers.active is None
    assert taken.producers.take(headers(data(2, 7))).gaps == 0  # a first sighting again
    # when those that were let go would have expired, all that are left are kept
    assert taken.producers.expired(NOW + 1 + EXPIRATION_MS).active is None
    assert taken.producers.expired(NOW + 2 + EXPIRATION_MS).active == 3


ANY = st.one_of(
    st.builds(
        data,
        st.sampled_from([1, 2, 3, 2**40]),
        st.sampled_from([0, 1, 2, 3, MOST - 1, MOST]),
        epoch=st.integers(0, 2),
        records=st.integers(1, 3),
        transactional=st.booleans(),
    ),
    st.builds(commit, st.sampled_from([1, 2, 3]), epoch=st.integers(0, 2)),
    st.builds(batch),
)


def rising(batches: Iterable[Batch]) -> Iterator[Batch]:
    """With no epoch below one that the producer had before: a broker refuses those."""
    epochs: dict[int, int] = {}
    for one in batches:
        epochs[one.producer_id] = max(one.producer_epoch, epochs.get(one.producer_id, -1))
        yield replace(one, producer_epoch=epochs[one.producer_id])


@given(st.lists(ANY, max_size=20).map(rising).map(list))
def test_however_a_log_is_cut_into_ranges_the_same_is_found(batches: list[Batch]) -> None:
    gaps(*batches)
