"""The views of all partitions, open transactions, retention and consumer groups: one table each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from streaming.broker.protocol.group_json import GroupPage, GroupSummary
from streaming.broker.protocol.listing_json import (
    BROKERS_PATH,
    PARTITIONS_PATH,
    RETENTION_PATH,
    TOPICS_PATH,
    TRANSACTIONS_PATH,
    BrokerRow,
    ListPage,
    PartitionRow,
    RetentionRow,
    TopicRow,
    TransactionRow,
)
from streaming.broker.protocol.shown import ASC, DESC
from streaming.broker.protocol.status_json import Status
from streaming.common.formatting import format_count
from streaming.errors import NotYetError
from streaming.pages.api.state import State
from streaming.pages.listings import group_list, partition_list, transaction_list
from streaming.pages.site.page_links import BROKERS, GROUPS, PARTITIONS, RETENTION, TOPICS, TRANSACTIONS, link
from streaming.pages.site.page_query import Query
from streaming.pages.site.page_tables import Column, Sorting, choices, columns_of, draw, paging
from streaming.pages.site.page_views import Filter, ListView

Row = TypeVar("Row")

_CHOSEN = tuple(group_list.GROUPS.chosen_by)
"""Parameters that choose rows by their words; the lists without them refuse them."""

_STAYING = ("sort", "order", "filter", *_CHOSEN)
_API_PARAMETERS = (*_STAYING, "offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class _ListKind(Generic[Row]):
    """One kind of table."""

    path: str
    api: str
    title: str
    intro: str
    empty: str
    columns: Sequence[Column[Row]]

    def view(self, query: Query, status: Status, page: ListPage, rows: Sequence[Row], notes: tuple[str, ...] = ()) -> ListView:
        """The table of a page of the list."""
        steps = paging(self.path, query.given(*_STAYING), offset=page.offset, rows=len(rows), matched=page.matched, total=page.total)
        sorting = Sorting(path=self.path, sort=page.sort, order=page.order, others=query.given("filter", *_CHOSEN))
        empty = "Nothing matches the filter." if query.given("filter", *_CHOSEN) and page.total else self.empty
        return ListView(
            title=self.title,
            here=self.path,
            status=status,
            json=link(self.api, query.given(*_API_PARAMETERS)),
            intro=self.intro,
            table=draw("rows", self.title, self.columns, rows, page.at_ms, empty=empty, sorting=sorting, paging=steps),
            filter=Filter(
                path=self.path,
                text=query.filter,
                label=f"Filter {self.title.lower()}",
                sorts=choices(self.columns, page.sort),
                order=page.order,
                parameters=tuple(query.given(*_CHOSEN).items()),
            ),
            notes=notes,
        )


_TOPICS: _ListKind[TopicRow] = _ListKind(
    path=TOPICS,
    api=TOPICS_PATH,
    title="Topics",
    intro="What the partitions of each topic come to.",
    empty="No topic is watched yet.",
    columns=columns_of(partition_list.TOPICS.page_columns),
)
_BROKERS: _ListKind[BrokerRow] = _ListKind(
    path=BROKERS,
    api=BROKERS_PATH,
    title="Brokers",
    intro="Whether each broker serves, what it leads and holds, and who watches it.",
    empty="No broker is known yet.",
    columns=columns_of(partition_list.BROKERS.page_columns),
)
_PARTITIONS: _ListKind[PartitionRow] = _ListKind(
    path=PARTITIONS,
    api=PARTITIONS_PATH,
    title="Partitions",
    intro="Each partition by the replica of its leader, where that is watched.",
    empty="No partition is watched yet.",
    columns=columns_of(partition_list.PARTITIONS.page_columns),
)
_TRANSACTIONS: _ListKind[TransactionRow] = _ListKind(
    path=TRANSACTIONS,
    api=TRANSACTIONS_PATH,
    title="Open transactions",
    intro="Readers of committed data wait at the oldest open transaction of a partition.",
    empty="No transaction is open.",
    columns=columns_of(transaction_list.TRANSACTIONS.page_columns),
)
_RETENTION: _ListKind[RetentionRow] = _ListKind(
    path=RETENTION,
    api=RETENTION_PATH,
    title="Retention",
    intro="What is kept, for how long, and what Kafka could have deleted and has not.",
    empty="No partition is watched yet.",
    columns=columns_of(partition_list.RETENTION.page_columns),
)
_GROUPS: _ListKind[GroupSummary] = _ListKind(
    path=GROUPS,
    api="/api/v1/groups",
    title="Consumer groups",
    intro="What each group has left to read, counted in records that it will really get.",
    empty="Nothing is known of consumer groups yet.",
    columns=columns_of(group_list.GROUPS.page_columns),
)


def topics(state: State, query: Query, status: Status) -> ListView:
    """All topics."""
    page = state.topics(query.text(*_API_PARAMETERS))
    return _TOPICS.view(query, status, page, page.rows)


def brokers(state: State, query: Query, status: Status) -> ListView:
    """All brokers."""
    page = state.brokers(query.text(*_API_PARAMETERS))
    return _BROKERS.view(query, status, page, page.rows)


def partitions(state: State, query: Query, status: Status) -> ListView:
    """All partitions."""
    page = state.partitions(query.text(*_API_PARAMETERS))
    return _PARTITIONS.view(query, status, page, page.rows)


def transactions(state: State, query: Query, status: Status) -> ListView:
    """All open transactions."""
    page = state.transactions(query.text(*_API_PARAMETERS))
    omitted = (
        f"{format_count(page.omitted, 'more transaction')} that {'is' if page.omitted == 1 else 'are'} only counted."
        if page.omitted
        else ""
    )
    listed = transaction_list.open_long(page.late_after_ms, page.young)
    kind = replace(_TRANSACTIONS, intro=f"{_TRANSACTIONS.intro} Listed is what is {listed}.", empty=f"None is {listed}.")
    return kind.view(query, status, page, page.rows, (omitted,) if omitted else ())


def retention(state: State, query: Query, status: Status) -> ListView:
    """What is kept of all partitions."""
    page = state.retention(query.text(*_API_PARAMETERS))
    return _RETENTION.view(query, status, page, page.rows)


def groups(state: State, query: Query, status: Status) -> ListView:
    """All consumer groups."""
    try:
        page = state.groups(query.text(*_API_PARAMETERS))
    except NotYetError:
        nothing = GroupPage(at_ms=status.at_ms, total=0, matched=0, offset=0, sort=group_list.GROUPS.default, order=ASC, rows=[])
        return _GROUPS.view(query, status, nothing, ())
    sentence = group_list.no_groups(page)
    return replace(_GROUPS, empty=f"{sentence[:1].upper()}{sentence[1:]}.").view(query, status, page, page.rows)


def by_key(rows: Sequence[Row], key: Callable[[Row], float | str], order: str) -> list[Row]:
    """Rows in an order; what is not known comes last in either."""

    def known(row: Row) -> bool:
        value = key(row)
        return isinstance(value, str) or value >= 0

    ordered = sorted(filter(known, rows), key=key, reverse=order == DESC)
    return ordered + [row for row in rows if not known(row)]
