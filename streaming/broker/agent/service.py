"""The agent's answers, without the wire: status, plans, and the rows of a range."""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

import streaming
from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.group_answers import GroupAnswers, answer
from streaming.broker.agent.health_server import Pulse
from streaming.broker.agent.host_status import HostStatus
from streaming.broker.agent.jobs import Jobs, is_full
from streaming.broker.agent.polling_thread import HostWatch, Polls
from streaming.broker.journal.blocks import longs
from streaming.broker.journal.journal import BLOCKS_AT_ONCE, Journal, Point
from streaming.broker.protocol.agent_calls import TWIN, Reason
from streaming.broker.protocol.consumer_messages import NOT_BEGUN, Plan, PlanRequest, Range, Register
from streaming.broker.protocol.event_tables import blocks_table
from streaming.broker.protocol.known_ends import unpack
from streaming.broker.protocol.status_messages import (
    MOST_UNREADABLE,
    BlockedFile,
    CatalogPart,
    CatalogVersion,
    ScrubStatus,
    Status,
    StatusRequest,
    UnreadableLog,
    UnreadableLogs,
    UnreadableTopic,
)
from streaming.broker.protocol.versions import job_problem
from streaming.broker.watcher.beginnings import Beginning
from streaming.broker.watcher.watcher import Doubt, Watcher
from streaming.common.catalog import Version
from streaming.common.event_row import EVENTS
from streaming.common.log_key import LogKey
from streaming.common.log_positions import KnownEnd
from streaming.common.logs import RareLog
from streaming.common.start_from import StartFrom
from streaming.errors import AgentError, FormatError, GoneError, VersionError, quoted
from streaming.kafka.formats.names import TRANSACTION_TOPIC

log = logging.getLogger(__name__)

POLL_SECONDS = 1.5
"""The longest wait of a plan for a poll of all logs; under a heavy load a poll takes as long. A page misses logs that were not polled."""

WAIT_SECONDS = 0.3
"""How often a plan that waits for something new checks again."""

MOST_WAIT_SECONDS = 30.0
"""The longest wait of a plan, whatever is asked for. One plan of a job waits at a time; another one is answered at once."""

BEGINNINGS, BEGINNING_SECONDS = 16, 10.0
"""So many jobs of a principal may begin at once, and one more each so many seconds."""

_ID = re.compile(r"[ -~]{0,64}")  # a UUID, where a job draws it
_ASKS_ALL = StatusRequest()


class Allowance:
    """A token bucket for each principal. Thread-safe.

    Args:
        most: how many at once.
        seconds: after so long one more is allowed.
        clock: seconds of a monotonic clock.
    """

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._lock = threading.Lock()
        self._full_at: dict[str, float] = {}  # when everything is allowed again

    def take(self, principal: str) -> bool:
        """Whether one more is allowed now."""
        now = self._clock()
        with self._lock:
            full_at = max(now, self._full_at.get(principal, now)) + self._seconds
            if full_at - now > self._most * self._seconds:
                return False
            self._full_at[principal] = full_at
            return True


