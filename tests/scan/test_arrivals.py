"""How late batches arrived, and which were past their retention: held against the plain way, batch by batch."""

from dataclasses import replace

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.common.rows import APPEND_DELAY_SECONDS_BOUNDS, EXPIRED
from streaming.kafka.scan.sums import AHEAD_MS, NO_ARRIVALS, AppendDelays, Appended, arrivals, merged_expired, sum_ranges
from tests.events import Item, batches_of
from tests.tables import each_row

NOW = 1_700_000_000_000
DAY = 86_400_000
SEEN = Appended(NOW - 5_000, NOW)
BOUNDS_MS = [1000 * bound for bound in APPEND_DELAY_SECONDS_BOUNDS]

near = st.integers(-40 * DAY, 2 * DAY).map(lambda ahead: NOW + ahead)
at_bounds = st.sampled_from([NOW - 5_000 - bound + more for bound in BOUNDS_MS for more in (-1, 0, 1)])
hostile = st.sampled_from([-(2**63), -2, -1, 0, 1, 10**9, 1_700_000_000, 2**53, 2**53 + 1, 2**63 - 1, NOW + AHEAD_MS, NOW + AHEAD_MS + 1])
items = st.lists(st.tuples(near | at_bounds | hostile, st.integers(1, 9), st.booleans()), min_size=1, max_size=12)


def written(*batches: tuple[int, int, bool]) -> list[Item]:
    return [
        Item(9 * at, 9 * at + 9, 100 + at, records, control=control, timestamp=timestamp)
        for at, (timestamp, records, control) in enumerate(batches)
    ]


def found(batches: list[Item], retention_ms: int, appended: Appended = SEEN) -> AppendDelays:
    columns = batches_of(batches)
    (sums,) = sum_ranges(columns, np.zeros(1, np.intp))
    return arrivals(columns, sums, appended, retention_ms)


def plain(batches: list[Item], retention_ms: int) -> AppendDelays:
    buckets, total, ahead, late = [0] * (len(BOUNDS_MS) + 1), 0, 0, []
    for each in batches:
        if each.control or each.timestamp < 0:
            continue
        if each.timestamp > NOW + AHEAD_MS:
            ahead += 1
            continue
        delay = max(SEEN.earliest_ms - each.timestamp, 0)
        total += delay if delay > 30_000 else 0
        buckets[sum(delay > bound for bound in BOUNDS_MS)] += 1
        if 0 <= retention_ms < delay:
            late.append(each)
    expired = None
    if late:
        sums = len(late), sum(each.records for each in late), sum(each.size for each in late)
        times = SEEN.earliest_ms, late[0].timestamp, late[-1].timestamp, late[-1].next_offset - 1
        expired = np.array([(*sums, *times, late[0].base_offset)], EXPIRED).tobytes()
    return AppendDelays(tuple(buckets), total, ahead, expired)


@given(items, st.sampled_from([-1, 0, 1, 7 * DAY, 30_000, 2**63 - 1]))
@example([(NOW - 1000, 3, False)] * 3, 7 * DAY)
@example([(NOW - 35_000, 3, False)] * 3, -1)
@example([(NOW - 35_000, 3, False)] * 3, 29_999)
@example([(NOW - 35_001, 3, False), (NOW, 1, True)], -1)
@example([(NOW - 5_000 - 7 * DAY, 1, False)], 7 * DAY)
@example([(NOW - 5_000 - 7 * DAY - 1, 1, False)], 7 * DAY)
def test_arrivals_are_those_of_the_single_batches(batches: list[tuple[int, int, bool]], retention_ms: int) -> None:
    assert found(written(*batches), retention_ms) == plain(written(*batches), retention_ms)


@given(items, items)
def test_what_was_expired_in_two_neighbouring_ranges_is_that_of_both(
    one: list[tuple[int, int, bool]], two: list[tuple[int, int, bool]]
) -> None:
    first, both = written(*one), written(*one, *two)
    later = both[len(first) :]
    merged = merged_expired(found(first, 7 * DAY).expired, found(later, 7 * DAY).expired)
    assert merged == found(both, 7 * DAY).expired


@each_row("timestamp", [-(2**63), -2, -1])
def test_a_batch_without_a_timestamp_has_no_delay_and_never_expires(timestamp: int) -> None:
    assert found(written((timestamp, 5, False)), 0) == replace(NO_ARRIVALS)


def test_what_is_kept_for_ever_does_not_expire() -> None:
    assert found(written((0, 5, False)), -1).expired is None
