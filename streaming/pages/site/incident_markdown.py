"""An incident as Markdown, to be pasted into a channel or a ticket: what, since when, what follows, what mends it, and where to look."""

from streaming.broker.protocol.status_json import Problem, Status
from streaming.common.formatting import format_time
from streaming.pages.site.page_links import moment_link

_MOST_FOLLOWING = 20
_SPECIAL = str.maketrans({each: f"\\{each}" for each in "\\`*_[]<>#|~!&"})


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


def _command(problem: Problem) -> list[str]:
    if not problem.command:
        return [f"- no command: {_escaped(problem.no_command)}"] if problem.no_command else []
    fence = "```"
    while fence in problem.command:
        fence += "`"
    return ["", f"{fence}sh", problem.command, fence]


def _sources(problem: Problem, status: Status) -> str:
    """Where it is from: the cluster, the moment and the runbook, with links where people reach the page."""
    at, url = format_time(status.at_ms), status.url.rstrip("/")
    cluster = f", cluster {_escaped(status.cluster_id)}" if status.cluster_id else ""
    moment = f"[as of {at}]({url}{moment_link(status.at_ms)})" if url else f"as of {at}"
    runbook = f"[{problem.runbook}]({url}/runbooks/{problem.runbook})" if url else f"`segtail runbook {problem.runbook}`"
    return f"segtail, {moment}{cluster}" + (f"; runbook {runbook}" if problem.runbook else "")


def _escaped(text: str) -> str:
    return text.translate(_SPECIAL)
