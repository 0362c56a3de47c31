"""Segments and lines drawn to scale."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.protocol.listing_json import RetentionRow, SegmentRow
from streaming.pages.site.detail_views import Strip, by_size, by_time
from streaming.pages.site.page_words import HEIGHT, WIDTH, area_path, hour_line, line_path, spark

NOW = 1_000_000
ROW = RetentionRow(broker=1, topic="t", partition=0, retention_limit_ms=1000, retention_limit_bytes=300, oldest_record_ms=NOW - 2000)


def boxes(path: str) -> list[tuple[float, float]]:
    """Where each box begins, and how wide it is."""
    return [(float(x), float(width)) for x, width in re.findall(r"M([\d.]+) \d+h([\d.]+)v", path)]


def limit_at(strip: Strip) -> float:
    return float(re.fullmatch(r"M([\d.]+) 0v100", strip.limit)[1])  # type: ignore[index]


def test_widths_are_as_sizes_and_the_limit_counts_from_the_newest_on() -> None:
    sizes = [100, 200, 300]
    segments = [SegmentRow(base_offset=n, size_bytes=size, active=n == 2, deletable=n == 0) for n, size in enumerate(sizes)]
    strip = by_size(segments, ROW, 0)
    assert strip is not None
    ((due, closed, active),) = [[boxes(path)[0] for path in (strip.due, strip.closed, strip.active)]]
    assert [round(x) for x, _ in (due, closed, active)] == [0, 100, 300]
    assert [round(width + 0.6) for _, width in (due, closed, active)] == [100, 200, 300]
    assert limit_at(strip) == 300
    assert strip.words == "Limit by size: 300 B, 300 B over it."


def test_a_limit_that_is_not_reached_is_in_the_same_scale() -> None:
    strip = by_size([SegmentRow(base_offset=0, size_bytes=150, active=True)], ROW, 0)
    assert strip is not None
    assert boxes(strip.active)[0] == pytest.approx((300, 299.4))
    assert (limit_at(strip), strip.left) == (0, "300 B")
    far = by_size([SegmentRow(base_offset=0, size_bytes=10, active=True)], ROW, 0)
    assert far is not None
    assert (far.limit, boxes(far.active)[0][0]) == ("", 0)


def test_by_time_a_segment_reaches_from_the_one_before_to_its_largest_time() -> None:
    segments = [
        SegmentRow(base_offset=0, max_timestamp_ms=NOW - 1500, deletable=True),
        SegmentRow(base_offset=1, max_timestamp_ms=NOW - 500),
        SegmentRow(base_offset=2, max_timestamp_ms=NOW - 100, active=True),
    ]
    strip = by_time(segments, ROW, NOW, 0)
    assert strip is not None
    places = [boxes(path)[0] for path in (strip.due, strip.closed, strip.active)]
    assert [(round(x), round(width + 0.6)) for x, width in places] == [(0, 150), (150, 300), (450, 150)]
    assert limit_at(strip) == 300
    assert strip.words == "Limit by time: 1s; the oldest record is 1s older."


def test_nothing_known_draws_nothing() -> None:
    assert by_size([], None, 0) is None
    assert by_time([SegmentRow(base_offset=0)], ROW, NOW, 0) is None


segments = st.builds(
    SegmentRow,
    base_offset=st.integers(0, 1 << 62),
    size_bytes=st.integers(-1, 1 << 40),
    max_timestamp_ms=st.integers(-1, 1 << 62),
    active=st.booleans(),
    deletable=st.booleans(),
)
limits = st.builds(
    RetentionRow,
    broker=st.just(1),
    topic=st.just("t"),
    partition=st.just(0),
    retention_limit_ms=st.integers(-1, 1 << 62),
    retention_limit_bytes=st.integers(-1, 1 << 62),
    oldest_record_ms=st.integers(-1, 1 << 62),
)


@given(some=st.lists(segments, max_size=30), row=st.none() | limits, omitted=st.integers(0, 3))
def test_all_boxes_and_the_limit_lie_on_the_strip(some: list[SegmentRow], row: RetentionRow | None, omitted: int) -> None:
    for strip in (by_size(some, row, omitted), by_time(some, row, NOW, omitted)):
        if strip is not None:
            drawn = boxes(strip.due) + boxes(strip.closed) + boxes(strip.active)
            assert len(drawn) == len(some)
            assert all(x >= -0.01 and x + width <= WIDTH + 0.5 for x, width in drawn)
            assert not strip.limit or 0 <= limit_at(strip) <= WIDTH


def test_a_line_has_gaps_where_nothing_is_known() -> None:
    assert line_path([0, 10, -1, 10, -1, 5, 5], 0, 10) == "M0 99L100 1M300 1h2M500 50L600 50"
    assert line_path([], 0, 0) == ""
    assert line_path([3, 3], 0, 0) == "M0 99L600 99"


def test_what_lies_between_two_lines_is_filled_where_they_differ() -> None:
    assert area_path([5, 5, 10], [5, 5, 5], 0, 10) == "M300 50L600 1V50L300 50Z"
    assert area_path([5, -1], [4, 4], 0, 10) == ""


def test_a_small_line_is_stretched_over_what_is_known_and_ends_with_a_point() -> None:
    whole = spark([-1.0] * 58 + [0.0, 10.0], "")
    assert (whole.width, whole.path, whole.gap, whole.last) == (1, "M0 22l1-20", "", "M1 2h0")
    parted = spark([10.0, -1.0, 5.0, 5.0], "")
    assert (parted.width, parted.path, parted.gap, parted.last) == (3, "M0 2h.1M2 12l1 0", "M1 22h1", "M3 12h0")
    ended = spark([4.0, -1.0], "")
    assert (ended.path, ended.gap, ended.last) == ("M0 2h.1", "M1 22h1", "")
    assert (spark([], "").path, spark([], "").width) == ("", 1)


@given(values=st.lists(st.floats(-1, 1e18), max_size=70))
def test_a_line_stays_in_its_box(values: list[float]) -> None:
    for number in re.findall(r"[ML]([\d.]+) ([\d.]+)", line_path(values, 0.0, max(values, default=0.0))):
        assert 0 <= float(number[0]) <= WIDTH
        assert 0 <= float(number[1]) <= HEIGHT


def test_the_active_segment_is_never_beyond_the_limit_and_a_limit_may_not_be_reached_or_not_be_there() -> None:
    strip = by_size([SegmentRow(base_offset=0, size_bytes=150, active=True, deletable=True)], ROW, 0)
    assert strip is not None
    assert strip.title == "By size: 1 segment, 150 B; 0 beyond the limit. Limit by size: 300 B, 150 B below it."
    young = by_time([SegmentRow(base_offset=0, max_timestamp_ms=NOW - 100)], replace(ROW, oldest_record_ms=NOW - 250), NOW, 2)
    assert young is not None
    assert young.words == "Limit by time: 1s; the oldest record is 750ms younger. 2 segments in the middle left out."
    none = by_time([SegmentRow(base_offset=0, max_timestamp_ms=NOW - 100)], replace(ROW, retention_limit_ms=-1), NOW, 0)
    assert none is not None
    assert (none.words, none.limit) == ("No limit by time.", "")


def test_the_line_of_an_hour_begins_with_what_is_known_and_says_its_most_in_words() -> None:
    assert hour_line([-1.0, -1.0, 5.0]) is None
    line = hour_line([-1.0, 5.0, -1.0, 8.0 * 1024])
    assert line is not None
    assert line.title == "At most 8.0 KiB/s in the last 3 minutes, 1 of them not known"
