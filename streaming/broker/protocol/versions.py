"""Decides which versions of job and agent work together: by the number of their protocol, with the error text for those that do not.

The number goes up when an earlier job would misread an agent's messages or rows. An additional field or column alone does not change it:
fields are read by name. A column that is missing has a default (`streaming.spark.client.column_versions`), or the agent is
refused. A job can read agents of earlier protocols, but an agent does not serve earlier jobs. So the job is upgraded first.
"""

PROTOCOL = 6
"""The protocol of this version."""

OLDEST_AGENT = 6
"""The earliest protocol of an agent that this version's job reads."""

OLDEST_JOB = 6
"""The earliest protocol of a job that this version's agent serves."""


def agent_problem(protocol: int, version: str, own: str) -> str:
    """The reason why a job of version ``own`` cannot work with an agent, as a sentence; "" if it can."""
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


def _to(oldest: int, newest: int) -> str:
    return str(newest) if oldest == newest else f"{oldest} to {newest}"


def job_problem(protocol: int, own: str) -> str:
    """The reason why an agent of version ``own`` cannot serve a job, as a sentence; "" if it can. A later job decides for itself."""
    if protocol >= OLDEST_JOB:
        return ""
    return f"the job speaks protocol {protocol}, this agent is segtail {own} and serves {OLDEST_JOB} and later: upgrade the job"
