"""The lag of groups, compared with what is counted one record after the other."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.cluster.consumers.group_lag import ABSENT, CODES, KNOWN, Committed, Ends, LagReason, Lags, Places, lags
from tests.tables import each_row

GONE, DATA, ABORTED, CONTROL = "gone", "data", "aborted", "control"
"""What is at an offset: nothing any more (compacted away), a record that is read, one of an aborted transaction, or a marker."""

BYTES = 7


@dataclass(frozen=True)
class Log:
    """A log record by record; one batch for each."""

    records: list[str]
    log_start: int
    last_stable: int
    high_watermark: int

    def between(self, start: int, end: int, *kinds: str) -> int:
        return sum(kind in kinds for kind in self.records[start:end])

    def next(self, start: int, *kinds: str) -> int:
        found = (offset for offset in range(start, self.high_watermark) if self.records[offset] in (kinds or (DATA,)))
        return next(found, ABSENT)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    records = draw(st.lists(st.sampled_from([GONE, DATA, DATA, ABORTED, CONTROL]), max_size=30))
    start, stable, watermark = sorted(draw(st.tuples(*[st.integers(0, len(records))] * 3)))
    return Log(records, start, stable, watermark)


def longs(*values: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def ends_of(log: Log, *, edition: int = 1, reason: np.int8 = KNOWN, counted: np.int8 = KNOWN, damaged: bool = False) -> Ends:
    return Ends(
        reason=np.array([reason]),
        counted=np.array([counted]),
        log_start=longs(log.log_start),
        log_end=longs(len(log.records)),
        high_watermark=longs(log.high_watermark),
        last_stable=longs(log.last_stable),
        edition=longs(edition),
        data=longs(log.between(0, log.high_watermark, DATA, ABORTED)),
        stable_data=longs(log.between(0, log.last_stable, DATA, ABORTED)),
        kept=longs(log.between(0, log.last_stable, DATA)),
        end_kept=longs(log.between(0, log.high_watermark, DATA)),
        control=longs(log.between(0, log.high_watermark, CONTROL)),
        bytes=longs(BYTES * log.between(0, log.high_watermark, DATA, ABORTED, CONTROL)),
        damaged=np.array([damaged]),
    )


def place_of(log: Log, offset: int, *, edition: int = 1, reason: np.int8 = KNOWN, reads_uncommitted: int = 0) -> Places:
    following = log.next(offset, *([DATA, ABORTED] if reads_uncommitted > 0 else [DATA]))
    return Places(
        reason=np.array([reason]),
        offset=longs(offset),
        edition=longs(edition),
        data=longs(log.between(0, offset, DATA, ABORTED)),
        aborted=longs(log.between(0, offset, ABORTED)),
        control=longs(log.between(0, offset, CONTROL)),
        bytes=longs(BYTES * log.between(0, offset, DATA, ABORTED, CONTROL)),
        next_offset=longs(following),
        next_timestamp_ms=longs(1000 + following),
        next_append_ms=longs(2000 + following),
        next_batch_bytes=longs(BYTES),
        next_segment=longs(0),
        next_position=longs(BYTES * following),
        reads_uncommitted=longs(reads_uncommitted),
        deleted_least=longs(ABSENT),
        deleted_most=longs(ABSENT),
        next_earliest_ms=longs(ABSENT),
        next_latest_ms=longs(ABSENT),
    )


def commit_of(
    offset: int,
    *,
    reason: np.int8 = KNOWN,
    beyond: bool = False,
    delivered: int = -1,
    log_start: int = 0,
    reads_uncommitted: bool = False,
) -> Committed:
    share = np.array([delivered >= 0])
    return Committed(
        offset=longs(offset),
        start=longs(max(offset, log_start)),
        reason=np.array([reason]),
        beyond=np.array([beyond]),
        reads_uncommitted=np.array([reads_uncommitted]),
        share=share,
        delivered=longs(delivered),
        done_least=longs(0),
        done_most=longs(0),
        deleted_to=longs(max(offset, log_start)),
    )


def lag_of(log: Log, offset: int) -> Lags:
    return lags(commit_of(offset, log_start=log.log_start), ends_of(log), place_of(log, max(offset, log.log_start)))


def within_log(test: Callable[[Log, int], None]) -> Callable[[Log, int], None]:
    """A test of commits that are not after the end."""

    @wraps(test)
    def within(log: Log, offset: int) -> None:
        test(log, min(offset, len(log.records)))

    return within


LOG = Log([DATA, ABORTED, CONTROL, DATA, GONE, DATA, DATA, CONTROL], 1, 6, 8)


@given(logs(), st.integers(0, 35))
@within_log
def test_the_lag_is_what_is_counted_one_record_after_the_other(log: Log, offset: int) -> None:
    found, start = lag_of(log, offset), max(offset, log.log_start)
    assert found.reason == KNOWN
    assert found.read_committed == log.between(start, log.last_stable, DATA)
    assert found.read_uncommitted == log.between(start, log.high_watermark, DATA, ABORTED)
    assert found.bytes == BYTES * log.between(start, log.high_watermark, DATA, ABORTED, CONTROL)
    assert found.offsets == max(log.high_watermark - offset, 0)
    assert found.below == max(log.log_start - offset, 0)
    assert found.next_offset == log.next(start)
    assert found.held == (found.read_committed == 0 and log.next(start) >= 0)
    assert (found.next_timestamp_ms >= 0, found.next_append_ms >= 0) == (log.next(start) >= 0,) * 2


@given(logs(), st.integers(0, 35))
@within_log
def test_a_group_that_reads_uncommitted_is_judged_by_the_records_that_it_gets_and_never_held(log: Log, offset: int) -> None:
    start = max(offset, log.log_start)
    place = place_of(log, start, reads_uncommitted=1)
    found = lags(commit_of(offset, reads_uncommitted=True, log_start=log.log_start), ends_of(log), place)
    assert found.reason == KNOWN
    assert found.left == found.read_uncommitted == log.between(start, log.high_watermark, DATA, ABORTED)
    assert found.next_offset == log.next(start, DATA, ABORTED)
    assert not found.held


@given(logs(), st.integers(0, 35))
@within_log
def test_what_an_earlier_agent_does_not_look_up_is_not_known(log: Log, offset: int) -> None:
    """Its next record is none of an aborted transaction."""
    start = max(offset, log.log_start)
    found = lags(
        commit_of(offset, reads_uncommitted=True, log_start=log.log_start), ends_of(log), place_of(log, start, reads_uncommitted=-1)
    )
    sure = start >= log.high_watermark or not log.between(start, log.high_watermark, ABORTED)
    assert found.reason == (KNOWN if sure else CODES[LagReason.VERSION])
    assert not sure or found.next_offset == log.next(start, DATA, ABORTED)


def test_a_group_of_which_only_markers_and_aborted_records_are_left_has_nothing_to_read() -> None:
    log = Log([DATA, ABORTED, CONTROL], 0, 3, 3)
    found = lag_of(log, 1)
    assert (int(found.offsets[0]), int(found.read_committed[0]), int(found.read_uncommitted[0])) == (2, 0, 1)
    assert found.next_offset == ABSENT


def test_what_nobody_knows_is_absent_and_never_0() -> None:
    for reason in (LagReason.NOT_OBSERVED, LagReason.LEADER):
        on_commit = lags(commit_of(3, reason=CODES[reason]), ends_of(LOG), place_of(LOG, 3))
        on_log = lags(commit_of(3), ends_of(LOG, reason=CODES[reason]), place_of(LOG, 3))
        for found in (on_commit, on_log):
            assert found.reason == CODES[reason]
            assert {int(column[0]) for column in (found.offsets, found.read_committed, found.read_uncommitted, found.bytes)} == {ABSENT}


def test_offsets_are_known_before_records_are_counted() -> None:
    filling = CODES[LagReason.FILLING]
    for place, counted in (
        (place_of(LOG, 3, reason=filling), KNOWN),
        (place_of(LOG, 2), KNOWN),
        (place_of(LOG, 3, edition=2), KNOWN),
        (place_of(LOG, 3), filling),
    ):
        found = lags(commit_of(3), ends_of(LOG, counted=counted), place)
        assert (int(found.offsets[0]), int(found.read_committed[0]), int(found.bytes[0])) == (5, ABSENT, ABSENT)
        assert found.reason == CODES[LagReason.FILLING]


def test_at_the_end_nothing_has_to_be_counted() -> None:
    found = lags(commit_of(8), ends_of(LOG), place_of(LOG, 0, reason=CODES[LagReason.FILLING]))
    assert (int(found.reason[0]), int(found.read_committed[0]), int(found.bytes[0])) == (KNOWN, 0, 0)


def test_a_commit_beyond_the_end_is_distinguished_when_it_stays_there() -> None:
    at_first = lags(commit_of(9), ends_of(LOG), place_of(LOG, 8))
    assert (bool(at_first.beyond[0]), int(at_first.offsets[0]), int(at_first.reason[0])) == (False, ABSENT, CODES[LagReason.NEWER])
    then = lags(commit_of(9, beyond=True), ends_of(LOG), place_of(LOG, 8))
    assert (int(then.offsets[0]), int(then.read_committed[0]), int(then.reason[0])) == (ABSENT, ABSENT, CODES[LagReason.BEYOND])
    again = lags(commit_of(8, beyond=True), ends_of(LOG), place_of(LOG, 8))
    assert (bool(again.beyond[0]), int(again.offsets[0]), int(again.reason[0])) == (False, 0, KNOWN)


@each_row(("delivered", "left"), [(0, 3), (2, 3), (3, 2), (4, 1), (5, 0)])
def test_what_a_share_group_may_have_left_is_no_less_than_it_has_whatever_it_is_done_with(delivered: int, left: int) -> None:
    """Of five offsets three are records. Which ones it is done with is not looked up: they may be the others."""
    found = lags(commit_of(3, delivered=delivered), ends_of(LOG), place_of(LOG, 3))
    assert (int(found.read_uncommitted[0]), int(found.read_committed[0])) == (left, left)
    assert (int(found.next_offset[0]) >= 0) == (left > 0)


def test_what_a_share_group_has_done_with_does_not_count() -> None:
    done = lags(commit_of(3, delivered=100), ends_of(LOG), place_of(LOG, 3))
    assert int(done.read_uncommitted[0]) == 0


def test_where_the_log_ends_with_what_is_no_batch_nothing_after_it_is_known() -> None:
    for offset, reason in ((7, KNOWN), (8, CODES[LagReason.DAMAGED]), (9, CODES[LagReason.DAMAGED])):
        found = lags(commit_of(offset, beyond=True), ends_of(LOG, damaged=True), place_of(LOG, offset))
        assert int(found.reason[0]) == reason
        assert (int(found.offsets[0]) == ABSENT) == (reason != KNOWN)


def test_a_group_that_stands_on_a_marker_before_an_open_transaction_is_held_up() -> None:
    log = Log([DATA, DATA, DATA, CONTROL, *[DATA] * 6], 0, 4, 10)
    assert [bool(lag_of(log, offset).held[0]) for offset in (2, 3, 4)] == [False, True, True]
    shared = lags(commit_of(4, delivered=0), ends_of(log), place_of(log, 4))
    assert not shared.held[0]


def test_times_of_the_next_record_are_each_its_own() -> None:
    log = Log([DATA] * 5, 0, 5, 5)
    found = lags(commit_of(2), ends_of(log), place_of(log, 2))
    assert (found.next_offset.tolist(), found.next_timestamp_ms.tolist(), found.next_append_ms.tolist()) == ([2], [1002], [2002])
    done = lags(commit_of(5), ends_of(log), place_of(log, 5))
    assert (done.next_offset.tolist(), done.next_timestamp_ms.tolist(), done.next_append_ms.tolist()) == ([ABSENT],) * 3


def test_without_a_high_watermark_there_is_no_lag_in_offsets() -> None:
    log = Log([DATA] * 5, 0, 5, 5)
    unknown = replace(ends_of(log), high_watermark=longs(ABSENT), last_stable=longs(ABSENT))
    assert lags(commit_of(2), unknown, place_of(log, 2)).offsets.tolist() == [ABSENT]
    assert lags(commit_of(2), ends_of(log), place_of(log, 2)).offsets.tolist() == [3]
