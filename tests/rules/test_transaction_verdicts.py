"""Verdicts over open transactions, and the list of those that are late."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.rows import StartSource
from streaming.rules.coordinator_state import Coordinators
from streaming.rules.transaction_verdicts import (
    GRACE_MS,
    NEVER_MS,
    PARTITIONS_PER_PRODUCER,
    Claims,
    OpenTransactions,
    TransactionVerdict,
    claims_of,
    select_late,
    stuck,
    verdicts,
)
from tests.tables import each_row
from tests.worlds.entries import entry, table

NOW = 1_700_000_000_000
MINUTE = 60_000
HOUR = 60 * MINUTE


class Open(NamedTuple):
    producer_id: int = 7
    start_ms: int = NOW - 10 * MINUTE
    last_ms: int = NOW - 5 * MINUTE
    partition: str = "foo-0"
    first_offset: int = 0
    source: int = StartSource.SEEN


def claims(*transactions: Open, entries: tuple[dict[str, object], ...] = (), complete: bool = True) -> Claims:
    columns = {name: np.array([getattr(one, name) for one in transactions], np.int64) for name in Open._fields if name != "partition"}
    opened = OpenTransactions(partition=[one.partition for one in transactions], **columns)
    return claims_of(opened, Coordinators.of(table(*entries), complete=complete))


def verdict(transaction: Open, *entries: dict[str, object], complete: bool = True) -> TransactionVerdict:
    (found,) = verdicts(claims(transaction, entries=entries, complete=complete), NOW, 0)
    return TransactionVerdict(found)


HERE = ("bar-0", "foo-0")


def test_the_last_append_is_not_before_the_start_which_is_by_another_clock() -> None:
    of = claims(Open(start_ms=NOW - HOUR, last_ms=NOW - HOUR), entries=(entry("a", partitions=HERE, start_ms=NOW - MINUTE),))
    assert (of.start_ms.tolist(), of.appended_ms.tolist()) == ([NOW - MINUTE], [NOW - MINUTE])
    unclaimed = claims(Open(start_ms=NOW - MINUTE, last_ms=NOW - HOUR))
    assert unclaimed.appended_ms.tolist() == [NOW - HOUR]


@each_row(
    ("expected", "entries"),
    [
        pytest.param(TransactionVerdict.OPEN, [entry("a", partitions=HERE, start_ms=NOW - MINUTE)], id="ongoing, inside its timeout"),
        pytest.param(
            TransactionVerdict.OPEN,
            [entry("a", partitions=HERE, start_ms=NOW - MINUTE - GRACE_MS)],
            id="its timeout is over, and it has a moment left",
        ),
        pytest.param(
            TransactionVerdict.OVERDUE, [entry("a", partitions=HERE, start_ms=NOW - MINUTE - GRACE_MS - 1)], id="its timeout is long over"
        ),
        pytest.param(
            TransactionVerdict.TWO_PHASE,
            [entry("a", partitions=HERE, start_ms=5, timeout_ms=NEVER_MS)],
            id="somebody outside decides, however long",
        ),
        pytest.param(TransactionVerdict.COMPLETING, [entry("a", state="PrepareCommit", partitions=HERE)], id="decided to commit"),
        pytest.param(TransactionVerdict.COMPLETING, [entry("a", state="PrepareAbort", partitions=HERE, start_ms=5)], id="decided to abort"),
        pytest.param(TransactionVerdict.HANGING, [], id="no coordinator knows it"),
        pytest.param(TransactionVerdict.HANGING, [entry("a", producer=8, partitions=HERE)], id="the entry of another producer"),
        pytest.param(TransactionVerdict.HANGING, [entry("a", partitions=("bar-0",))], id="ongoing, but without this partition"),
        pytest.param(
            TransactionVerdict.HANGING, [entry("a", state="PrepareCommit", partitions=("bar-0",))], id="completing without this partition"
        ),
        pytest.param(TransactionVerdict.HANGING, [entry("a", state="Empty")], id="nothing is going on there"),
        pytest.param(TransactionVerdict.HANGING, [entry("a", state="CompleteCommit")], id="complete, and its marker never came"),
        pytest.param(
            TransactionVerdict.UNKNOWN, [entry("a", state="?", producer=-1)], id="an entry of a version that nobody here can read"
        ),
    ],
)
def test_the_verdict(expected: TransactionVerdict, entries: list[dict[str, object]]) -> None:
    assert verdict(Open(), *entries) is expected


def test_what_is_silent_only_for_a_moment_is_never_hanging() -> None:
    assert verdict(Open(last_ms=NOW - GRACE_MS)) is TransactionVerdict.UNCLAIMED
    assert verdict(Open(last_ms=NOW - GRACE_MS - 1)) is TransactionVerdict.HANGING


def test_unless_all_coordinators_were_asked_only_what_was_found_is_known() -> None:
    assert verdict(Open(), complete=False) is TransactionVerdict.UNKNOWN
    assert verdict(Open(last_ms=NOW), complete=False) is TransactionVerdict.UNKNOWN
    assert verdict(Open(), entry("a", partitions=HERE, start_ms=NOW), complete=False) is TransactionVerdict.OPEN


def test_the_coordinator_knows_best_when_it_began() -> None:
    found = claims(
        Open(),
        Open(8),
        Open(9, start_ms=4, source=StartSource.SNAPSHOT),
        entries=(
            entry("a", partitions=HERE, start_ms=33),
            entry("b", producer=8, state="Empty"),
            entry("c", producer=9, partitions=HERE, start_ms=-1),
        ),
    )
    assert found.start_ms.tolist() == [33, NOW - 10 * MINUTE, 4]
    assert found.source.tolist() == [StartSource.COORDINATOR, StartSource.SEEN, StartSource.SNAPSHOT]


def test_hanging_is_stated_of_what_has_been_silent_for_long_alone() -> None:
    found = claims(Open(), Open(last_ms=NOW - 20 * MINUTE))
    assert verdicts(found, NOW, 15 * MINUTE).tolist() == [TransactionVerdict.UNCLAIMED, TransactionVerdict.HANGING]
    assert verdicts(found, NOW, 0).tolist() == [TransactionVerdict.HANGING, TransactionVerdict.HANGING]


def test_an_entry_of_a_log_that_was_not_read_to_its_end_makes_nothing_overdue() -> None:
    old = entry("a", partitions=HERE, start_ms=5)
    found = claims(Open(), entries=(old,))
    assert verdicts(found, NOW, 0).tolist() == [TransactionVerdict.OVERDUE]
    assert verdicts(replace(found, current=np.array([False])), NOW, 0).tolist() == [TransactionVerdict.UNKNOWN]


@each_row(
    ("entries", "complete", "is_stuck"),
    [
        pytest.param([entry("a", partitions=HERE, start_ms=NOW - HOUR, timeout_ms=2 * HOUR)], True, True, id="open"),
        pytest.param([entry("a", partitions=HERE, start_ms=NOW - MINUTE)], True, False, id="new, with records that are dated earlier"),
        pytest.param([entry("a", state="PrepareCommit", partitions=HERE)], True, True, id="completing"),
        pytest.param([], False, True, id="unknown"),
        pytest.param([], True, False, id="hanging"),
        pytest.param([entry("a", partitions=HERE, start_ms=5)], True, False, id="overdue"),
        pytest.param([entry("a", partitions=HERE, timeout_ms=NEVER_MS)], True, False, id="two-phase commit"),
    ],
)
def test_stuck_is_what_is_silent_for_long_and_reported_by_nothing_else(
    entries: list[dict[str, object]], complete: bool, is_stuck: bool
) -> None:
    silent = Open(last_ms=NOW - 21 * MINUTE)
    found = claims(silent, silent._replace(last_ms=NOW - 20 * MINUTE), entries=tuple(entries), complete=complete)
    verdict = verdicts(found, NOW, 15 * MINUTE)
    assert stuck(found, verdict, NOW, 20 * MINUTE).tolist() == [is_stuck, False]


def test_what_a_transaction_wrote_was_not_written_before_it_began() -> None:
    """Its producer dates its records as it likes: those of a mirror or a backfill are days old."""
    days_old = Open(start_ms=NOW - 48 * HOUR, last_ms=NOW - 48 * HOUR)
    for start_ms, is_stuck in ((NOW - MINUTE, False), (NOW - 20 * MINUTE, False), (NOW - 20 * MINUTE - 1, True)):
        found = claims(days_old, entries=(entry("a", partitions=HERE, start_ms=start_ms, timeout_ms=HOUR),))
        assert stuck(found, verdicts(found, NOW, 0), NOW, 20 * MINUTE).tolist() == [is_stuck]
        assert found.last_ms.tolist() == [days_old.last_ms]  # as the broker has it, too
    assert verdict(days_old) is TransactionVerdict.HANGING  # no coordinator knows it


def test_what_the_next_reads_will_show_is_not_called_stuck_before_them() -> None:
    found = claims(Open(last_ms=NOW - 21 * MINUTE))
    waits = replace(found, certain=np.array([False]), awaited=np.array([True]))
    verdict = verdicts(waits, NOW, 15 * MINUTE)
    assert verdict.tolist() == [TransactionVerdict.UNKNOWN]
    assert stuck(waits, verdict, NOW, 20 * MINUTE).tolist() == [False]


def test_what_nobody_claims_is_stuck_before_it_hangs_where_that_takes_longer() -> None:
    found = claims(Open(last_ms=NOW - 21 * MINUTE))
    verdict = verdicts(found, NOW, 60 * MINUTE)
    assert verdict.tolist() == [TransactionVerdict.UNCLAIMED]
    assert stuck(found, verdict, NOW, 20 * MINUTE).tolist() == [True]


def late(*transactions: Open, entries: tuple[dict[str, object], ...] = (), limit: int = 500) -> tuple[list[int], int]:
    """The late ones by their first offsets, and how many were left out."""
    found = claims(*transactions, entries=entries)
    ids, offsets = (np.array([getattr(one, name) for one in transactions], np.int64) for name in ("producer_id", "first_offset"))
    chosen = select_late(
        found, verdicts(found, NOW, 0) != TransactionVerdict.HANGING, ids, offsets, now_ms=NOW, late_after_ms=MINUTE, limit=limit
    )
    return offsets[chosen.items].tolist(), chosen.omitted


def test_all_that_are_open_are_selected_if_no_age_is_given() -> None:
    transactions = [Open(1, first_offset=2, start_ms=NOW), Open(2, first_offset=1, start_ms=NOW - MINUTE)]
    found, ids, offsets = claims(*transactions), np.array([1, 2]), np.array([2, 1])
    chosen = select_late(found, np.zeros(2, np.int64), ids, offsets, now_ms=NOW, late_after_ms=None, limit=1)
    assert (chosen.items.tolist(), chosen.omitted) == ([1, 0], 0)


def test_the_hanging_ones_come_first_then_the_oldest() -> None:
    live = (entry("a", producer=1, partitions=HERE, start_ms=NOW - 9 * MINUTE, timeout_ms=NEVER_MS),)
    young = Open(6, first_offset=5, start_ms=NOW - MINUTE, last_ms=NOW)
    transactions = [Open(1, first_offset=1), Open(2, first_offset=2, start_ms=NOW - 3 * MINUTE), Open(3, first_offset=3), young]
    assert late(*transactions, entries=live) == ([3, 2, 1], 0)
    assert late(*transactions, entries=live, limit=2) == ([3, 2], 1)
    assert late() == ([], 0)


def test_of_one_producer_only_some_partitions_are_listed() -> None:
    many = [Open(1, first_offset=offset, start_ms=NOW - 10 * MINUTE + offset) for offset in range(PARTITIONS_PER_PRODUCER + 5)]
    chosen, omitted = late(*many, Open(2, first_offset=99))
    assert (sorted(chosen), omitted) == ([*range(PARTITIONS_PER_PRODUCER), 99], 5)


@given(
    st.lists(st.tuples(st.integers(1, 4), *[st.integers(NOW - 200_000, NOW)] * 2), max_size=60),
    st.integers(0, 60),
)
def test_the_list_is_the_one_of_a_plain_look(drawn: list[tuple[int, int, int]], limit: int) -> None:
    transactions = [Open(*one, first_offset=place) for place, one in enumerate(drawn)]
    waiting = [one for one in transactions if NOW - one.start_ms > MINUTE]
    waiting.sort(key=lambda one: (NOW - one.last_ms <= GRACE_MS, one.start_ms, one.first_offset))
    listed: list[Open] = []
    for one in waiting:
        if sum(other.producer_id == one.producer_id for other in listed) < PARTITIONS_PER_PRODUCER:
            listed.append(one)
    expected = [one.first_offset for one in listed[:limit]]
    assert late(*transactions, limit=limit) == (expected, len(waiting) - len(expected))


def test_verdicts_are_spelt_as_the_metrics_do() -> None:
    assert [one.label for one in TransactionVerdict] == ["open", "overdue", "two_phase", "completing", "hanging", "unknown", "unclaimed"]
