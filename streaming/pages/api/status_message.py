"""What is wrong: the status, with the first two sentences of page and terminal, every agent, and problems."""

from collections.abc import Sequence

import streaming
from streaming.broker.protocol.listing_json import LARGEST_LIMIT
from streaming.broker.protocol.status_json import SEVERITIES, AgentState, JobStart, Problem, ProblemPage, Status
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.first_lines import freshness, not_current, start_sentence, verdict
from streaming.cluster.verdicts.incidents import count, roots
from streaming.cluster.view.observer import AgentStatus
from streaming.cluster.view.taillag import StartProgress
from streaming.errors import UsageError
from streaming.pages.api.judged_look import JudgedLook
from streaming.pages.api.paging import filter_of, limit_of, offset_of, parameters_of

MOST_AGENTS = 1000
"""The most agents of an answer: those that are down first."""


def status_of(judged: JudgedLook) -> Status:
    """The status of a look."""
    circumstances, every, start = judged.circumstances, judged.problems, judged.circumstances.start
    newest_ms = min(judged.newest_ms, judged.at_ms) if start is None else -1
    agents = sorted(circumstances.agents, key=lambda each: (each.up, each.name))
    return Status(
        at_ms=judged.at_ms,
        version=streaming.__version__,
        ready=start is None,
        start=None if start is None else _start(start),
        verdict=verdict(circumstances, every),
        freshness=freshness(circumstances, newest_ms),
        not_current=not_current(circumstances, newest_ms),
        severity=every[0].gravity if every else "",
        **count(every),
        newest_ms=newest_ms,
        agents=[_agent(circumstances, each) for each in agents[:MOST_AGENTS]],
        omitted_agents=max(len(agents) - MOST_AGENTS, 0),
        partitions=len(circumstances.view.logs.columns),
        logs=len(circumstances.view.observed.columns),
        started_ms=judged.started_ms,
        cluster_id=next((each.cluster_id for each in circumstances.agents if each.cluster_id), ""),
        redacted=circumstances.commands.redacted,
        doubts=list(judged.doubts),
        url=judged.url,
    )


def _start(start: StartProgress) -> JobStart:
    left_ms = -1 if start.left_s < 0 else round(start.left_s * 1000)
    return JobStart(step=start.step, what=start_sentence(start), done_bytes=start.done_bytes, all_bytes=start.all_bytes, left_ms=left_ms)


def _agent(circumstances: Circumstances, agent: AgentStatus) -> AgentState:
    size, seconds = circumstances.lags.get(agent.name, (None, -1.0))
    return AgentState(
        name=agent.name,
        up=agent.up,
        brokers=list(agent.brokers),
        behind_bytes=-1 if size is None else size,
        behind_ms=-1 if seconds < 0 else round(seconds * 1000),
        problems=[str(each) for each in agent.problems],
        explanation=agent.explanation,
    )


def problem_page(every: Sequence[Problem], query: str, at_ms: int, largest: int = LARGEST_LIMIT) -> ProblemPage:
    """The problems that a query string asks for.

    Raises:
        UsageError: a parameter is not understood; the sentence names it.
    """
    given = parameters_of(query, ("severity", "filter", "roots", "offset", "limit"))
    severity, wanted = given.get("severity", ""), filter_of(given).casefold()
    if severity and severity not in SEVERITIES:
        raise UsageError(f"severity is not one of {', '.join(SEVERITIES)}")
    if given.get("roots", "") not in ("", "true", "false"):
        raise UsageError("roots is not true or false")
    offset, counts, is_of_roots = offset_of(given), count(every), given.get("roots") == "true"
    rows = roots(every) if is_of_roots else every
    matched = [
        each
        for each in rows
        if (not severity or (each.gravity if is_of_roots else each.severity) == severity)
        and (not wanted or wanted in _text(each).casefold())
    ]
    return ProblemPage(
        at_ms=at_ms,
        total=len(rows),
        matched=len(matched),
        offset=offset,
        rows=matched[offset : offset + limit_of(given, largest=largest)],
        critical=counts["critical"],
        warning=counts["warning"],
        info=counts["info"],
    )


def _text(problem: Problem) -> str:
    """What a filter is looked for in."""
    place = f"{problem.topic}-{problem.partition}" if problem.partition >= 0 else problem.topic
    follows = (each.text for each in problem.consequences)
    return " ".join((problem.kind, problem.what, place, problem.group, problem.log_dir, problem.agent, problem.holds_back, *follows))
