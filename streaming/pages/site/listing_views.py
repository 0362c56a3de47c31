"""The views that are lists: of problems, partitions, transactions and others, and what the search in the head of the page finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from urllib.parse import urlencode

from streaming.broker.protocol.disk_json import BY, DISK_PATH, FULL, DiskAnswer, LogDirUse
from streaming.broker.protocol.group_json import GroupPage
from streaming.broker.protocol.json_message import ASC, DESC
from streaming.broker.protocol.listing_json import LARGEST_LIMIT, ListPage, TransactionPage, TransactionRow
from streaming.broker.protocol.status_json import COST_PATH, EVENTS_PATH, ClusterEvent, Cost, EventPage, Share, Status
from streaming.common.units import capitalized, format_count, format_duration, format_name, format_size, format_time
from streaming.errors import NotYetError
from streaming.pages.api.event_log import MOST_EVENTS
from streaming.pages.api.state import State
from streaming.pages.api.topic_use import ASKED_BY
from streaming.pages.listings import declared_lists
from streaming.pages.listings.declared_lists import DISK, EVENTS, LOG_DIRS, admin_since
from streaming.pages.listings.listing import Listing, place
from streaming.pages.site.page_links import (
    BROKERS,
    COST,
    DISKS,
    GROUPS,
    SEARCH,
    TOPICS,
    TRANSACTIONS,
    Query,
    broker_link,
    group_link,
    link,
    topic_link,
)
from streaming.pages.site.page_links import EVENTS as HERE
from streaming.pages.site.page_views import (
    Column,
    Fact,
    Filter,
    FormChoice,
    ListView,
    PageTable,
    PageView,
    Paging,
    Sorting,
    choices,
    columns_of,
    draw,
    paging,
)
from streaming.pages.site.page_words import NOTHING, Link, PageCell, number, size

Row = TypeVar("Row")

_CHOSEN = (*declared_lists.GROUPS.chosen_by, *declared_lists.TOPICS.chosen_by, *ASKED_BY)
"""Parameters that choose rows by their words; the lists without them refuse them."""

_STAYING = ("sort", "order", "filter", *_CHOSEN)
LIST_PARAMETERS = (*_STAYING, "offset")

PARAMETERS = ("by", "filter", "offset")

_MOST_DIRS = 100
_WORDS = {"topic": "by topic", "partition": "by partition", "dir": "by log dir", "kind": "by kind of files"}

_MOST = 20
"""So many of each kind are listed."""


def search_view(state: State, text: str, status: Status) -> SearchView:
    """What holds a text in its name, in upper or lower case.

    Raises:
        UsageError: the text is too long.
    """
    text, notes = text.strip(), list[str]()
    found = list[FoundKind]()
    if text:
        query = urlencode({"filter": text, "sort": "topic", "limit": _MOST}, errors="replace")
        topics = state.topics(query)
        links = [Link(text=format_name(each.topic, 249), href=topic_link(each.topic)) for each in topics.rows]
        found.append(_found("Topics", links, topics.matched, link(TOPICS, {"filter": text})))
        try:
            groups = state.groups(urlencode({"filter": text, "sort": "group", "limit": _MOST}, errors="replace"))
            links = [Link(text=format_name(each.group, 255), href=group_link(each.group)) for each in groups.rows]
            found.append(_found("Consumer groups", links, groups.matched, link(GROUPS, {"filter": text})))
        except NotYetError as error:
            notes.append(f"{capitalized(str(error))}.")
        found.append(_transactions(state, text))
        brokers = [each for each in state.brokers(urlencode({"limit": LARGEST_LIMIT})).rows if str(each.broker) == text]
        found.append(_found("Brokers", [Link(text=f"broker {each.broker}", href=broker_link(each.broker)) for each in brokers], 0, BROKERS))
    return SearchView(
        title="Search",
        here=SEARCH,
        status=status,
        text=text,
        found=tuple(each for each in found if each.links),
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundKind:
    """What was found of one kind; ``more`` leads to all of it, if that is more than is listed."""

    heading: str
    links: tuple[Link, ...]
    more: Link | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchView(PageView):
    """What was found. ``text``: what was looked for.

    The search in the head of the page: topics, consumer groups, transactional ids and brokers by a part of their names.
    """

    text: str
    found: tuple[FoundKind, ...]
    notes: tuple[str, ...]

    @property
    def only(self) -> str:
        """Where the only match is, "" if there is another one or none."""
        links = [each for kind in self.found for each in kind.links]
        return links[0].href if len(links) == 1 else ""


def _found(heading: str, links: Sequence[Link], matched: int, every: str) -> FoundKind:
    more = Link(text=f"all {matched:,}", href=every) if matched > len(links) else None
    return FoundKind(heading=heading, links=tuple(links), more=more)


def _transactions(state: State, text: str) -> FoundKind:
    """Open transactions by their transactional ids."""
    page = state.transactions(urlencode({"filter": text, "sort": "start_ms", "limit": LARGEST_LIMIT}, errors="replace"))
    rows = [each for each in page.rows if text.casefold() in each.transactional_id.casefold()]
    ids = dict.fromkeys(each.transactional_id for each in rows)
    links = [_of_id(name, [each for each in rows if each.transactional_id == name]) for name in list(ids)[:_MOST]]
    return _found("Open transactions", links, len(ids), link(TRANSACTIONS, {"filter": text}))


def _of_id(name: str, rows: Sequence[TransactionRow]) -> Link:
    where = place(rows[0].topic, rows[0].partition) if len(rows) == 1 else format_count(len(rows), "partition")
    return Link(text=f"{format_name(name)} in {where}", href=link(TRANSACTIONS, {"filter": name}))


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
            page = self.page(state, query.text(*LIST_PARAMETERS))
        except NotYetError:  # of groups
            page = GroupPage(at_ms=status.at_ms, total=0, matched=0, offset=0, sort=self.listing.default, order=ASC, rows=[])
            return self._drawn(query, status, page)
        if isinstance(page, GroupPage):
            sentence = declared_lists.no_groups(page)
            return replace(self, empty=f"{capitalized(sentence)}.")._drawn(query, status, page)
        if isinstance(page, TransactionPage):
            listed = declared_lists.open_long(page.late_after_ms, page.young)
            kind = replace(self, intro=f"{self.intro} Listed are only transactions {listed}.", empty=f"None is {listed}.")
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
            json=link(self.listing.path, query.given(*LIST_PARAMETERS)),
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


def _only_counted(omitted: int) -> tuple[str, ...]:
    be = "is" if omitted == 1 else "are"
    return (f"{format_count(omitted, 'more transaction')} that {be} only counted.",) if omitted else ()


_KINDS = (
    _ListKind(
        listing=declared_lists.TOPICS,
        page=lambda state, query: state.topics(query),
        title="Topics",
        intro="What the partitions of each topic come to.",
        empty="No topic is watched yet.",
    ),
    _ListKind(
        listing=declared_lists.BROKERS,
        page=lambda state, query: state.brokers(query),
        title="Brokers",
        intro="Whether each broker serves, what it leads and holds, and who watches it.",
        empty="No broker is known yet.",
    ),
    _ListKind(
        listing=declared_lists.PARTITIONS,
        page=lambda state, query: state.partitions(query),
        title="Partitions",
        intro="Each partition by the replica of its leader, where that is watched.",
        empty="No partition is watched yet.",
    ),
    _ListKind(
        listing=declared_lists.TRANSACTIONS,
        page=lambda state, query: state.transactions(query),
        title="Open transactions",
        intro="Readers of committed data wait at the oldest open transaction of a partition.",
        empty="No transaction is open.",
    ),
    _ListKind(
        listing=declared_lists.RETENTION,
        page=lambda state, query: state.retention(query),
        title="Retention",
        intro="What is kept, for how long, and what Kafka could have deleted and has not.",
        empty="No partition is watched yet.",
    ),
    _ListKind(
        listing=declared_lists.GROUPS,
        page=lambda state, query: state.groups(query),
        title="Consumer groups",
        intro="What each group has left to read, counted in records that it will really get.",
        empty="Nothing is known of consumer groups yet.",
    ),
)


LIST_VIEWS: Mapping[str, Callable[[State, Query, Status], ListView]] = {each.path: each.view for each in _KINDS}
"""What makes the view of a list, by its path."""


def by_key(rows: Sequence[Row], key: Callable[[Row], float | str], order: str) -> list[Row]:
    """Rows in an order; those whose key is not known come last in either."""

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


def _known_since(page: EventPage) -> str:
    since = format_time(page.since_ms)
    seen = f"Changes since {since}, as this job saw them. It looks at least once a minute, and keeps the last {MOST_EVENTS}."
    never = "A running job sees what changes, once it has read everything that was on the disks."
    return f"{seen if page.since_ms >= 0 else never} {admin_since(page)}"


def event_table(key: str, rows: Sequence[ClusterEvent], now_ms: int, *, empty: str, paging: Paging | None = None) -> PageTable:
    """Some changes as a table; ``key``: its id on the page."""
    return draw(key, "What has changed, the newest first", columns_of(EVENTS.page_columns), rows, now_ms, empty=empty, paging=paging)


def disks_view(answer: DiskAnswer, query: Query, status: Status) -> DisksView:
    """The view of disks.

    The view of disks: when each log dir is full, and what fills them, by topic, partition, log dir or kind of files.
    """
    text = query.filter.casefold()
    dirs = sorted((each for each in answer.log_dirs if text in f"broker {each.broker} {each.log_dir}".casefold()), key=_soonest_first)
    omitted = len(dirs) - _MOST_DIRS
    return DisksView(
        title="Disks",
        here=DISKS,
        status=status,
        json=link(DISK_PATH, query.given(*PARAMETERS)),
        dirs=draw(
            "dirs",
            "Log dirs",
            columns_of(LOG_DIRS.page_columns),
            dirs[:_MOST_DIRS],
            answer.at_ms,
            empty="No log dir matches." if answer.log_dirs else "No agent has told of a log dir yet.",
        ),
        more=f"{format_count(omitted, 'more log dir')} not listed: filter by path or broker." if omitted > 0 else "",
        filter=Filter(path=DISKS, text=query.filter, label="Find on disks", parameters=tuple(query.given("by").items())),
        choices=tuple(
            FormChoice(value=link(DISKS, {**query.given("filter"), "by": each}), text=_WORDS[each], chosen=each == answer.by) for each in BY
        ),
        table=draw(
            "rows",
            f"What fills them, {_WORDS[answer.by]}; segments by their length",
            columns_of(DISK[answer.by].page_columns),
            answer.rows,
            answer.at_ms,
            empty="Nothing matches the filter." if answer.total else "Nothing is known of what fills them.",
            paging=paging(
                DISKS,
                query.given("by", "filter"),
                offset=answer.offset,
                rows=len(answer.rows),
                matched=answer.matched,
                total=answer.total,
            ),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DisksView(PageView):
    """What disks hold. ``choices``: what a row may be about."""

    dirs: PageTable
    more: str
    filter: Filter
    choices: tuple[FormChoice, ...]
    table: PageTable


def _soonest_first(log_dir: LogDirUse) -> tuple[bool, bool, int, int, str]:
    """The key by which log dirs that cannot be read come first, then full ones, then those that are full soonest."""
    return log_dir.up, log_dir.outlook != FULL, log_dir.full_ms, log_dir.broker, log_dir.log_dir


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CostView(PageView):
    """What a scrape costs."""

    facts: tuple[Fact, ...]
    notes: tuple[str, ...]
    metrics: PageTable
    topics: PageTable


def _columns(head: str, cost: Cost) -> tuple[Column[Share], ...]:
    def share(row: Share, now_ms: int) -> PageCell:
        return PageCell(text=f"{row.bytes / cost.bytes:.1%}" if cost.bytes else NOTHING)

    return (
        Column(head=head, cell=lambda row, _: PageCell(text=format_name(row.name, 255), name=True)),
        Column(head="Series", cell=lambda row, _: number(row.series), numbers=True),
        Column(head="Bytes", cell=lambda row, _: PageCell(text=format_size(row.bytes)), numbers=True),
        Column(head="Share of bytes", cell=share, numbers=True),
    )
