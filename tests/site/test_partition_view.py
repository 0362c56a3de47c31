"""What the page shows of one partition's segments, in the words of the lists."""

from dataclasses import replace

from streaming.broker.protocol.listing_json import PartitionDetail, PartitionRow, SegmentRow
from streaming.broker.protocol.status_json import Status
from streaming.pages.site.detail_views import partition_view

NOW_MS = 1_700_000_000_000
HOUR = 3_600_000


def test_records_that_are_not_counted_have_the_reason() -> None:
    row = PartitionRow(broker=1, topic="orders", partition=0)
    detail = PartitionDetail(at_ms=NOW_MS, row=row, records_why="its agent a1 has not counted all of it yet")
    view = partition_view(detail, Status(at_ms=NOW_MS, version="0", ready=True, verdict="", freshness=""))
    (records,) = (each.value for each in view.facts if each.name == "Records on disk")
    assert (records.text, records.note) == ("-", "its agent a1 has not counted all of it yet")


def test_a_segment_is_deleted_later_or_due_or_blocked() -> None:
    segments = [
        SegmentRow(base_offset=1, deletable=True, deletion_ms=NOW_MS),
        SegmentRow(base_offset=2, deletable=True, deletion_ms=NOW_MS - HOUR),
        SegmentRow(base_offset=3, deletion_ms=NOW_MS - HOUR),  # past its limit, and something before it stays
        SegmentRow(base_offset=4, deletion_ms=NOW_MS + HOUR),
        SegmentRow(base_offset=5, deletion_ms=NOW_MS + 2 * HOUR, deletion_by_size=True),
        SegmentRow(base_offset=6, active=True),
    ]
    detail = PartitionDetail(at_ms=NOW_MS, row=PartitionRow(broker=1, topic="orders", partition=0), segments=segments)
    table = partition_view(detail, Status(at_ms=NOW_MS, version="0", ready=True, verdict="", freshness="")).segments
    column = [each.text for each in table.heads].index("Deletion")
    assert [row[column].text for row in reversed(table.rows)] == ["due", "due", "blocked", "in 1h by time", "in 2h by size", "-"]
    blocked = replace(detail, row=replace(detail.row, retention_blocked="remote_copy"))
    table = partition_view(blocked, Status(at_ms=NOW_MS, version="0", ready=True, verdict="", freshness="")).segments
    assert [row[column].text for row in reversed(table.rows)][:3] == ["blocked"] * 3
    away = replace(detail, row=replace(detail.row, next_deletion_start_of=1))
    table = partition_view(away, Status(at_ms=NOW_MS, version="0", ready=True, verdict="", freshness="")).segments
    assert [row[column].text for row in reversed(table.rows)] == [*["after broker 1 starts"] * 5, "-"]


def test_open_transactions_that_are_too_young_for_the_list_are_named() -> None:
    detail = PartitionDetail(
        at_ms=NOW_MS, row=PartitionRow(broker=1, topic="orders", partition=0), late_after_ms=60_000, young_transactions=2
    )
    table = partition_view(detail, Status(at_ms=NOW_MS, version="0", ready=True, verdict="", freshness="")).transactions
    assert table.empty == "None is open for longer than 1m; 2 are younger."
    assert table.caption == "Transactions open for longer than 1m; 2 are younger"
    every = replace(detail, late_after_ms=-1, young_transactions=0)
    table = partition_view(every, Status(at_ms=NOW_MS, version="0", ready=True, verdict="", freshness="")).transactions
    assert (table.empty, table.caption) == ("None is open.", "Transactions open")
