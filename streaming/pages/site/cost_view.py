"""The view of what a scrape costs, by metric and by topic: what `export` may leave out shows here."""

from dataclasses import dataclass

from streaming.broker.protocol.status_json import COST_PATH, Cost, Share, Status
from streaming.common.formatting import format_count, format_duration, format_name, format_size, format_time
from streaming.pages.site.page_links import COST
from streaming.pages.site.page_tables import Column, PageTable, draw
from streaming.pages.site.page_views import Fact, PageView
from streaming.pages.site.page_words import NOTHING, PageCell, number, size


@dataclass(frozen=True, slots=True, kw_only=True)
class CostView(PageView):
    """What a scrape costs."""

    facts: tuple[Fact, ...]
    notes: tuple[str, ...]
    metrics: PageTable
    topics: PageTable


def cost_view(cost: Cost, status: Status) -> CostView:
    """The view of a scrape."""
    notes = (
        "Nothing has been scraped yet." if cost.at_ms < 0 else "",
        f"{format_count(cost.series_dropped, 'series').replace('seriess', 'series')} left out: series_limit or label_limit is reached."
        if cost.series_dropped
        else "",
        f"{format_count(cost.omitted_topics, 'smaller topic')} not listed." if cost.omitted_topics else "",
    )
    return CostView(
        title="What a scrape costs",
        here=COST,
        status=status,
        json=COST_PATH,
        facts=(
            Fact(name="Series", value=number(cost.series if cost.at_ms >= 0 else -1)),
            Fact(name="Size before compression", value=size(cost.bytes if cost.at_ms >= 0 else -1)),
            Fact(
                name="Time to make it", value=PageCell(text=format_duration(cost.duration_ms / 1000) if cost.duration_ms >= 0 else NOTHING)
            ),
            Fact(
                name="Last scrape",
                value=PageCell(text=format_time(cost.at_ms), time=format_time(cost.at_ms)) if cost.at_ms >= 0 else PageCell(text=NOTHING),
            ),
        ),
        notes=tuple(note for note in notes if note),
        metrics=draw("metrics", "By metric", _columns("Metric", cost), cost.metrics, cost.at_ms, empty="None yet."),
        topics=draw("topics", "By topic", _columns("Topic", cost), cost.topics, cost.at_ms, empty="None yet."),
    )


def _columns(head: str, cost: Cost) -> tuple[Column[Share], ...]:
    def share(row: Share, now_ms: int) -> PageCell:
        return PageCell(text=f"{row.bytes / cost.bytes:.1%}" if cost.bytes else NOTHING)

    return (
        Column(head=head, cell=lambda row, _: PageCell(text=format_name(row.name, 255), name=True)),
        Column(head="Series", cell=lambda row, _: number(row.series), numbers=True),
        Column(head="Bytes", cell=lambda row, _: PageCell(text=format_size(row.bytes)), numbers=True),
        Column(head="Share of bytes", cell=share, numbers=True),
    )
