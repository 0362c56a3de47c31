"""The agent as a process: a thread watches, another looks after it, Flight's threads answer, and it ends with its parent or at a signal."""

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
from streaming.agent.arrivals import Arrivals
from streaming.agent.blocking import POLL_SECONDS, Blocking
from streaming.agent.cluster import ClusterView
from streaming.agent.descriptors import raise_limit
from streaming.agent.health import HealthServer, Pulse
from streaming.agent.listening import Listening
from streaming.agent.looking import Looking, LookingThread
from streaming.agent.messages import BlockedFile
from streaming.agent.numbers import Numbers
from streaming.agent.overview import Overview
from streaming.agent.permissions import Rights
from streaming.agent.polls import Polls
from streaming.agent.redaction import redacted
from streaming.agent.scrubbing import scrub_statuses
from streaming.agent.security import Security, ServerFiles, open_security
from streaming.agent.service import Service
from streaming.disk.logdirs import LogDirs, refuse_inside
from streaming.disk.silence import open_answering
from streaming.errors import JournalBusyError
from streaming.scrub.threads import Scrub, ScrubOptions
from streaming.units import Address
from streaming.watcher.consumers import Bounds, Consumers
from streaming.watcher.journal import Journal
from streaming.watcher.structure import Structure
from streaming.watcher.watcher import Doubt, Watcher

log = logging.getLogger(__name__)

TRIM_EVERY_SECONDS = 10.0

TRIM_SECONDS = 0.5
"""How long the journal forgets at a time."""

TRIM_PAUSE_SECONDS = 0.005
"""How long it rests behind each slice: a lock that is taken again at once is not given to those who wait for it."""

END_SECONDS = 5.0
"""How long the watcher has to keep its places when the agent is told to stop."""

RIGHTS_EVERY_SECONDS = 600.0
"""How often the rights to read are looked at: a broker may have been given another umask."""

JOURNAL_WAIT_SECONDS = 10.0
"""How long a child waits for a journal that is held: the agent of a job that was killed ends when it notices."""

_JOURNAL_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """What an agent is told.

    ``child``: print the address on standard output once it listens, and end when standard input does; ``read_rate``: bytes a second of a
    backlog; ``scrub``: how closed segments are checked in the background; ``metrics_listen``: where its own metrics are served, None for
    nowhere, as ``web_config`` has it.
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
    """A clock that is never set, milliseconds from any beginning."""
    return time.monotonic_ns() // 1_000_000


def serve(options: AgentOptions) -> None:
    """Run an agent until it is told to stop.

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
    pa.set_memory_pool(pa.system_memory_pool())  # its own keeps what a large answer took, for ever where nothing is asked again
    stop, polls = threading.Event(), Polls()
    _end_at(stop, polls, child=options.child)
    with ExitStack() as resources:
        numbers, pulse = Numbers(), Pulse()
        health = None
        if options.metrics_listen is not None:
            health = HealthServer(options.metrics_listen, options.web_config, numbers, pulse)
            resources.callback(health.close)
            log.info("agent tells of itself", extra={"url": health.url})
        journal = _open_journal(options.journal, log_dirs.cluster_id, stop, JOURNAL_WAIT_SECONDS if options.child else 0.0)
        if journal is None:
            return
        resources.callback(journal.close)
        consumers, arrivals = Consumers(journal, journal.now_ms), Arrivals()

        def start() -> LookingThread:
            arrivals.forget_beginnings()  # what the watcher before had been asked for is asked for again
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
            lambda: blocking.current.looking,
            polls,
            arrivals,
            pulse,
            partial(_blocked, blocking),
            scrubs=lambda: [] if scrub is None else scrub_statuses(scrub.reports()),
            told_as=_told_as(options, log_dirs.cluster_id),
        )
        if scrub is not None:
            scrub.start(stop)
            resources.callback(scrub.join, END_SECONDS)
        rights = Rights(log_dirs)
        _tell_numbers(numbers, service, security, rights, blocking)
        listening = Listening(service, options.listen, security, numbers)
        resources.callback(listening.close)
        threading.Thread(target=_look_at_rights, args=(rights, stop, options.child), daemon=True, name="rights").start()
        log.info("agent listens", extra={"address": str(listening.address), "journal": journal.id, "agent": options.name})
        if options.child:
            _tell_parent(str(listening.address))
        _care(blocking, consumers, listening, options.bounds, stop)
        end = journal.end()
        log.info(
            "agent stops",
            extra={"agent": options.name, "seq": end.seq, "published_bytes": end.total, "ran_seconds": round(time.monotonic() - began)},
        )


def _told_as(options: AgentOptions, cluster_id: str) -> Callable[[str], str]:
    """What stands for a transactional id or a group in what leaves this host."""
    return partial(redacted, cluster_id=cluster_id) if options.redact_ids else str


