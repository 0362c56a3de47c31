"""Incidents as the page draws them: a card each, with what follows from its root; of many of one kind the rest folded away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from streaming.broker.protocol.status_json import Consequence, Problem, Status
from streaming.common.units import capitalized, format_name, format_time
from streaming.pages.listings.listing import place
from streaming.pages.site.page_links import BROKERS, broker_link, group_link, link, log_dir_link, partition_link, topic_link
from streaming.pages.site.page_views import badge
from streaming.pages.site.page_words import Link, PageCell, moment

_MOST_FOLLOWING = 20
_SPECIAL = str.maketrans({each: f"\\{each}" for each in "\\`*_[]<>#|~!&"})

_FEW = 2
"""From three neighbours of one kind on, all but the first are folded away."""

_MOST_OPEN = 5
"""So much of what follows from a root is open to be seen."""


def shown_problems(problems: Sequence[Problem], now_ms: int, status: Status | None = None) -> tuple[ShownProblem, ...]:
    """The roots among some problems, with their ways to what they are about; with a status, as Markdown too."""
    roots = [each for each in problems if not each.because]
    return tuple(_shown(f"problem-{problem.id or index}", problem, now_ms, status) for index, problem in enumerate(roots))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownConsequence:
    """What follows from a problem."""

    text: str
    tone: str
    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownProblem:
    """A problem as it is drawn, with the two parts of its sentence.

    ``follows``, ``folded``: what follows from it, and more of that; ``more`` says how much is left out besides.
    """

    key: str  # its id on the page
    problem: Problem
    head: str
    detail: str
    badge: str
    since: PageCell
    due: PageCell
    about: tuple[Link, ...]
    follows: tuple[ShownConsequence, ...] = ()
    folded: tuple[ShownConsequence, ...] = ()
    more: str = ""
    markdown: tuple[str, ...] = ()  # the lines of all of it, to be pasted elsewhere


def _shown(key: str, problem: Problem, now_ms: int, status: Status | None) -> ShownProblem:
    follows = tuple(map(_consequence, problem.consequences))
    return ShownProblem(
        key=key,
        problem=problem,
        head=problem.summary or problem.what,
        detail=_detail(problem),
        badge=badge(problem.gravity),
        since=moment(problem.since_ms, now_ms, otherwise="not known"),
        due=PageCell(text="now") if 0 <= problem.deadline_ms <= now_ms else moment(problem.deadline_ms, now_ms),
        about=tuple(_about(problem)),
        follows=follows[:_MOST_OPEN],
        folded=follows[_MOST_OPEN:],
        more=f"{problem.more_consequences:,} more are left out here." if problem.more_consequences else "",
        markdown=() if status is None else tuple(incident_markdown(problem, status).splitlines()),
    )


def _consequence(each: Consequence) -> ShownConsequence:
    one = partition_link(each.topic, each.partition) if each.topic and each.partition >= 0 else ""
    return ShownConsequence(text=each.text, tone=each.severity, href=group_link(each.group) if each.group else one)


def _detail(problem: Problem) -> str:
    """What follows the summary, as a sentence of its own."""
    text = problem.what.removeprefix(problem.summary).removeprefix(": ") if problem.summary else ""
    first = text.partition(" ")[0].rstrip(",:;")  # a partition has a name that a user of Kafka chose: it stays as it is
    return capitalized(text) if first.isalpha() else text


def _about(problem: Problem) -> list[Link]:
    about = []
    if problem.topic and problem.partition >= 0:
        text = f"partition {place(problem.topic, problem.partition)}"
        about.append(Link(text=text, href=partition_link(problem.topic, problem.partition)))
    elif problem.topic:
        about.append(Link(text=f"topic {format_name(problem.topic)}", href=topic_link(problem.topic)))
    if problem.group:
        about.append(Link(text=f"group {format_name(problem.group)}", href=group_link(problem.group)))
    if problem.broker >= 0:
        about.append(Link(text=f"broker {problem.broker}", href=broker_link(problem.broker)))
    if problem.log_dir:
        about.append(Link(text=f"log dir {format_name(problem.log_dir)}", href=log_dir_link(problem.log_dir)))
    if problem.agent:
        about.append(Link(text=f"agent {format_name(problem.agent)}", href=link(BROKERS, {"filter": problem.agent})))
    return about


def incident_markdown(problem: Problem, status: Status) -> str:
    """The text. Names in it look as they are: nothing in them is taken for Markdown."""
    follows = [*problem.consequences[:_MOST_FOLLOWING]]
    more = len(problem.consequences) - len(follows) + problem.more_consequences
    lines = [
        f"**{problem.gravity}: {_escaped(problem.what)}**",
        "",
        *([f"- since {format_time(problem.since_ms)}"] if problem.since_ms >= 0 else []),
        *([f"- due {format_time(problem.deadline_ms)}"] if problem.deadline_ms >= 0 else []),
        *([f"- {_escaped(problem.holds_back)}"] if problem.holds_back else []),
        *(f"- {each.severity}: {_escaped(each.text)}" for each in follows),
        *([f"- and {more:,} more that follow from it"] if more else []),
        *_command(problem),
        "",
        _sources(problem, status),
    ]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.translate(_SPECIAL)


def _command(problem: Problem) -> list[str]:
    if not problem.command:
        return [f"- no command: {_escaped(problem.no_command)}"] if problem.no_command else []
    fence = "```"
    while fence in problem.command:
        fence += "`"
    return ["", f"{fence}sh", problem.command, fence]


def _sources(problem: Problem, status: Status) -> str:
    """Where it is from: the cluster, the time and the runbook, with links where people reach the page."""
    at, url = format_time(status.at_ms), status.url.rstrip("/")
    cluster = f", cluster {_escaped(status.cluster_id)}" if status.cluster_id else ""
    time = f"[as of {at}]({url}/)" if url else f"as of {at}"
    runbook = f"[{problem.runbook}]({url}/runbooks/{problem.runbook})" if url else f"`segtail runbook {problem.runbook}`"
    return f"segtail, {time}{cluster}" + (f"; runbook {runbook}" if problem.runbook else "")


def by_kind(problems: Sequence[ShownProblem]) -> tuple[ShownKind, ...]:
    """The same, in their order, with neighbours of one kind together."""
    runs = (tuple(run) for _, run in groupby(problems, key=lambda each: (each.problem.kind, each.problem.gravity)))
    return tuple(_kind(run) for run in runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownKind:
    """Neighbours of one kind and severity: some in full, and the others as lines below ``words``."""

    shown: tuple[ShownProblem, ...]
    folded: tuple[ShownProblem, ...] = ()
    words: str = ""


def _kind(run: tuple[ShownProblem, ...]) -> ShownKind:
    if len(run) <= _FEW:
        return ShownKind(shown=run)
    return ShownKind(shown=run[:1], folded=run[1:], words=f"and {len(run) - 1:,} more of this kind")
