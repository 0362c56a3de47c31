"""The agent's answers, without the wire: status, plans, and the rows of a range."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

import numpy as np
import pyarrow as pa

import streaming
from streaming.agent.cluster_view import ClusterView
from streaming.agent.consumer_memory import Arrivals
from streaming.agent.group_answers import GroupAnswers
from streaming.agent.health_server import Pulse
from streaming.agent.host_status import HostStatus
from streaming.agent.owners import Owners
from streaming.agent.pending import answer
from streaming.agent.polling_thread import HostWatch
from streaming.agent.polls import Polls
from streaming.catalog.changes import Version
from streaming.errors import AgentError, VersionError
from streaming.event_row import EVENTS, Event
from streaming.journal.blocks import longs
from streaming.journal.consumers import Consumers
from streaming.journal.journal import Journal, Mark
from streaming.journal.losses import UNKNOWN, Loss
from streaming.kafka.names import TRANSACTION_TOPIC
from streaming.protocol.consumer_messages import NOT_BEGUN, Committed, Plan, PlanRequest, Range, Register
from streaming.protocol.event_tables import blocks_table
from streaming.protocol.problems import TWIN, Reason
from streaming.protocol.scrub_messages import ScrubStatus
from streaming.protocol.status_messages import (
    MOST_UNREADABLE,
    BlockedFile,
    BrokerStatus,
    CatalogPart,
    CatalogVersion,
    Status,
    StatusRequest,
    UnreadableLog,
    UnreadableLogs,
)
from streaming.protocol.versions import job_problem
from streaming.rows import Kind
from streaming.start_from import StartFrom
from streaming.watcher.unreadable import Unreadable
from streaming.watcher.watcher import Beginning, Doubt, Watcher

log = logging.getLogger(__name__)

POLL_SECONDS = 1.5
"""The longest wait of a plan for a poll of all logs; under a heavy load a poll takes as long. A page misses logs that were not polled."""

WAIT_SECONDS = 0.3
"""How often a plan that waits for something new checks again."""

_ASKS_ALL = StatusRequest()


@dataclass(frozen=True, slots=True)
class Service:
    """One agent. Called from the threads of the Flight server.

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
    arrivals: Arrivals = field(default_factory=Arrivals)
    pulse: Pulse = field(default_factory=Pulse)
    blocked: Callable[[], list[BlockedFile]] = list
    owners: Owners = field(default_factory=Owners)
    scrubs: Callable[[], list[ScrubStatus]] = list
    redact: Callable[[str], str] = str  # makes the form of an id or a name that may leave the host
    about_groups: GroupAnswers | None = None  # without it, questions about consumer groups are refused

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

    def status(self, request: StatusRequest = _ASKS_ALL) -> Status:
        """The agent's identity and progress."""
        caught_up = self.watcher.caught_up  # first: then the end covers everything that was read by then
        catalog = self._catalog(request)  # first: everything that was read before these decisions is before the end
        end = self.journal.end()
        dirs = self.watcher.log_dirs
        unreadable = sorted(self.watcher.unreadable(), key=lambda each: each.log.topic != TRANSACTION_TOPIC)  # the most important first
        return Status(
            agent=self.name,
            version=streaming.__version__,
            journal=self.journal.id,
            cluster_id=dirs.cluster_id,
            brokers=dirs.brokers,
            unreadable_metadata=self.cluster.unreadable(),
            logs=max(len(self.watcher.tails()), self.host_status.logs),
            caught_up=caught_up,
            seq=end.seq,
            total=end.total,
            now_ms=time.time_ns() // 1_000_000,
            directories=[f"{each.broker}:{each.directory_id or each.path}" for each in dirs.known],
            doubts={str(doubt): count for doubt, count in self.doubts().items()},
            log_dirs=self.host_status.log_dirs,
            broker_statuses=[_without_known(each, request) for each in self.host_status.brokers],
            blocked=self.blocked(),
            silent_seconds=round(self.pulse.age, 1),
            unreadable=[UnreadableLogs(*each) for each in sorted(Counter(each.log.broker for each in unreadable).items())],
            unreadable_logs=[_named(each) for each in unreadable[:MOST_UNREADABLE]],
            twins=self.owners.twins(),
            scrubs=self.scrubs(),
            pending=list(answer(request.pending, self.watcher.tails(), self.redact)) if request.pending else [],
            catalog=catalog,
        )

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

    def register(self, request: Register) -> Status:
        """Register a consumer that starts.

        If this journal does not know the consumer, the logs are published to it from the start that it requests.

        Raises:
            AgentError: there is no such start.
            VersionError: its job is of a version that cannot read the agent's rows; the same for `plan` and `read`.
        """
        _serve_only(request.protocol)
        self._claim(request.consumer, request.run)
        if request.start_from not in set(StartFrom):
            raise AgentError(f"no such start: {request.start_from!r}; there are {', '.join(StartFrom)}")
        beginning = Beginning(StartFrom(request.start_from), request.resumed)
        if not request.resumed and self.consumers.has_committed(request.consumer):
            log.warning(
                "a job has lost the position that it had committed: it begins anew",
                extra={"consumer": request.consumer},
            )
            self.consumers.forget(request.consumer)
        if not request.consumer:
            self._register_reader(beginning)
        elif self.consumers.note_seen(request.consumer):
            self.watcher.note_consumer()
        elif not self.arrivals.begins(request.consumer):
            begun = self.watcher.begin(beginning, request.consumer)
            self.arrivals.note_beginning(request.consumer, begun)
        self.polls.want()
        return self.status()

    def _claim(self, consumer: str, run: str) -> None:
        """Check that the run owns the consumer: only one run of a consumer's query is served.

        Raises:
            AgentError: another run is served.
        """
        if consumer and run and not self.owners.claim(consumer, run):
            log.warning("two jobs have one id", extra={"consumer": consumer, "refused_run": run})
            raise AgentError(f"{TWIN}: {consumer}: was a checkpoint copied while its job ran on? stop one of them", Reason.TWIN_CONSUMER)

    def _register_reader(self, beginning: Beginning) -> None:
        """Register a consumer without an id: it reads what the journal keeps. Before the first such reader, the journal keeps nothing."""
        if self.consumers.any() or self.watcher.tails():
            self.watcher.note_consumer()
        else:
            self.watcher.begin(beginning)

    def plan(self, request: PlanRequest) -> Plan:
        """Plan how far ``request.budget`` bytes reach. For a consumer without an id, the plan starts at the position in the request."""
        _serve_only(request.protocol)
        self._claim(request.consumer, request.run)
        same = request.journal == self.journal.id
        if same and not self.journal.has_been_at(request.after, request.total):
            self.journal.renew()
            return self._not_begun()
        committed = self.consumers.committed(request.consumer)
        if committed is None and request.consumer:
            return self._not_begun()
        planned = request.after if same else committed or 0
        after = planned
        if committed is not None:
            if 0 <= planned < committed:
                self.consumers.set_back(request.consumer, planned, request.total)
                committed = planned
            after = min(planned, max(committed, self.arrivals.upto(request.consumer, request.run, self.journal.id)))
            self._make_good(request.consumer)
        mark = self._reach(after, request)
        if mark.seq > planned:
            more = request.budget is not None and self.journal.end().seq > mark.seq
            return Plan(self.name, self.journal.id, mark.seq, mark.total, again=False, missed=after < planned, more=more)
        if not same:
            return self._not_begun()
        total = self.journal.at(planned).total if request.total < 0 else request.total
        return Plan(self.name, self.journal.id, planned, total, again=after < planned, missed=after < planned, more=False)

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

    def _not_begun(self) -> Plan:
        return Plan(self.name, self.journal.id, NOT_BEGUN, 0, again=False)

    def _reach(self, after: int, request: PlanRequest) -> Mark:
        """Poll all logs first, unless the journal exceeds the budget anyway: there may be no other poll until the next plan."""
        deadline = time.monotonic() + request.wait_ms / 1000
        while True:
            if self._mark(after, request).seq == self.journal.end().seq:
                self.polls.request(POLL_SECONDS)
            mark = self._mark(after, request)
            left = deadline - time.monotonic()
            if mark.seq > after or left <= 0:
                return mark
            self.journal.wait(min(left, WAIT_SECONDS))

    def _mark(self, after: int, request: PlanRequest) -> Mark:
        return max(self.journal.reach(after, request.budget), self.journal.trimmed(), key=attrgetter("seq"))

    def read(self, asked: Range) -> pa.Table:
        """The rows of a range; none if its journal no longer exists."""
        _serve_only(asked.protocol)
        if asked.journal != self.journal.id:
            return EVENTS.empty_table()
        self._claim(asked.consumer, asked.run)
        after, losses = self._losses(asked)
        lost = [(loss.upto, self._loss_events(loss)) for loss in losses if loss.upto <= asked.upto]
        blocks = [_without(losses, block) for block in self.journal.blocks(after, asked.upto)]
        return blocks_table(self.name, self.journal.id, blocks, lost)

    def _losses(self, asked: Range) -> tuple[int, list[Loss]]:
        """The seq from which a range is sent, and the events in it that the journal has trimmed."""
        committed = self.consumers.committed(asked.consumer)
        if committed is None:
            after, trimmed = max(0, asked.after), self.journal.trimmed()
            size = trimmed.total - asked.after_total if asked.after >= 0 else 0
            return after, [Loss(after, trimmed.seq, max(0, size))] if after < trimmed.seq else []
        if 0 <= asked.after < committed and self.arrivals.upto(asked.consumer, asked.run, asked.journal) < 0:
            self.consumers.set_back(asked.consumer, asked.after, asked.after_total)
            committed = asked.after
        losses = self.consumers.send(asked.consumer, asked.upto) or []
        if any(loss.bytes == UNKNOWN for loss in losses):
            self.consumers.measure(asked.consumer, asked.after_total if asked.after >= 0 else -1)
            losses = self.consumers.send(asked.consumer, asked.upto) or []
        return committed, losses

    def _loss_events(self, loss: Loss) -> list[Event]:
        """The events that report a loss: the lost bytes, and for each coordinator log that its state is not known any more."""
        broker = self.watcher.log_dirs.brokers[0]
        missed = [Event(kind=Kind.MISSED, **each.log._asdict()) for each in self.journal.cursors() if each.log.topic == TRANSACTION_TOPIC]
        return [*([Event(kind=Kind.SKIPPED, broker=broker, reason="journal_trimmed", bytes=loss.bytes)] if loss.bytes else []), *missed]

    def received(self, asked: Range) -> None:
        """Note that a run of a consumer's query has received all rows of a range."""
        if asked.journal == self.journal.id and self.owners.owns(asked.consumer, asked.run):
            self.arrivals.note(asked.consumer, asked.run, asked.journal, asked.upto)

    def committed(self, message: Committed) -> None:
        """Note that a micro-batch is committed: events that its run received will not be requested again."""
        if message.journal != self.journal.id or not self.owners.owns(message.consumer, message.run):
            return
        before = self.consumers.committed(message.consumer)
        upto = min(message.seq, self.arrivals.upto(message.consumer, message.run, message.journal))
        if before is not None and upto > before:
            self.consumers.note_streamed(message.consumer, before, upto)
            self.consumers.note_committed(message.consumer, upto)


def _without(losses: Sequence[Loss], block: pa.RecordBatch) -> pa.RecordBatch:
    """The block without the lost rows: some of them may still be in the journal, because other consumers hold them."""
    seqs = longs(block, "seq")
    lost = np.zeros(len(seqs), np.bool_)
    for loss in losses:
        lost |= (loss.after < seqs) & (seqs <= loss.upto)
    return block.filter(pa.array(~lost)) if lost.any() else block


def _without_known(status: BrokerStatus, request: StatusRequest) -> BrokerStatus:
    return replace(status, counts="") if status.counts_name in request.counts else status


def _serve_only(protocol: int) -> None:
    """Check the version of every call, not only the first: a job may keep running while its agent is upgraded."""
    problem = job_problem(protocol, streaming.__version__)
    if problem:
        raise VersionError(problem)


def _named(log: Unreadable) -> UnreadableLog:
    return UnreadableLog(*log.log, log.path, log.error)
