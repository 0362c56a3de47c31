"""The search in the head of the page: topics, consumer groups, transactional ids and brokers by a part of their names."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from streaming.broker.protocol.listing_json import LARGEST_LIMIT, TransactionRow
from streaming.broker.protocol.status_json import Status
from streaming.common.formatting import format_count, format_name
from streaming.errors import NotYetError
from streaming.pages.api.state import State
from streaming.pages.listings.list_cells import place
from streaming.pages.site.page_links import BROKERS, GROUPS, SEARCH, TOPICS, TRANSACTIONS, broker_link, group_link, link, topic_link
from streaming.pages.site.page_views import PageView
from streaming.pages.site.page_words import Link

_MOST = 20
"""So many of each kind are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundKind:
    """What was found of one kind; ``more`` leads to all of it, if that is more than is listed."""

    heading: str
    links: tuple[Link, ...]
    more: Link | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchView(PageView):
    """What was found. ``text``: what was looked for."""

    text: str
    found: tuple[FoundKind, ...]
    notes: tuple[str, ...]

    @property
    def only(self) -> str:
        """Where the only match is, "" if there is another one or none."""
        links = [each for kind in self.found for each in kind.links]
        return links[0].href if len(links) == 1 else ""


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
            notes.append(f"{str(error)[:1].upper()}{str(error)[1:]}.")
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


def _found(heading: str, links: Sequence[Link], matched: int, every: str) -> FoundKind:
    more = Link(text=f"all {matched:,}", href=every) if matched > len(links) else None
    return FoundKind(heading=heading, links=tuple(links), more=more)
