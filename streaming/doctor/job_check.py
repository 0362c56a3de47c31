"""What a running job says of itself and of its agents."""

from collections.abc import Iterator

from streaming.doctor.diagnosis import Finding, State
from streaming.formatting import format_count, format_duration, format_list
from streaming.protocol.status_json import AgentState, Status

_LAGGING_SECONDS = 120.0
"""With more the job lags, as in its alert."""


def of_job(url: str, status: Status) -> Iterator[Finding]:
    """Findings from the answer of a job.

    Args:
        url: its address, without a password.
    """
    what = f"the job at {url} is segtail {status.version} and watches {format_count(status.logs, 'log')}"
    if status.ready:
        yield Finding(check="job", state=State.FINE, what=f"{what}; {status.freshness}")
    else:
        yield Finding(check="job", state=State.WARNING, what=f"{what}, and is not ready: it has not read all that was there at its start")
    for sentence in status.unknown:
        yield Finding(check="job", state=State.UNKNOWN, what=sentence)
    for agent in status.agents:
        yield _of_agent(agent)
    if status.omitted_agents:
        yield Finding(check="agents", state=State.UNKNOWN, what=f"{format_count(status.omitted_agents, 'more agent')} are not listed")


def _of_agent(agent: AgentState) -> Finding:
    explanation = f": {agent.explanation}" if agent.explanation else ""
    if not agent.up:
        return Finding(check="agents", state=State.FAULT, what=f"{agent.name} is down{explanation}")
    if agent.problems:
        return Finding(check="agents", state=State.WARNING, what=f"{agent.name} has {format_list(agent.problems, 5)}{explanation}")
    if agent.behind_seconds > _LAGGING_SECONDS:
        what = f"{agent.name} is up, and its oldest event has waited for {format_duration(agent.behind_seconds)}"
        return Finding(check="agents", state=State.WARNING, what=what)
    return Finding(check="agents", state=State.FINE, what=f"{agent.name} is up")