def _start(
    options: AgentOptions,
    log_dirs: LogDirs,
    journal: Journal,
    consumers: Consumers,
    pulse: Pulse,
    stop: threading.Event,
    polls: Polls,
) -> LookingThread:
    """Begin to look at the log dirs, from where the journal says; those that do not answer are left alone."""

    def make(should_stop: Callable[[], bool]) -> Looking:
        cluster = ClusterView(log_dirs)
        watcher = Watcher(
            log_dirs,
            journal,
            cluster,
            now_ms,
            producers_limit=options.producers_limit,
            told_as=_told_as(options, log_dirs.cluster_id),
            attached=consumers.any(),
            should_stop=should_stop,
        )
        return Looking(watcher, cluster, Overview(log_dirs, cluster, watcher.tails, now_ms))

    structure = Structure(log_dirs, polls.want, now_ms, lambda: log_dirs.barred)
    thread = LookingThread(make, structure, read_rate=options.read_rate, pulse=pulse, stop=stop, polls=polls)
    thread.start()
    return thread


def _blocked(blocking: Blocking) -> list[BlockedFile]:
    return [
        BlockedFile(call.log_dir.broker, str(call.log_dir.path), str(call.path), round(blocking.blocked_for(call), 1))
        for call in blocking.blocked
    ]


def _care(blocking: Blocking, consumers: Consumers, listening: Listening, bounds: Bounds, stop: threading.Event) -> None:
    """Look after everything that is not the log dirs', until the agent is told to stop."""
    next_trim = time.monotonic()
    while not stop.is_set():
        blocking.poll()
        listening.refresh()
        if time.monotonic() >= next_trim and not _trim(consumers, bounds, stop):
            next_trim = time.monotonic() + TRIM_EVERY_SECONDS
        stop.wait(POLL_SECONDS)


def _trim(consumers: Consumers, bounds: Bounds, stop: threading.Event) -> bool:
    """Let the journal forget for a while; returns whether there is more. Between two slices those come to their turn who wait for it."""
    ends = time.monotonic() + TRIM_SECONDS
    while consumers.trim(bounds):
        if stop.wait(TRIM_PAUSE_SECONDS) or time.monotonic() >= ends:
            return True
    return False


def _end(blocking: Blocking, stop: threading.Event, polls: Polls) -> None:
    """Let the watcher keep its places and end; one that waits in a call is left behind: it ends with the process."""
    stop.set()
    polls.want()
    blocking.current.thread.join(END_SECONDS)
    if blocking.current.alive:
        log.warning("the watcher waits in a call and is left behind", extra={"path": str(blocking.current.calls.path)})


def _look_at_rights(rights: Rights, stop: threading.Event, child: bool) -> None:
    if os.geteuid() == 0 and not child:  # of a child it is its job that somebody runs as root
        log.warning("the agent runs as root and needs no such rights: give it a user of its own that may read the log dirs")
    while True:
        rights.look()
        if stop.wait(RIGHTS_EVERY_SECONDS):
            return


def _tell_numbers(numbers: Numbers, service: Service, security: Security, rights: Rights, blocking: Blocking) -> None:
    """What the agent's own page says, besides what its parts count."""
    journal, certificates = service.journal, security.certificates
    numbers.tell(streaming.__version__, service.name, service.watcher.log_dirs.brokers)
    numbers.gauge("segtail_agent_logs", "Logs under watch.", lambda: len(service.watcher.tails()))
    numbers.gauge("segtail_agent_caught_up", "1 if everything that was there has been read.", lambda: service.watcher.caught_up)
    numbers.gauge("segtail_agent_journal_size_bytes", "What the events in the journal take.", journal.size)
    numbers.counter("segtail_agent_published_bytes", "Bytes of logs published since the journal began.", lambda: journal.end().total)
    numbers.counter("segtail_agent_published_events", "Events published since the journal began.", lambda: journal.end().seq)
    numbers.gauge("segtail_agent_unreadable_files", "Files and directories that the agent may not read.", lambda: rights.count)
    numbers.gauge(
        "segtail_agent_unwatched_directories",
        "Partition directories without a working inotify watch: they are compared at each look instead.",
        lambda: blocking.current.structure.unwatched,
    )
    for doubt in Doubt:
        text = f"Values of kind {doubt} that could not be believed, so that something else stood in for them."
        numbers.counter(f"segtail_agent_doubted_{doubt}s", text, partial(_doubts, service, doubt))
    numbers.counter(
        "segtail_agent_security_failures", "Changes of certificates or tokens that could not be used.", lambda: security.failures
    )
    numbers.gauge(
        "segtail_agent_certificate_end_timestamp_seconds",
        "When the agent's certificate ends.",
        lambda: None if certificates is None else certificates.get().pair.ends_at,
    )


def _doubts(service: Service, doubt: Doubt) -> int:
    return service.doubts()[doubt]


def _open_journal(directory: Path, cluster_id: str, stop: threading.Event, seconds: float) -> Journal | None:
    """The journal, waited for if it is held; None if the agent was told to stop meanwhile."""
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
    """Let SIGTERM, SIGINT and, for a child, the end of standard input stop the loop."""

    def end(*_: object) -> None:
        stop.set()
        polls.want()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    if child:
        threading.Thread(target=_wait_for_parent, args=(end,), daemon=True, name="parent").start()


def _wait_for_parent(end: Callable[[], None]) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass  # the parent says nothing; the pipe closes with it, however it ends
    end()


def _tell_parent(address: str) -> None:
    try:
        os.write(sys.stdout.fileno(), f"{address}\n".encode())
    except BrokenPipeError:
        log.debug("the parent has ended")  # as the end of standard input tells as well
