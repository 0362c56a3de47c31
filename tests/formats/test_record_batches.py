"""Batches one by one."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.records import read_batch
from tests.formats.vectors import COMMIT_MARKER, DATA_BATCH, EMPTY_BATCH, TIME
from tests.record_batches import read_batches
from tests.tables import each_row

LOG = DATA_BATCH + COMMIT_MARKER + EMPTY_BATCH


def test_every_field_of_a_header() -> None:
    batch = read_batch(memoryview(DATA_BATCH))
    assert batch is not None
    assert (batch.size, batch.base_offset, batch.last_offset, batch.next_offset) == (85, 100, 101, 102)
    assert (batch.partition_leader_epoch, batch.attributes, batch.codec) == (5, 0x10, 0)
    assert (batch.base_timestamp, batch.max_timestamp) == (TIME, TIME + 7)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.records_count) == (4000, 3, 0, 2)
    assert (batch.is_control, batch.is_log_append_time) == (False, False)
    assert len(batch.payload) == 85 - 61


def test_all_whole_batches_are_read_in_order() -> None:
    batches, consumed = read_batches(memoryview(LOG))
    assert [batch.next_offset for batch in batches] == [102, 103, 205]
    assert [batch.is_control for batch in batches] == [False, True, False]
    assert consumed == len(LOG)


@given(st.integers(0, len(LOG)))
def test_a_batch_that_is_not_all_there_is_not_yet_a_batch(length: int) -> None:
    batches, consumed = read_batches(memoryview(LOG)[:length])
    ends = [len(DATA_BATCH), len(DATA_BATCH + COMMIT_MARKER), len(LOG)]
    assert consumed == max([0, *(end for end in ends if end <= length)])
    assert sum(batch.size for batch in batches) == consumed


def test_the_zeros_of_a_preallocated_file_are_its_end() -> None:
    batches, consumed = read_batches(memoryview(LOG + bytes(4096)))
    assert (len(batches), consumed) == (3, len(LOG))


@each_row(
    ("at", "value", "what"),
    [
        (11, 48, "batch length 48 is too small"),
        (8, 0x80, "too small"),
        (16, 1, "magic 1"),
        (17, 0, "wrong CRC"),
        (84, 0, "wrong CRC"),
        (0, 0x80, "negative offset"),
    ],
)
def test_a_damaged_batch_is_refused_at_its_position(at: int, value: int, what: str) -> None:
    damaged = bytearray(COMMIT_MARKER + DATA_BATCH)
    damaged[len(COMMIT_MARKER) + at] = value
    with pytest.raises(FormatError, match=f"{what}.* at position {len(COMMIT_MARKER)}$"):
        read_batches(memoryview(bytes(damaged)))


def test_a_wrong_magic_is_refused_before_the_batch_is_whole() -> None:
    with pytest.raises(FormatError, match="magic 7"):
        read_batch(memoryview(DATA_BATCH[:16] + b"\x07"))


@given(
    st.binary(max_size=200) | st.tuples(st.integers(0, 84), st.binary(max_size=9)).map(lambda d: DATA_BATCH[: d[0]] + d[1] + LOG[d[0] :])
)
def test_garbage_is_refused_and_nothing_else(data: bytes) -> None:
    with suppress(FormatError):
        _, consumed = read_batches(memoryview(data))
        assert consumed <= len(data)
