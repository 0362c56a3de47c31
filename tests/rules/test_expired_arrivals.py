"""What came past its retention: counted once for its topic, and what it looks like."""

from dataclasses import replace

import numpy as np

from streaming.common.rows import EXPIRED
from streaming.rules.expired_arrivals import DAY_MS, RUN_MS, ExpiredRun, LateLooks, looks_of
from streaming.rules.log_state import LogState
from tests.events import Shard, appended
from tests.tables import each_row

NOW = 1_700_000_000_000
MINUTE = 60_000

RUN = ExpiredRun(since_ms=NOW, since_timestamp=5, last_ms=NOW + 9, last_timestamp=6, first_offset=10, last_offset=19, records=10)


def expired(at_ms: int, first: int, last: int, offset: int = 9, records: int = 5, first_offset: int = 0) -> bytes:
    return np.array([(1, records, 70, at_ms, first, last, offset, first_offset)], EXPIRED).tobytes()


def only(shard: Shard) -> LogState:
    (state,) = shard.states.values()
    return state


def run(state: LogState) -> tuple[int, ...]:
    return state.expired_since_ms, state.expired_since_timestamp, state.expired_before, state.expired_ms, state.expired_timestamp


def test_what_comes_within_an_hour_is_one_run_and_what_comes_later_is_another() -> None:
    shard = Shard()
    shard.fold(appended(seq=1, base_offset=0, next_offset=10, leads=1, expired=expired(NOW, 100, 200)))
    shard.fold(appended(seq=2, base_offset=10, next_offset=20, leads=1, expired=expired(NOW + RUN_MS, 300, 400)))
    assert run(only(shard)) == (NOW, 100, 0, NOW + RUN_MS, 400)
    shard.fold(appended(seq=3, base_offset=20, next_offset=30, leads=1, expired=expired(NOW + 2 * RUN_MS + 1, 500, 600)))
    state = only(shard)
    assert run(state) == (NOW + 2 * RUN_MS + 1, 500, 10, NOW + 2 * RUN_MS + 1, 600)
    assert (state.share_expired_batches, state.share_expired_records, state.share_expired_bytes) == (3, 15, 210)


def test_a_run_begins_where_its_first_batch_does() -> None:
    shard = Shard()
    shard.fold(appended(seq=1, base_offset=0, next_offset=10, leads=1, expired=expired(NOW, 1, 2, offset=9, first_offset=3)))
    shard.fold(appended(seq=2, base_offset=10, next_offset=20, leads=1, expired=expired(NOW + RUN_MS, 3, 4, offset=17, first_offset=12)))
    assert (only(shard).expired_since_offset, only(shard).expired_offset) == (3, 17)
    shard.fold(
        appended(seq=3, base_offset=20, next_offset=30, leads=1, expired=expired(NOW + 3 * RUN_MS, 5, 6, offset=28, first_offset=21))
    )
    assert (only(shard).expired_since_offset, only(shard).expired_offset) == (21, 28)


@each_row(
    ("offset", "timestamp", "age_ms"),
    [(9, NOW - 50, -1), (10, NOW - 50, 50), (19, NOW - 50, 50), (20, NOW - 50, -1), (10, 0, NOW), (10, -1, -1), (10, NOW + 7, -7)],
)
def test_how_old_a_record_was_when_it_came_is_known_of_a_run(offset: int, timestamp: int, age_ms: int) -> None:
    assert RUN.age_of(offset, timestamp) == age_ms
    assert replace(RUN, first_offset=-1).age_of(offset, timestamp) == -1, "a state without its first offset"


@each_row(
    ("first", "end", "records", "found"),
    [(10, 20, 10, True), (12, 15, 10, True), (12, 15, 9, False), (9, 15, 10, False), (12, 21, 10, False), (12, 12, 10, False)],
)
def test_all_offsets_are_of_late_records_where_a_run_has_nothing_else(first: int, end: int, records: int, found: bool) -> None:
    assert replace(RUN, records=records).is_all(first, end) is found
    assert not replace(RUN, first_offset=-1, last_offset=records - 2, records=records).is_all(0, 1)


def test_what_a_follower_copies_or_what_is_not_understood_is_not_counted() -> None:
    shard = Shard()
    shard.fold(appended(seq=1, base_offset=0, next_offset=10, leads=0, expired=expired(NOW, 1, 2)))
    shard.fold(appended(seq=2, base_offset=10, next_offset=20, leads=1, expired=b"of another version"))
    assert (only(shard).share_expired_batches, only(shard).log_end_offset) == (0, 20)


def test_the_same_range_again_counts_once() -> None:
    shard = Shard()
    for seq in (1, 2):
        shard.fold(appended(seq=seq, base_offset=0, next_offset=10, leads=1, expired=expired(NOW, 1, 2)))
    assert only(shard).share_expired_records == 5


@each_row(
    ("first", "last", "looks"),
    [
        ((NOW, 0), (NOW, 0), LateLooks.NO_TIME),
        ((NOW, 5), (NOW + MINUTE, 999_999_999), LateLooks.NO_TIME),
        ((NOW, 5), (NOW + MINUTE, 1_700_000_000), LateLooks.SECONDS),
        ((NOW, NOW - 30 * DAY_MS), (NOW + MINUTE, NOW - 30 * DAY_MS + MINUTE), LateLooks.CLOCK),
        ((NOW, NOW - 30 * DAY_MS), (NOW + MINUTE, NOW - 29 * DAY_MS), LateLooks.REPLAY),
        ((NOW, NOW - 30 * DAY_MS), (NOW, NOW - 29 * DAY_MS), LateLooks.REPLAY),
        ((NOW, NOW - 30 * DAY_MS), (NOW, NOW - 30 * DAY_MS), LateLooks.OLD),
        ((NOW, NOW - 30 * DAY_MS), (NOW + MINUTE, NOW - 40 * DAY_MS), LateLooks.OLD),
    ],
)
def test_what_a_run_looks_like(first: tuple[int, int], last: tuple[int, int], looks: LateLooks) -> None:
    assert looks_of(first, last) is looks
