"""The report on retention: totals, and what is to be done for which rows. Its columns are those of the list."""

from typing import Any

from streaming.broker.protocol.listing_json import RetentionRow
from streaming.terminal.cli.retention_report import ADVICE, report
from tests.listings.kept_rows import NOW_MS, kept

HOUR = 3_600_000
CALM: dict[str, Any] = {"kind": "", "retention_overdue": False}


def row(topic: str = "t", **values: Any) -> RetentionRow:
    given = {"size_bytes": 4 << 20, "retention_reclaimable_bytes": 6 << 20, "kind": "retention_overdue", "retention_overdue": True}
    return kept(**given | {"limit_source": "topic"} | values, named=topic)


def advised(*rows: RetentionRow) -> dict[str, str]:
    """By reason, the partitions that are named."""
    lines = list(report(rows, NOW_MS))[len(rows) + 4 :]
    return {reason: rest.partition(": ")[0] for reason, _, rest in (line.partition(": ") for line in lines)}


def test_totals_are_those_of_all_rows() -> None:
    late = row(retention_blocked="high_watermark", dirty_bytes=1 << 20)
    fine = row("u", retention_lag_ms=0, retention_reclaimable_bytes=0, **CALM)
    blocked = row("v", retention_blocked="high_watermark", **CALM)
    assert list(report([late, fine, blocked], NOW_MS))[5] == (
        "3 partitions, 12.0 MiB: 12.0 MiB reclaimable, 1.0 MiB dirty; 2 keep records past their limit, 1 overdue, "
        "2 blocked (high_watermark 2)"
    )
    assumed = row("w", kind="limits_assumed", limits_assumed=True)
    table = list(report([assumed, late], NOW_MS))
    assert "7h?" in table[1]
    assert "; 2 keep records past their limit, 1 overdue, 1 overdue by assumed limits, 1 blocked" in table[4]


def test_a_row_is_overdue_where_the_judge_says_so_unless_something_blocks_it() -> None:
    assert advised(row(retention_overdue_ms=86_400_000, **CALM)) == {}
    assert advised(row()) == {"overdue": "t-0"}
    assert advised(row(retention_blocked="remote_copy")) == {"remote_copy": "t-0"}


def test_a_compacted_log_without_a_closed_segment_says_why_nothing_is_compacted() -> None:
    compacted = {"cleanup_policy": "compact", "segments": 1} | CALM
    assert advised(row("a", **compacted), row("__consumer_offsets", **compacted)) == {"all_active": "a-0"}
    assert advised(row("a", **compacted | {"segments": 2}), row("b", **compacted | {"cleanup_policy": "delete"})) == {}


def test_what_nothing_limits_is_kept_for_ever() -> None:
    kept_on = {"cleanup_policy": "delete", "retention_limit_ms": -1, "retention_limit_bytes": -1} | CALM
    rows = row("a", **kept_on), row("b", **kept_on), row("c", **kept_on | {"retention_limit_bytes": 1 << 30})
    assert advised(*rows, row("d", **kept_on | {"limits_assumed": True}))["unlimited"] == "a-0, b-0"
    assert any(line.startswith("unlimited: a-0, b-0: 8.0 MiB. Neither retention.ms nor") for line in report(rows, NOW_MS))


def test_advice_comes_in_its_order_with_the_rows_that_it_is_about() -> None:
    rows = (
        row("a", limits_assumed=True, **CALM),
        row("b", uncleanable_open_transaction_bytes=1, uncleanable_compaction_lag_bytes=0, **CALM),
        row("c", retention_blocked="head_of_line", retention_blocked_why="Because."),
        row("d", retention_blocked="head_of_line", retention_blocked_why="Because."),
    )
    found = advised(*rows)
    assert found == {"head_of_line": "c-0, d-0", "open_transaction": "b-0", "assumed": "a-0"}
    assert list(found) == [*(reason for reason in ADVICE if reason in found), "assumed"]
    assert f"head_of_line: c-0, d-0: Because. {ADVICE['head_of_line']}" in report(rows, NOW_MS)
