"""What rows do to the transactions of a log, seen through the fold."""

from typing import Any

import numpy as np
import pytest

from streaming.common.event_row import EventRow
from streaming.common.rows import TRANSACTION_STEPS, TRANSACTIONS, Kind, StartSource, Step
from streaming.kafka.scan.transaction_steps import Steps
from streaming.rules.log_state import LogState
from tests.events import Item, Shard, appended, range_of, row
from tests.tables import each_row


def step(kind: Step, producer: int, first: int, following: int | None = None, **values: Any) -> tuple[Any, ...]:
    behind = first + 1 if following is None else following
    given = {
        "step": kind,
        "source": StartSource.SEEN if kind is not Step.ONGOING else StartSource.SNAPSHOT,
        "producer_epoch": 0,
        "producer_id": producer,
        "first_offset": first,
        "next_offset": behind,
        "bytes": 10 * (behind - first),
        "bytes_before": 0,
        "start_ms": 1000,
        "last_ms": 1000,
        **values,
    }
    return tuple(given[name] for name in TRANSACTION_STEPS.names or ())


def steps(*rows: tuple[Any, ...]) -> bytes:
    made: Steps = np.array(list(rows), TRANSACTION_STEPS)
    return made.tobytes()


def held(state: LogState) -> list[tuple[int, int, int]]:
    """(producer, first offset, marker offset) of each."""
    kept = np.frombuffer(state.transactions or b"", TRANSACTIONS)
    return [(int(each["producer_id"]), int(each["first_offset"]), int(each["marker_offset"])) for each in kept]


def folded(*rows: EventRow) -> LogState:
    """Each row in a micro-batch of its own."""
    shard = Shard()
    for each in rows:
        shard.fold(each)
    return shard.log()


OPENED = appended(1, 0, 10, transactions=steps(step(Step.DATA, 7, 2, 5, bytes_before=20)))
COMMITTED = appended(2, 10, 20, seen_at=6000, transactions=steps(step(Step.COMMIT, 7, 12, start_ms=6000)))


def test_an_ordinary_range_says_nothing_of_transactions() -> None:
    state = folded(appended(1, 0, 10))
    assert (state.transactional, state.transactions) == (False, None)


def test_data_opens_and_a_marker_closes() -> None:
    state = folded(OPENED)
    assert (state.transactional, held(state)) == (True, [(7, 2, -1)])
    closed = folded(OPENED, COMMITTED)
    assert held(closed) == [(7, 2, 12)]
    assert (closed.committed_transactions, closed.aborted_transactions, closed.empty_markers) == (1, 0, 0)
    assert (sum(closed.share_transaction_buckets), closed.share_transaction_ms) == (1, 5000)
    kept = np.frombuffer(closed.transactions or b"", TRANSACTIONS)
    assert kept["bytes_at"].tolist() == [20]


@pytest.mark.parametrize(("leads", "observed"), [(1, 1), (-1, 1), (0, 0)])
def test_durations_are_the_share_of_the_replica_that_led(leads: int, observed: int) -> None:
    marker = appended(2, 10, 20, leads=leads, transactions=steps(step(Step.COMMIT, 7, 12)))
    state = folded(OPENED, marker)
    assert (state.committed_transactions, sum(state.share_transaction_buckets)) == (1, observed)


@pytest.mark.parametrize(
    "passes",
    [
        {"high_watermark": 13},
        {"high_watermark": 3, "log_start_offset": 13},
    ],
)
def test_what_is_closed_leaves_once_its_marker_is_replicated(passes: dict[str, Any]) -> None:
    assert held(folded(OPENED, COMMITTED, row(Kind.FOUND, 3, high_watermark=12))) == [(7, 2, 12)]
    assert held(folded(OPENED, COMMITTED, row(Kind.FOUND, 3, **passes))) == []


def test_a_range_may_bring_the_high_watermark_itself() -> None:
    assert held(folded(OPENED, COMMITTED, appended(3, 20, 21, high_watermark=20))) == []


def test_a_truncation_takes_back_what_was_cut() -> None:
    assert held(folded(OPENED, COMMITTED, row(Kind.TRUNCATED, 3, next_offset=12, bytes=80))) == [(7, 2, -1)]
    assert held(folded(OPENED, COMMITTED, row(Kind.TRUNCATED, 3, next_offset=2, bytes=180))) == []


def test_a_log_written_anew_behind_a_truncation_that_nobody_reported() -> None:
    again = appended(3, 12, 15, log_epoch=5, settled=True)
    assert held(folded(appended(1, 0, 10, log_epoch=1, transactions=OPENED.transactions), replaced(COMMITTED, log_epoch=1), again)) == [
        (7, 2, -1)
    ]


