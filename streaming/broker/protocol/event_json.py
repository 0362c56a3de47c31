"""What has changed in a cluster, as a job serves it as JSON: problems that began and ended, restarts, elections, the newest first.

Times are Unix milliseconds. In memory -1 and "" mean that a change is not about one of these, or that it is not known; in
JSON that is null.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from streaming.broker.protocol.json_message import PublicMessage

EVENTS_PATH = "/api/v1/events"
"""`EventPage`, by ``?filter=TEXT&offset=N&limit=N``."""


class EventKind(StrEnum):
    """What has changed."""

    PROBLEM_BEGAN = "problem_began"
    PROBLEM_WORSENED = "problem_worsened"
    PROBLEM_ENDED = "problem_ended"
    BROKER_RESTARTED = "broker_restarted"
    BROKER_ADDED = "broker_added"
    BROKER_REMOVED = "broker_removed"
    AGENT_RESTARTED = "agent_restarted"
    LEADERS_CHANGED = "leaders_changed"
    CONTROLLER_CHANGED = "controller_changed"
    JOB_STARTED = "job_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEvent(PublicMessage):
    """One change.

    ``at_ms``: when it was so, or was seen; ``seen_ms``: when it was seen. ``what``: a sentence without a period that begins with its
    subject. ``problem``: the id of the problem, as in `Problem`; ``because``: the id of the one that it follows from, "" of a root.
    ``severity``: of a root that of its incident, of what follows from one its own, "" of what is no problem. ``lasted_ms``: of what ended.
    ``times``: how often the same has come since ``first_ms``, an hour apart at most. ``broker`` to ``agent``: what it is about.
    """

    kind: str
    at_ms: int
    what: str
    severity: str = ""
    lasted_ms: int = -1
    times: int = 1
    first_ms: int = -1
    seen_ms: int = -1
    broker: int = -1
    topic: str = ""
    partition: int = -1
    group: str = ""
    log_dir: str = ""
    agent: str = ""
    problem: str = ""
    because: str = ""
    runbook: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage(PublicMessage):
    """Some events from ``offset`` on, of the ``matched`` ones that were asked for; there are ``total``.

    ``at_ms``, ``version``, ``doubts``: as in `streaming.broker.protocol.listing_json.ListPage`. ``since_ms``: from when on changes are
    known: since the job had read its disks, or the oldest that is kept; -1 while none is.
    """

    at_ms: int
    version: str = ""
    doubts: list[str] = field(default_factory=list)
    total: int
    matched: int
    offset: int
    rows: list[ClusterEvent]
    since_ms: int = -1
