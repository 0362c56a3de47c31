"""What the first view shows of agents, and how many problems of each severity it offers."""

from typing import Any

import pytest

from streaming.broker.protocol.status_json import CRITICAL, INFO, WARNING, AgentState, EventPage, Problem, ProblemPage, Status
from streaming.pages.site.home_view import HomeView, home
from streaming.pages.site.page_links import Query
from streaming.pages.site.page_words import PageCell
from streaming.pages.site.shown_incidents import shown_problems

NOW_MS = 1_700_000_000_000


def viewed(*problems: str, agents: tuple[AgentState, ...] = (), omitted: int = 0, **query: str) -> HomeView:
    status = Status(at_ms=NOW_MS, version="0", ready=True, verdict="One. Two.", freshness="", agents=[*agents], omitted_agents=omitted)
    counts = {severity: problems.count(severity) for severity in (CRITICAL, WARNING, INFO)}
    rows = [Problem(kind="k", severity=severity, what="w") for severity in problems]
    found = ProblemPage(at_ms=NOW_MS, rows=rows, total=len(rows), matched=len(rows), offset=0, **counts)
    events = EventPage(at_ms=NOW_MS, total=0, matched=0, offset=0, rows=[])
    return home(status, found, events, Query(values=query))


def agent(**values: Any) -> AgentState:
    return AgentState(**{"name": "a1", "up": True} | values)


def cell(head: str, **values: Any) -> PageCell:
    drawn = viewed(agents=(agent(**values),)).agents
    heads = [each.text for each in drawn.heads]
    return drawn.rows[0][heads.index(head)]


@pytest.mark.parametrize(
    ("values", "text", "tone", "note"),
    [
        ({}, "up", "", ""),
        ({"problems": ["clock", "shared_log_dir"]}, "up", "warning", "clock, shared log dir"),
        ({"problems": ["clock"], "explanation": "it is ahead"}, "up", "warning", "it is ahead"),
        ({"up": False, "problems": ["refused"]}, "down", "critical", "refused"),
    ],
)
def test_the_state_of_an_agent(values: dict[str, Any], text: str, tone: str, note: str) -> None:
    found = cell("State", **values)
    assert (found.text, found.tone, found.note) == (text, tone, note)


@pytest.mark.parametrize(
    ("values", "text", "note"),
    [
        ({"behind_ms": -1}, "-", ""),
        ({"behind_ms": 90_000, "behind_bytes": 0}, "nothing", ""),
        ({"behind_ms": 90_000, "behind_bytes": 1 << 20}, "1m 30s", "1.0 MiB"),
        ({"behind_ms": 90_000, "behind_bytes": -1}, "1m 30s", ""),
    ],
)
def test_how_far_an_agent_is_behind(values: dict[str, Any], text: str, note: str) -> None:
    found = cell("Behind", **values)
    assert (found.text, found.note) == (text, note)


def test_severities_are_offered_with_their_counts_if_there_is_more_than_one_problem() -> None:
    assert viewed(CRITICAL).severities == ()
    some = viewed(CRITICAL, WARNING, WARNING, severity=WARNING).severities
    assert [(each.text, each.chosen) for each in some] == [("all 3", False), ("1 critical", False), ("2 warnings", True)]
    assert [each.text for each in viewed(INFO, INFO).severities] == ["all 2", "2 info"]


def test_a_badge_is_the_word_for_a_severity_everywhere() -> None:
    problems = [Problem(kind="k", severity=severity, what="w") for severity in (CRITICAL, WARNING, INFO)]
    assert [each.badge for each in shown_problems(problems, NOW_MS)] == [CRITICAL, WARNING, INFO]


def test_agents_that_are_not_listed_are_counted_and_the_verdict_is_parted_after_its_first_sentence() -> None:
    assert (viewed().more_agents, viewed(omitted=2).more_agents) == ("", "2 more agents not listed.")
    assert viewed().verdict == ("One", ". ", "Two.")
    assert (viewed().filtered, viewed(filter="x").filtered, viewed(severity=INFO).filtered) == (False, True, True)


@pytest.mark.parametrize(
    ("what", "summary", "head", "detail"),
    [
        ("1 log is stopped: see its broker", "1 log is stopped", "1 log is stopped", "See its broker"),
        ("1 log is stopped", "1 log is stopped", "1 log is stopped", ""),
        ("1 log is stopped: see its broker", "", "1 log is stopped: see its broker", ""),
    ],
)
def test_what_follows_a_summary_is_a_sentence_of_its_own(what: str, summary: str, head: str, detail: str) -> None:
    (shown,) = shown_problems([Problem(kind="k", severity=WARNING, what=what, summary=summary)], NOW_MS)
    assert (shown.head, shown.detail) == (head, detail)
