"""The agent as a process: one thread watches, Flight's threads answer, and it ends with its parent or at a signal."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from streaming.agent.cluster import ClusterView
from streaming.agent.descriptors import raise_limit
from streaming.agent.server import AgentServer
from streaming.agent.service import Service
from streaming.disk.logdirs import open_log_dirs, refuse_inside
from streaming.errors import JournalBusyError, UsageError
from streaming.units import Address
from streaming.watcher.consumers import Bounds, Consumers
from streaming.watcher.journal import Journal
from streaming.watcher.structure import Structure
from streaming.watcher.watcher import LOOK_MS, Watcher

log = logging.getLogger(__name__)

TRIM_EVERY_MS = 10_000

BACKLOG_PAUSE_SECONDS = 0.5
"""A backlog is read at most half of the time, so that the broker's disk is not kept busy by it; no pause is longer than this."""

JOURNAL_WAIT_SECONDS = 10.0
"""How long a child waits for a journal that is held: the agent of a job that was killed ends when it notices."""

_JOURNAL_POLL_SECONDS = 0.1
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """What an agent is told. ``child``: print the address on standard output once it listens, and end when standard input does."""

    name: str
    log_dirs: tuple[Path, ...]
    journal: Path
    listen: Address
    beat_ms: int
    bounds: Bounds
    child: bool


def now_ms() -> int:
    """The clock, Unix milliseconds."""
    return time.time_ns() // 1_000_000


def serve(options: AgentOptions) -> None:
    """Run an agent until it is told to stop.

    Raises:
        UsageError: the log dirs or the address cannot be used.
        JournalError: the journal cannot be used.
    """
    if options.listen.host not in _LOOPBACK:
        raise UsageError(f"--listen {options.listen}: an agent without TLS serves loopback addresses only, such as 127.0.0.1:8815")
    log_dirs = open_log_dirs(options.log_dirs)
    refuse_inside(options.journal, log_dirs, "--journal")
    raise_limit()
    stop, wake = threading.Event(), threading.Event()
    _end_at(stop, wake, child=options.child)
    journal = _open_journal(options.journal, log_dirs[0].cluster_id, stop, JOURNAL_WAIT_SECONDS if options.child else 0.0)
    if journal is None:
        return
    consumers, cluster = Consumers(journal, now_ms), ClusterView(log_dirs)
    watcher = Watcher(log_dirs, journal, cluster, now_ms, beat_ms=options.beat_ms, attached=consumers.any())
    structure = Structure(log_dirs, wake.set)
    server = _listen(Service(options.name, journal, consumers, watcher, cluster, wake), options.listen)
    structure.start()
    address = str(Address(options.listen.host, server.port))
    log.info("agent listens", extra={"address": address, "journal": journal.id, "agent": options.name})
    try:
        if options.child:
            _tell_parent(address)
        _watch(watcher, structure, consumers, options.bounds, stop, wake)
    finally:
        server.shutdown()
        structure.stop()
        watcher.close()
        journal.close()


def _watch(
    watcher: Watcher, structure: Structure, consumers: Consumers, bounds: Bounds, stop: threading.Event, wake: threading.Event
) -> None:
    next_trim = 0
    while not stop.is_set():
        begun = time.monotonic()
        more = watcher.turn(structure.take())
        if now_ms() >= next_trim:
            consumers.trim(bounds)
            next_trim = now_ms() + TRIM_EVERY_MS
        if more:
            stop.wait(min(time.monotonic() - begun, BACKLOG_PAUSE_SECONDS))
        else:
            wake.wait(LOOK_MS / 1000)
            wake.clear()


def _open_journal(directory: Path, cluster_id: str, stop: threading.Event, seconds: float) -> Journal | None:
    """The journal, waited for if it is held; None if the agent was told to stop meanwhile."""
    deadline = time.monotonic() + seconds
    while not stop.is_set():
        try:
            return Journal(directory, cluster_id, now_ms)
        except JournalBusyError:
            if time.monotonic() >= deadline:
                raise
            stop.wait(_JOURNAL_POLL_SECONDS)
    return None


def _listen(service: Service, listen: Address) -> AgentServer:
    try:
        return AgentServer(service, listen)
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"cannot listen on {listen} ({error}): end what uses it, or name another address with --listen") from error


def _end_at(stop: threading.Event, wake: threading.Event, *, child: bool) -> None:
    """Let SIGTERM, SIGINT and, for a child, the end of standard input stop the loop."""

    def end(*_: object) -> None:
        stop.set()
        wake.set()

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
