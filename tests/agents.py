"""Agents inside the test's own process: turned by hand, or served on loopback with a thread that turns them."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from streaming.broker.agent.call_answers import Answer, answers
from streaming.broker.agent.call_server import AgentServer
from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.dir_work import DirCalls
from streaming.broker.agent.group_answers import GroupAnswers
from streaming.broker.agent.group_following import REST_SECONDS, GroupFollowing
from streaming.broker.agent.health_server import AgentMetrics
from streaming.broker.agent.host_status import HostStatus
from streaming.broker.agent.jobs import Jobs, is_full
from streaming.broker.agent.ladders import Ladders
from streaming.broker.agent.polling_thread import HostWatch, Polls
from streaming.broker.agent.security import ServerFiles, open_security
from streaming.broker.agent.service import Service
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.journal.journal import MOST_BYTES, Journal
from streaming.broker.journal.scan_cache import ScanCache
from streaming.broker.protocol.consumer_messages import NOT_BEGUN, Plan, PlanRequest, Range, Register
from streaming.broker.protocol.known_ends import pack
from streaming.broker.watcher.watcher import RESCAN_MS, Watcher
from streaming.common.event_row import EVENTS, EventRow
from streaming.common.log_key import LogKey
from streaming.common.log_positions import KnownEnd
from streaming.common.units import Address
from streaming.rules import shard
from streaming.spark.job.agent_statuses import AgentWatch
from tests.builders import NOW
from tests.events import Shard
from tests.ports import free_ports

LOOPBACK = Address("127.0.0.1", 0)
PRODUCERS_LIMIT = 100
_WAKE_SECONDS = 0.02
_TURN_MS = 100  # five times as fast as the clock on the wall


class Agent:
    """An agent without a process. Its clock stands still but for ``look``."""

    def __init__(
        self,
        *log_dirs: Path,
        name: str = "a1",
        redact: Callable[[str], str] | None = None,
        cache: Path | None = None,
        kept_bytes: int = MOST_BYTES,
    ) -> None:
        self.name = name
        self._kept_bytes = kept_bytes  # of events
        self._redact = redact
        self.metrics = AgentMetrics()
        self.now = NOW
        self.log_dirs = open_log_dirs(log_dirs)
        self._cache = cache
        self.readers: list[Reader] = []  # that have begun: they come back when it is another process
        self.open()

    @property
    def paths(self) -> list[Path]:
        """Its log dirs."""
        return [log_dir.path for log_dir in self.log_dirs]

    def open(self) -> None:
        """Start, and know nothing but what the cache has."""
        self.journal = Journal(self._kept_bytes)
        self.jobs = Jobs(self.journal.id)
        self.cache = ScanCache(self._cache)
        self.cluster = ClusterView(self.log_dirs)
        self.polls = Polls()
        self.ladders = Ladders(
            self.log_dirs,
            lambda: self.watcher.tails(),
            self.cache,
            lambda: self.now,
            rate=1 << 60,
            wait=lambda _: False,
            cpu_share=1e9,
            clock=lambda: self.now / 1000,
        )
        self.watcher = self._watcher()
        self.host_status = HostStatus(self.log_dirs, self.cluster, self.watcher.tails, lambda: self.now, self.watcher.recovery)
        self.following = GroupFollowing(self.log_dirs, self.watcher.tails, rate=1 << 60, groups_limit=100, cpu_share=1e9)
        self.calls = DirCalls(self.paths)
        about_groups = GroupAnswers(
            journal=self.journal,
            jobs=self.jobs,
            log_dirs=self.log_dirs,
            tails=lambda: self.watcher.tails(),
            following=self.following,
            calls=self.calls,
            ladders=self.ladders,
            redact=self._redact,
        )
        self.service = Service(
            self.name,
            self.journal,
            self.jobs,
            lambda: HostWatch(self.watcher, self.cluster, self.host_status),
            self.polls,
            about_groups=about_groups,
            redact=self._redact or str,
        )
        for reader in self.readers:
            reader.register()

    def _watcher(self) -> Watcher:
        return Watcher(
            self.log_dirs,
            self.journal,
            self.cluster,
            lambda: self.now,
            producers_limit=PRODUCERS_LIMIT,
            attached=self.journal.begun,
            noting=self.ladders,
            cache=self.cache,
            is_full=lambda: is_full(self.journal, self.jobs),
            few_logs=0,  # all by columns that can be
        )

    def replace_watcher(self) -> None:
        """Another watcher goes on from what is published, as when a call of the first one does not return."""
        self.watcher.close()
        self.watcher = self._watcher()

    @contextmanager
    def listening(self, files: ServerFiles) -> Iterator[AgentServer]:
        """It answers whoever has what these files ask for."""
        security = open_security(files, LOOPBACK)
        made = AgentServer(answers(self.service), LOOPBACK, security, self.metrics)
        try:
            yield made
        finally:
            made.close()

    def close(self) -> None:
        self.watcher.close()
        self.cache.close()

    def restart(self) -> None:
        """Another process."""
        self.close()
        self.open()

    def look(self) -> None:
        """Look at everything, and publish what is new."""
        self.now += RESCAN_MS
        while self.watcher.poll(set()):
            pass
        self.host_status.refresh()

    def follow_groups(self) -> None:
        """Read everything that is published of the coordinators' logs."""
        for log_dir in self.log_dirs.available:
            while self.following.step(log_dir.path) < REST_SECONDS / 2:
                pass

    def count(self) -> None:
        """Count everything that is not counted yet."""
        for log_dir in self.log_dirs.available:
            self.ladders.step(log_dir.path)

    @contextmanager
    def served(self, *, port: int | None = None) -> Iterator[str]:
        """Serve it on loopback and turn it on a thread; yields the address.

        A port of its own: this process remembers for half a minute who is refused at an address.
        """
        (own,) = free_ports(1) if port is None else (port,)
        server = AgentServer(answers(self.service), Address("127.0.0.1", own))
        ends = threading.Event()
        thread = threading.Thread(target=self._turn_until, args=(ends,), name=f"agent {self.name}")
        thread.start()
        try:
            yield str(server.address)
        finally:
            ends.set()
            self.polls.want()
            thread.join()
            server.close()

    def _turn_until(self, ends: threading.Event) -> None:
        while not ends.is_set():
            self.now += _TURN_MS
            with self.polls.polling():
                more = self.watcher.poll(set())
            self.host_status.refresh()
            if not more:
                self.polls.rest(_WAKE_SECONDS)


