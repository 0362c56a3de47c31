"""How a cluster and its watching are, as JSON: the status, problems, what has changed, the numbers of a good day, and what a scrape costs.

Offsets are Kafka's own, times are Unix milliseconds, sizes bytes, rates a second. In memory -1 and "" mean "not known" or "none", and
never 0; in JSON that is null.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from streaming.broker.protocol.json_message import (
    Count,
    Duration,
    Heading,
    Id,
    Moment,
    Name,
    PublicMessage,
    Sentence,
    Unit,
    Word,
)

PROBLEMS_PATH = "/api/v1/problems"
"""`ProblemPage`, by ``?severity=WORD&filter=TEXT&offset=N&limit=N``."""

CRITICAL, WARNING, INFO = "critical", "warning", "info"

SEVERITIES = (CRITICAL, WARNING, INFO)
"""The severities, the highest first."""

STATUS_PATH = "/api/v1/status"
"""`Status`."""

EVENTS_PATH = "/api/v1/events"
"""`EventPage`, by ``?topic=NAME&admin=true&since_ms=MS&filter=TEXT&offset=N&limit=N``. ``admin``: only what the metadata log has."""

COST_PATH = "/api/v1/cost"
"""`Cost`."""

MOST_TOPICS = 100
"""The most topics of one answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentState(PublicMessage):
    """One agent. ``problems`` are words of `streaming.broker.protocol.agent_calls.Reason`."""

    name: str  # its name
    up: bool  # it answers
    brokers: list[int] = field(default_factory=list)  # those whose log dirs it watches
    behind_bytes: int = -1  # what it has published and the numbers do not hold yet
    behind_ms: int = -1  # for how long the oldest of that has waited
    problems: list[str] = field(default_factory=list)  # words for what keeps it away, or needs an operator
    explanation: str = ""  # a sentence about the first of them


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStart(PublicMessage):
    """How far a job that starts is. ``step``: a `streaming.cluster.view.taillag.StartStep`."""

    step: str  # `agents`: none has answered; `spark`: Spark starts; `reading`: agents read their disks; `counting`: that becomes numbers
    what: str  # a sentence: the step, and how far it is
    done_bytes: int = -1  # bytes of logs in this step that are read or counted
    all_bytes: int = -1  # bytes that there are to read or to count
    left_ms: int = -1  # for so long it goes on, at the rate so far


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(PublicMessage):
    """The status. ``verdict`` and ``freshness`` are the first two lines of ``segtail top`` and of the page."""

    at_ms: int  # as in `ProblemPage`
    version: str  # of segtail
    ready: bool  # everything that was on the disks at the start is in the numbers
    verdict: str  # a sentence: what is wrong, all in all; until the job is ready, how far its start is
    freshness: str  # a sentence: up to when what is known is whole
    severity: str = ""  # of the most severe incident, `null` for none
    critical: int = 0  # how many incidents are so, as in `ProblemPage`
    warning: int = 0  # likewise
    info: int = 0  # likewise
    newest_ms: int = -1  # everything up to then is in the numbers, of all agents that are up
    agents: list[AgentState] = field(default_factory=list)  # list of `AgentState`, those that are down first
    omitted_agents: int = 0  # so many are left out
    partitions: int = 0  # those of which a replica is shown
    logs: int = 0  # replicas that are watched
    started_ms: int = -1  # when the job began
    cluster_id: str = ""  # of the Kafka cluster
    redacted: bool = False  # names of groups and transactional ids are not the ones that Kafka knows
    doubts: list[str] = field(default_factory=list)  # what cannot be told, in sentences: something may be wrong there that is nowhere else
    url: str = ""  # where people reach the page, `null` if that is not known
    start: JobStart | None = None  # a `JobStart` until then, `null` afterwards
    not_current: str = ""  # a sentence: why nothing of all this is current, `null` if something is
    live: bool = True  # a job watches; `false` if log dirs were read, whose brokers may be away


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerHead(PublicMessage):
    """What every answer about more than one thing begins with."""

    at_ms: int  # as of when
    version: str = ""  # of segtail
    doubts: list[str] = field(default_factory=list)  # what cannot be told, in sentences: something may be wrong there that is nowhere else


