"""The view of one partition: what is wrong, its last hour, its segments to scale, who holds it open."""

from dataclasses import dataclass

from streaming.broker.protocol.listing_json import PARTITIONS_PATH, PartitionDetail, path_of_partition
from streaming.broker.protocol.status_json import Status
from streaming.pages.listings.details import REPLICAS, partition_facts, retention_facts, segments_of
from streaming.pages.listings.list_cells import Times, place
from streaming.pages.listings.transaction_list import TRANSACTIONS, open_long
from streaming.pages.site.hour_charts import hour_charts
from streaming.pages.site.page_charts import Chart
from streaming.pages.site.page_links import PARTITIONS
from streaming.pages.site.page_tables import PageTable, columns_of, draw
from streaming.pages.site.page_views import Fact, PageView, drawn_facts
from streaming.pages.site.segment_strip import Strip, by_size, by_time
from streaming.pages.site.shown_incidents import ShownKind, by_kind, shown_problems

_MOST_LISTED = 50
"""So many segments are listed below the drawing, the newest."""


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
    row, now, times = detail.row, detail.at_ms, Times(detail.at_ms)
    strips = (by_size(detail.segments, detail.retention, detail.omitted), by_time(detail.segments, detail.retention, now, detail.omitted))
    newest = detail.segments[::-1][:_MOST_LISTED]
    return PartitionView(
        title=place(row.topic, row.partition),
        here=PARTITIONS,
        status=status,
        json=path_of_partition(row.topic, row.partition) if row.topic not in ("", ".", "..") else PARTITIONS_PATH,
        problems=by_kind(shown_problems(detail.problems, now)),
        facts=drawn_facts(partition_facts(detail, times)),
        charts=tuple(hour_charts(detail.minutes, now)),
        strips=tuple(each for each in strips if each is not None),
        retention=drawn_facts(retention_facts(detail, times)),
        transactions=draw(
            "transactions",
            f"Transactions {open_long(detail.late_after_ms, detail.young_transactions)}",
            columns_of(TRANSACTIONS.page_columns[1:]),
            detail.transactions,
            now,
            empty=f"None is {open_long(detail.late_after_ms, detail.young_transactions)}.",
        ),
        segments=draw(
            "segments", f"Newest {len(newest)} segments", columns_of(segments_of(row).columns), newest, now, empty="No segment is known."
        ),
        replicas=draw(
            "replicas", "Replicas that are watched", columns_of(REPLICAS.columns), detail.replicas, now, empty="No replica is watched."
        ),
    )