@dataclass(frozen=True, slots=True)
class Service:
    """Answers the calls of jobs to one agent, on the threads of the server.

    A job plans and reads behind what has arrived in its own fold. So events that a read lost on its way, or that an unreachable agent could
    not send, come again with the next range.
    """

    name: str
    journal: Journal
    jobs: Jobs
    host_watch: Callable[[], HostWatch]
    polls: Polls
    pulse: Pulse = field(default_factory=Pulse)
    blocked: Callable[[], list[BlockedFile]] = list
    scrubs: Callable[[], list[ScrubStatus]] = list
    redact: Callable[[str], str] = str  # makes the form of an id or a name that may leave the host
    about_groups: GroupAnswers | None = None  # without it, questions about consumer groups are refused
    beginnings: Allowance = field(default_factory=lambda: Allowance(BEGINNINGS, BEGINNING_SECONDS))
    started_ms: int = -1
    notes: RareLog = field(default_factory=lambda: RareLog(log))

    @property
    def watcher(self) -> Watcher:
        """The current watcher."""
        return self.host_watch().watcher

    @property
    def cluster(self) -> ClusterView:
        """The agent's view of the cluster."""
        return self.host_watch().cluster

    @property
    def host_status(self) -> HostStatus:
        """The status of whole log dirs."""
        return self.host_watch().host_status

    def status(self, request: StatusRequest = _ASKS_ALL, principal: str = "") -> Status:
        """The agent's identity and progress. It is no part of a job's work."""
        return self._status(request, principal)

    def _status(self, request: StatusRequest, principal: str) -> Status:
        caught_up = self.watcher.caught_up  # first: then the end covers everything that was read by then
        catalog = self._catalog(request)  # first: everything that was read before these decisions is before the end
        end = self.journal.end()
        dirs = self.watcher.log_dirs
        unreadable = sorted(self.watcher.unreadable(), key=lambda each: each.log.topic != TRANSACTION_TOPIC)  # the most important first
        return Status(
            agent=self.name,
            version=streaming.__version__,
            journal=self.jobs.journal(principal, request.consumer),
            cluster_id=dirs.cluster_id,
            brokers=dirs.brokers,
            unreadable_metadata=self.cluster.unreadable(),
            logs=max(len(self.watcher.tails()), self.host_status.logs),
            caught_up=caught_up,
            seq=end.seq,
            total=end.total,
            now_ms=time.time_ns() // 1_000_000,
            directories=dirs.named,
            doubts={str(doubt): count for doubt, count in self.doubts().items()},
            log_dirs=self.host_status.log_dirs,
            broker_statuses=[
                each.with_packed(lambda name, packed: "" if name in request.counts else packed) for each in self.host_status.brokers
            ],
            blocked=self.blocked(),
            silent_seconds=round(self.pulse.age, 1),
            unreadable=unreadable_logs(each.log for each in unreadable),
            unreadable_logs=[UnreadableLog(*each.log, each.path, each.error) for each in unreadable[:MOST_UNREADABLE]],
            twins=self.jobs.twins(),
            scrubs=self.scrubs(),
            pending=list(answer(request.pending, self.watcher.tails(), self.redact)) if request.pending else [],
            catalog=catalog,
            unread=self._unread(caught_up=caught_up),
            started_ms=self.started_ms,
            full=is_full(self.journal, self.jobs),
        )

    def _unread(self, *, caught_up: bool) -> int:
        """Bytes of logs that are not read yet, by the sizes at the last poll; -1 as long as no log is watched."""
        if caught_up:
            return 0
        tails = self.watcher.tails()
        return sum(each.unread_bytes(exact=False) for each in tails if each.may_be_read) if tails else -1

    def _catalog(self, request: StatusRequest) -> list[CatalogPart]:
        if not request.catalog:
            return []
        changes = self.watcher.decided(Version(each.process, each.number) for each in request.catalogs)
        if changes is None:
            return []
        version = CatalogVersion(changes.version.process, changes.version.number)
        return [CatalogPart(version=version, whole=changes.whole, changes=changes.pack())]

    def doubts(self) -> dict[Doubt, int]:
        """How many values could not be believed so far, by kind."""
        ladders = None if self.about_groups is None else self.about_groups.ladders
        refused = 0 if ladders is None else ladders.opened.refused
        return self.watcher.doubts() | {Doubt.CONFIGURATION: self.cluster.rejected_configs(), Doubt.RECORD_TIME: refused}

    def register(self, request: Register, principal: str = "") -> Status:
        """Let a run of a job begin here: the logs are published to it from where it has counted them, or from the start that it wants.

        Raises:
            AgentError: there is no such start, other runs of the job are served, its positions are damaged, or its principal begins too
                often in a short time.
            VersionError: its job is of a version that cannot read the agent's rows; the same for `plan` and `read`.
        """
        serve_only(request.protocol)
        if request.start_from not in set(StartFrom):
            raise AgentError(f"no such start: {request.start_from!r:.40}; there are {', '.join(StartFrom)}")
        self._claim(request.consumer, request.run, principal)
        watcher = self.watcher
        if not self.jobs.begins(principal, request.consumer, request.run, watcher):
            if not self.beginnings.take(principal):
                raise AgentError("too many jobs begin at the same time: it is tried again", Reason.BUSY)
            if self.jobs.furthest() < 0:
                self.journal.clear()  # no job waits for what is there
            job = f"{principal}\t{request.consumer}"  # one of the same name with another token is another job
            beginning = Beginning(StartFrom(request.start_from), request.resumed, job, _ends(request))
            self.jobs.note_beginning(principal, request.consumer, request.run, watcher.begin(beginning), watcher)
        self.polls.want()
        return self._status(StatusRequest(consumer=request.consumer), principal)

    def _claim(self, job: str, run: str, principal: str) -> None:
        """Check that a run of a job is the one that is served. Raises AgentError: it is not, or these are no ids."""
        if not job or not _ID.fullmatch(job):
            raise AgentError(f"no such id of a job: {quoted(job)}")
        if not _ID.fullmatch(run):
            raise AgentError(f"no such id of a run: {quoted(run)}")
        if not self.jobs.claim(principal, job, run):
            self.notes.write(logging.WARNING, "two jobs have one id", {"job": job, "refused_run": run})
            raise AgentError(f"{TWIN}: {job}: was a checkpoint copied while its job ran on? stop one of them", Reason.TWIN_CONSUMER)

    def plan(self, request: PlanRequest, principal: str = "") -> Plan:
        """Plan how far ``request.budget`` bytes reach behind what a job has.

        Raises:
            AgentError: another run of the job is served.
        """
        serve_only(request.protocol)
        job, run = request.consumer, request.run
        self._claim(job, run, principal)
        place = self.jobs.place(principal, job, run)
        if place is None:
            return self._not_begun(self.jobs.journal(principal, job))
        after = request.after if request.journal == place.journal else place.begun
        if not place.begun <= after <= self.journal.end().seq:
            raise AgentError(f"a plan after {after}, and the job began after {place.begun} of {self.journal.end().seq}: it cannot be there")
        if after < self.journal.dropped().seq:
            self.notes.write(logging.INFO, "a job lacks events that are dropped: it begins again at what it has counted", {"job": job})
            self.jobs.forget(principal, job, run)
            return self._not_begun(place.journal)
        self.jobs.note_after(principal, job, run, after)
        waits = self.jobs.may_wait(principal, job)
        try:
            point = self.reach(after, request.budget, request.wait_ms if waits else 0)
        finally:
            if waits:
                self.jobs.waited(principal, job)
        more = request.budget is not None and self.journal.end().seq > point.seq
        return Plan(self.name, place.journal, after, point.seq, point.total, more=more)

    def _not_begun(self, journal: str) -> Plan:
        return Plan(self.name, journal, NOT_BEGUN, NOT_BEGUN, 0, more=False)

    def reach(self, after: int, budget: int | None, wait_ms: int) -> Point:
        """How far a budget reaches after a seq; waits for something new.

        Polls all logs first, unless there is more than the budget anyway: there may be no other poll until the next plan.
        """
        deadline = time.monotonic() + min(wait_ms / 1000, MOST_WAIT_SECONDS)
        while True:
            if self.journal.reach(after, budget).seq == self.journal.end().seq:
                self.polls.request(POLL_SECONDS)
            point = self.journal.reach(after, budget)
            left = deadline - time.monotonic()
            if point.seq > after or left <= 0:
                return point
            self.journal.wait(min(left, WAIT_SECONDS))

    def read(self, request: Range, principal: str = "") -> Iterator[pa.RecordBatch]:
        """The rows of a range; the columns alone if it is of no journal.

        Raises:
            AgentError: another run of the job is served.
            GoneError: the run has begun again since, or some of the rows are dropped.
        """
        serve_only(request.protocol)
        if not request.journal:
            yield pa.RecordBatch.from_pylist([], EVENTS)
            return
        self._claim(request.consumer, request.run, principal)
        after = request.after
        while True:
            place = self.jobs.place(principal, request.consumer, request.run)
            blocks = self.journal.blocks(after, request.upto, BLOCKS_AT_ONCE)
            if place is None or place.journal != request.journal or after < self.journal.dropped().seq:
                raise GoneError("what the job has planned is not there any more: it has to plan again")
            yield from blocks_table(self.name, request.journal, blocks).to_batches() or [pa.RecordBatch.from_pylist([], EVENTS)]
            if len(blocks) < BLOCKS_AT_ONCE:
                return
            after = int(longs(blocks[-1], "seq")[-1])


def unreadable_logs(logs: Iterable[LogKey]) -> list[UnreadableLogs]:
    """Some logs, by broker and topic: thousands of them take a few bytes each."""
    of_broker: dict[int, dict[tuple[str, str], list[int]]] = {}
    for each in sorted(logs):
        of_broker.setdefault(each.broker, {}).setdefault((each.topic, each.topic_id), []).append(each.partition)
    return [
        UnreadableLogs(broker, sum(map(len, topics.values())), [UnreadableTopic(*topic, those) for topic, those in topics.items()])
        for broker, topics in of_broker.items()
    ]


def serve_only(protocol: int) -> None:
    """Check the version of every call, not only the first: a job may keep running while its agent is upgraded."""
    problem = job_problem(protocol, streaming.__version__)
    if problem:
        raise VersionError(problem)


def _ends(request: Register) -> Mapping[LogKey, KnownEnd]:
    """What a job has counted. Raises AgentError: it is damaged."""
    try:
        return unpack(request.positions)
    except FormatError as error:
        raise AgentError(str(error), Reason.PROTOCOL) from error
