"""The status of a running job, and of its agents, by its own answer."""

from collections.abc import Iterator

from streaming.broker.protocol.status_json import AgentState, Status
from streaming.common.formatting import format_count, format_duration, format_list
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome

_LAGGING_MS = 120_000
"""With more the job lags, as in its alert."""


def of_job(url: str, status: Status) -> Iterator[Diagnosis]:
    """Findings from the answer of a job. ``url``: its address, without a password."""
    what = f"the job at {url} is segtail {status.version} and watches {format_count(status.logs, 'log')}"
    if status.ready:
        yield Diagnosis(check="job", state=Outcome.FINE, what=f"{what}; {status.freshness}")
    else:
        yield Diagnosis(
            check="job", state=Outcome.WARNING, what=f"{what}, and is not ready: it has not read all that was there at its start"
        )
    for sentence in status.doubts:
        yield Diagnosis(check="job", state=Outcome.UNKNOWN, what=sentence)
    for agent in status.agents:
        yield _of_agent(agent)
    if status.omitted_agents:
        yield Diagnosis(check="agents", state=Outcome.UNKNOWN, what=f"{format_count(status.omitted_agents, 'more agent')} are not listed")


def _of_agent(agent: AgentState) -> Diagnosis:
    explanation = f": {agent.explanation}" if agent.explanation else ""
    if not agent.up:
        return Diagnosis(check="agents", state=Outcome.FAULT, what=f"{agent.name} is down{explanation}")
    if agent.problems:
        return Diagnosis(check="agents", state=Outcome.WARNING, what=f"{agent.name} has {format_list(agent.problems, 5)}{explanation}")
    if agent.behind_ms > _LAGGING_MS:
        what = f"{agent.name} is up, and its oldest event has waited for {format_duration(agent.behind_ms / 1000)}"
        return Diagnosis(check="agents", state=Outcome.WARNING, what=what)
    return Diagnosis(check="agents", state=Outcome.FINE, what=f"{agent.name} is up")
