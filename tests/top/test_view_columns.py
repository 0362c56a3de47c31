"""What single cells of a view say, and how severe its rows look."""

from typing import Any

import pytest

from streaming.protocol.group_json import GroupSummary
from streaming.protocol.listing_json import PartitionRow, RetentionRow, TransactionRow
from streaming.protocol.problem_json import CRITICAL, INFO, WARNING, Problem
from streaming.top.columns import Times
from streaming.top.questions import Row, View
from streaming.top.view_columns import COLUMNS, alarm

NOW_MS = 1_700_000_000_000
HOUR = 3_600_000
TIMES = Times(NOW_MS, relative=True)


def cell(view: View, heading: str, row: Row) -> str:
    (column,) = (each for each in COLUMNS[view] if each.heading == heading)
    return column.cell(row, TIMES)


def group(**values: Any) -> GroupSummary:
    return GroupSummary(group="g", partitions=1, **values)


def partition(**values: Any) -> PartitionRow:
    return PartitionRow(broker=1, topic="t", partition=0, **values)


def transaction(verdict: str, **values: Any) -> TransactionRow:
    given = {"producer_epoch": 0, "first_offset": 5, "start_ms": NOW_MS, "last_append_ms": NOW_MS}
    return TransactionRow(broker=1, topic="t", partition=0, producer_id=9, verdict=verdict, **given | values)


def retention(**values: Any) -> RetentionRow:
    return RetentionRow(broker=1, topic="t", partition=0, **values)


@pytest.mark.parametrize(
    ("row", "severity"),
    [
        (group(), ""),
        (group(unknown=1), ""),
        (group(stopped=1), "warning"),
        (group(held=1), "warning"),
        (group(below_start=1), "critical"),
        (group(loss_ms=NOW_MS + HOUR), "critical"),
        (partition(), ""),
        (partition(hanging_transactions=1), "critical"),
        (transaction("open"), ""),
        (transaction("open", stuck=True), "warning"),
        (transaction("overdue"), "warning"),
        (transaction("hanging", stuck=True), "critical"),
        (retention(), ""),
        (retention(blocked="high_watermark"), "warning"),
        (Problem(kind="k", severity=CRITICAL, what="w"), "critical"),
        (Problem(kind="k", severity=WARNING, what="w"), "warning"),
        (Problem(kind="k", severity=INFO, what="w"), INFO),
    ],
)
def test_how_severe_a_row_is(row: Row, severity: str) -> None:
    assert alarm(row, TIMES) == severity


def test_records_left_are_a_lower_bound_where_some_are_not_known() -> None:
    rows = (group(lag_records_read_committed=1500), group(lag_records_read_committed=1500, unknown=1), group(unknown=1))
    assert [cell(View.GROUPS, "Records left", row) for row in rows] == ["1,500", "1,500+", "-"]


def test_what_depends_on_assumed_limits_has_a_question_mark() -> None:
    lost = [cell(View.GROUPS, "Lost from", group(limits_assumed=assumed, loss_ms=NOW_MS + HOUR)) for assumed in (False, True)]
    assert lost == ["in 1h", "in 1h?"]
    assert cell(View.GROUPS, "Lost from", group(limits_assumed=True)) == "-"
    assert cell(View.GROUPS, "Verdict", group(limits_assumed=True)) == "fine?"
    assert cell(View.GROUPS, "Verdict", group(limits_assumed=True, held=1)) == "held"
    kept = retention(retention_ms=2 * HOUR, retention_bytes=1 << 20, limits_assumed=True)
    assert (cell(View.RETENTION, "tiMe limit", kept), cell(View.RETENTION, "siZe limit", kept)) == ("2h?", "1.0 MiB?")


def test_a_stuck_transaction_says_so_beside_its_verdict() -> None:
    assert cell(View.TRANSACTIONS, "Verdict", transaction("unknown", stuck=True)) == "unknown, stuck"
    assert cell(View.TRANSACTIONS, "Verdict", transaction("unknown")) == "unknown"


@pytest.mark.parametrize(
    ("about", "text"),
    [
        ({"topic": "t", "partition": 0, "group": "g", "broker": 1}, "t-0"),
        ({"topic": "t", "group": "g"}, "topic t"),
        ({"group": "g", "broker": 1}, "group g"),
        ({"log_dir": "/d", "broker": 1}, "log dir /d"),
        ({"agent": "a", "broker": 1}, "agent a"),
        ({"broker": 0}, "broker 0"),
        ({}, "-"),
    ],
)
def test_a_problem_is_about_the_smallest_thing_that_it_names(about: dict[str, Any], text: str) -> None:
    assert cell(View.PROBLEMS, "about", Problem(kind="k", severity=WARNING, what="w", **about)) == text


def test_each_column_shows_its_own_value() -> None:
    at = {"oldest_record_ms": NOW_MS - 2 * HOUR, "next_deletion_ms": NOW_MS + 3 * HOUR}
    numbers = {"unread_offsets": 2, "size_bytes": 3 << 20, "open_transactions": 4, "hanging_transactions": 5, "log_end_offset": 6}
    row = partition(bytes_rate=1024.0, records_rate=9.5, segments=7, last_append_ms=NOW_MS - HOUR, **at, **numbers)
    shown = [each.cell(row, TIMES) for each in COLUMNS[View.PARTITIONS] if each.sort]
    assert shown == ["t-0", "1.0 KiB", "9.5", "2", "1h ago", "3.0 MiB", "4", "5", "6", "1", "2h ago", "7"]
    limits = {"retention_ms": 4 * HOUR, "retention_bytes": 5 << 20, "lag_ms": 6 * HOUR, "overdue_ms": 7 * HOUR}
    kept = retention(size_bytes=1 << 20, segments=8, reclaimable_bytes=9 << 20, blocked="remote_copy", **at, **limits)
    shown = [each.cell(kept, TIMES) for each in COLUMNS[View.RETENTION]]
    assert shown == ["t-0", "remote_copy", "7h", "9.0 MiB", "1.0 MiB", "in 3h", "2h ago", "4h", "5.0 MiB", "6h", "8", "1"]
    open_ = transaction("open", start_ms=NOW_MS - HOUR, last_append_ms=NOW_MS - 2 * HOUR, holds_offsets=3, transactional_id="id")
    shown = [each.cell(open_, TIMES) for each in COLUMNS[View.TRANSACTIONS]]
    assert shown == ["t-0", "open", "1h ago", "3", "id", "2h ago", "9", "5", "-", "1", "-"]
    sums = {"lag_offsets": 3, "lag_bytes": 4 << 20, "members": 5, "oldest_append_ms": NOW_MS - HOUR}
    reads = GroupSummary(group="g", partitions=6, type="Classic", state="Stable", lag_records_read_committed=2, **sums)
    shown = [each.cell(reads, TIMES) for each in COLUMNS[View.GROUPS]]
    assert shown == ["g", "fine", "2", "1h ago", "-", "4.0 MiB", "5", "3", "Stable", "Classic", "6"]
