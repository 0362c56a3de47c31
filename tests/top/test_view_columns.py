"""What single cells of a view say, and how severe its rows look."""

from typing import Any

import pytest

from streaming.broker.protocol.group_json import GroupSummary
from streaming.broker.protocol.listing_json import PartitionRow, RetentionRow, TransactionRow
from streaming.broker.protocol.status_json import CRITICAL, INFO, WARNING, Problem
from streaming.pages.listings.declared_lists import LISTS
from streaming.pages.listings.listing import Times, severity_of
from streaming.terminal.top.questions import ListName, Row

NOW_MS = 1_700_000_000_000
HOUR = 3_600_000
TIMES = Times(NOW_MS, relative=True)


def cell(view: ListName, heading: str, row: Row) -> str:
    (column,) = (each for each in LISTS[view].text_columns if each.heading == heading)
    return column.cell_in(row, TIMES).text


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
        (group(stopped=1), ""),
        (group(severity="warning"), "warning"),
        (group(severity="critical"), "critical"),
        (partition(), ""),
        (partition(hanging_transactions=1), ""),
        (partition(severity=CRITICAL), CRITICAL),
        (transaction("open"), ""),
        (transaction("hanging", stuck=True), ""),
        (transaction("open", severity=WARNING), WARNING),
        (retention(retention_blocked="high_watermark"), ""),
        (retention(severity=INFO), INFO),
        (Problem(kind="k", severity=CRITICAL, what="w"), "critical"),
        (Problem(kind="k", severity=WARNING, what="w"), "warning"),
        (Problem(kind="k", severity=INFO, what="w"), INFO),
    ],
)
def test_how_severe_a_row_is(row: Row, severity: str) -> None:
    assert severity_of(row) == severity


def test_records_left_are_a_lower_bound_where_some_are_not_known() -> None:
    rows = (group(lag_records_read_committed=1500), group(lag_records_read_committed=1500, unknown=1), group(unknown=1))
    assert [cell(ListName.GROUPS, "Records left", row) for row in rows] == ["1,500", "1,500+", "-"]


def test_what_is_due_goes_with_the_next_check_and_no_deletion_of_the_past_is_predicted() -> None:
    lost = [cell(ListName.GROUPS, "Next loss", group(loss_ms=NOW_MS + ms)) for ms in (-HOUR, 0, HOUR)]
    assert lost == ["next check", "next check", "in 1h"]


def test_a_record_of_a_clock_that_is_ahead_is_no_event_to_come() -> None:
    assert [cell(ListName.GROUPS, "Oldest unread", group(oldest_ms=NOW_MS - ms)) for ms in (HOUR, 0, -24_000)] == [
        "1h ago",
        "0s ago",
        "24s ahead",
    ]


def test_what_depends_on_assumed_limits_has_a_question_mark() -> None:
    lost = [cell(ListName.GROUPS, "Next loss", group(limits_assumed=assumed, loss_ms=NOW_MS + HOUR)) for assumed in (False, True)]
    assert lost == ["in 1h", "in 1h?"]
    assert cell(ListName.GROUPS, "Next loss", group(limits_assumed=True)) == "-"
    assert cell(ListName.GROUPS, "Verdict", group(limits_assumed=True, verdict="fine")) == "fine?"
    assert cell(ListName.GROUPS, "Verdict", group(limits_assumed=True, verdict="held")) == "held"


def test_each_column_of_groups_shows_its_own_value() -> None:
    sums = {"lag_offsets": 3, "lag_bytes": 4 << 20, "members": 5, "oldest_ms": NOW_MS - HOUR}
    reads = GroupSummary(group="g", partitions=6, type="Classic", state="Stable", lag_records_read_committed=2, verdict="fine", **sums)
    shown = [each.cell_in(reads, TIMES).text for each in LISTS[ListName.GROUPS].text_columns]
    assert shown == ["g", "fine", "2", "1h ago", "-", "4.0 MiB", "5", "-", "3", "Stable", "Classic", "6"]
