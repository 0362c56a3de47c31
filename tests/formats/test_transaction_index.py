"""The index of aborted transactions."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.segment_indexes import (
    TRANSACTION_ENTRY_BYTES,
    AbortedTransaction,
    read_aborted_columns,
    read_aborted_transactions,
)
from tests.formats.dumped import files, read, reported
from tests.tables import each_row

VECTOR = bytes.fromhex("0000" + "0000000000000fa1" + "000000000000005a" + "0000000000000067" + "0000000000000068")
ABORTED = AbortedTransaction(producer_id=4001, first_offset=90, last_offset=103, last_stable_offset=104)


def test_what_kafka_writes_is_understood() -> None:
    assert read_aborted_transactions(VECTOR) == ((ABORTED,), TRANSACTION_ENTRY_BYTES)


@each_row("name", files(".txnindex"))
def test_entries_are_what_kafka_prints(name: str) -> None:
    data = read(name)
    found, used = read_aborted_transactions(data)
    assert used == len(data)
    assert [
        f"version: 0 producerId: {one.producer_id} firstOffset: {one.first_offset} lastOffset: {one.last_offset} "
        f"lastStableOffset: {one.last_stable_offset}"
        for one in found
    ] == reported(name)


@each_row("name", files(".txnindex"))
def test_columns_are_the_entries(name: str) -> None:
    data = read(name)
    assert [AbortedTransaction(*fields) for _, *fields in read_aborted_columns(data + b"\0\0").tolist()] == list(
        read_aborted_transactions(data)[0]
    )
    with pytest.raises(FormatError, match=f"version 1 at position {len(data)}"):
        read_aborted_columns(data + b"\0\1" + VECTOR[2:])


def test_an_entry_that_is_still_being_written_is_left() -> None:
    data = VECTOR * 2
    for length in range(len(data) + 1):
        whole = length // TRANSACTION_ENTRY_BYTES
        assert read_aborted_transactions(data[:length]) == ((ABORTED,) * whole, whole * TRANSACTION_ENTRY_BYTES)


def test_another_version_is_refused_with_its_position() -> None:
    with pytest.raises(FormatError, match="version 1 at position 34"):
        read_aborted_transactions(VECTOR + b"\0\1" + VECTOR[2:])


@given(st.binary(max_size=120))
def test_garbage_is_refused_and_nothing_else(garbage: bytes) -> None:
    with suppress(FormatError):
        assert len(read_aborted_transactions(memoryview(garbage))[0]) == len(garbage) // TRANSACTION_ENTRY_BYTES
