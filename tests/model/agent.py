"""One broker's agent without a process: the real parts on real files, called over a wire that can fail, killed between any two writes."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from sqlite3 import Connection
from typing import Any
from unittest.mock import patch

from streaming.broker.agent.call_answers import answers
from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.host_status import HostStatus
from streaming.broker.agent.polling_thread import HostWatch, Polls
from streaming.broker.agent.service import Allowance, Owners, Service
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.disk.opening import Calling
from streaming.broker.journal.consumers import Consumers, JournalBounds
from streaming.broker.journal.database import Database
from streaming.broker.journal.journal import Journal
from streaming.broker.protocol.agent_calls import Call
from streaming.broker.protocol.consumer_messages import Register
from streaming.broker.watcher.watcher import Watcher
from streaming.spark.client.agent_client import AgentClient
from tests.builders import CLUSTER_ID
from tests.clocks import Clock
from tests.watcher import joined

MOST_TURNS = 200

PRINCIPAL = "jobs"
"""Whose token the jobs have."""


class Killed(BaseException):
    """The process ends here; nothing after it happens."""


class Fuse:
    """Burns down with every commit of a journal."""

    def __init__(self) -> None:
        self.left = -1
        self.before = True

    def burn(self, *, before: bool) -> None:
        if before is self.before and self.left >= 0:
            self.left -= 1
            if self.left < 0:
                raise Killed


class FusedDatabase(Database):
    """A journal's file whose process may be killed right before or right after any commit."""

    fuse = Fuse()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with super().transaction() as run:
            yield run
            self.fuse.burn(before=True)
        self.fuse.burn(before=False)


class Agent:
    """What runs beside one broker."""

    def __init__(self, number: int, broker: int, log_dirs: list[Path], directory: Path, clock: Clock) -> None:
        self.number, self.broker, self.name = number, broker, f"agent {number}"
        self.up = False
        self.waiting: list[str] = []  # jobs, in the order in which they begin
        self.fuse = Fuse()
        self.clock = clock
        self.owners_clock = Clock(0)
        self.log_dirs, self._directory = log_dirs, directory
        self.start()

    def register(self, request: Register) -> bytes:
        """Answer a consumer, and note who waits for its beginning, in order."""
        answer = self.service.register(request, PRINCIPAL).encode()
        if request.consumer not in self.waiting and self.consumers.committed(request.consumer) is None:
            self.waiting.append(request.consumer)
        return answer

    def start(self) -> None:
        log_dirs = open_log_dirs(self.log_dirs)
        with patch("streaming.broker.journal.journal.Database", FusedDatabase):
            self.journal = Journal(self._directory, CLUSTER_ID, self.clock)
        self.journal.database.fuse = self.fuse  # type: ignore[attr-defined]
        self.consumers = Consumers(self.journal, self.clock)
        cluster = ClusterView(log_dirs)
        self.watcher = Watcher(log_dirs, self.journal, cluster, self.clock, producers_limit=100, attached=self.consumers.any(), few_logs=0)
        host_status = HostStatus(log_dirs, cluster, self.watcher.tails, self.clock, self.watcher.recovery)
        looking = HostWatch(self.watcher, cluster, host_status)
        owners, beginnings = Owners(self.owners_clock), Allowance(1 << 40, 1.0)
        self.service = Service(self.name, self.journal, self.consumers, lambda: looking, Polls(), owners=owners, beginnings=beginnings)
        self.up = True

    def stop(self, *, killed: bool) -> None:
        self.fuse.left = -1
        if not self.up:
            return
        self.up = False
        if killed:
            for tail in self.watcher.tails():
                tail.close()
        else:
            self.watcher.close()
        self.journal.close()

    def call(self, what: Callable[[], Any]) -> Any:
        """Do something in the agent's process, which may be killed in it."""
        try:
            return what()
        except Killed:
            self.stop(killed=True)
            raise

    def look(self, hints: set[Path] | None = None) -> None:
        """Turn until there is nothing more to do."""
        for _ in range(MOST_TURNS):
            if not self._turn(hints or set(), None):
                break
            hints = None
        else:
            raise AssertionError("the watcher never rests")

    def turn(self, hints: set[Path], budget: int) -> None:
        """Look around once, and read no more than that of a backlog."""
        self._turn(hints, budget)

    def _turn(self, hints: set[Path], budget: int | None) -> bool:
        return bool(self.call(lambda: self.watcher.poll(hints, budget)))

    @contextmanager
    def held_up(self, at: int, meanwhile: Callable[[], None]) -> Iterator[None]:
        """What is done in the agent's process stands still once, at this one of its calls of the disk and of its writes."""
        enter, burn, points = Calling.__enter__, self.fuse.burn, count()

        def point() -> None:
            if next(points) == at:
                meanwhile()

        def enter_late(calling: Calling) -> None:
            point()
            enter(calling)

        def burn_late(*, before: bool) -> None:
            point()
            burn(before=before)

        with patch.object(Calling, "__enter__", enter_late), patch.object(self.fuse, "burn", burn_late):
            yield

    def trim(self, bounds: JournalBounds) -> None:
        """Forget, slice by slice, what nobody needs and what is beyond the bounds."""
        with joined.at_once():
            while self.call(lambda: self.consumers.trim(bounds)):
                pass

    # --- its journal's files

    def save_journal(self, copy: int) -> None:
        """Copy the files as they are, as a snapshot of the machine's disk does."""
        shutil.rmtree(self._copy(copy), ignore_errors=True)
        shutil.copytree(self._directory, self._copy(copy))

    def restore_journal(self, copy: int) -> bool:
        """Go back to a copy, which stays; returns whether there is one."""
        if not self._copy(copy).exists():
            return False
        self.lose_journal()
        shutil.copytree(self._copy(copy), self._directory)
        return True

    def lose_journal(self) -> None:
        """The copies stay."""
        self.stop(killed=True)
        shutil.rmtree(self._directory)

    def _copy(self, number: int) -> Path:
        return self._directory.with_name(f"{self._directory.name}.copy-{number}")


class LostError(ConnectionError):
    """A call that does not come through."""


class Wire(AgentClient):
    """The real client; what it sends goes to the service without a network. ``fails``: calls that do not come through now."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(f"127.0.0.1:{agent.number}")
        self.agent = agent
        self.fails: set[str] = set()

    def _open(self) -> Any:
        return self  # it stands for the connection too

    def call(self, name: str, request: bytes, seconds: float, most: int, headers: object, *, single: bool = False) -> Iterator[bytes]:
        del seconds, most, headers, single
        answer = answers(self.agent.service)[Call(name)]
        if name == Call.REGISTER:
            messages = self._come_through(name, lambda: [self.agent.register(Register.decode(request))])
        else:
            messages = self._come_through(name, lambda: list(answer(request, PRINCIPAL)))
        if name == Call.EVENTS and "rows" in self.fails:  # the agent has sent them
            raise LostError("lost on the way")
        yield from map(bytes, messages)

    def _come_through(self, call: str, answer: Callable[[], list[Any]]) -> list[Any]:
        if call in self.fails or not self.agent.up:
            raise LostError("no connection")
        try:
            found: list[Any] = self.agent.call(answer)
        except Killed as killed:
            raise LostError("the agent was killed") from killed
        return found
