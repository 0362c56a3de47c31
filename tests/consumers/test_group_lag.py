"""The lag of groups, compared with what is counted one record after the other."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import Any, TypeVar

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


Columns = TypeVar("Columns", Committed, Ends, Places)


def of_one(columns: type[Columns], values: dict[str, Any]) -> Columns:
    """The columns of one row; what is not given is not known."""
    return columns(**{each.name: np.array([values.get(each.name, ABSENT)]) for each in fields(columns)})  # type: ignore[arg-type]


def counts(log: Log, upto: int) -> dict[str, int]:
    return {
        "data": log.between(0, upto, DATA, ABORTED),
        "control": log.between(0, upto, CONTROL),
        "bytes": BYTES * log.between(0, upto, DATA, ABORTED, CONTROL),
    }


def ends_of(log: Log, **values: Any) -> Ends:
    known = {
        **{"reason": KNOWN, "counted": KNOWN, "edition": 1, "damaged": False},
        **{"log_start": log.log_start, "log_end": len(log.records), "high_watermark": log.high_watermark, "last_stable": log.last_stable},
        "stable_data": log.between(0, log.last_stable, DATA, ABORTED),
        "kept": log.between(0, log.last_stable, DATA),
        "end_kept": log.between(0, log.high_watermark, DATA),
    }
    return of_one(Ends, known | counts(log, log.high_watermark) | values)


def place_of(log: Log, offset: int, **values: Any) -> Places:
    following = log.next(offset, *([DATA, ABORTED] if values.get("reads_uncommitted", 0) > 0 else [DATA]))
    known = {
        **{"reason": KNOWN, "offset": offset, "edition": 1, "aborted": log.between(0, offset, ABORTED), "reads_uncommitted": 0},
        **{"next_offset": following, "next_timestamp_ms": 1000 + following, "next_append_ms": 2000 + following},
        **{"next_batch_bytes": BYTES, "next_segment": 0, "next_position": BYTES * following},
    }
    return of_one(Places, known | counts(log, offset) | values)


def commit_of(offset: int, *, log_start: int = 0, **values: Any) -> Committed:
    start = max(offset, log_start)
    known = {"offset": offset, "start": start, "deleted_to": start, "reason": KNOWN, "beyond": False, "reads_uncommitted": False}
    known |= {"share": values.get("delivered", -1) >= 0, "done_least": 0, "done_most": 0}
    return of_one(Committed, known | values)


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
def test_what_was_not_looked_up_among_aborted_records_is_asked_before_it_is_known(log: Log, offset: int) -> None:
    """Its next record is none of an aborted transaction."""
    start = max(offset, log.log_start)
    found = lags(
        commit_of(offset, reads_uncommitted=True, log_start=log.log_start), ends_of(log), place_of(log, start, reads_uncommitted=-1)
    )
    sure = start >= log.high_watermark or not log.between(start, log.high_watermark, ABORTED)
    assert found.reason == (KNOWN if sure else CODES[LagReason.FILLING])
    assert not sure or found.next_offset == log.next(start, DATA, ABORTED)


def test_a_group_of_which_only_markers_and_aborted_records_are_left_has_nothing_to_read() -> None:
    log = Log([DATA, ABORTED, CONTROL], 0, 3, 3)
    found = lag_of(log, 1)
    assert (int(found.offsets[0]), int(found.read_committed[0]), int(found.read_uncommitted[0])) == (2, 0, 1)
    assert found.next_offset == ABSENT


FILLING = CODES[LagReason.FILLING]
NONE = (ABSENT,) * 4
NOBODY = [CODES[reason] for reason in (LagReason.NOT_OBSERVED, LagReason.LEADER)]


@each_row(
    ("why", "commit", "ends", "place", "expected"),
    [
        *[("nobody knows the commit", commit_of(3, reason=each), {}, {}, (each, False, *NONE)) for each in NOBODY],
        *[("nobody knows the log", commit_of(3), {"reason": each}, {}, (each, False, *NONE)) for each in NOBODY],
        (
            "offsets are known before records are counted",
            commit_of(3),
            {},
            {"reason": FILLING},
            (FILLING, False, 5, *NONE[1:]),
        ),
        ("those of another offset", commit_of(3), {}, {"offset": 2}, (FILLING, False, 5, *NONE[1:])),
        ("counts of another edition", commit_of(3), {}, {"edition": 2}, (FILLING, False, 5, *NONE[1:])),
        ("counts of the end", commit_of(3), {"counted": FILLING}, {}, (FILLING, False, 5, *NONE[1:])),
        ("at the end nothing has to be counted", commit_of(8), {}, {"offset": 0, "reason": FILLING}, (KNOWN, False, 0, 0, 0, 0)),
        ("beyond the end", commit_of(9), {}, {"offset": 8}, (CODES[LagReason.NEWER], False, *NONE)),
        ("and it stays there", commit_of(9, beyond=True), {}, {"offset": 8}, (CODES[LagReason.BEYOND], True, *NONE)),
        ("it was there", commit_of(8, beyond=True), {}, {"offset": 8}, (KNOWN, False, 0, 0, 0, 0)),
        ("before what is no batch", commit_of(7, beyond=True), {"damaged": True}, {"offset": 7}, (KNOWN, False, 1, 0, 0, BYTES)),
        *[
            ("where the log ends with what is no batch", commit_of(each, beyond=True), {"damaged": True}, {"offset": each}, None)
            for each in (8, 9)
        ],
    ],
)
def test_what_is_not_known_is_absent_and_never_0(
    why: str, commit: Committed, ends: dict[str, Any], place: dict[str, Any], expected: tuple[int, ...] | None
) -> None:
    found = lags(commit, ends_of(LOG, **ends), place_of(LOG, **{"offset": 3} | place))
    columns = (found.reason, found.beyond, found.offsets, found.read_committed, found.read_uncommitted, found.bytes)
    if expected is None:
        assert (found.reason, found.offsets) == (CODES[LagReason.DAMAGED], ABSENT), why
    else:
        assert tuple(each[0] for each in columns) == expected, why


@each_row(("delivered", "left"), [(0, 3), (2, 3), (3, 2), (4, 1), (5, 0), (100, 0)])
def test_what_a_share_group_may_have_left_is_no_less_than_it_has_whatever_it_is_done_with(delivered: int, left: int) -> None:
    """Of five offsets three are records. Which ones it is done with is not looked up: they may be the others."""
    found = lags(commit_of(3, delivered=delivered), ends_of(LOG), place_of(LOG, 3))
    assert (found.read_uncommitted, found.read_committed, found.next_offset >= 0) == (left, left, left > 0)


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
    unknown = replace(ends_of(log), high_watermark=np.array([ABSENT]), last_stable=np.array([ABSENT]))
    assert lags(commit_of(2), unknown, place_of(log, 2)).offsets.tolist() == [ABSENT]
    assert lags(commit_of(2), ends_of(log), place_of(log, 2)).offsets.tolist() == [3]
