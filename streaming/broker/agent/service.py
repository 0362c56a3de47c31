"""The agent's answers, without the wire: status, plans, and the rows of a range."""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter

import pyarrow as pa

import streaming
from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.consumer_memory import ConsumerArrivals
from streaming.broker.agent.group_answers import GroupAnswers, answer
from streaming.broker.agent.health_server import Pulse
from streaming.broker.agent.host_status import HostStatus
from streaming.broker.agent.polling_thread import HostWatch, Polls
from streaming.broker.journal.blocks import longs
from streaming.broker.journal.consumer_states import Loss, Registration, without_lost
from streaming.broker.journal.consumers import MOST_CONSUMERS, Consumers
from streaming.broker.journal.journal import BLOCKS_AT_ONCE, Journal, Point
from streaming.broker.protocol.agent_calls import TWIN, Reason
from streaming.broker.protocol.consumer_messages import NOT_BEGUN, Committed, Plan, PlanRequest, Range, Register
from streaming.broker.protocol.event_tables import blocks_table
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
from streaming.common.event_row import EVENTS, Event
from streaming.common.log_key import LogKey
from streaming.common.logs import RareLog
from streaming.common.rows import Kind
from streaming.common.start_from import StartFrom
from streaming.errors import AgentError, VersionError, quoted
from streaming.kafka.formats.names import TRANSACTION_TOPIC


class Allowance:
    """A token bucket for each principal. For several threads.

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


# --- decides which run of each consumer's query is served. If two runs took turns, each would lose what the other has committed. A run that
# is not known yet takes over at once: it is a query that was started again, and the run before it is dead. If a run that was replaced still
# sends requests, both runs are alive. Then they belong to one consumer, for example because a checkpoint was copied.


OWNED_SECONDS = 60.0
"""After this long without a request from the owner, an earlier run may take over. A twin is reported for the same time."""

_MOST_RUNS = 64

_MOST_CONSUMERS = 1024


@dataclass(slots=True)
class _Owner:
    run: str
    heard_at: float
    earlier: list[str] = field(default_factory=list)
    twin_at: float | None = None  # when a request of an earlier run was last refused


class Owners:
    """The owners of all consumers. For several threads.

    They are kept in memory only. So after a restart of the agent, the last of two runs to send a request becomes the owner.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._owners: dict[str, _Owner] = {}

    def claim(self, consumer: str, run: str) -> bool:
        """Whether a run that sends a request owns the consumer, or owns it from now on."""
        now = self._clock()
        with self._lock:
            owner = self._owners.get(consumer)
            if owner is None:
                if len(self._owners) >= _MOST_CONSUMERS:  # ids that were made up: whoever reads is heard again and again
                    del self._owners[min(self._owners, key=lambda each: self._owners[each].heard_at)]
                self._owners[consumer] = _Owner(run, now)
                return True
            if owner.run != run:
                if run in owner.earlier and now - owner.heard_at < OWNED_SECONDS:
                    owner.twin_at = now
                    return False
                owner.earlier = [*[each for each in owner.earlier if each != run][-_MOST_RUNS:], owner.run]
                owner.run = run
            owner.heard_at = now
            return True

    def owns(self, consumer: str, run: str) -> bool:
        """Whether a run owns the consumer, or no owner is known."""
        with self._lock:
            owner = self._owners.get(consumer)
            return owner is None or owner.run == run

    def twins(self) -> list[str]:
        """Consumers with requests from two runs lately."""
        now = self._clock()
        with self._lock:
            return sorted(name for name, owner in self._owners.items() if owner.twin_at is not None and now - owner.twin_at < OWNED_SECONDS)


