"""The sums over ranges of batches."""

from dataclasses import asdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.rows import BATCH_BYTES_BOUNDS, BATCH_RECORDS_BOUNDS
from streaming.kafka.scan.headers import read_headers
from streaming.kafka.scan.sums import joined, sum_ranges
from streaming.simulator.batch_writer import Batch
from tests.builders import batch
from tests.formats.segments import Content, contents, empty, sums_of, written
from tests.tables import each_row

whole = np.zeros(1, np.intp)
some = contents.filter(lambda content: bool(content.entries))


@given(some, st.data())
def test_sums_are_those_of_the_single_batches_however_they_are_cut_into_ranges(content: Content, draw: st.DataObject) -> None:
    batches = read_headers(content.buffer, np.array(content.positions, np.int64))
    cuts = sorted({0} | draw.draw(st.sets(st.integers(0, len(batches) - 1))))
    found = sum_ranges(batches, np.array(cuts))
    expected = [sums_of(content, first, last) for first, last in zip(cuts, [*cuts[1:], len(batches)], strict=True)]
    assert [asdict(one) for one in found] == expected


@given(some, st.data())
def test_merging_the_sums_of_ranges_gives_the_sums_of_all(content: Content, draw: st.DataObject) -> None:
    batches = read_headers(content.buffer, np.array(content.positions, np.int64))
    cuts = sorted({0} | draw.draw(st.sets(st.integers(0, len(batches) - 1))))
    first, *rest = sum_ranges(batches, np.array(cuts))
    for one in rest:
        first = joined(first, one)
    assert first == sum_ranges(batches, whole)[0]


def test_nothing_has_no_sums() -> None:
    assert sum_ranges(read_headers(np.empty(0, np.uint8), np.empty(0, np.int64)), np.empty(0, np.intp)) == []


def counted(*batches: Batch) -> tuple[int, ...]:
    content = written(batches)
    return sum_ranges(read_headers(content.buffer, np.array(content.positions, np.int64)), whole)[0].batch_records_buckets


@each_row("bucket", range(len(BATCH_RECORDS_BOUNDS)))
def test_a_bound_belongs_to_its_bucket_and_what_is_above_it_to_the_next(bucket: int) -> None:
    bound = BATCH_RECORDS_BOUNDS[bucket]
    below, above = counted(batch(bound, value_bytes=0)), counted(batch(bound + 1, value_bytes=0))
    assert (below.index(1), above.index(1)) == (bucket, bucket + 1)


def test_an_empty_batch_counts_as_one_of_no_records() -> None:
    assert counted(empty(9))[0] == 1


@each_row("bound", BATCH_BYTES_BOUNDS)
def test_a_batch_of_exactly_a_bound_in_bytes(bound: int) -> None:
    size = next(size for size in range(bound - 80, bound) if len(written([batch(1, value_bytes=size)]).data) == bound)
    content = written([batch(1, value_bytes=size)])
    found = sum_ranges(read_headers(content.buffer, np.zeros(1, np.int64)), whole)[0].batch_bytes_buckets
    assert found.index(1) == BATCH_BYTES_BOUNDS.index(bound)
