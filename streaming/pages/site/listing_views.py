"""The views of all partitions, open transactions, retention and consumer groups: one table each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from streaming.broker.protocol.group_json import GroupPage
from streaming.broker.protocol.listing_json import ListPage, TransactionPage
from streaming.broker.protocol.shown import ASC, DESC
from streaming.broker.protocol.status_json import EVENTS_PATH, ClusterEvent, EventPage, Status
from streaming.common.formatting import format_count, format_time
from streaming.errors import NotYetError
from streaming.pages.api.event_log import MOST_EVENTS
from streaming.pages.api.state import State
from streaming.pages.listings import group_list, partition_list, transaction_list
from streaming.pages.listings.listing import Listing
from streaming.pages.listings.problem_list import EVENTS
from streaming.pages.site.page_links import EVENTS as HERE
from streaming.pages.site.page_links import Query, link
from streaming.pages.site.page_tables import PageTable, Paging, Sorting, choices, columns_of, draw, paging
from streaming.pages.site.page_views import Filter, ListView

Row = TypeVar("Row")

_CHOSEN = tuple(group_list.GROUPS.chosen_by)
"""Parameters that choose rows by their words; the lists without them refuse them."""

_STAYING = ("sort", "order", "filter", *_CHOSEN)
_API_PARAMETERS = (*_STAYING, "offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class _ListKind:
    """One kind of table. ``page``: asks for some of its rows."""

    listing: Listing
    page: Callable[[State, str], ListPage]
    title: str
    intro: str
    empty: str

    @property
    def path(self) -> str:
        """Where it is."""
        return f"/{self.listing.name}"

    def view(self, state: State, query: Query, status: Status) -> ListView:
        """The table of some of its rows."""
        page: Any
        try:
            page = self.page(state, query.text(*_API_PARAMETERS))
        except NotYetError:  # of groups
            page = GroupPage(at_ms=status.at_ms, total=0, matched=0, offset=0, sort=self.listing.default, order=ASC, rows=[])
            return self._drawn(query, status, page)
        if isinstance(page, GroupPage):
            sentence = group_list.no_groups(page)
            return replace(self, empty=f"{sentence[:1].upper()}{sentence[1:]}.")._drawn(query, status, page)
        if isinstance(page, TransactionPage):
            listed = transaction_list.open_long(page.late_after_ms, page.young)
            kind = replace(self, intro=f"{self.intro} Listed is what is {listed}.", empty=f"None is {listed}.")
            return kind._drawn(query, status, page, _only_counted(page.omitted))
        return self._drawn(query, status, page)

    def _drawn(self, query: Query, status: Status, page: Any, notes: tuple[str, ...] = ()) -> ListView:
        steps = paging(self.path, query.given(*_STAYING), offset=page.offset, rows=len(page.rows), matched=page.matched, total=page.total)
        sorting = Sorting(path=self.path, sort=page.sort, order=page.order, others=query.given("filter", *_CHOSEN))
        empty = "Nothing matches the filter." if query.given("filter", *_CHOSEN) and page.total else self.empty
        columns = columns_of(self.listing.page_columns)
        return ListView(
            title=self.title,
            here=self.path,
            status=status,
            json=link(self.listing.path, query.given(*_API_PARAMETERS)),
            intro=self.intro,
            table=draw("rows", self.title, columns, page.rows, page.at_ms, empty=empty, sorting=sorting, paging=steps),
            filter=Filter(
                path=self.path,
                text=query.filter,
                label=f"Filter {self.title.lower()}",
                sorts=choices(columns, page.sort),
                order=page.order,
                parameters=tuple(query.given(*_CHOSEN).items()),
            ),
            notes=notes,
        )


_KINDS = (
    _ListKind(
        listing=partition_list.TOPICS,
        page=lambda state, query: state.topics(query),
        title="Topics",
        intro="What the partitions of each topic come to.",
        empty="No topic is watched yet.",
    ),
    _ListKind(
        listing=partition_list.BROKERS,
        page=lambda state, query: state.brokers(query),
        title="Brokers",
        intro="Whether each broker serves, what it leads and holds, and who watches it.",
        empty="No broker is known yet.",
    ),
    _ListKind(
        listing=partition_list.PARTITIONS,
        page=lambda state, query: state.partitions(query),
        title="Partitions",
        intro="Each partition by the replica of its leader, where that is watched.",
        empty="No partition is watched yet.",
    ),
    _ListKind(
        listing=transaction_list.TRANSACTIONS,
        page=lambda state, query: state.transactions(query),
        title="Open transactions",
        intro="Readers of committed data wait at the oldest open transaction of a partition.",
        empty="No transaction is open.",
    ),
    _ListKind(
        listing=partition_list.RETENTION,
        page=lambda state, query: state.retention(query),
        title="Retention",
        intro="What is kept, for how long, and what Kafka could have deleted and has not.",
        empty="No partition is watched yet.",
    ),
    _ListKind(
        listing=group_list.GROUPS,
        page=lambda state, query: state.groups(query),
        title="Consumer groups",
        intro="What each group has left to read, counted in records that it will really get.",
        empty="Nothing is known of consumer groups yet.",
    ),
)
LIST_VIEWS: Mapping[str, Callable[[State, Query, Status], ListView]] = {each.path: each.view for each in _KINDS}
"""What makes the view of a list, by its path."""


def _only_counted(omitted: int) -> tuple[str, ...]:
    be = "is" if omitted == 1 else "are"
    return (f"{format_count(omitted, 'more transaction')} that {be} only counted.",) if omitted else ()


def by_key(rows: Sequence[Row], key: Callable[[Row], float | str], order: str) -> list[Row]:
    """Rows in an order; what is not known comes last in either."""

    def known(row: Row) -> bool:
        value = key(row)
        return isinstance(value, str) or value >= 0

    ordered = sorted(filter(known, rows), key=key, reverse=order == DESC)
    return ordered + [row for row in rows if not known(row)]


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
