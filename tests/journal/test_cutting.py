"""Cut a range between its batches."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.journal.range_values import cut, overwritten_from
from streaming.common.rows import TRANSACTION_STEPS
from tests.events import Item, appended, range_of

sizes = st.tuples(st.integers(1, 5), st.integers(61, 9000), st.integers(0, 4), st.booleans(), st.integers(0, 2))


def items_of(drawn: list[tuple[int, int, int, bool, int]]) -> list[Item]:
    items, offset, epoch = [], 0, 0
    for records, size, codec, control, step in drawn:
        epoch += step == 2
        items.append(Item(offset, offset + records, size, records, epoch, codec, control, step, offset * 10))
        offset += records
    return items


@given(st.lists(sizes, min_size=1, max_size=8), st.data())
def test_the_part_behind_an_offset_is_the_range_of_the_batches_behind_it(
    drawn: list[tuple[int, int, int, bool, int]], data: st.DataObject
) -> None:
    items = items_of(drawn)
    at = data.draw(st.integers(0, len(items) - 1))
    whole = range_of(4, items, detailed=True, seen_at=9)
    rest = cut(whole, items[at].base_offset)
    assert rest == replace(range_of(4, items[at:], seen_at=9), detail=whole.detail)


def test_behind_the_last_batch_nothing_is_left() -> None:
    items = items_of([(3, 500, 1, False, 0)])
    rest = cut(range_of(4, items, detailed=True), 3)
    assert rest is not None
    assert (rest.bytes, rest.batches, rest.records, rest.base_offset, rest.next_offset, rest.max_timestamp) == (0, 0, 0, 3, 3, -1)
    assert not any((*rest.codec_bytes, *rest.batch_bytes_buckets, *rest.batch_records_buckets))


@given(st.lists(sizes, min_size=1, max_size=8), st.integers(-1, 8))
def test_the_first_batch_of_a_later_epoch_is_found(drawn: list[tuple[int, int, int, bool, int]], epoch: int) -> None:
    items = items_of(drawn)
    later = [item.base_offset for item in items if item.epoch > epoch]
    assert overwritten_from(range_of(4, items, detailed=True), epoch) == (later[0] if later else None)


def test_a_range_that_does_not_show_its_batches_is_not_cut() -> None:
    assert cut(appended(4, 0, 10), 5) is None
    assert overwritten_from(appended(4, 0, 10), 0) is None


def test_batches_that_are_not_understood_are_like_none() -> None:
    row = appended(4, 0, 10, detail=b"\x09later")
    assert cut(row, 5) is None
    assert overwritten_from(row, 0) is None


def test_a_gap_in_a_cut_range_counts_for_its_first_part_alone() -> None:
    whole = replace(range_of(4, items_of([(3, 500, 1, False, 0), (2, 400, 1, False, 0)]), detailed=True), sequence_gaps=2)
    for offset in (0, 3, 5):
        rest = cut(whole, offset)
        assert rest is not None
        assert rest.sequence_gaps == 0


def test_the_steps_of_transactions_are_cut_with_their_batches() -> None:
    steps = np.zeros(2, TRANSACTION_STEPS)
    steps["first_offset"], steps["bytes_before"] = (0, 3), (0, 500)
    whole = range_of(4, items_of([(3, 500, 1, False, 0), (2, 400, 1, False, 0)]), detailed=True)
    rest = cut(replace(whole, transactions=steps.tobytes()), 3)
    assert rest is not None
    assert rest.transactions is not None
    left = np.frombuffer(rest.transactions, TRANSACTION_STEPS)
    assert (left["first_offset"].tolist(), left["bytes_before"].tolist()) == ([3], [0])
