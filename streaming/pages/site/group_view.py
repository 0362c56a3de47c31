"""The view of one consumer group: why it does not go on, the command for it, and all of its partitions."""

from collections.abc import Sequence
from dataclasses import dataclass

from streaming.broker.protocol.group_json import GROUPS_PATH, GroupDetail, GroupFinding, GroupPartition, path_of
from streaming.broker.protocol.listing_json import DEFAULT_LIMIT
from streaming.broker.protocol.shown import ASC
from streaming.broker.protocol.status_json import Status
from streaming.common.formatting import format_count, format_name
from streaming.pages.listings.details import group_facts, group_findings
from streaming.pages.listings.group_list import GROUP_PARTITIONS
from streaming.pages.listings.list_cells import Times, place, words
from streaming.pages.site.listing_views import by_key
from streaming.pages.site.page_links import GROUPS, group_link, partition_link
from streaming.pages.site.page_query import Query
from streaming.pages.site.page_tables import PageTable, Sorting, columns_of, draw, paging
from streaming.pages.site.page_views import Fact, PageView, drawn_facts
from streaming.pages.site.page_words import Link

_MOST_VERDICTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownVerdict:
    """A verdict as it is drawn."""

    key: str
    tone: str
    badge: str
    text: str
    about: Link | None
    command: str
    no_command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView(PageView):
    """One consumer group."""

    verdicts: tuple[ShownVerdict, ...]
    more: str
    facts: tuple[Fact, ...]
    table: PageTable


def group_view(detail: GroupDetail, query: Query, status: Status) -> GroupView:
    """The view of a group.

    Raises:
        UsageError: the query asks for what is not there.
    """
    name = detail.summary.group
    findings = group_findings(detail)
    omitted = len(findings) - _MOST_VERDICTS
    return GroupView(
        title=format_name(name, 255),
        here=GROUPS,
        status=status,
        json=path_of(name) if name not in ("", ".", "..") else GROUPS_PATH,
        verdicts=tuple(_verdict(f"verdict-{index}", each) for index, each in enumerate(findings[:_MOST_VERDICTS])),
        more=f"{format_count(omitted, 'more reason')} below, by partition." if omitted > 0 else "",
        facts=drawn_facts(group_facts(detail, Times(detail.at_ms))),
        table=_table(detail, query),
    )


def _verdict(key: str, finding: GroupFinding) -> ShownVerdict:
    log = finding.topic, finding.partition
    about = Link(text=f"partition {place(*log)}", href=partition_link(*log)) if finding.topic else None
    return ShownVerdict(
        key=key,
        tone=finding.severity,
        badge=words(finding.verdict),
        text=f"{finding.text[:1].upper()}{finding.text[1:]}",
        about=about,
        command=finding.command,
        no_command=finding.no_command,
    )


def _table(detail: GroupDetail, query: Query) -> PageTable:
    path, name = group_link(detail.summary.group).partition("?")[0], detail.summary.group
    parameters = {"group": name} if path == GROUPS else {}
    sort = query.word("sort", GROUP_PARTITIONS.sortable, GROUP_PARTITIONS.default)
    order = query.order(GROUP_PARTITIONS.order(sort))
    rows = _ordered(detail.partitions, sort, order)
    page = rows[query.offset : query.offset + DEFAULT_LIMIT]
    return draw(
        "rows",
        "Partitions of the group",
        columns_of(GROUP_PARTITIONS.page_columns),
        page,
        detail.at_ms,
        empty="It has no committed offsets, or none any more.",
        sorting=Sorting(path=path, sort=sort, order=order, others=parameters),
        paging=paging(
            path,
            {**parameters, **query.given("sort", "order")},
            offset=query.offset,
            rows=len(page),
            matched=len(rows),
            total=len(rows) + detail.omitted,
        ),
    )


def _ordered(rows: Sequence[GroupPartition], sort: str, order: str) -> Sequence[GroupPartition]:
    """The rows by a field; they come the worst first, as by their verdict."""
    if sort == "verdict":
        return rows if order == ASC else rows[::-1]
    if sort == "topic":
        return by_key(rows, lambda row: f"{row.topic}\0{row.partition:010}", order)
    if sort == "next_append_ms":  # as its cell shows it
        return by_key(rows, lambda row: row.next_ms, order)
    return by_key(rows, lambda row: getattr(row, sort), order)  # a field's name: one of the words that the query may name