def replaced(event: EventRow, **values: Any) -> EventRow:
    names = ("base_offset", "next_offset", "bytes", "batches", "records", "codec_bytes", "transactions", "seen_at")
    return row(Kind(event.kind), event.seq, **{name: getattr(event, name) for name in names} | values)


def test_a_range_that_is_reported_again_is_cut_with_its_steps() -> None:
    items = [Item(0, 5, 50, 5), Item(5, 10, 50, 5), Item(10, 11, 78, 1, control=True), Item(11, 20, 90, 9)]
    singly = steps(
        step(Step.DATA, 7, 0, 5),
        step(Step.DATA, 7, 5, 10, bytes_before=50),
        step(Step.ABORT, 7, 10, bytes_before=100),
        step(Step.DATA, 8, 11, 20, bytes_before=178),
    )
    first = range_of(1, items[:2], transactions=steps(step(Step.DATA, 7, 0, 10)))
    again = range_of(1, items, detailed=True, journal="j2", transactions=singly)
    state = folded(first, again)
    assert (state.aborted_transactions, state.aborted_bytes, state.empty_markers) == (1, 100, 0)
    assert held(state) == [(7, 0, 10), (8, 11, -1)]
    kept = np.frombuffer(state.transactions or b"", TRANSACTIONS)
    assert kept["bytes_at"].tolist() == [0, 178]


def test_a_tail_that_begins_in_the_middle_is_given_what_is_open() -> None:
    ongoing = steps(step(Step.ONGOING, 9, 3, bytes_before=-1))
    state = folded(row(Kind.APPEARED, 1, next_offset=50, transactions=ongoing))
    assert (state.transactional, held(state)) == (True, [(9, 3, -1)])
    closed = folded(
        row(Kind.APPEARED, 1, next_offset=50, transactions=ongoing), appended(2, 50, 51, transactions=steps(step(Step.ABORT, 9, 50)))
    )
    assert (closed.aborted_transactions, closed.empty_markers, sum(closed.share_transaction_buckets)) == (1, 0, 0)


def test_a_journal_that_begins_behind_a_hole_shows_what_is_open_there() -> None:
    hole = row(Kind.APPEARED, 1, journal="j2", next_offset=50, transactions=steps(step(Step.ONGOING, 9, 30, bytes_before=-1)))
    assert held(folded(OPENED, hole)) == [(9, 30, -1)]
    nothing = row(Kind.APPEARED, 1, journal="j2", next_offset=50, transactions=b"")
    assert held(folded(OPENED, nothing)) == []


def test_what_is_open_where_the_fold_stands_may_be_reported_anew() -> None:
    assert held(folded(OPENED, row(Kind.APPEARED, 2, next_offset=10, transactions=b""))) == []
    assert held(folded(OPENED, row(Kind.TRUNCATED, 2, next_offset=10, transactions=b""))) == []


def test_a_log_that_comes_back_with_an_append_counts_its_steps_once() -> None:
    again = appended(3, 0, 10, transactions=steps(step(Step.DATA, 7, 2, 5), step(Step.COMMIT, 7, 6)))
    state = folded(OPENED, row(Kind.GONE, 2, reason="moved"), again)
    assert (state.committed_transactions, state.empty_markers) == (1, 0)


def test_a_beginning_before_what_was_folded_changes_nothing() -> None:
    again = row(Kind.APPEARED, 1, journal="j2", next_offset=0, transactions=b"")
    assert held(folded(OPENED, again)) == [(7, 2, -1)]


@each_row(
    ("reported", "left"),
    [
        (None, [(7, 2, -1)]),
        (b"", []),
        (steps(step(Step.ONGOING, 9, 13, bytes_before=-1)), [(9, 13, -1)]),
        (steps(step(Step.COMMIT, 7, 12)), [(7, 2, 12)]),  # the steps of what was lost
    ],
)
def test_what_was_skipped_may_show_what_is_open_behind_it(reported: bytes | None, left: list[tuple[int, int, int]]) -> None:
    skipped = row(Kind.SKIPPED, 2, base_offset=10, next_offset=20, bytes=100, reason="deleted", transactions=reported)
    assert held(folded(OPENED, skipped)) == left


def test_steps_of_another_version_are_stated_and_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    state = folded(OPENED, appended(2, 10, 20, transactions=b"odd"))
    assert held(state) == [(7, 2, -1)]
    assert "are not understood" in caplog.text
