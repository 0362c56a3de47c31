"""The view of one partition: what is wrong, its last hour, its segments to scale, who holds it open."""

from dataclasses import dataclass, replace

from streaming.broker.protocol.listing_json import PARTITIONS_PATH, PartitionDetail, PartitionRow, ReplicaRow, SegmentRow, path_of_partition
from streaming.broker.protocol.status_json import Status
from streaming.common.formatting import format_name, format_time
from streaming.pages.listings.list_cells import Times, place
from streaming.pages.listings.partition_list import RETENTION, segment_deletion
from streaming.pages.listings.transaction_list import TRANSACTIONS, open_long
from streaming.pages.site.hour_charts import hour_charts
from streaming.pages.site.page_charts import Chart
from streaming.pages.site.page_links import PARTITIONS
from streaming.pages.site.page_tables import Column, PageTable, columns_of, draw
from streaming.pages.site.page_views import Fact, PageView, listed_facts
from streaming.pages.site.page_words import NOTHING, PageCell, bytes_rate, moment, number, records_rate, size
from streaming.pages.site.segment_strip import Strip, by_size, by_time
from streaming.pages.site.shown_incidents import ShownKind, by_kind, shown_problems

_MOST_LISTED = 50
"""So many segments are listed below the drawing, the newest."""

_ABOVE = ("topic", "broker", "size_bytes")
"""What the facts above the retention have already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView(PageView):
    """One partition."""

    problems: tuple[ShownKind, ...]
    facts: tuple[Fact, ...]
    charts: tuple[Chart, ...]
    strips: tuple[Strip, ...]
    retention: tuple[Fact, ...]
    transactions: PageTable
    segments: PageTable
    replicas: PageTable


def partition_view(detail: PartitionDetail, status: Status) -> PartitionView:
    """The view of a partition."""
    row, now = detail.row, detail.at_ms
    strips = (by_size(detail.segments, detail.retention, detail.omitted), by_time(detail.segments, detail.retention, now, detail.omitted))
    newest = detail.segments[::-1][:_MOST_LISTED]
    return PartitionView(
        title=place(row.topic, row.partition),
        here=PARTITIONS,
        status=status,
        json=path_of_partition(row.topic, row.partition) if row.topic not in ("", ".", "..") else PARTITIONS_PATH,
        problems=by_kind(shown_problems(detail.problems, now)),
        facts=_facts(row, detail.records_why, now),
        charts=tuple(hour_charts(detail.minutes, now)),
        strips=tuple(each for each in strips if each is not None),
        retention=() if detail.retention is None else listed_facts(RETENTION, detail.retention, now, without=_ABOVE),
        transactions=draw(
            "transactions",
            f"Transactions {open_long(detail.late_after_ms, detail.young_transactions)}",
            columns_of(TRANSACTIONS.page_columns[1:]),
            detail.transactions,
            now,
            empty=f"None is {open_long(detail.late_after_ms, detail.young_transactions)}.",
        ),
        segments=draw("segments", f"Newest {len(newest)} segments", _segment_columns(row), newest, now, empty="No segment is known."),
        replicas=draw("replicas", "Replicas that are watched", _REPLICA_COLUMNS, detail.replicas, now, empty="No replica is watched."),
    )


def _facts(row: PartitionRow, uncounted: str, now_ms: int) -> tuple[Fact, ...]:
    return (
        Fact(name="Leader's broker", value=number(row.broker)),
        Fact(name="Bytes a second", value=PageCell(text=bytes_rate(row.bytes_rate))),
        Fact(name="Records a second", value=PageCell(text=records_rate(row.records_rate))),
        Fact(name="Last append", value=moment(row.last_append_ms, now_ms)),
        Fact(name="Size", value=size(row.size_bytes)),
        Fact(name="Log start offset", value=number(row.log_start_offset)),
        Fact(name="Last stable offset", value=number(row.last_stable_offset)),
        Fact(name="High watermark", value=number(row.high_watermark)),
        Fact(name="Log end offset", value=number(row.log_end_offset)),
        Fact(name="Held back", value=number(row.unread_offsets)),
        Fact(name="Records on disk", value=replace(number(row.records_data), note=uncounted)),
        Fact(name="of these aborted", value=number(row.records_aborted)),
    )


def _kind(row: SegmentRow, now_ms: int) -> PageCell:
    if row.active:
        return PageCell(text="active")
    if row.deletable:
        return PageCell(text="beyond the limit", tone="warning")
    return PageCell(text="closed")


def _segment_columns(row: PartitionRow) -> tuple[Column[SegmentRow], ...]:
    def deletion(segment: SegmentRow, now_ms: int) -> PageCell:
        at = format_time(segment.deletion_ms) if segment.deletion_ms >= 0 > row.next_deletion_start_of else ""
        return PageCell(text=segment_deletion(segment, row, Times(now_ms)), time=at)

    return (
        Column(head="Base offset", cell=lambda segment, _: number(segment.base_offset), numbers=True),
        Column(head="State", cell=_kind),
        Column(head="Size", cell=lambda segment, _: size(segment.size_bytes), numbers=True),
        Column(head="Largest time", cell=lambda segment, now: moment(segment.max_timestamp_ms, now)),
        Column(head="Deletion", cell=deletion),
    )


_REPLICA_COLUMNS: tuple[Column[ReplicaRow], ...] = (
    Column(head="Broker", cell=lambda row, _: PageCell(text=str(row.broker), note="shown here" if row.shown else "")),
    Column(head="Role", cell=lambda row, _: PageCell(text=row.role)),
    Column(head="In sync", cell=lambda row, _: PageCell(text=row.in_sync)),
    Column(head="Log end offset", cell=lambda row, _: number(row.log_end_offset), numbers=True),
    Column(head="Size", cell=lambda row, _: size(row.size_bytes), numbers=True),
    Column(head="Last append", cell=lambda row, now: moment(row.last_append_ms, now)),
    Column(head="Log dir", cell=lambda row, _: PageCell(text=format_name(row.log_dir, 255) if row.log_dir else NOTHING, name=True)),
)
