"""The time index, and which of its entries the log proves."""

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.formats.segment_indexes import TIME_ENTRY_BYTES, read_time_entries
from streaming.kafka.scan.soundness import proven_time_entries
from tests.formats.dumped import base_offset_of, files, read, reported, segment_of
from tests.formats.vectors import TIME
from tests.tables import each_row

ENTRIES = st.lists(st.tuples(st.integers(-1, 9), st.integers(-1, 9)), max_size=8)


def packed(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


def pairs(data: bytes) -> list[tuple[int, int]]:
    entries = read_time_entries(data)
    return list(zip(entries.timestamps.tolist(), entries.offsets.tolist(), strict=True))


def test_what_kafka_writes_is_understood() -> None:
    assert pairs(bytes.fromhex("0000018bcfe5683200000002")) == [(TIME + 50, 2)]


@each_row("name", files(".timeindex"))
def test_entries_are_what_kafka_prints(name: str) -> None:
    base = base_offset_of(name)
    lines = [f"timestamp: {timestamp} offset: {offset + base}" for timestamp, offset in pairs(read(name))]
    new = [f"timestamp: 0 offset: {base}"]  # Kafka prints one entry of the zeros of a new index
    assert lines == ([] if reported(name) == new else reported(name))


@each_row("name", [name for name in files(".timeindex") if "truncation" not in name])
def test_every_entry_of_a_log_that_only_grew_is_proven(name: str) -> None:
    entries = read_time_entries(read(name))
    assert proven_time_entries(entries, base_offset_of(name), segment_of(name)).all()


def test_stale_entries_behind_a_truncation_are_not_proven() -> None:
    name = "truncation/tr-0/00000000000000000000.timeindex"
    assert proven_time_entries(read_time_entries(read(name)), 0, segment_of(name)).tolist() == [True, False, False, False, False]


def test_nothing_is_proven_by_an_empty_log() -> None:
    empty = segment_of("transactions/pay-0/00000000000000000000.index").take(np.zeros(0, np.intp))
    assert proven_time_entries(read_time_entries(packed((5, 1))), 0, empty).tolist() == [False]


@each_row(
    ("entries", "count"),
    [
        ([], 0),
        ([(0, 0)], 0),
        ([(0, 3), (0, 4)], 1),
        ([(5, 0), (0, 0)], 1),
        ([(5, 1), (6, 1), (7, 0)], 2),
        ([(5, 1), (5, 2)], 1),
        ([(-1, 4)], 0),
        ([(5, -1)], 0),
    ],
)
def test_entries_end_where_none_can_follow(entries: list[tuple[int, int]], count: int) -> None:
    assert pairs(packed(*entries)) == entries[:count]


@given(ENTRIES, st.binary(max_size=TIME_ENTRY_BYTES - 1))
def test_byte_by_byte_it_says_the_same(entries: list[tuple[int, int]], rest: bytes) -> None:
    data = packed(*entries) + rest
    whole = pairs(data)
    for length in range(len(data) + 1):
        assert pairs(data[:length]) == whole[: length // TIME_ENTRY_BYTES]


@given(st.binary(max_size=200))
def test_garbage_is_cut_to_what_grows(garbage: bytes) -> None:
    entries = read_time_entries(memoryview(garbage))
    assert (np.diff(entries.timestamps) > 0).all()
    assert (np.diff(entries.offsets) >= 0).all()