@dataclass(frozen=True, slots=True, kw_only=True)
class SomeRows(AnswerHead):
    """Some rows of a list."""

    total: int  # all rows
    matched: int  # those that were asked for
    offset: int  # the place of the first one here among these


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence(PublicMessage):
    """What follows from a problem, of one group and topic or of another thing."""

    text: str  # a clause without a period, such as `group ledger in payments-2: held up, loses records from 2026-11-22T13:06:54Z on (in
    # 6m)`
    severity: str  # the highest of the problems that it sums up
    broker: int = -1  # what it is about
    topic: str = ""  # likewise
    partition: int = -1  # likewise
    group: str = ""  # likewise
    deadline_ms: int = -1  # as in `Problem`
    problems: list[str] = field(default_factory=list)  # the `id` of each of these problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(PublicMessage):
    """One problem, of a kind in `streaming.cluster.verdicts.kinds`.

    Each kind goes with one alert of `conf/alerts`: the sentence begins with the alert's summary, and the severity is the same. A problem is
    there at once, where an alert waits until it has lasted. The alerts without a kind report what one moment does not show
    (`streaming/cluster/verdicts/kinds.py` names them, with the reasons).

    Problems of one cause are one incident: a root, and what follows from it, which names the root in `because`. A consequence has no
    `command`, unless it needs one besides that of its root. `roots=true` leaves the roots alone: a row for each incident.
    """

    kind: Word  # such as `transaction_hanging` or `log_dir_full`
    severity: Annotated[Word, Heading("Severity", 1, toned=True)]  # `critical`, `warning` or `info`
    what: Annotated[Sentence, Heading("What", 2, least=40)]  # a sentence without a period, which begins with its subject
    summary: Sentence = ""  # the beginning of it, enough for a heading; the rest follows after `: `
    broker: Id = -1  # what it is about
    topic: Annotated[Name, Heading("About", 4, least=12)] = ""  # likewise
    partition: Id = -1  # likewise
    group: Name = ""  # likewise
    log_dir: Name = ""  # likewise
    agent: Name = ""  # likewise
    since_ms: Annotated[Moment, Heading("Since", 3)] = -1  # since when
    holds_back: Sentence = ""  # what it holds back or costs, as a sentence; `null` if nothing waits for it
    command: Sentence = ""  # what mends it, or shows more of it, quoted for a shell
    no_command: Sentence = ""  # why there is none, where one could be expected
    runbook: Word = ""  # the alert, and the name of its runbook: `segtail runbook NAME`, `/runbooks/NAME`; `null` if no alert reports the
    # same
    id: Word = ""  # its name, which stays while it is about the same
    because: Word = ""  # the `id` of its root, the problem that it follows from; `null` for a root
    deadline_ms: Moment = -1  # when the first record is lost because of it, or the log dir is full; of a root the earliest of its incident
    worst: Word = ""  # of a root the highest `severity` of its incident, else its own
    consequences: Annotated[list[Consequence], Unit.SENTENCE] = field(default_factory=list)  # list of `Consequence`: what follows from a
    # root, the worst first
    more_consequences: Count = 0  # so many are left out there

    @property
    def gravity(self) -> str:
        """How severe its incident is; an earlier job knows none."""
        return self.worst or self.severity


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemPage(SomeRows):
    """Some problems."""

    at_ms: int  # as of when: groups are judged in rounds, so their last round if that is older than the rest
    rows: list[Problem]  # list of `Problem`, a root before its consequences: by the severity of the incident, then by what is lost first
    critical: int = 0  # how many incidents are so, each by the worst of it
    warning: int = 0  # likewise
    info: int = 0  # likewise


