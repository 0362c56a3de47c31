"""What an agent answers, without the wire: status, plans, and the rows of a range."""

import threading
import time
from dataclasses import dataclass, field

import pyarrow as pa

import streaming
from streaming.agent.cluster import ClusterView
from streaming.agent.messages import Committed, Hello, Plan, PlanRequest, Range, Status
from streaming.agent.picture import picture
from streaming.agent.tables import events_table
from streaming.errors import AgentError
from streaming.rows import EVENTS, Kind
from streaming.watcher.consumers import Consumers
from streaming.watcher.events import Event
from streaming.watcher.journal import Journal, Mark
from streaming.watcher.locate import StartFrom
from streaming.watcher.watcher import Beginning, Watcher

BEGINNING_SECONDS = 2.0
"""How long a hello waits for its answer: less than a client waits."""

_STARTS: dict[str, StartFrom] = {"earliest": "earliest", "active": "active", "latest": "latest"}


@dataclass(frozen=True, slots=True)
class Service:
    """One agent. Called from the threads of the Flight server.

    An agent remembers for each consumer how far it has received everything, and plans from there: what a read lost on its way, or an agent that was away
    could not send, is planned again.
    """

    name: str
    journal: Journal
    consumers: Consumers
    watcher: Watcher
    cluster: ClusterView
    wake: threading.Event
    _lock: threading.Lock = field(default_factory=threading.Lock)  # protects _begun
    _begun: dict[str, threading.Event] = field(default_factory=dict)  # of consumers whose beginning is being published

    def status(self) -> Status:
        """What this agent is and how far it has come."""
        end = self.journal.end()
        dirs = self.watcher.log_dirs
        return Status(
            agent=self.name,
            version=streaming.__version__,
            journal=self.journal.id,
            cluster_id=dirs[0].cluster_id,
            brokers=sorted({log_dir.broker for log_dir in dirs}),
            unreadable_metadata=self.cluster.unreadable(),
            logs=len(self.watcher.tails()),
            caught_up=self.watcher.caught_up,
            seq=end.seq,
            total=end.total,
        )

    def hello(self, hello: Hello) -> Status:
        """A consumer starts: one that this journal has never heard of gets the logs published from where it wants them.

        Raises:
            AgentError: that is not done yet; the consumer may say hello again.
        """
        if self.consumers.hello(hello.consumer):
            self.watcher.greet()
            self.wake.set()
            return self.status()
        with self._lock:
            begun = self._begun.get(hello.consumer)
            if begun is None:
                beginning = Beginning(_STARTS[hello.start_from], hello.resumed)
                begun = self._begun[hello.consumer] = self.watcher.begin(beginning, lambda: self.consumers.enrol(hello.consumer))
        self.wake.set()
        if not begun.wait(BEGINNING_SECONDS):
            raise AgentError("the beginning of the logs is being looked for: this consumer has to wait")
        with self._lock:
            self._begun.pop(hello.consumer, None)
        return self.status()

    def plan(self, request: PlanRequest) -> Plan:
        """How far ``request.budget`` bytes reach. A consumer without a name plans from what it asks for."""
        same = request.journal == self.journal.id
        if same and request.after > self.journal.end().seq:
            self.journal.renew()
            self.hello(Hello(request.consumer, "earliest", resumed=True))
            same = False
        received = self.consumers.streamed(request.consumer)
        planned = request.after if same else self.consumers.committed(request.consumer) or 0
        after = planned if received is None else min(planned, received)
        mark = self._reach(after, request)
        if mark.seq > planned:
            return Plan(self.name, self.journal.id, mark.seq, mark.total, again=False)
        mark = self.journal.at(planned)
        return Plan(self.name, self.journal.id, mark.seq, mark.total, again=after < planned)

    def _reach(self, after: int, request: PlanRequest) -> Mark:
        deadline = time.monotonic() + request.wait_ms / 1000
        while True:
            mark = self.journal.reach(after, request.budget)
            if mark.seq > after or not self.journal.wait(deadline - time.monotonic()):
                return mark

    def read(self, asked: Range) -> pa.Table:
        """The rows of a range; none if the journal it speaks of is no more."""
        if asked.journal != self.journal.id:
            return EVENTS.empty_table()
        own = self.consumers.committed(asked.consumer)
        received = self.consumers.streamed(asked.consumer)
        after = asked.after if asked.after >= 0 else own or 0
        if received is not None:
            after = min(after, received)
        rows = self.journal.read(after, asked.upto)
        beats = [seq for seq, event in rows if event.kind is Kind.BEAT]
        expanded = [
            (seq, picture(event, self.watcher.log_dirs, self.watcher.tails(), self.cluster) if event.kind is Kind.BEAT else [event])
            for seq, event in rows
            if event.kind is not Kind.BEAT or seq == beats[-1]  # a full picture replaces the ones before it
        ]
        return events_table(self.name, self.journal.id, [*self._trimmed(asked, after), *expanded])

    def _trimmed(self, asked: Range, after: int) -> list[tuple[int, list[Event]]]:
        """What was forgotten although this consumer had not had it: it was away for longer than the journal waits."""
        trimmed = self.journal.trimmed()
        if trimmed.seq <= after or asked.after < 0:
            return []
        lost = max(0, trimmed.total - asked.after_total)
        broker = self.watcher.log_dirs[0].broker
        return [(trimmed.seq, [Event(kind=Kind.SKIPPED, broker=broker, reason="journal_trimmed", bytes=lost)])] if lost else []

    def received(self, asked: Range) -> None:
        """A consumer has all rows of a range."""
        if asked.journal == self.journal.id:
            own = self.consumers.committed(asked.consumer)
            self.consumers.note_streamed(asked.consumer, asked.after if asked.after >= 0 else own or 0, asked.upto)

    def committed(self, message: Committed) -> None:
        """Spark will not ask again for what lies before."""
        if message.journal == self.journal.id:
            self.consumers.note_committed(message.consumer, message.seq)
