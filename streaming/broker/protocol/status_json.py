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
class JobStart(PublicMessage):
    """How far a job that starts is. ``step``: one of `streaming.cluster.view.start_progress.StartStep`; ``what``: a sentence.

    ``done_bytes`` of ``all_bytes`` of logs are read, or counted, in this step, and it takes ``left_ms`` more at the rate so far.
    """

    step: str
    what: str
    done_bytes: int = -1
    all_bytes: int = -1
    left_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(PublicMessage):
    """The status.

    ``verdict`` and ``freshness`` are sentences: the first two lines of ``segtail top`` and of the page. ``severity``: of the most severe
    problem, "" if there is none. ``ready``: everything that was on the disks at the start is in the numbers; else ``start`` says how far
    that is. ``not_current``: a sentence about why nothing here is current, "" if something is. ``newest_ms``: everything up to then is in
    them, of all agents that are up. ``partitions`` have a replica that is shown; ``logs`` are all replicas that are watched. ``doubts``:
    what cannot be told, in sentences. ``redacted``: names are not the ones that Kafka knows. ``omitted_agents``: so many agents are left
    out of ``agents``. ``url``: where people reach the page, "" if nobody can.
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
    start: JobStart | None = None
    not_current: str = ""