class EventKind(StrEnum):
    """What has changed, besides what admins did (`streaming.kafka.formats.admin_changes.ChangeKind`)."""

    PROBLEM_BEGAN = "problem_began"
    PROBLEM_WORSENED = "problem_worsened"
    PROBLEM_ENDED = "problem_ended"
    BROKER_RESTARTED = "broker_restarted"
    AGENT_RESTARTED = "agent_restarted"
    LEADERS_CHANGED = "leaders_changed"
    CONTROLLER_CHANGED = "controller_changed"
    JOB_STARTED = "job_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEvent(PublicMessage):
    """One change."""

    kind: Annotated[Word, Heading("Change", 2)]  # `problem_began`, `problem_worsened`, `problem_ended`, `broker_restarted`, `broker_added`,
    # `broker_removed`, `agent_restarted`, `leaders_changed`, `controller_changed`, `job_started`, `topic_created`, `topic_deleted`,
    # `partitions_added`, `config_changed`, `reassignment_began`, `reassignment_ended` or `feature_changed`
    at_ms: Annotated[Moment, Heading("When", 1)]  # when it was so; where only a look shows it, when it was seen
    what: Annotated[Sentence, Heading("What", 3, least=40)]  # a sentence without a period, which begins with its subject
    severity: Word = ""  # of the problem, of a root the worst of its incident; `null` of what is no problem
    lasted_ms: Duration = -1  # of a problem that ended: for how long it was known
    times: Annotated[Count, Heading("Repeated", 4)] = 1  # how often the same has come, an hour apart at most
    first_ms: Moment = -1  # when it came first, if more than once
    broker: Id = -1  # what it is about
    topic: Name = ""  # likewise
    partition: Id = -1  # likewise
    group: Name = ""  # likewise
    log_dir: Name = ""  # likewise
    agent: Name = ""  # likewise
    problem: Word = ""  # the `id` of the problem that began or ended
    because: Word = ""  # the `id` of the problem that it follows from; `null` of a root
    runbook: Word = ""  # as in `Problem`
    offset: Count = -1  # in the metadata log, of what an admin did
    topic_id: Name = ""  # of a topic that was created, deleted or given other partitions: another topic may have its name by now
    config: Word = ""  # the configuration that was changed, of `topic`, of `broker`, or of all brokers
    before: Name = ""  # the value that it had, `null` if it was not set, or may be secret; of a feature its level; of added partitions how
    # many there were; of a reassignment brokers: those that it removes, and when it has ended the replicas there were
    now: Name = ""  # likewise afterwards; of a new topic the configurations of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage(SomeRows):
    """Some events. What admins did is known from the metadata log, everything else from a job that looks."""

    rows: list[ClusterEvent]  # list of `ClusterEvent`, the newest first
    since_ms: int = -1  # from when on changes are known: since the job had read its disks, or the oldest that is kept; `null` while none is
    admin_since_ms: int = -1  # likewise of what admins did, `null` if that is not known, or is everything
    admin_since_offset: int = -1  # the offset of the metadata log from which on that is known, 0 for everything, `null` if nothing is
    admin_until_ms: int = -1  # when the copy of the metadata log that was read last grew, `null` if that is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Share(PublicMessage):
    """The share of one metric, or of one topic, in a page."""

    name: str  # of a metric, or of a topic
    series: int  # its series in the page
    bytes: int  # its part of the page, before compression


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost(PublicMessage):
    """The last scrape that was answered."""

    at_ms: int = -1  # when the last scrape was answered, `null` if none was
    series: int = 0  # of that page
    bytes: int = 0  # likewise, before compression
    duration_ms: int = -1  # how long it took to make and to compress
    series_dropped: int = 0  # left out because of `series_limit` or `label_limit`
    metrics: list[Share] = field(default_factory=list)  # list of `Share`, the largest first
    topics: list[Share] = field(default_factory=list)  # likewise, as the table has them now, 100 at most
    omitted_topics: int = 0  # so many topics are left out


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisRow(PublicMessage):
    """One result of a check."""

    check: str  # what was looked at
    state: str  # `fine`, `warning`, `fault`, `unknown` or `not applicable`
    what: str  # a sentence
    command: str = ""  # what mends it, `null` if no command does


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorPage(AnswerHead):
    """All results.

    What `segtail doctor --json` prints ([doctor.md](doctor.md)). No path has it.
    """

    faults: int  # rows with the state `fault`
    warnings: int  # with the state `warning`
    unknown: int  # with the state `unknown`
    rows: list[DiagnosisRow]  # list of `DiagnosisRow`, in the order of the checks
