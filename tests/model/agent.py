"""An agent without a process: the real parts on real files, called over a wire that can fail, killed at any of its publications."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

from streaming.broker.agent.call_answers import answers
from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.host_status import HostStatus
from streaming.broker.agent.jobs import Jobs, is_full
from streaming.broker.agent.polling_thread import HostWatch, Polls
from streaming.broker.agent.service import Allowance, Service
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.disk.opening import Calling
from streaming.broker.journal.blocks import AppendedRanges
from streaming.broker.journal.journal import Begun, Journal, Stand
from streaming.broker.protocol.agent_calls import Call
from streaming.broker.watcher.beginnings import Beginning
from streaming.broker.watcher.watcher import Watcher
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.errors import FencedError
from streaming.spark.client.agent_client import AgentClient
from tests.clocks import Clock

MOST_TURNS = 200

PRINCIPAL = "jobs"
"""Whose token the jobs have."""

MOST_BYTES = 1 << 20
"""Of a ring that drops nothing here."""


class Killed(BaseException):
    """The process ends here; nothing after it happens."""


class Fuse:
    """Burns down with every publication: then the process is killed, or its watcher finds that another one has replaced it."""

    def __init__(self) -> None:
        self.put_out()

    def put_out(self) -> None:
        self.left, self.before, self.leads_to = -1, True, ""

    def burn(self, *, before: bool) -> None:
        if before is self.before and self.left >= 0:
            self.left -= 1
            if self.left < 0:
                raise Killed if self.leads_to == "killed" else FencedError("another watcher has replaced this one")


class FusedJournal(Journal):
    """A journal that burns the agent's fuse, and tells which job's beginning is published."""

    fuse: Fuse
    began: Callable[[Begun], None]

    def publish(
        self,
        events: Sequence[Event],
        stands: Iterable[Stand] = (),
        gone: Iterable[LogKey] = (),
        begun: Begun | None = None,
        ranges: AppendedRanges | None = None,
    ) -> None:
        self.fuse.burn(before=True)
        if begun is not None:
            self.began(begun)
        super().publish(events, stands, gone, begun, ranges)
        self.fuse.burn(before=False)


class Agent:
    """What runs beside a broker.

    Args:
        broker: whose log dirs it watches.
        began: called where a job's beginning is published, before the logs stand there.
    """

    def __init__(
        self, number: int, broker: int, log_dirs: list[Path], clock: Clock, began: Callable[["Agent", Beginning], None], *, up: bool = True
    ) -> None:
        self.number, self.name = number, f"agent {number}"
        self.up = False
        self.fuse = Fuse()
        self.clock = clock
        self.jobs_clock = Clock(0)
        self.most_bytes = MOST_BYTES
        self._began = began
        self.watch(broker, log_dirs)
        if up:
            self.start()

    def watch(self, broker: int, log_dirs: list[Path]) -> None:
        """Watch these log dirs from the next start on."""
        self.broker, self._log_dirs = broker, log_dirs

    # --- the process

    def start(self) -> None:
        """With nothing of what was before."""
        self._opened = open_log_dirs(self._log_dirs)
        self.journal = FusedJournal(self.most_bytes)
        self.journal.fuse, self.journal.began = self.fuse, self._note_begun
        self.jobs = Jobs(self.journal.id, self.jobs_clock)
        self._polls = Polls()
        self._asked: list[tuple[Begun, Beginning]] = []
        self._start_watcher()
        beginnings = Allowance(1 << 40, 1.0)
        self.service = Service(self.name, self.journal, self.jobs, lambda: self._looking, self._polls, beginnings=beginnings)
        self.up = True

    def _start_watcher(self) -> None:
        cluster = ClusterView(self._opened)
        self.watcher = Watcher(
            self._opened,
            self.journal,
            cluster,
            self.clock,
            producers_limit=100,
            attached=bool(self.journal.cursors()),
            few_logs=0,
            is_full=self.is_full,
        )
        host_status = HostStatus(self._opened, cluster, self.watcher.tails, self.clock, self.watcher.recovery)
        self._looking = HostWatch(self.watcher, cluster, host_status)

    def replace_watcher(self) -> None:
        """Another watcher goes on from what is published, as for one that stands still in a dead disk."""
        self.fuse.put_out()
        for tail in self.watcher.tails():
            tail.close()
        self._asked = []  # what the one before was asked for is asked of this one again
        self._start_watcher()

    def stop(self, *, killed: bool) -> None:
        self.fuse.put_out()
        if not self.up:
            return
        self.up = False
        if killed:
            for tail in self.watcher.tails():
                tail.close()
        else:
            self.watcher.close()

    def call(self, what: Callable[[], Any]) -> Any:
        """Do something in the agent's process, which may be killed in it."""
        try:
            return what()
        except Killed:
            self.stop(killed=True)
            raise

    def is_full(self) -> bool:
        """As `streaming.broker.agent.parts.Parts` has it: so much waits that no more is read."""
        return is_full(self.journal, self.jobs)

    # --- its watcher

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
        try:
            return bool(self.call(lambda: self.watcher.poll(hints, budget)))
        except FencedError:
            self.replace_watcher()
            return True

    @contextmanager
    def held_up(self, at: int, meanwhile: Callable[[], None]) -> Iterator[None]:
        """What is done in the agent's process stands still once, at this one of its calls of the disk and of its publications."""
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

    # --- its jobs

    def asked(self) -> list[Beginning]:
        """The beginnings that its watcher has not published yet, in order."""
        return [beginning for begun, beginning in self._asked if not begun.done.is_set()]

    def has_begun(self, job: str, run: str) -> bool:
        """Whether it has published the beginning of a job's run, and dropped nothing that follows as far as it can say."""
        place = self.jobs.place(PRINCIPAL, job, run) if self.up else None
        return place is not None and self.journal.dropped().seq <= max(place.begun, self.arrived(job, run))

    def arrived(self, job: str, run: str) -> int:
        """Up to where a run has its events, as it has said."""
        known = self.jobs._of_run(PRINCIPAL, job, run)
        return -1 if known is None else known.after

    def note_asked(self, begin: Callable[[], Any]) -> Any:
        """Do what may ask for a beginning, and note which."""
        began = self.watcher.begin

        def noted(beginning: Beginning) -> Begun:
            begun = began(beginning)
            self._asked.append((begun, beginning))
            return begun

        with patch.object(self.watcher, "begin", noted):
            return begin()

    def _note_begun(self, begun: Begun) -> None:
        for number, (asked, beginning) in enumerate(self._asked):
            if asked is begun:
                del self._asked[number]
                self._began(self, beginning)
                return


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
        messages = self._come_through(name, lambda: self.agent.note_asked(lambda: self._answered(Call(name), request)))
        if name == Call.EVENTS and "rows" in self.fails:  # the agent has sent them
            raise LostError("lost on the way")
        yield from map(bytes, messages)

    def _answered(self, call: Call, request: bytes) -> list[Any]:
        return list(answers(self.agent.service)[call](request, PRINCIPAL))

    def _come_through(self, call: str, answer: Callable[[], list[Any]]) -> list[Any]:
        if call in self.fails or not self.agent.up:
            raise LostError("no connection")
        try:
            found: list[Any] = self.agent.call(answer)
        except Killed as killed:
            raise LostError("the agent was killed") from killed
        return found
