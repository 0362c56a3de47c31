"""How much a replica has to copy still."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.rows import SEGMENTS
from streaming.rules.copying import LEAST_MS, PACE_MS, CopyingPace, bytes_behind


def segments(*listed: tuple[int, int]) -> np.ndarray:
    return np.array([(base, size, -1, -1) for base, size in listed], SEGMENTS)


THREE = segments((100, 1_000), (200, 4_000), (300, 500))
"""The last one has grown to 800 bytes since."""


def test_what_lies_behind_the_replica_s_end_is_left_by_the_segments_that_hold_it() -> None:
    assert bytes_behind(THREE, 5_800, -1, 340) == 5_800
    assert bytes_behind(THREE, 5_800, 100, 340) == 5_800
    assert bytes_behind(THREE, 5_800, 150, 340) == 5_300
    assert bytes_behind(THREE, 5_800, 200, 340) == 4_800
    assert bytes_behind(THREE, 5_800, 275, 340) == 1_800
    assert bytes_behind(THREE, 5_800, 320, 340) == 400
    assert bytes_behind(THREE, 5_800, 340, 340) == bytes_behind(THREE, 5_800, 400, 340) == 0


def test_a_log_without_segments_is_behind_by_all_of_it() -> None:
    assert bytes_behind(segments(), 70, 0, 10) == 70


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 1_000)), min_size=1, max_size=6), st.lists(st.integers(-5, 400), min_size=2))
def test_the_further_a_replica_is_the_less_is_left(sizes: list[tuple[int, int]], offsets: list[int]) -> None:
    base, listed = 0, []
    for offsets_held, size in sizes:
        listed.append((base, size))
        base += offsets_held
    total = sum(size for _, size in sizes)
    left = [bytes_behind(segments(*listed), total, offset, base) for offset in sorted(offsets)]
    assert left == sorted(left, reverse=True)
    assert all(0 <= each <= total for each in left)


def test_how_long_it_takes_is_reported_by_the_pace_of_the_last_minutes() -> None:
    pace = CopyingPace()
    assert pace.milliseconds_left == -1
    pace.saw(0, 10_000)
    assert pace.milliseconds_left == -1
    pace.saw(LEAST_MS, 8_000)
    assert pace.milliseconds_left == 4 * LEAST_MS
    pace.saw(LEAST_MS, 1)  # the same moment again
    assert pace.milliseconds_left == 4 * LEAST_MS
    pace.saw(LEAST_MS + PACE_MS, 6_000)  # slower by now
    assert pace.milliseconds_left == 3 * PACE_MS


def test_where_nothing_becomes_less_it_is_not_known_and_with_nothing_left_it_takes_no_time() -> None:
    pace = CopyingPace()
    pace.saw(0, 10_000)
    pace.saw(LEAST_MS, 10_000)
    assert pace.milliseconds_left == -1
    pace.saw(2 * LEAST_MS, 0)
    assert pace.milliseconds_left == 0
