"""The sparse offset index."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.formats.segment_indexes import read_offset_entries
from tests.formats.dumped import files, read, segment_of
from tests.tables import each_row

STALE = bytes.fromhex("0000000a00000000 0000001400001388 0000001e00002710") + bytes(40)
"""What Kafka's own class left after it forgot the second and the third of three entries."""


def entries(data: bytes, after: int = 0) -> list[tuple[int, int]]:
    read = read_offset_entries(data, after)
    return list(zip(read.offsets.tolist(), read.positions.tolist(), strict=True))


@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 1000)), max_size=20), st.integers(0, 5), st.integers(0, 7))
def test_entries_are_read_up_to_the_zeros_behind_them(steps: list[tuple[int, int]], zeros: int, part: int) -> None:
    expected = np.cumsum(np.array(steps, np.int64).reshape(-1, 2), axis=0)
    data = expected.astype(">i4").tobytes() + bytes(8 * zeros + part)
    assert entries(data) == [tuple(one) for one in expected.tolist()]


def test_the_first_entry_of_a_segment_is_never_indexed_so_position_0_ends_the_index() -> None:
    assert entries(STALE) == []


def test_stale_entries_that_still_look_right_are_plausible() -> None:
    assert entries(STALE[8:]) == [(20, 5000), (30, 10000)]


@pytest.mark.parametrize(
    "broken", [bytes.fromhex("0000001400001389"), bytes.fromhex("0000001500001388"), bytes.fromhex("ffffffff7fffffff")]
)
def test_an_entry_that_does_not_grow_in_both_fields_ends_the_index(broken: bytes) -> None:
    assert entries(STALE[8:16] + broken + STALE[16:24]) == [(20, 5000)]


def test_a_later_chunk_goes_on_behind_the_one_before() -> None:
    assert entries(STALE[8:], after=4999) == [(20, 5000), (30, 10000)]
    assert entries(STALE[8:], after=5000) == []


@each_row("name", [name for name in files(".index") if "truncation" not in name])
def test_positions_in_a_real_index_are_those_of_batches(name: str) -> None:
    assert set(read_offset_entries(read(name)).positions.tolist()) <= set(segment_of(name).positions.tolist())


def test_a_real_index_after_a_truncation_holds_stale_entries() -> None:
    name = "truncation/tr-0/00000000000000000000.index"
    batches = segment_of(name)
    positions = read_offset_entries(read(name)).positions.tolist()
    assert positions[0] in batches.positions.tolist()
    assert positions[-1] > int(batches.positions[-1])
