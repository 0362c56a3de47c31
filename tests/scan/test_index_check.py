"""Which entries of an offset index the log proves."""

import numpy as np

from streaming.kafka.formats.segment_indexes import OffsetEntries, read_offset_entries
from streaming.kafka.scan.soundness import proven_offset_entries
from tests.formats.dumped import base_offset_of, files, read, reported, segment_of
from tests.tables import each_row

PAY = "transactions/pay-0/00000000000000000000.index"


def entries_of(*pairs: tuple[int, int]) -> OffsetEntries:
    return OffsetEntries(*np.array(pairs, np.int64).reshape(-1, 2).T)


@each_row("name", [name for name in files(".index") if "truncation" not in name])
def test_entries_are_what_kafka_prints_and_all_are_proven(name: str) -> None:
    base, entries = base_offset_of(name), read_offset_entries(read(name))
    lines = [f"offset: {o + base} position: {p}" for o, p in zip(entries.offsets.tolist(), entries.positions.tolist(), strict=True)]
    new = [f"offset: {base} position: 0"]  # Kafka prints one entry of the zeros of a new index
    assert lines == ([] if reported(name) == new else reported(name))
    assert proven_offset_entries(entries, base, segment_of(name)).all()


def test_stale_entries_behind_a_truncation_are_not_proven() -> None:
    name = "truncation/tr-0/00000000000000000000.index"
    entries = read_offset_entries(read(name))
    assert proven_offset_entries(entries, 0, segment_of(name)).tolist() == [True, False, False, False, False]
    assert reported(name) == [f"offset: {entries.offsets[0]} position: {entries.positions[0]}"]  # then Kafka's tool crashed


def test_the_three_things_an_entry_has_meant_over_time() -> None:
    batches = segment_of(PAY)
    at, first, last, next_last = batches.positions[3], batches.base_offset[3], batches.last_offset[3], batches.last_offset[4]
    meant = entries_of((last, at), (next_last, at), (first, at))  # end of the batch, end of the append, begin of it
    assert proven_offset_entries(meant, 0, batches).all()


def test_what_the_log_does_not_say_is_not_proven() -> None:
    batches = segment_of(PAY)
    at, last, before = batches.positions[3], batches.last_offset[3], batches.last_offset[2]
    wrong = entries_of((last, at + 1), (before, at), (last + 10**6, at), (last, 10**9))
    assert not proven_offset_entries(wrong, 0, batches).any()
    assert proven_offset_entries(entries_of((last, at)), 0, batches.take(np.zeros(0, np.intp))).tolist() == [False]
