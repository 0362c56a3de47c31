"""How a cluster and its watching are, as a job serves it as JSON: the verdict, its age, and each agent.

Times are Unix milliseconds. In memory -1 means "not known"; in JSON that is null.
"""

from dataclasses import dataclass, field

from streaming.broker.protocol.json_message import PublicMessage

STATUS_PATH = "/api/v1/status"
"""`Status`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentState(PublicMessage):
    """One agent. ``problems`` are words of `problems.Reason`, ``explanation`` is a sentence about the first, or "".

    ``behind_bytes``: what is on its disks and not in the numbers yet; ``behind_ms``: for how long the oldest of that has waited.
    """

    name: str
    up: bool
    brokers: list[int] = field(default_factory=list)
    behind_bytes: int = -1
    behind_ms: int = -1
    problems: list[str] = field(default_factory=list)
    explanation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(PublicMessage):
    """The status.

    ``verdict`` and ``freshness`` are sentences: the first two lines of ``segtail top`` and of the page. ``severity``: of the most severe
    problem, "" if there is none. ``ready``: everything that was on the disks at the start is in the numbers. ``newest_ms``: everything up
    to then is in them, of all agents that are up. ``partitions`` have a replica that is shown; ``logs`` are all replicas that are watched.
    ``doubts``: what cannot be told, in sentences. ``redacted``: names are not the ones that Kafka knows. ``omitted_agents``: so many
    agents are left out of ``agents``. ``url``: where people reach the page, "" if nobody can.
    """

    at_ms: int
    version: str
    ready: bool
    verdict: str
    freshness: str
    severity: str = ""
    critical: int = 0
    warning: int = 0
    info: int = 0
    newest_ms: int = -1
    agents: list[AgentState] = field(default_factory=list)
    omitted_agents: int = 0
    partitions: int = 0
    logs: int = 0
    started_ms: int = -1
    cluster_id: str = ""
    redacted: bool = False
    doubts: list[str] = field(default_factory=list)
    url: str = ""
