"""The status: the first two sentences of page and terminal, and every agent."""

from collections.abc import Sequence

import streaming
from streaming.broker.protocol.problem_json import Problem
from streaming.broker.protocol.status_json import AgentState, Status
from streaming.cluster.verdicts.all_problems import count
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.first_lines import freshness, verdict
from streaming.cluster.view.observer import AgentStatus

MOST_AGENTS = 1000
"""The most agents of an answer: those that are down first."""


def status_message(
    of: Circumstances, every: Sequence[Problem], *, ready: bool, newest_ms: int = -1, started_ms: int = -1, doubts: Sequence[str] = ()
) -> Status:
    """The status.

    Args:
        every: all problems, the most severe first.
        ready: everything that was on the disks at the start is in the numbers.
        newest_ms: everything up to then is in them, of all agents that are up.
        started_ms: when the process began.
        doubts: sentences about what cannot be told.
    """
    agents = sorted(of.agents, key=lambda each: (each.up, each.name))
    return Status(
        at_ms=of.now_ms,
        version=streaming.__version__,
        ready=ready,
        verdict=verdict(of, every, ready=ready),
        freshness=freshness(of, newest_ms),
        severity=every[0].severity if every else "",
        **count(every),
        newest_ms=newest_ms,
        agents=[_agent(of, each) for each in agents[:MOST_AGENTS]],
        omitted_agents=max(len(agents) - MOST_AGENTS, 0),
        partitions=len(of.view.logs.columns),
        logs=len(of.view.observed.columns),
        started_ms=started_ms,
        cluster_id=next((each.cluster_id for each in of.agents if each.cluster_id), ""),
        redacted=of.commands.redacted,
        doubts=list(doubts),
    )


def _agent(of: Circumstances, agent: AgentStatus) -> AgentState:
    size, seconds = of.lags.get(agent.name, (None, -1.0))
    return AgentState(
        name=agent.name,
        up=agent.up,
        brokers=list(agent.brokers),
        behind_bytes=-1 if size is None else size,
        behind_ms=-1 if seconds < 0 else round(seconds * 1000),
        problems=[str(each) for each in agent.problems],
        explanation=agent.explanation,
    )
