"""The first view: the verdict, what is wrong with the most severe first, and up to when that is whole, by agent."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.broker.protocol.status_json import SEVERITIES, AgentState, EventPage, ProblemPage, Status
from streaming.common.units import format_count, format_name, format_time
from streaming.pages.site.listing_views import event_table
from streaming.pages.site.page_links import HOME, Query, link
from streaming.pages.site.page_views import (
    Column,
    Filter,
    FormChoice,
    PageTable,
    PageView,
    Paging,
    badge,
    counted,
    draw,
    paging,
)
from streaming.pages.site.page_words import NOTHING, PageCell, size, span
from streaming.pages.site.shown_incidents import ShownKind, by_kind, shown_problems

MOST_PROBLEMS = 40
"""So many incidents are on one page, which is small with all of them."""


def home(status: Status, page: ProblemPage, events: EventPage, query: Query) -> HomeView:
    """The verdict, what is wrong, what has changed, and up to when that is whole."""
    parameters = query.given("severity", "filter")
    counts = dict(zip(SEVERITIES, (page.critical, page.warning, page.info), strict=True))
    severities = [FormChoice(value=HOME, text=f"all {page.total:,}", chosen=not query.severity)]
    for severity, count in counts.items():
        if count:
            href = link(HOME, {**query.given("filter"), "severity": severity})
            severities.append(FormChoice(value=href, text=counted(count, badge(severity)), chosen=query.severity == severity))
    return HomeView(
        title=status.verdict,
        here=HOME,
        status=status,
        json=link("/api/v1/problems", parameters),
        problems=by_kind(shown_problems(page.rows, status.at_ms, status)),
        severities=tuple(severities) if page.total > 1 else (),
        filter=Filter(path=HOME, text=query.filter, label="Find in problems", parameters=tuple(query.given("severity").items()))
        if page.total > len(page.rows) or query.filter
        else None,
        paging=paging(
            HOME, parameters, offset=page.offset, rows=len(page.rows), matched=page.matched, total=page.total, limit=MOST_PROBLEMS
        ),
        changes=event_table("changes", events.rows, events.at_ms, empty=_unchanged(events)),
        more_changes=events.total - len(events.rows),
        agents=draw(
            "agents",
            "Agents, one beside each broker",
            _AGENT_COLUMNS,
            status.agents,
            status.at_ms,
            empty="No agent has been heard of yet.",
        ),
        more_agents=f"{format_count(status.omitted_agents, 'more agent')} not listed." if status.omitted_agents else "",
        filtered=bool(query.filter or query.severity),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeView(PageView):
    """The first view."""

    problems: tuple[ShownKind, ...]
    severities: tuple[FormChoice, ...]
    filter: Filter | None
    paging: Paging
    changes: PageTable
    more_changes: int
    agents: PageTable
    more_agents: str
    filtered: bool

    @property
    def verdict(self) -> tuple[str, str, str]:
        """The first sentence of the verdict, what is between, and what follows, which is written smaller."""
        return self.status.verdict.partition(". ")


def _unchanged(events: EventPage) -> str:
    return f"Nothing has changed since {format_time(events.since_ms)}." if events.since_ms >= 0 else "No change is known."


def _state(agent: AgentState, now_ms: int) -> PageCell:
    words = ", ".join(each.replace("_", " ") for each in agent.problems)
    note = agent.explanation or words
    return PageCell(
        text="up" if agent.up else "down", note=note, tone="" if agent.up and not agent.problems else "warning" if agent.up else "critical"
    )


def _lag(agent: AgentState, now_ms: int) -> PageCell:
    if agent.behind_ms < 0:
        return PageCell(text=NOTHING)
    if agent.behind_bytes == 0:
        return PageCell(text="nothing")
    return PageCell(text=span(agent.behind_ms), note=size(agent.behind_bytes).text if agent.behind_bytes > 0 else "")


_AGENT_COLUMNS: tuple[Column[AgentState], ...] = (
    Column(head="Agent", cell=lambda agent, _: PageCell(text=format_name(agent.name), name=True)),
    Column(head="State", cell=_state),
    Column(head="Behind", cell=_lag),
    Column(head="Brokers", cell=lambda agent, _: PageCell(text=", ".join(map(str, agent.brokers)) or NOTHING)),
)
