"""Runs the agent as a process. One thread watches, another checks it, and Flight's threads answer. It ends with its parent or a signal."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

import streaming
from streaming.agent.blocking import POLL_SECONDS, Blocking
from streaming.agent.cluster_view import ClusterView
from streaming.agent.consumer_memory import Arrivals
from streaming.agent.descriptors import raise_limit
from streaming.agent.health_server import HealthServer, Pulse
from streaming.agent.host_status import HostStatus
from streaming.agent.listening import Listening
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
from streaming.disk.silence import open_answering
from streaming.errors import JournalBusyError
from streaming.journal.consumers import Bounds, Consumers
from streaming.journal.journal import Journal
from streaming.protocol.status_messages import BlockedFile
from streaming.scrub.threads import Scrub, ScrubOptions
from streaming.units import Address
from streaming.watcher.structure import Structure
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

_JOURNAL_POLL_SECONDS = 0.1

_DOUBTED = {
    Doubt.PRODUCER_SNAPSHOT: agent_metrics.DOUBTED_PRODUCER_SNAPSHOTS,
    Doubt.TIME_INDEX: agent_metrics.DOUBTED_TIME_INDEXES,
    Doubt.CHECKPOINT: agent_metrics.DOUBTED_CHECKPOINTS,
    Doubt.CONFIGURATION: agent_metrics.DOUBTED_CONFIGURATIONS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """The options of an agent.

    ``child``: print the address on standard output once the agent listens, and end when standard input ends; ``read_rate``: bytes of a
    backlog for each second; ``scrub``: how closed segments are checked in the background; ``metrics_listen``: the address of the agent's
    own metrics, None for none; ``web_config``: how they are secured.
    """

    name: str
    log_dirs: tuple[Path, ...]
    journal: Path
    listen: Address
    files: ServerFiles
    metrics_listen: Address | None
    web_config: Path | None
    read_rate: int
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
    log_dirs, silent = open_answering(options.log_dirs)
    log_dirs.log_changes()
    refuse_inside(options.journal, log_dirs, "--journal")
    raise_limit()
    pa.set_memory_pool(pa.system_memory_pool())  # Arrow's own pool keeps the memory of a large answer for ever if no other request comes
    stop, polls = threading.Event(), Polls()
    _end_at(stop, polls, child=options.child)
    with ExitStack() as resources:
        metrics, pulse = AgentMetrics(), Pulse()
        health = None
        if options.metrics_listen is not None:
            health = HealthServer(options.metrics_listen, options.web_config, metrics, pulse)
            resources.callback(health.close)
            log.info("agent metrics are served", extra={"url": health.url})
        journal = _open_journal(options.journal, log_dirs.cluster_id, stop, JOURNAL_WAIT_SECONDS if options.child else 0.0)
        if journal is None:
            return
        resources.callback(journal.close)
        consumers, arrivals = Consumers(journal, journal.now_ms), Arrivals()

        def start() -> PollingThread:
            arrivals.forget_beginnings()  # beginnings that the earlier watcher had to publish are requested again
            return _start(options, log_dirs, journal, consumers, pulse, stop, polls)

        blocking = Blocking(log_dirs, start, journal.database.fence, silent)
        resources.callback(_end, blocking, stop, polls)
        if health is not None:
            health.waits_for = lambda: [str(call.path) for call in blocking.blocked]
        scrub = Scrub(log_dirs, options.scrub, options.journal, now_ms) if options.scrub.rate else None
        service = Service(
            options.name,
            journal,
            consumers,
            lambda: blocking.current.host_watch,
            polls,
            arrivals,
            pulse,
            partial(_blocked, blocking),
            scrubs=lambda: [] if scrub is None else scrub_statuses(scrub.reports()),
            redact=_redact(options, log_dirs.cluster_id),
        )
        if scrub is not None:
            scrub.start(stop)
            resources.callback(scrub.join, END_SECONDS)
        rights = Rights(log_dirs)
        _add_metrics(metrics, service, security, rights, blocking)
        listening = Listening(service, options.listen, security, metrics)
        resources.callback(listening.close)
        threading.Thread(target=_check_rights, args=(rights, stop, options.child), daemon=True, name="rights").start()
        log.info("agent listens", extra={"address": str(listening.address), "journal": journal.id, "agent": options.name})
        if options.child:
            _send_address(str(listening.address))
        _care(blocking, consumers, listening, options.bounds, stop)
        end = journal.end()
        log.info(
            "agent stops",
            extra={"agent": options.name, "seq": end.seq, "published_bytes": end.total, "ran_seconds": round(time.monotonic() - began)},
        )


def _redact(options: AgentOptions, cluster_id: str) -> Callable[[str], str]:
    """Returns the function that redacts a transactional id or a group that leaves this host."""
    return partial(redacted, cluster_id=cluster_id) if options.redact_ids else str


def _start(
    options: AgentOptions,
    log_dirs: LogDirs,
    journal: Journal,
    consumers: Consumers,
    pulse: Pulse,
    stop: threading.Event,
    polls: Polls,
) -> PollingThread:
    """Start a thread that polls the log dirs, from the cursors in the journal. Log dirs that do not answer are left alone."""

    def make(should_stop: Callable[[], bool]) -> HostWatch:
        cluster = ClusterView(log_dirs)
        watcher = Watcher(
            log_dirs,
            journal,
            cluster,
            now_ms,
            producers_limit=options.producers_limit,
            redact=_redact(options, log_dirs.cluster_id),
            attached=consumers.any(),
            should_stop=should_stop,
        )
        return HostWatch(watcher, cluster, HostStatus(log_dirs, cluster, watcher.tails, now_ms))

    structure = Structure(log_dirs, polls.want, now_ms, lambda: log_dirs.barred)
    thread = PollingThread(make, structure, read_rate=options.read_rate, pulse=pulse, stop=stop, polls=polls)
    thread.start()
    return thread


def _blocked(blocking: Blocking) -> list[BlockedFile]:
    return [
        BlockedFile(call.log_dir.broker, str(call.log_dir.path), str(call.path), round(blocking.blocked_for(call), 1))
        for call in blocking.blocked
    ]


def _care(blocking: Blocking, consumers: Consumers, listening: Listening, bounds: Bounds, stop: threading.Event) -> None:
    """Do all periodic work except the watcher's, until the agent is stopped."""
    next_trim = time.monotonic()
    while not stop.is_set():
        blocking.poll()
        listening.refresh()
        if time.monotonic() >= next_trim and not _trim(consumers, bounds, stop):
            next_trim = time.monotonic() + TRIM_EVERY_SECONDS
        stop.wait(POLL_SECONDS)


