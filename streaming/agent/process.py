"""Runs the agent as a process. One thread watches, another checks it, others answer. It ends with its parent or a signal."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

import streaming
from streaming import private_directory
from streaming.agent.blocking import POLL_SECONDS, Blocking
from streaming.agent.call_answers import answers
from streaming.agent.call_front import cannot_listen, refuse_taken
from streaming.agent.call_server import AgentServer
from streaming.agent.cluster_view import ClusterView
from streaming.agent.consumer_memory import Arrivals
from streaming.agent.descriptors import count_directories, raise_limit
from streaming.agent.dir_calls import DirCalls
from streaming.agent.ending import Ending, send_address
from streaming.agent.group_answers import GroupAnswers
from streaming.agent.group_following import GroupFollowing
from streaming.agent.health_server import HealthServer, Pulse
from streaming.agent.host_status import HostStatus
from streaming.agent.ladders import Ladders
from streaming.agent.own_page import AgentMetrics
from streaming.agent.permissions import Rights
from streaming.agent.polling_thread import HostWatch, PollingThread
from streaming.agent.polls import Polls
from streaming.agent.redaction import redacted
from streaming.agent.scrubbing import scrub_statuses
from streaming.agent.security import Security, ServerFiles, open_security
from streaming.agent.service import Service
from streaming.definitions import agent_metrics
from streaming.disk.logdirs import LogDirs, refuse_inside
from streaming.disk.shortage import shortage
from streaming.disk.silence import FirstRead, open_answering
from streaming.errors import JournalBusyError
from streaming.journal.consumers import Bounds, Consumers
from streaming.journal.journal import Journal
from streaming.protocol.group_messages import Following
from streaming.protocol.status_messages import BlockedFile
from streaming.scrub.threads import Scrub, ScrubOptions
from streaming.units import Address
from streaming.watcher.reading import note_nothing
from streaming.watcher.structure import Structure
from streaming.watcher.tail import Tail
from streaming.watcher.watcher import Doubt, Watcher

log = logging.getLogger(__name__)

TRIM_EVERY_SECONDS = 10.0

TRIM_SECONDS = 0.5
"""How long the journal is trimmed at a time."""

TRIM_PAUSE_SECONDS = 0.005
"""The pause after each slice: if a lock is taken again at once, those who wait for it do not get it."""

END_SECONDS = 5.0
"""How long the watcher has to store its cursors when the agent is stopped."""

RIGHTS_EVERY_SECONDS = 600.0
"""How often the rights to read are checked: a broker may have got another umask."""

JOURNAL_WAIT_SECONDS = 10.0
"""How long a child waits for a journal that is in use: after a job was killed, its agent needs a moment to notice and end."""

CLOSE_SECONDS = 2.0
"""How long running calls have to end."""

_JOURNAL_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """The options of an agent.

    ``child``: print the address on standard output once the agent listens, and end when standard input ends; ``read_rate``: bytes of a
    backlog for each second; ``groups_limit``: how many consumer groups are followed; ``ladder_rate``: bytes of closed segments that are
    counted in a second, 0 for none; ``scrub``: how closed segments are checked in the background; ``metrics_listen``: the address of the
    agent's own metrics, None for none; ``web_config``: how they are secured.
    """

    name: str
    log_dirs: tuple[Path, ...]
    journal: Path
    listen: Address
    files: ServerFiles
    metrics_listen: Address | None
    web_config: Path | None
    read_rate: int
    groups_limit: int
    ladder_rate: int
    producers_limit: int
    redact_ids: bool
    bounds: Bounds
    scrub: ScrubOptions
    child: bool


def now_ms() -> int:
    """The clock, Unix milliseconds."""
    return time.time_ns() // 1_000_000


def _running_ms() -> int:
    """A monotonic clock, milliseconds since any beginning."""
    return time.monotonic_ns() // 1_000_000


def serve(options: AgentOptions) -> None:
    """Run an agent until it is stopped.

    Raises:
        UsageError: the log dirs, an address, or a file of certificates, tokens or passwords cannot be used.
        JournalError: the journal cannot be used.
    """
    began = time.monotonic()
    security = open_security(options.files, options.listen)
    refuse_taken(options.listen)  # before a journal is made
    log_dirs, silent = open_answering(options.log_dirs)
    log_dirs.log_changes()
    refuse_inside(options.journal, log_dirs, "--journal")
    raise_limit(sum(map(count_directories, log_dirs.available)))
    pa.set_memory_pool(pa.system_memory_pool())  # Arrow's own pool keeps the memory of a large answer for ever if no other request comes
    polls = Polls()
    ending = Ending(polls)
    ending.end_at_signals()
    if options.child:
        ending.end_with_parent()
    with ExitStack() as resources:
        metrics, pulse = AgentMetrics(), Pulse()
        health = _serve_health(options, metrics, pulse, resources)
        os.umask(private_directory.UMASK)
        journal = _open_journal(options, log_dirs.cluster_id, ending.event)
        if journal is None:
            return
        resources.callback(journal.close)
        agent = _Agent(options, log_dirs, silent, journal, pulse, polls, ending)
        resources.callback(agent.end)
        if health is not None:
            health.waits_for = lambda: [str(call.path) for call in agent.blocking.blocked]
        agent.start_background(resources)
        service, rights = agent.service(security.takes), Rights(log_dirs)
        _show_metrics(metrics, service, security, rights, agent)
        server = _listen(service, options, security, metrics)
        resources.callback(server.close, CLOSE_SECONDS)
        threading.Thread(target=_check_rights, args=(rights, ending.event, options.child), daemon=True, name="rights").start()
        log.info("agent listens", extra={"address": str(server.address), "journal": journal.id, "agent": options.name})
        if options.child:
            send_address(str(server.address))
        agent.run(server)
        stopped = {"agent": options.name, "seq": journal.end().seq, "published_bytes": journal.end().total}
        log.info("agent stops", extra={**stopped, "ran_seconds": round(time.monotonic() - began)})


def _listen(service: Service, options: AgentOptions, security: Security, metrics: AgentMetrics) -> AgentServer:
    try:
        return AgentServer(answers(service, metrics.rows.inc), options.listen, security, metrics, options.journal)
    except OSError as error:
        raise cannot_listen(options.listen, error) from error


class _Agent:
    """The parts of an agent that work on one journal: the watcher's thread, what checks and replaces it, the scrub."""

    def __init__(
        self,
        options: AgentOptions,
        log_dirs: LogDirs,
        silent: Iterable[FirstRead],
        journal: Journal,
        pulse: Pulse,
        polls: Polls,
        ending: Ending,
    ) -> None:
        self._options, self._log_dirs, self._journal = options, log_dirs, journal
        self._pulse, self._polls, self._ending = pulse, polls, ending
        self._consumers, self._arrivals = Consumers(journal, journal.now_ms), Arrivals()
        self._scrub = Scrub(log_dirs, options.scrub, options.journal, now_ms) if options.scrub.rate else None
        self.ladders = self._new_ladders() if options.ladder_rate else None
        self.blocking = Blocking(log_dirs, self._start, journal.database.fence, silent)
        self.following = GroupFollowing(log_dirs, self._tails, rate=options.read_rate, groups_limit=options.groups_limit)

    def _new_ladders(self) -> Ladders:
        rate, wait = self._options.ladder_rate, self._ending.event.wait
        return Ladders(self._log_dirs, self._tails, self._journal, now_ms, rate=rate, wait=wait)

    def _start(self) -> PollingThread:
        """Start a thread that polls the log dirs, from the cursors in the journal. Log dirs that do not answer are left alone."""
        self._arrivals.forget_beginnings()  # beginnings that the earlier watcher had to publish are requested again
        structure = Structure(self._log_dirs, self._polls.want, now_ms, lambda: self._log_dirs.barred)
        rate, stop = self._options.read_rate, self._ending.event
        thread = PollingThread(self._watch, structure, read_rate=rate, pulse=self._pulse, stop=stop, polls=self._polls)
        thread.start()
        return thread

    def _watch(self, should_stop: Callable[[], bool]) -> HostWatch:
        cluster = ClusterView(self._log_dirs)
        watcher = Watcher(
            self._log_dirs,
            self._journal,
            cluster,
            now_ms,
            producers_limit=self._options.producers_limit,
            redact=self._redact,
            attached=self._consumers.any(),
            should_stop=should_stop,
            note=note_nothing if self.ladders is None else self.ladders.note,
        )
        return HostWatch(watcher, cluster, HostStatus(self._log_dirs, cluster, watcher.tails, now_ms))

    def service(self, takes: Callable[[str, str], bool]) -> Service:
        """The agent's answers to jobs."""
        return Service(
            self._options.name,
            self._journal,
            self._consumers,
            lambda: self.blocking.current.host_watch,
            self._polls,
            self._arrivals,
            self._pulse,
            self._blocked,
            scrubs=lambda: [] if self._scrub is None else scrub_statuses(self._scrub.reports()),
            redact=self._redact,
            takes=takes,
            about_groups=GroupAnswers(
                journal=self._journal,
                consumers=self._consumers,
                log_dirs=self._log_dirs,
                tails=self._tails,
                following=self.following,
                calls=DirCalls(log_dir.path for log_dir in self._log_dirs),
                ladders=self.ladders,
                redact=self._redact if self._options.redact_ids else None,
            ),
        )

    def _tails(self) -> list[Tail]:
        return self.blocking.current.host_watch.watcher.tails()

    def start_background(self, resources: ExitStack) -> None:
        """Start to follow consumer groups, to count logs, and to scrub, as far as these are on; ``resources`` end them."""
        if self._options.groups_limit:
            self.following.start(self._ending.event)
            resources.callback(self.following.join, END_SECONDS)
        if self.ladders is not None:
            self.ladders.start(self._ending.event)
            resources.callback(self.ladders.join, END_SECONDS)
        if self._scrub is not None:
            self._scrub.start(self._ending.event)
            resources.callback(self._scrub.join, END_SECONDS)
        resources.callback(self._ending.end)  # before they are waited for: nobody has told an agent that cannot listen

    def run(self, server: AgentServer) -> None:
        """Do all periodic work except the watcher's, until the agent is stopped. Raises JournalError if the journal's files are gone."""
        next_trim, stop = time.monotonic(), self._ending.event
        while not stop.is_set():
            self.blocking.poll()
            server.end_overdue()
            if time.monotonic() >= next_trim and not self._trim():
                self._journal.database.check_files()
                next_trim = time.monotonic() + TRIM_EVERY_SECONDS
            stop.wait(POLL_SECONDS)

    def end(self) -> None:
        """Let the watcher store its cursors and end. If it waits in a call, it is left behind and ends with the process."""
        self._ending.end()
        self.blocking.current.thread.join(END_SECONDS)
        if self.blocking.current.alive:
            log.warning(
                "the watcher waits in a call that does not return: the agent stops without it",
                extra={"path": str(self.blocking.current.calls.path)},
            )

    def _trim(self) -> bool:
        """Trim the journal for a while; returns whether there is more. Between two slices, other threads can take the lock."""
        ends = time.monotonic() + TRIM_SECONDS
        while self._consumers.trim(self._options.bounds):
            if self._ending.event.wait(TRIM_PAUSE_SECONDS) or time.monotonic() >= ends:
                return True
        return False

    def _blocked(self) -> list[BlockedFile]:
        calls = self.blocking.blocked
        return [
            BlockedFile(call.log_dir.broker, str(call.log_dir.path), str(call.path), round(self.blocking.blocked_for(call), 1))
            for call in calls
        ]

    def _redact(self, name: str) -> str:
        """A transactional id or a group as it leaves this host."""
        return redacted(name, cluster_id=self._log_dirs.cluster_id) if self._options.redact_ids else name