@dataclass(frozen=True, slots=True)
class RangeReading:
    """For several threads. ``agent``: its name; ``broker``: the one that a loss without a log is reported for."""

    agent: str
    journal: Journal
    consumers: Consumers
    arrivals: ConsumerArrivals

    def rows(self, request: Range, broker: int) -> Iterator[pa.RecordBatch]:
        """The rows of a range; none if the consumer has no such journal any more.

        Raises:
            AgentError: the consumer began anew while they were read: it gets none of them.
        """
        with self.journal.database.reading():  # the consumer is not forgotten between these two
            found = self._begin(request) if self._is_of(request) else None
        if found is None:
            yield pa.RecordBatch.from_pylist([], EVENTS)
            return
        after, losses = found
        lost = [(loss.upto, self._loss_events(loss, broker)) for loss in losses if loss.upto <= request.upto]
        while True:
            with self.journal.database.reading():
                if not self._is_of(request):
                    raise AgentError("the consumer has begun anew meanwhile: it has to plan again")
                blocks = self.journal.blocks(after, request.upto, BLOCKS_AT_ONCE)
            table = blocks_table(self.agent, request.journal, [without_lost(losses, block) for block in blocks], lost)
            yield from table.to_batches() or [pa.RecordBatch.from_pylist([], EVENTS)]
            if len(blocks) < BLOCKS_AT_ONCE:
                return
            lost, after = [], int(longs(blocks[-1], "seq")[-1])

    def _is_of(self, request: Range) -> bool:
        """Whether the range is of the journal as its consumer knows it. Without registering, only readers without an id get rows."""
        known = not request.consumer or self.consumers.committed(request.consumer) is not None
        return known and request.journal == self.consumers.journal(request.consumer)

    def _begin(self, request: Range) -> tuple[int, list[Loss]] | None:
        """The seq from which a range is sent, and the events in it that the journal has trimmed; None if the consumer begins anew."""
        committed = self.consumers.committed(request.consumer)
        if committed is None:
            after, trimmed = max(0, request.after), self.journal.trimmed()
            size = trimmed.total - request.after_total if request.after >= 0 else 0
            return after, [Loss(after, trimmed.seq, max(0, size))] if after < trimmed.seq else []
        if 0 <= request.after < committed and self.arrivals.upto(request.consumer, request.run, request.journal) < 0:
            if not self.consumers.set_back(request.consumer, request.after):
                return None
            committed = request.after
        return committed, self.consumers.send(request.consumer, request.upto) or []

    def _loss_events(self, loss: Loss, broker: int) -> list[Event]:
        """The events that report a loss: the lost bytes, and for each coordinator log that its state is not known any more."""
        missed = [Event(kind=Kind.MISSED, **each.log._asdict()) for each in self.journal.cursors() if each.log.topic == TRANSACTION_TOPIC]
        return [*([Event(kind=Kind.SKIPPED, broker=broker, reason="journal_trimmed", bytes=loss.bytes)] if loss.bytes else []), *missed]


log = logging.getLogger(__name__)

POLL_SECONDS = 1.5
"""The longest wait of a plan for a poll of all logs; under a heavy load a poll takes as long. A page misses logs that were not polled."""

WAIT_SECONDS = 0.3
"""How often a plan that waits for something new checks again."""

MOST_WAIT_SECONDS = 30.0
"""The longest wait of a plan, whatever is asked for. One plan of a consumer waits at a time; another one is answered at once."""

BEGINNINGS, BEGINNING_SECONDS = 16, 10.0
"""So many consumers of a principal may begin at once, and one more each so many seconds."""

HAND_OVER = "give the job the token of its owner, or write takes=ID, the consumer's id, behind the token in --token-file that may take it"

_ID = re.compile(r"[ -~]{0,64}")  # a UUID, where a job draws it
_ASKS_ALL = StatusRequest()


