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
class Problem(PublicMessage):
    """One problem.

    ``kind``: one of `streaming.cluster.verdicts.kinds`. ``broker`` to ``agent``: what it is about. ``what`` is a sentence without a period
    that begins with its subject, and ``summary`` the beginning of it that is enough for a heading; ``holds_back`` says what it costs, "" if
    nothing waits for it. ``since_ms``: since when it is so. ``command``: what mends it, to copy into a shell; if it is "", ``no_command``
    is the reason. ``runbook``: the name of the alert that reports the same, which is also that of its file in docs/runbooks; "" if none
    does.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemPage(PublicMessage):
    """Some problems from ``offset`` on, of the ``matched`` ones that were asked for; there are ``total``. ``at_ms``,
    ``version``, ``doubts``: as in `streaming.broker.protocol.listing_json.ListPage`.

    ``critical``, ``warning`` and ``info`` are numbers of all problems of that severity.
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
