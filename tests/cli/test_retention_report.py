"""The report on retention: each column its own value, orders, totals, and which advice is given for which rows."""

from dataclasses import fields
from typing import Any

import pytest

from streaming.cli.retention_report import ADVICE, report, sorted_rows
from streaming.offline.partition_retention import Row

NOW_MS = 1_700_000_000_000
NOW_S, HOUR_S = NOW_MS / 1000, 3600.0

VALUES: dict[str, Any] = {
    "broker": 1,
    "topic": "t",
    "partition": 0,
    "size_bytes": 4 << 20,
    "cleanup_policy": "delete",
    "limit_source": "topic",
    "oldest_record_timestamp_seconds": NOW_S - 2 * HOUR_S,
    "retention_limit_seconds": 3 * HOUR_S,
    "retention_limit_bytes": 5 << 20,
    "retention_lag_seconds": 4 * HOUR_S,
    "retention_overdue_seconds": 5 * HOUR_S,
    "retention_check_interval_seconds": 300.0,
    "retention_reclaimable_bytes": 6 << 20,
    "next_deletion_timestamp_seconds": NOW_S + 7 * HOUR_S,
}


def row(topic: str = "t", **values: Any) -> Row:
    return Row(**dict.fromkeys((each.name for each in fields(Row)), None) | VALUES | {"topic": topic} | values)


def cells(**values: Any) -> list[str]:
    line = list(report([row(**values)], NOW_MS))[1]
    return [word.strip() for word in line.split("  ") if word.strip()]


def advised(*rows: Row) -> dict[str, str]:
    """By reason, the partitions that are named."""
    lines = list(report(rows, NOW_MS))[len(rows) + 4 :]
    return {reason: rest.partition(": ")[0] for reason, _, rest in (line.partition(": ") for line in lines)}


def test_each_column_shows_its_own_value() -> None:
    assert cells() == ["t-0", "1", "4.0 MiB", "2h ago", "3h, 5.0 MiB", "4h", "5h", "6.0 MiB", "in 7h", "-"]
    nothing = dict.fromkeys((name for name in VALUES if name.startswith(("retention_", "oldest", "next"))), None)
    assert cells(**nothing | {"retention_check_interval_seconds": 1.0}) == ["t-0", "1", "4.0 MiB", "-", "none", "-", "-", "-", "-", "-"]


def test_what_the_limit_has_let_go_is_due_and_assumed_limits_have_a_question_mark() -> None:
    assert [cells(next_deletion_timestamp_seconds=NOW_S + later)[8] for later in (-1, 0, HOUR_S)] == ["due", "due", "in 1h"]
    assert cells(limit_source="assumed")[4] == "3h, 5.0 MiB?"
    without = {"retention_limit_seconds": None, "retention_limit_bytes": None}
    assert [cells(cleanup_policy=policy, **without)[4] for policy in ("compact", "compact,delete", "")] == ["compact", "none", "no policy"]


@pytest.mark.parametrize(
    ("by", "names"),
    [("overdue", ["b", "a", "c"]), ("lag", ["c", "a", "b"]), ("reclaimable", ["a", "c", "b"]), ("size", ["c", "b", "a"])],
)
def test_the_largest_comes_first_and_rows_without_a_value_last(by: str, names: list[str]) -> None:
    rows = [
        row("a", retention_overdue_seconds=1.0, retention_lag_seconds=2.0, retention_reclaimable_bytes=9, size_bytes=1),
        row("b", retention_overdue_seconds=2.0, retention_lag_seconds=None, retention_reclaimable_bytes=None, size_bytes=2),
        row("c", retention_overdue_seconds=None, retention_lag_seconds=3.0, retention_reclaimable_bytes=0, size_bytes=3),
    ]
    assert [each.topic for each in sorted_rows(rows, by)] == names


def test_totals_are_those_of_all_rows() -> None:
    late = row(retention_blocked="high_watermark", dirty_bytes=1 << 20)
    fine = row("u", retention_lag_seconds=0.0, retention_overdue_seconds=0.0, retention_reclaimable_bytes=0)
    blocked = row("v", retention_blocked="high_watermark", retention_overdue_seconds=0.0)
    assert list(report([late, fine, blocked], NOW_MS))[5] == (
        "3 partitions, 12.0 MiB: 12.0 MiB reclaimable, 1.0 MiB dirty; 2 keep records past their limit, 1 overdue, "
        "2 blocked (high_watermark 2)"
    )


def test_a_row_is_overdue_after_two_checks_unless_something_blocks_it() -> None:
    assert advised(row(retention_overdue_seconds=600.0)) == {}
    assert advised(row(retention_overdue_seconds=600.5)) == {"overdue": "t-0"}
    assert advised(row(retention_blocked="remote_copy")) == {"remote_copy": "t-0"}


def test_advice_comes_in_its_order_with_the_rows_that_it_is_about() -> None:
    calm = {"retention_overdue_seconds": None}
    rows = (
        row("a", limit_source="assumed", **calm),
        row("b", uncleanable_bytes={"open_transaction": 1, "compaction_lag": 0}, **calm),
        row("c", retention_blocked="head_of_line"),
        row("d", retention_blocked="head_of_line"),
    )
    found = advised(*rows)
    assert found == {"head_of_line": "c-0, d-0", "open_transaction": "b-0", "assumed": "a-0"}
    assert list(found) == [reason for reason in ADVICE if reason in found]
