"""The view of one topic: what is wrong, what it comes to, its partitions, and who reads it."""

from collections.abc import Callable
from dataclasses import dataclass

from streaming.broker.protocol.listing_json import PARTITIONS_PATH, TOPICS_PATH, PartitionPage, TopicDetail, path_of_topic
from streaming.broker.protocol.status_json import Status
from streaming.common.formatting import format_count, format_name
from streaming.pages.listings.details import READERS, listed_facts
from streaming.pages.listings.list_cells import Times
from streaming.pages.listings.partition_list import PARTITIONS
from streaming.pages.listings.partition_list import TOPICS as TOPIC_LIST
from streaming.pages.site.page_links import HOME, TOPICS, link, topic_link
from streaming.pages.site.page_query import Query
from streaming.pages.site.page_tables import PageTable, Sorting, columns_of, draw, paging
from streaming.pages.site.page_views import Fact, PageView, drawn_facts
from streaming.pages.site.page_words import Link
from streaming.pages.site.shown_incidents import ShownKind, by_kind, shown_problems

_MOST_PROBLEMS, _MOST_READERS, _MOST_ROWS = 10, 30, 20
"""So many of each are on one page, which is small with all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView(PageView):
    """One topic."""

    problems: tuple[ShownKind, ...]
    more_problems: Link | None
    facts: tuple[Fact, ...]
    readers: PageTable
    more: str
    table: PageTable


def topic_view(detail: TopicDetail, partitions: Callable[[str], PartitionPage], query: Query, status: Status) -> TopicView:
    """The view of a topic.

    Args:
        partitions: the page of partitions that a query asks for.

    Raises:
        UsageError: the query asks for what is not there.
    """
    name = detail.row.topic
    readers, problems = (detail.readers or [])[:_MOST_READERS], shown_problems(detail.problems, detail.at_ms, status)
    omitted = len(detail.readers or []) - len(readers) + detail.more_readers
    return TopicView(
        title=format_name(name, 249),
        here=TOPICS,
        status=status,
        json=path_of_topic(name) if name not in ("", ".", "..") else TOPICS_PATH,
        problems=by_kind(problems[:_MOST_PROBLEMS]),
        more_problems=Link(text="All problems", href=link(HOME, {"filter": name})) if len(problems) > _MOST_PROBLEMS else None,
        facts=drawn_facts(listed_facts(TOPIC_LIST, detail.row, Times(detail.at_ms), without=("topic",))),
        readers=draw(
            "readers",
            "Consumer groups that read it",
            columns_of(READERS.columns),
            readers,
            detail.at_ms,
            empty="No groups are read." if detail.readers is None else "No consumer group has committed offsets in it.",
        ),
        more=f"{format_count(omitted, 'more group')} not listed." if omitted else "",
        table=_table(name, partitions, query),
    )


def _table(name: str, partitions: Callable[[str], PartitionPage], query: Query) -> PageTable:
    path = topic_link(name).partition("?")[0]
    own = {"topic": name} if path == TOPICS else {}
    asked = query.given("sort", "order", "offset")
    page = partitions(link(PARTITIONS_PATH, {**asked, "topic": name, "limit": str(_MOST_ROWS)}).partition("?")[2])
    return draw(
        "rows",
        "Partitions",
        columns_of(PARTITIONS.page_columns),
        page.rows,
        page.at_ms,
        empty="No partition of it is watched.",
        sorting=Sorting(path=path, sort=page.sort, order=page.order, others=own),
        paging=paging(
            path,
            {**own, **query.given("sort", "order")},
            offset=page.offset,
            rows=len(page.rows),
            matched=page.matched,
            total=page.matched,
            limit=_MOST_ROWS,
        ),
    )
