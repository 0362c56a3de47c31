"""Ranges of offsets, compared with sets."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.groups.offset_ranges import after, between, joined, pairs

RANGES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)).map(lambda of: (of[0], of[0] + of[1])), max_size=6)


@given(RANGES, st.integers(0, 25), st.integers(0, 25))
def test_they_are_what_sets_are(some: list[tuple[int, int]], start: int, end: int) -> None:
    offsets = {offset for first, last in some for offset in range(first, last + 1)}
    ranges = joined(some)
    assert {offset for first, last in pairs(ranges) for offset in range(first, last + 1)} == offsets
    assert all(following > last + 1 for last, following in zip(ranges[1::2], ranges[2::2], strict=False)), "as few as there can be"
    assert between(ranges, start, end) == len(offsets & set(range(start, end)))
    assert after(ranges, start) == next(offset for offset in range(start, 50) if offset not in offsets)
