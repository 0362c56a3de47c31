"""Agents inside the test's own process: turned by hand, or served on loopback with a thread that turns them."""

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from streaming.broker.agent.call_answers import Answer, answers
from streaming.broker.agent.call_server import AgentServer
from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.dir_threads import DirCalls
from streaming.broker.agent.group_answers import GroupAnswers
from streaming.broker.agent.group_following import REST_SECONDS, GroupFollowing
from streaming.broker.agent.health_server import AgentMetrics
from streaming.broker.agent.host_status import HostStatus
from streaming.broker.agent.ladders import Ladders
from streaming.broker.agent.polling_thread import HostWatch, Polls
from streaming.broker.agent.security import ServerFiles, open_security
from streaming.broker.agent.service import Service
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.journal.consumers import Consumers, JournalBounds
from streaming.broker.journal.journal import Journal
from streaming.broker.protocol.consumer_messages import NOT_BEGUN, Committed, Plan, PlanRequest, Range, Register
from streaming.broker.watcher.watcher import RESCAN_MS, Watcher
from streaming.common.event_row import EVENTS, EventRow
from streaming.common.units import Address
from streaming.rules import shard
from streaming.spark.job.agent_statuses import AgentWatch
from tests.builders import CLUSTER_ID, NOW
from tests.ports import free_ports

LOOPBACK = Address("127.0.0.1", 0)
PRODUCERS_LIMIT = 100
_WAKE_SECONDS = 0.02
_TURN_MS = 100  # five times as fast as the clock on the wall


class Agent:
    """An agent without a process. Its clock stands still but for ``look``."""

    def __init__(self, *log_dirs: Path, journal: Path, name: str = "a1", redact: Callable[[str], str] | None = None) -> None:
        self.name = name
        self._redact = redact
        self.metrics = AgentMetrics()
        self.now = NOW
        self.log_dirs = open_log_dirs(log_dirs)
        self._directory = journal
        self.open()

    @property
    def paths(self) -> list[Path]:
        """Its log dirs."""
        return [log_dir.path for log_dir in self.log_dirs]

    def open(self) -> None:
        """Start on the journal that is there."""
        self.journal = Journal(self._directory, CLUSTER_ID, lambda: self.now)
        self.consumers = Consumers(self.journal, self.journal.now_ms)
        self.cluster = ClusterView(self.log_dirs)
        self.polls = Polls()
        self.ladders = Ladders(
            self.log_dirs,
            lambda: self.watcher.tails(),
            self.journal,
            lambda: self.now,
            rate=1 << 60,
            wait=lambda _: False,
            cpu_share=1e9,
            clock=lambda: self.now / 1000,
        )
        self.watcher = self._watcher()
        self.host_status = HostStatus(self.log_dirs, self.cluster, self.watcher.tails, lambda: self.now, self.watcher.recovery)
        host_watch = HostWatch(self.watcher, self.cluster, self.host_status)
        self.following = GroupFollowing(self.log_dirs, self.watcher.tails, rate=1 << 60, groups_limit=100, cpu_share=1e9)
        self.calls = DirCalls(self.paths)
        about_groups = GroupAnswers(
            journal=self.journal,
            consumers=self.consumers,
            log_dirs=self.log_dirs,
            tails=self.watcher.tails,
            following=self.following,
            calls=self.calls,
            ladders=self.ladders,
            redact=self._redact,
        )
        self.service = Service(
            self.name, self.journal, self.consumers, lambda: host_watch, self.polls, about_groups=about_groups, redact=self._redact or str
        )

    def _watcher(self) -> Watcher:
        return Watcher(
            self.log_dirs,
            self.journal,
            self.cluster,
            lambda: self.now,
            producers_limit=PRODUCERS_LIMIT,
            attached=self.consumers.any(),
            noting=self.ladders,
            few_logs=0,  # all by columns that can be
        )

    def replace_watcher(self) -> None:
        """Another watcher goes on from the journal, as when a call of the first one does not return."""
        self.watcher.close()
        self.watcher = self._watcher()

    @contextmanager
    def listening(self, files: ServerFiles) -> Iterator[AgentServer]:
        """It answers whoever has what these files ask for."""
        security = open_security(files, LOOPBACK)
        made = AgentServer(answers(replace(self.service, takes=security.takes)), LOOPBACK, security, self.metrics)
        try:
            yield made
        finally:
            made.close()

    def close(self) -> None:
        self.watcher.close()
        self.journal.close()

    def restart(self) -> None:
        """Another process on the same journal."""
        self.close()
        self.open()

    def lose_journal(self) -> None:
        """Another process that finds no journal."""
        self.close()
        shutil.rmtree(self._directory)
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

    def trim(self, *, keep_ms: int = 10**12, expiry_ms: int = 10**12) -> None:
        """Forget what nobody needs, and what is older than ``keep_ms`` in any case."""
        while self.consumers.trim(JournalBounds(max_bytes=1 << 40, max_age_ms=keep_ms, consumer_expiry_ms=expiry_ms)):
            pass

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

    def __init__(self, agent: Agent, consumer: str = "job", start_from: str = "earliest") -> None:
        self.agent = agent
        self.consumer = consumer
        self.start_from = start_from
        self.run = "run 1"
        self.at = ("", -1, 0)  # journal, seq, total: what Spark keeps

    def register(self, *, resumed: bool | None = None) -> None:
        """Register, as one that has had something if it has, or as it is told to."""
        self.agent.service.register(Register(self.consumer, self.start_from, bool(self.at[0]) if resumed is None else resumed))

    def begin(self) -> "Reader":
        """Register and let the agent publish what is there."""
        self.register()
        self.agent.look()
        return self

    def plan(self, budget: int | None = None) -> Plan:
        return self.agent.service.plan(
            PlanRequest(self.consumer, self.run, *self.at[:2], budget, 0, total=self.at[2] if self.at[0] else -1)
        )

    def asked(self, plan: Plan) -> Range:
        journal, seq, total = self.at
        same = journal == plan.journal
        return Range(self.consumer, self.run, plan.journal, seq if same else -1, total if same else 0, plan.seq)

    def take(self, plan: Plan, *, arrives: bool = True) -> list[EventRow]:
        """Read what was planned; Spark goes on behind it whether or not it arrives."""
        assert plan.seq != NOT_BEGUN
        asked = self.asked(plan)
        rows = event_rows(read_range(self.agent.service, asked))
        self.at = (plan.journal, plan.seq, plan.total)
        if arrives:
            self.agent.service.received(asked)
            return rows
        return []

    def commit(self) -> None:
        """What Spark tells when it plans the micro-batch after."""
        self.agent.service.committed(Committed(self.consumer, self.run, *self.at[:2]))

    def step(self, budget: int | None = None) -> list[EventRow]:
        """One micro-batch from plan to commit."""
        rows = self.take(self.plan(budget))
        self.commit()
        return rows


def event_rows(table: Any) -> list[EventRow]:
    """An Arrow table of events as values."""
    return [each for batch in table.to_batches() for each in shard.event_rows(batch)]


def poll_until(watch: AgentWatch, check: Callable[[], bool]) -> None:
    """Poll on: one that does not answer is asked on the side, and the answer counts in a later poll."""
    while not check():
        watch.poll()