@contextmanager
def served(answers: Mapping[str, Answer]) -> Iterator[str]:
    """A server with these answers alone; yields its address."""
    server = AgentServer(answers, LOOPBACK)
    try:
        yield str(server.address)
    finally:
        server.close()


def read_range(service: Service, asked: Range) -> pa.Table:
    """All rows of a range, as a job has them."""
    return pa.Table.from_batches(service.read(asked), EVENTS)


class Reader:
    """What a job's source and Spark do together, for one agent and step by step."""

    def __init__(self, agent: Agent, consumer: str = "job", start_from: str = "earliest", counted: Shard | None = None) -> None:
        self.agent = agent
        self.consumer = consumer
        self.start_from = start_from
        self.run = "run 1"
        self.has = ("", -1)  # journal and seq: up to where it has everything
        self.counted = Shard() if counted is None else counted

    @property
    def ends(self) -> dict[LogKey, KnownEnd]:
        """Up to where it has counted each log."""
        states = self.counted.states.items()
        return {key: KnownEnd(state.log_end_offset, state.log_epoch) for key, state in states if key.topic and not state.departed}

    def register(self, *, resumed: bool | None = None) -> None:
        """Register, as one that has had something if it has, or as it is told to."""
        if self not in self.agent.readers:
            self.agent.readers.append(self)
        known = bool(self.ends) if resumed is None else resumed
        self.agent.service.register(Register(self.consumer, self.start_from, known, run=self.run, positions=pack(self.ends)))

    def begin(self) -> "Reader":
        """Register and let the agent publish what is there."""
        self.register()
        self.agent.look()
        return self

    def plan(self, budget: int | None = None) -> Plan:
        return self.agent.service.plan(PlanRequest(self.consumer, self.run, *self.has, budget, 0))

    def asked(self, plan: Plan) -> Range:
        return Range(self.consumer, self.run, plan.journal, plan.after, plan.seq)

    def apply(self, plan: Plan, *, arrives: bool = True) -> list[EventRow]:
        """Read what was planned, which may be lost on its way."""
        assert plan.seq != NOT_BEGUN
        rows = event_rows(read_range(self.agent.service, self.asked(plan)))
        if not arrives:
            return []
        self.has = (plan.journal, plan.seq)
        self.counted.fold(*rows)
        return rows

    def step(self, budget: int | None = None) -> list[EventRow]:
        """One micro-batch."""
        return self.apply(self.plan(budget))


def event_rows(table: Any) -> list[EventRow]:
    """An Arrow table of events as values."""
    return [each for batch in table.to_batches() for each in shard.event_rows(batch)]


def poll_until(watch: AgentWatch, check: Callable[[], bool]) -> None:
    """Poll on: one that does not answer is asked on the side, and the answer counts in a later poll."""
    while not check():
        watch.poll()
