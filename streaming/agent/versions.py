"""Which versions of job and agent work together: the number of their protocol, and the sentence with which one refuses the other.

The number goes up when an earlier job would misread what an agent sends. A field or a column more alone does not change it: fields are
read by name, and a column that is missing has a value that stands for it (`streaming.agent.columns`), or the agent is refused.
A job reads agents of earlier protocols; an agent serves no earlier job. So the job is upgraded first.

Protocols: 1 (of versions that do not say so; their jobs read columns by position), 2 (full pictures of all logs, again and again), 3 (a
census where somebody begins, nothing that tells again what has not changed; what is decided comes by rounds of questions).
"""

PROTOCOL = 3
"""What this version speaks."""

UNNAMED = 1
"""What a side speaks that names none."""

OLDEST_AGENT = 3
"""The earliest protocol of an agent that this version's job reads."""

OLDEST_JOB = 3
"""The earliest protocol of a job that this version's agent serves."""


def agent_problem(protocol: int, version: str, own: str) -> str:
    """Why a job of version ``own`` cannot work with an agent, in words; "" if it can."""
    if protocol > PROTOCOL:
        return (
            f"it is segtail {version} and speaks protocol {protocol}, this job is segtail {own} and reads {_to(OLDEST_AGENT, PROTOCOL)}: "
            "upgrade the job"
        )
    if protocol < OLDEST_AGENT:
        return (
            f"it is segtail {version} and speaks protocol {protocol}, this job is segtail {own} and reads {_to(OLDEST_AGENT, PROTOCOL)}: "
            "upgrade the agent"
        )
    return ""


def job_problem(protocol: int, own: str) -> str:
    """Why an agent of version ``own`` cannot serve a job, in words; "" if it can. A later job decides for itself."""
    if protocol >= OLDEST_JOB:
        return ""
    return f"the job speaks protocol {protocol}, this agent is segtail {own} and serves {OLDEST_JOB} and later: upgrade the job"


def _to(oldest: int, newest: int) -> str:
    return str(newest) if oldest == newest else f"{oldest} to {newest}"