def _trim(consumers: Consumers, bounds: Bounds, stop: threading.Event) -> bool:
    """Trim the journal for a while; returns whether there is more. Between two slices, other threads get their turn at the lock."""
    ends = time.monotonic() + TRIM_SECONDS
    while consumers.trim(bounds):
        if stop.wait(TRIM_PAUSE_SECONDS) or time.monotonic() >= ends:
            return True
    return False


def _end(blocking: Blocking, stop: threading.Event, polls: Polls) -> None:
    """Let the watcher store its cursors and end. If it waits in a call, it is left behind and ends with the process."""
    stop.set()
    polls.want()
    blocking.current.thread.join(END_SECONDS)
    if blocking.current.alive:
        log.warning("the watcher waits in a call and is left behind", extra={"path": str(blocking.current.calls.path)})


def _check_rights(rights: Rights, stop: threading.Event, child: bool) -> None:
    if os.geteuid() == 0 and not child:  # for a child, its job decides about running as root
        log.warning("the agent runs as root and needs no such rights: give it a user of its own that may read the log dirs")
    while True:
        rights.check()
        if stop.wait(RIGHTS_EVERY_SECONDS):
            return


def _add_metrics(metrics: AgentMetrics, service: Service, security: Security, rights: Rights, blocking: Blocking) -> None:
    """Add the metrics of the agent's own page, besides those that its parts count."""
    journal, certificates = service.journal, security.certificates
    brokers = ",".join(map(str, service.watcher.log_dirs.brokers))
    metrics.show(agent_metrics.BUILD, lambda: 1, streaming.__version__, service.name, brokers)
    metrics.show(agent_metrics.LOGS, lambda: len(service.watcher.tails()))
    metrics.show(agent_metrics.CAUGHT_UP, lambda: service.watcher.caught_up)
    metrics.show(agent_metrics.JOURNAL_SIZE, journal.size)
    metrics.show(agent_metrics.PUBLISHED_BYTES, lambda: journal.end().total)
    metrics.show(agent_metrics.PUBLISHED_EVENTS, lambda: journal.end().seq)
    metrics.show(agent_metrics.UNREADABLE_FILES, lambda: rights.count)
    metrics.show(agent_metrics.UNWATCHED_DIRECTORIES, lambda: blocking.current.structure.unwatched)
    for doubt, metric in _DOUBTED.items():
        metrics.show(metric, partial(_doubts, service, doubt))
    metrics.show(agent_metrics.SECURITY_FAILURES, lambda: security.failures)
    metrics.show(agent_metrics.CERTIFICATE_END, lambda: None if certificates is None else certificates.get().pair.ends_at)


def _doubts(service: Service, doubt: Doubt) -> int:
    return service.doubts()[doubt]


def _open_journal(directory: Path, cluster_id: str, stop: threading.Event, seconds: float) -> Journal | None:
    """Open the journal, and wait if it is in use. None if the agent was stopped meanwhile."""
    deadline = time.monotonic() + seconds
    while not stop.is_set():
        try:
            return Journal(directory, cluster_id, _running_ms)
        except JournalBusyError:
            if time.monotonic() >= deadline:
                raise
            stop.wait(_JOURNAL_POLL_SECONDS)
    return None


def _end_at(stop: threading.Event, polls: Polls, *, child: bool) -> None:
    """Stop the loop at SIGTERM, at SIGINT and, for a child, at the end of standard input."""

    def end(*_: object) -> None:
        stop.set()
        polls.want()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    if child:
        threading.Thread(target=_wait_for_parent, args=(end,), daemon=True, name="parent").start()


def _wait_for_parent(end: Callable[[], None]) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass  # the parent sends nothing; the pipe closes with the parent, however it ends
    end()


def _send_address(address: str) -> None:
    try:
        os.write(sys.stdout.fileno(), f"{address}\n".encode())
    except BrokenPipeError:
        log.debug("the parent has ended")  # the end of standard input shows it as well
