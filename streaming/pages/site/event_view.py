"""The view of what has changed: problems that began and ended, restarts and elections, the newest first."""

from collections.abc import Sequence

from streaming.broker.protocol.status_json import EVENTS_PATH, ClusterEvent, EventPage, Status
from streaming.common.formatting import format_time
from streaming.pages.api.event_log import MOST_EVENTS
from streaming.pages.api.state import State
from streaming.pages.listings.problem_list import EVENTS
from streaming.pages.site.page_links import EVENTS as HERE
from streaming.pages.site.page_links import link
from streaming.pages.site.page_query import Query
from streaming.pages.site.page_tables import PageTable, Paging, columns_of, draw, paging
from streaming.pages.site.page_views import Filter, ListView


def event_view(state: State, query: Query, status: Status) -> ListView:
    """All changes that are kept."""
    page = state.events(query.text("filter", "offset"))
    steps = paging(HERE, query.given("filter"), offset=page.offset, rows=len(page.rows), matched=page.matched, total=page.total)
    nothing = "Nothing has changed." if page.since_ms >= 0 else "No change is known."
    empty = "No change matches the filter." if query.filter and page.total else nothing
    return ListView(
        title="What has changed",
        here=HERE,
        status=status,
        json=link(EVENTS_PATH, query.given("filter", "offset")),
        intro=_known_since(page),
        table=event_table("rows", page.rows, page.at_ms, empty=empty, paging=steps),
        filter=Filter(path=HERE, text=query.filter, label="Filter changes"),
    )


def event_table(key: str, rows: Sequence[ClusterEvent], now_ms: int, *, empty: str, paging: Paging | None = None) -> PageTable:
    """Some changes as a table; ``key``: its id on the page."""
    return draw(key, "What has changed, the newest first", columns_of(EVENTS.page_columns), rows, now_ms, empty=empty, paging=paging)


def _known_since(page: EventPage) -> str:
    if page.since_ms < 0:
        return "A running job sees what changes, once it has read everything that was on the disks."
    since = format_time(page.since_ms)
    return f"Changes since {since}, as this job saw them. It looks at least once a minute, and keeps the last {MOST_EVENTS}."
