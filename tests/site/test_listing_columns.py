"""What the page's tables of partitions, transactions and retention show: each column its own value, and how severe it looks."""

from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

from streaming.protocol.listing_json import PartitionRow, RetentionRow, TransactionRow
from streaming.protocol.partition_json import PartitionDetail
from streaming.protocol.problem_json import CRITICAL, WARNING
from streaming.protocol.status_json import Status
from streaming.site.listing_columns import PARTITION_COLUMNS, RETENTION_COLUMNS, TRANSACTION_COLUMNS
from streaming.site.page_tables import Column
from streaming.site.page_words import NOTHING, Cell
from streaming.site.partition_view import partition_view

NOW_MS = 1_700_000_000_000
HOUR = 3_600_000

Row = TypeVar("Row")

PARTITION: dict[str, Any] = {
    "bytes_rate": 2048.0,
    "records_rate": 3.5,
    "size_bytes": 4 << 20,
    "log_start_offset": 11,
    "log_end_offset": 15,
    "high_watermark": 14,
    "last_stable_offset": 13,
    "unread_offsets": 5,
    "open_transactions": 6,
    "last_append_ms": NOW_MS - 7 * HOUR,
    "next_deletion_ms": NOW_MS + 8 * HOUR,
    "records_data": 21,
    "records_aborted": 22,
}
RETENTION: dict[str, Any] = {
    "size_bytes": 1 << 20,
    "segments": 2,
    "oldest_record_ms": NOW_MS - 3 * HOUR,
    "retention_ms": 4 * HOUR,
    "retention_bytes": 5 << 20,
    "lag_ms": 6 * HOUR,
    "overdue_ms": 7 * HOUR,
    "reclaimable_bytes": 8 << 20,
    "next_deletion_ms": NOW_MS + 9 * HOUR,
}


def partition(**values: Any) -> PartitionRow:
    return PartitionRow(broker=1, topic="t", partition=0, **PARTITION | values)


def retention(**values: Any) -> RetentionRow:
    return RetentionRow(broker=1, topic="t", partition=0, **RETENTION | values)


def transaction(**values: Any) -> TransactionRow:
    given = {"producer_epoch": 3, "first_offset": 4, "start_ms": NOW_MS - 5 * HOUR, "last_append_ms": NOW_MS - 6 * HOUR}
    return TransactionRow(broker=1, topic="t", partition=0, producer_id=2, **given | {"verdict": "open", "holds_offsets": 7} | values)


def cell(columns: Sequence[Column[Row]], head: str, row: Row) -> Cell:
    (column,) = (each for each in columns if each.head == head)
    return column.cell(row, NOW_MS)


def shown(columns: Sequence[Column[Row]], row: Row) -> list[str]:
    return [each.cell(row, NOW_MS).text for each in columns]


def test_each_column_of_partitions_shows_its_own_value() -> None:
    assert shown(PARTITION_COLUMNS, partition()) == ["t-0", "1", "2.0 KiB/s", "3.5/s", "4.0 MiB", "5", "6", "7h ago", "in 8h"]


def test_each_column_of_transactions_shows_its_own_value() -> None:
    texts = ["t-0", "transactional.id not known", "open", "5h ago", "6h ago", "4", "7", NOTHING, NOTHING]
    assert shown(TRANSACTION_COLUMNS, transaction()) == texts


def test_each_column_of_retention_shows_its_own_value() -> None:
    texts = ["t-0", "1.0 MiB", "2", "3h ago", "4h, 5.0 MiB", "6h", "7h", "8.0 MiB", "in 9h", NOTHING]
    assert shown(RETENTION_COLUMNS, retention()) == texts


def test_the_facts_of_a_partition_are_each_its_own() -> None:
    status = Status(at_ms=NOW_MS, version="0", ready=True, verdict="", freshness="")
    detail = PartitionDetail(at_ms=NOW_MS, row=partition(), retention=retention())
    view = partition_view(detail, status)
    offsets = {"Log start offset": "11", "Last stable offset": "13", "High watermark": "14", "Log end offset": "15"}
    facts = {each.name: each.value.text for each in view.facts}
    assert {name: facts[name] for name in offsets} == offsets
    assert [facts[name] for name in ("Offsets held back", "Records on disk", "of these aborted", "Size")] == ["5", "21", "22", "4.0 MiB"]
    assert [each.value.text for each in view.retention] == ["4h, 5.0 MiB", "3h ago", "6h", "7h", "8.0 MiB", "in 9h"]


def test_what_holds_back_readers_is_critical_if_it_hangs() -> None:
    hangs = cell(PARTITION_COLUMNS, "Offsets held back", partition(hanging_transactions=1))
    assert (hangs.note, hangs.tone) == ("1 transaction hanging", CRITICAL)
    fine = cell(PARTITION_COLUMNS, "Offsets held back", partition(hanging_transactions=0))
    assert (fine.note, fine.tone) == ("", "")


def test_a_deletion_that_is_blocked_is_a_warning_with_its_reason() -> None:
    found = cell(PARTITION_COLUMNS, "Next deletion by time", partition(blocked="high_watermark"))
    assert (found.text, found.note, found.tone) == ("blocked", "high watermark", WARNING)
    kept = cell(RETENTION_COLUMNS, "Blocked", retention(blocked="future_timestamp", blocked_why="because"))
    assert (kept.text, kept.note, kept.tone) == ("future timestamp", "because", WARNING)


@pytest.mark.parametrize(
    ("values", "text", "tone"),
    [
        ({"verdict": "hanging", "stuck": True}, "hanging, stuck", CRITICAL),
        ({"verdict": "two_phase", "stuck": True}, "two phase, stuck", WARNING),
        ({"verdict": "overdue"}, "overdue", ""),
        ({"verdict": ""}, "not known", ""),
    ],
)
def test_a_verdict_about_a_transaction(values: dict[str, Any], text: str, tone: str) -> None:
    found = cell(TRANSACTION_COLUMNS, "Verdict", transaction(coordinator_state="Ongoing", **values))
    assert (found.text, found.tone, found.note) == (text, tone, "coordinator: Ongoing")


def test_what_is_to_be_done_is_a_command_or_why_there_is_none() -> None:
    with_command = cell(TRANSACTION_COLUMNS, "What to do", transaction(command="kafka-transactions.sh", no_command="no"))
    without = cell(TRANSACTION_COLUMNS, "What to do", transaction(no_command="its coordinator ends it"))
    assert (with_command.command, with_command.text, without.command, without.text) == (
        "kafka-transactions.sh",
        "",
        "",
        "its coordinator ends it",
    )


def test_limits_that_are_missing_or_assumed_say_so() -> None:
    assert cell(RETENTION_COLUMNS, "Limit", retention(retention_ms=-1, retention_bytes=-1)).text == "none"
    assert cell(RETENTION_COLUMNS, "Limit", retention(retention_ms=-1, retention_bytes=0)).text == "0 B"
    assert cell(RETENTION_COLUMNS, "Limit", retention(retention_ms=0, retention_bytes=-1)).text == "0s"
    assert [cell(RETENTION_COLUMNS, "Limit", retention(limits_assumed=each)).note for each in (False, True)] == [
        "",
        "assumed: Kafka's default",
    ]