def _serve_health(options: AgentOptions, metrics: AgentMetrics, pulse: Pulse, resources: ExitStack) -> HealthServer | None:
    """Serve the agent's own page, if it has an address."""
    if options.metrics_listen is None:
        return None
    health = HealthServer(options.metrics_listen, options.web_config, metrics, pulse)
    resources.callback(health.close)
    log.info("agent metrics are served", extra={"url": health.url})
    return health


def _check_rights(rights: Rights, stop: threading.Event, child: bool) -> None:
    if os.geteuid() == 0 and not child:  # for a child, its job decides about running as root
        log.warning("the agent runs as root and needs no such rights: give it a user of its own that may read the log dirs")
    while True:
        rights.check()
        if stop.wait(RIGHTS_EVERY_SECONDS):
            return


def _show_metrics(metrics: AgentMetrics, service: Service, security: Security, rights: Rights, agent: _Agent) -> None:
    """Show on the agent's own page what its parts do not count themselves."""
    journal, certificates, blocking, following = service.journal, security.certificates, agent.blocking, agent.following
    brokers = ",".join(map(str, service.watcher.log_dirs.brokers))
    metrics.show(agent_metrics.BUILD, lambda: 1, streaming.__version__, service.name, brokers)
    metrics.show(agent_metrics.LOGS, lambda: len(service.watcher.tails()))
    metrics.show(agent_metrics.CAUGHT_UP, lambda: service.watcher.caught_up)
    metrics.show(agent_metrics.JOURNAL_SIZE, journal.size)
    metrics.show(agent_metrics.PUBLISHED_BYTES, lambda: journal.end().total)
    metrics.show(agent_metrics.PUBLISHED_EVENTS, lambda: journal.end().seq)
    metrics.show(agent_metrics.UNREADABLE_FILES, lambda: rights.count)
    metrics.show(agent_metrics.DESCRIPTOR_SHORTAGES, lambda: shortage.count)
    metrics.show(agent_metrics.UNWATCHED_DIRECTORIES, lambda: blocking.current.structure.unwatched)
    metrics.show(agent_metrics.COORDINATOR_LOG_ERRORS, lambda: following.errors)
    ladders = agent.ladders
    metrics.show(agent_metrics.LADDER_UNFILLED, lambda: None if ladders is None else ladders.unfilled_bytes)
    metrics.show(agent_metrics.LADDER_SIZE, lambda: None if ladders is None else ladders.nbytes)
    for how in Following:
        metrics.show(agent_metrics.COORDINATOR_LOGS, partial(_followed, following, how), how)
    for doubt in Doubt:
        metrics.show(agent_metrics.AGENT_DOUBTS, partial(_doubts, service, doubt), service.name, doubt)
    metrics.show(agent_metrics.SECURITY_FAILURES, lambda: security.failures)
    metrics.show(agent_metrics.CERTIFICATE_END, lambda: None if certificates is None else certificates.get().pair.ends_at)


def _doubts(service: Service, doubt: Doubt) -> int:
    return service.doubts()[doubt]


def _followed(following: GroupFollowing, how: Following) -> int:
    return following.counts()[how]


def _open_journal(options: AgentOptions, cluster_id: str, stop: threading.Event) -> Journal | None:
    """Open the journal; a child waits if it is in use. None if the agent was stopped meanwhile."""
    deadline = time.monotonic() + (JOURNAL_WAIT_SECONDS if options.child else 0.0)
    while not stop.is_set():
        try:
            return Journal(options.journal, cluster_id, _running_ms)
        except JournalBusyError:
            if time.monotonic() >= deadline:
                raise
            stop.wait(_JOURNAL_POLL_SECONDS)
    return None