@dataclass(frozen=True, slots=True)
class Service:
    """One agent. Called from the threads of the server.

    A consumer's position is what its Spark job has committed of what arrived. Every range is sent from this position, however far the plans
    have gone. So events that a read lost on its way, or that an unreachable agent could not send, come again with the next range. At a
    commit, only events that the same run of the query received count as arrived: if a micro-batch is run again, it may find the agent
    unreachable and go without its rows.
    """

    name: str
    journal: Journal
    consumers: Consumers
    host_watch: Callable[[], HostWatch]
    polls: Polls
    arrivals: ConsumerArrivals = field(default_factory=ConsumerArrivals)
    pulse: Pulse = field(default_factory=Pulse)
    blocked: Callable[[], list[BlockedFile]] = list
    owners: Owners = field(default_factory=Owners)
    scrubs: Callable[[], list[ScrubStatus]] = list
    redact: Callable[[str], str] = str  # makes the form of an id or a name that may leave the host
    about_groups: GroupAnswers | None = None  # without it, questions about consumer groups are refused
    takes: Callable[[str, str], bool] = lambda _principal, _consumer: False  # whether a principal may take another one's consumer
    beginnings: Allowance = field(default_factory=lambda: Allowance(BEGINNINGS, BEGINNING_SECONDS))
    consumer_expiry_ms: int = 7 * 86_400_000
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
        """The agent's identity and progress. It is no part of a job's work: it takes no consumer for the principal, and renews none.

        Raises:
            AgentError: the consumer that the request names belongs to another principal.
        """
        owner = self.consumers.owner(request.consumer)
        if owner not in ("", principal) and not self.takes(principal, request.consumer):
            raise self._foreign(request.consumer, owner, principal)
        return self._status(request)

    def _status(self, request: StatusRequest) -> Status:
        caught_up = self.watcher.caught_up  # first: then the end covers everything that was read by then
        catalog = self._catalog(request)  # first: everything that was read before these decisions is before the end
        end = self.journal.end()
        dirs = self.watcher.log_dirs
        unreadable = sorted(self.watcher.unreadable(), key=lambda each: each.log.topic != TRANSACTION_TOPIC)  # the most important first
        return Status(
            agent=self.name,
            version=streaming.__version__,
            journal=self.consumers.journal(request.consumer),
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
            twins=self.owners.twins(),
            scrubs=self.scrubs(),
            pending=list(answer(request.pending, self.watcher.tails(), self.redact)) if request.pending else [],
            catalog=catalog,
            unread=self._unread(caught_up=caught_up),
            started_ms=self.started_ms,
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
        """Register a consumer that starts.

        If this journal does not know the consumer, the logs are published to it from the start that it requests.

        Raises:
            AgentError: there is no such start, the consumer belongs to another principal or another run, or its principal has as many
                consumers as it may have, or begins too many in a short time.
            VersionError: its job is of a version that cannot read the agent's rows; the same for `plan` and `read`.
        """
        serve_only(request.protocol)
        if request.start_from not in set(StartFrom):
            raise AgentError(f"no such start: {request.start_from!r:.40}; there are {', '.join(StartFrom)}")
        if not _ID.fullmatch(request.consumer):
            raise AgentError(f"no such id of a consumer: {quoted(request.consumer)}")
        beginning = Beginning(StartFrom(request.start_from), request.resumed)
        if not request.consumer:
            # register a consumer without an id: it reads what the journal keeps. Before the first such reader, the journal keeps nothing
            if self.consumers.any() or self.watcher.tails():
                self.watcher.note_consumer()
            else:
                self.watcher.begin(beginning)
        elif self._goes_on(request, principal):
            self.watcher.note_consumer()
        elif not self.arrivals.begins(request.consumer):
            self._begin(request.consumer, beginning, principal)
        self.polls.want()
        return self._status(StatusRequest(consumer=request.consumer))

    def _goes_on(self, request: Register, principal: str) -> bool:
        """Whether the consumer is registered and goes on from where it was."""
        self.claim(request.consumer, request.run, principal)
        if not request.resumed and self.consumers.has_committed(request.consumer):
            self._note("a job has lost the position that it had committed: it begins anew", consumer=request.consumer)
            self.consumers.forget(request.consumer)
        return self.consumers.note_seen(request.consumer)

    def _begin(self, consumer: str, beginning: Beginning, principal: str) -> None:
        """Let a consumer begin at this agent. Each beginning costs a look at all logs."""
        if not self.beginnings.take(principal):
            raise AgentError("too many jobs begin at the same time: it is tried again", Reason.BUSY)
        if not self.consumers.make_room(principal, self.consumer_expiry_ms):
            raise AgentError(
                f"it serves {MOST_CONSUMERS} jobs already with this token: stop one of them; those that were silent for longer than "
                "consumer_expiry give way",
                Reason.BUSY,
            )
        self.arrivals.note_beginning(consumer, self.watcher.begin(beginning, Registration(consumer, principal, beginning.resumed)))

    def claim(self, consumer: str, run: str, principal: str) -> None:
        """Check that a consumer belongs to the principal, and that the run owns it: only one run of a consumer's query is served.

        Raises:
            AgentError: it belongs to another one, or another run is served.
        """
        if not consumer:
            return
        if not self.consumers.belongs_to(consumer, principal):
            if not self.takes(principal, consumer):
                raise self._foreign(consumer, self.consumers.owner(consumer), principal)
            self.consumers.hand_over(consumer, principal)
        if not _ID.fullmatch(run):
            raise AgentError(f"no such id of a run: {quoted(run)}")
        if run and not self.owners.claim(consumer, run):
            self._note("two jobs have one id", consumer=consumer, refused_run=run)
            raise AgentError(f"{TWIN}: {consumer}: was a checkpoint copied while its job ran on? stop one of them", Reason.TWIN_CONSUMER)

    def _foreign(self, consumer: str, owner: str, principal: str) -> AgentError:
        """The error that refuses a consumer to a principal to which it does not belong, with whose it is and what to do."""
        self._note("a consumer of another token is refused", consumer=consumer, owner=owner, principal=principal, remedy=HAND_OVER)
        sent = f"its token is {principal}'s" if principal else "its token has no name"
        return AgentError(
            f"the job {consumer} belongs to another token there, that of {owner}, and {sent}: name the right one with --agent-token-file; "
            f"or, if the job is to have this token, write takes={consumer} behind it in the agent's --token-file",
            Reason.UNAUTHORIZED,
        )

    def _note(self, message: str, **fields: str) -> None:
        """Warn of what a caller has caused."""
        self.notes.write(logging.WARNING, message, fields)

    def plan(self, request: PlanRequest, principal: str = "") -> Plan:
        """Plan how far ``request.budget`` bytes reach. For a consumer without an id, the plan starts at the position in the request.

        Raises:
            AgentError: the consumer belongs to another principal or another run.
        """
        serve_only(request.protocol)
        with self.journal.database.reading():  # the consumer is not forgotten meanwhile
            start = self._start(request, principal)
        if start.planned == NOT_BEGUN:
            return self._not_begun(start.journal)
        if request.consumer:
            self._make_good(request.consumer)
        mark = self.reach(request.consumer, start.after, request.budget, request.wait_ms)
        missed = start.after < start.planned
        if mark.seq > start.planned:
            more = request.budget is not None and self.journal.end().seq > mark.seq
            return Plan(self.name, start.journal, mark.seq, mark.total, again=False, missed=missed, more=more)
        if request.journal != start.journal:
            return self._not_begun(start.journal)
        total = self.journal.at(start.planned).total if request.total < 0 else request.total
        return Plan(self.name, start.journal, start.planned, total, again=missed, missed=missed, more=False)

    def _start(self, request: PlanRequest, principal: str) -> "_Start":
        """Where a plan starts."""
        consumer = request.consumer
        journal, committed = self.consumers.journal(consumer), self.consumers.committed(consumer)
        if committed is None and consumer:
            return _Start(journal, NOT_BEGUN, NOT_BEGUN)
        self.claim(consumer, request.run, principal)
        same = request.journal == journal
        planned = request.after if same else committed or 0
        if committed is None:
            if planned > (end := self.journal.end().seq):
                raise AgentError(f"a plan after {planned} of a journal that ends at {end}: no reader without an id can have been there")
            return _Start(journal, planned, planned)
        if not (self.journal.has_been_at(request.after, request.total) if same else self._suits(request)):
            # a job keeps the name of the journal before it reads, so one that names another has not read this one, or has gone on since
            self._note("this journal is an earlier copy of what a consumer has read: it begins anew", consumer=consumer)
            self.consumers.forget(consumer)
            return _Start(journal, NOT_BEGUN, NOT_BEGUN)
        if self.consumers.has_lost_its_beginning(consumer):
            self._note("a job comes to its beginning when that is forgotten: it begins anew", consumer=consumer)
            self.consumers.forget(consumer)
            return _Start(journal, NOT_BEGUN, NOT_BEGUN)
        if 0 <= planned < committed:
            if not self.consumers.set_back(consumer, planned):
                return _Start(journal, NOT_BEGUN, NOT_BEGUN)
            committed = planned
        return _Start(journal, planned, min(planned, max(committed, self.arrivals.upto(consumer, request.run, journal))))

    def _suits(self, request: PlanRequest) -> bool:
        """Whether a consumer's beginning in this journal is for one that comes from that other journal, "" for none, and is unread."""
        if self.consumers.was_sent(request.consumer):
            return False
        return not request.journal or self.consumers.begins_as_known(request.consumer)

    def _make_good(self, consumer: str) -> None:
        """Publish open transactions again after what a consumer has missed: those that ended in the gap must not seem open for ever."""
        missed = self.consumers.missed(consumer)
        if not missed:
            return
        watcher, published = self.watcher, self.arrivals.appears_again(consumer, missed, self.watcher)
        if published is None:
            self.arrivals.note_appearing(consumer, missed, watcher, watcher.appear_again())
            self.polls.want()
        elif published.is_set():
            self.consumers.made_good(consumer, missed)

    def _not_begun(self, journal: str) -> Plan:
        return Plan(self.name, journal, NOT_BEGUN, 0, again=False)

    def reach(self, consumer: str, after: int, budget: int | None, wait_ms: int) -> Point:
        """How far a budget reaches after a seq; waits for something new if a plan of the consumer may.

        Polls all logs first, unless the journal exceeds the budget anyway: there may be no other poll until the next plan.
        """
        with self.arrivals.waiting(consumer) as may_wait:
            deadline = time.monotonic() + (min(wait_ms / 1000, MOST_WAIT_SECONDS) if may_wait else 0.0)
            while True:
                if self._mark(after, budget).seq == self.journal.end().seq:
                    self.polls.request(POLL_SECONDS)
                mark = self._mark(after, budget)
                left = deadline - time.monotonic()
                if mark.seq > after or left <= 0:
                    return mark
                self.journal.wait(min(left, WAIT_SECONDS))

    def _mark(self, after: int, budget: int | None) -> Point:
        return max(self.journal.reach(after, budget), self.journal.trimmed(), key=attrgetter("seq"))

    def read(self, request: Range, principal: str = "") -> Iterator[pa.RecordBatch]:
        """The rows of a range; none if its journal no longer exists.

        Raises:
            AgentError: the consumer belongs to another principal or another run, or began anew while the rows were read.
        """
        serve_only(request.protocol)
        self.claim(request.consumer, request.run, principal)
        reading = RangeReading(self.name, self.journal, self.consumers, self.arrivals)
        return reading.rows(request, self.watcher.log_dirs.brokers[0])

    def received(self, request: Range, principal: str = "") -> None:
        """Note that a run of a consumer's query has received all rows of a range."""
        with self.journal.database.reading():
            if self._is_served(request, principal):
                self.arrivals.note(request.consumer, request.run, request.journal, request.upto)

    def committed(self, message: Committed, principal: str = "") -> None:
        """Note that a micro-batch is committed: events that its run received will not be requested again."""
        with self.journal.database.reading():
            before = self.consumers.committed(message.consumer)
            if before is None or not self._is_served(message, principal):
                return
            upto = min(message.seq, self.arrivals.upto(message.consumer, message.run, message.journal))
            if upto > before:
                self.consumers.note_committed(message.consumer, upto)

    def _is_served(self, message: Range | Committed, principal: str) -> bool:
        """Whether a message is of the run that is served, and of the journal as its consumer knows it now."""
        return (
            message.journal == self.consumers.journal(message.consumer)
            and self.consumers.belongs_to(message.consumer, principal)
            and self.owners.owns(message.consumer, message.run)
        )


@dataclass(frozen=True, slots=True)
class _Start:
    """A plan of ``journal`` goes on behind ``planned``; everything after ``after`` is sent. Both are `NOT_BEGUN` if it has to register."""

    journal: str
    planned: int
    after: int


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
