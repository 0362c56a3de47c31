"""Rolls and deletions are recognized by comparing inventories, whichever come, come again or come late."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.rows import SEGMENTS, Kind
from streaming.rules.inventory_changes import listed
from streaming.rules.log_state import LogState
from tests.events import Shard, row
from tests.tables import each_row


def segments(*bases: int) -> bytes:
    return np.array([(base, 100, -1, 0) for base in bases], SEGMENTS).tobytes()


def after(*inventories: Sequence[int]) -> tuple[int, int]:
    state = LogState(agent="a1", broker=1, topic="orders", partition=0, topic_id="")
    for bases in inventories:
        state = listed(state, segments(*bases))
    return state.segments_rolled, state.segments_deleted


@each_row(
    ("inventories", "counted"),
    [
        ([[0]], (0, 0)),
        ([[0, 10, 20]], (0, 0)),  # what was there at first sight is no event
        ([[0], [0, 10]], (1, 0)),
        ([[0], [0, 10, 20, 30]], (3, 0)),
        ([[0, 10, 20], [20]], (0, 2)),
        ([[0, 10], [10, 20]], (1, 1)),
        ([[0, 10], [20]], (1, 2)),  # all that was known
        ([[0, 10, 20, 30], [0, 30]], (0, 0)),  # compacted
        ([[0, 10], [0, 10, 20], [0, 10], [0, 10, 20]], (1, 0)),  # an older one came late
        ([[0, 10], [10], [0, 10], [10]], (0, 1)),
        ([[0], [], [0, 10]], (1, 0)),
    ],
)
def test_what_inventories_show(inventories: list[list[int]], counted: tuple[int, int]) -> None:
    assert after(*inventories) == counted


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=9, unique=True).map(sorted),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 2)), min_size=1, max_size=9),
)
def test_inventories_of_a_growing_log_count_each_segment_once(bases: list[int], steps: list[tuple[int, int, int]]) -> None:
    """A window that moves along the segments, looked at now and then, and any look twice."""
    looks, begin, end = [], 0, 1
    for grows, moves, times in steps:
        end = min(end + grows, len(bases))
        begin = min(begin + moves, end - 1)
        looks += [bases[begin:end]] * times
    first, last = looks[0], looks[-1]
    rolled, deleted = after(*looks)
    seen = {base for look in looks for base in look}
    assert rolled == sum(base > first[-1] for base in seen)
    assert deleted == sum(base < last[0] for base in seen)


def test_what_is_no_list_of_segments_changes_nothing() -> None:
    state = listed(LogState(agent="a1", broker=1, topic="orders", partition=0, topic_id=""), segments(0))
    assert listed(state, b"\x07" + segments(0, 10)) == state


@pytest.mark.parametrize(("begun", "rolled"), [(0, 2), (10, 1), (20, 0)])
def test_rolls_count_from_the_segment_on_in_which_reading_began(begun: int, rolled: int) -> None:
    shard = Shard()
    shard.fold(row(Kind.APPEARED, 1, segment=begun, next_offset=begun), row(Kind.FOUND, 2, segments=segments(0, 10, 20)))
    assert shard.log().segments_rolled == rolled
    shard.fold(row(Kind.FOUND, 3, segments=segments(10, 20, 30)))
    assert (shard.log().segments_rolled, shard.log().segments_deleted) == (rolled + 1, 1)
