"""What is wrong, as a job serves it as JSON: problems, the most severe first.

Times are Unix milliseconds. In memory -1 and "" mean that a problem is not about one of these, or that it is not known; in
JSON that is null.
"""

from dataclasses import dataclass, field

from streaming.broker.protocol.json_message import PublicMessage

PROBLEMS_PATH = "/api/v1/problems"
"""`ProblemPage`, by ``?severity=WORD&filter=TEXT&offset=N&limit=N``."""

CRITICAL, WARNING, INFO = "critical", "warning", "info"
SEVERITIES = (CRITICAL, WARNING, INFO)
"""The severities, the highest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence(PublicMessage):
    """What follows from a problem, of one group and topic or of another thing. ``text``: a clause without a period.

    ``severity``: the highest of the problems that it sums up, ``problems``: their ids. ``deadline_ms``: as in `Problem`.
    """

    text: str
    severity: str
    broker: int = -1
    topic: str = ""
    partition: int = -1
    group: str = ""
    deadline_ms: int = -1
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(PublicMessage):
    """One problem.

    ``kind``: one of `streaming.cluster.verdicts.kinds`. ``broker`` to ``agent``: what it is about. ``what`` is a sentence without a period
    that begins with its subject, and ``summary`` the beginning of it that is enough for a heading; ``holds_back`` says what it costs, "" if
    nothing waits for it. ``since_ms``: since when it is so. ``command``: what mends it, to copy into a shell; if it is "", ``no_command``
    is the reason. ``runbook``: the name of the alert that reports the same, which is also that of its file in docs/runbooks; "" if none
    does.

    Problems of one cause are an incident: its root, whose ``because`` is "", and those that follow from it, whose ``because`` is the
    ``id`` of the root. ``id`` stays the same for as long as the problem is about the same. ``deadline_ms``: when the first record is lost,
    or the log dir is full; of a root the earliest of its incident, and ``worst`` is the highest severity there. ``consequences``: what
    follows from a root, the worst first, of which ``more_consequences`` are left out.
    """

    kind: str
    severity: str
    what: str
    summary: str = ""
    broker: int = -1
    topic: str = ""
    partition: int = -1
    group: str = ""
    log_dir: str = ""
    agent: str = ""
    since_ms: int = -1
    holds_back: str = ""
    command: str = ""
    no_command: str = ""
    runbook: str = ""
    id: str = ""
    because: str = ""
    deadline_ms: int = -1
    worst: str = ""
    consequences: list[Consequence] = field(default_factory=list)
    more_consequences: int = 0

    @property
    def gravity(self) -> str:
        """How severe its incident is; an earlier job knows none."""
        return self.worst or self.severity


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemPage(PublicMessage):
    """Some problems from ``offset`` on, of the ``matched`` ones that were asked for; there are ``total``. ``at_ms``,
    ``version``, ``doubts``: as in `streaming.broker.protocol.listing_json.ListPage`.

    ``critical``, ``warning`` and ``info`` are numbers of all incidents by their ``worst``.
    """

    at_ms: int
    version: str = ""
    doubts: list[str] = field(default_factory=list)
    total: int
    matched: int
    offset: int
    rows: list[Problem]
    critical: int = 0
    warning: int = 0
    info: int = 0
