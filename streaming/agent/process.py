"""The agent as a process: one thread watches, Flight's threads answer, and it ends with its parent or at a signal."""

import logging
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from streaming.agent.cluster import ClusterView
from streaming.agent.server import AgentServer
from streaming.agent.service import Service
from streaming.disk.logdirs import open_log_dirs
from streaming.errors import JournalError, UsageError
from streaming.units import Address
from streaming.watcher.consumers import Bounds, Consumers
from streaming.watcher.journal import Journal
from streaming.watcher.structure import Structure
from streaming.watcher.watcher import LOOK_MS, Watcher

log = logging.getLogger(__name__)

TRIM_EVERY_MS = 10_000

JOURNAL_WAIT_SECONDS = 10.0
"""How long to wait for a journal that is held: the agent of a killed job ends when it notices."""

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """What an agent is told. ``address_file`` gets the address it listens on once it does; ``child``: end when standard input does."""

    name: str
    log_dirs: tuple[Path, ...]
    journal: Path
    listen: Address
    beat_ms: int
    bounds: Bounds
    address_file: Path | None
    child: bool


def now_ms() -> int:
    """The clock, Unix milliseconds."""
    return time.time_ns() // 1_000_000


def serve(options: AgentOptions) -> None:
    """Run an agent until it is told to stop.

    Raises:
        UsageError: the log dirs, the address or the journal cannot be used.
    """
    if options.listen.host not in _LOOPBACK:
        raise UsageError(f"--listen {options.listen}: an agent without TLS serves loopback addresses only, such as 127.0.0.1:8815")
    log_dirs = open_log_dirs(options.log_dirs)
    journal = _open_journal(options.journal, log_dirs[0].cluster_id)
    stop, wake = threading.Event(), threading.Event()
    consumers, cluster = Consumers(journal, now_ms), ClusterView(log_dirs)
    watcher = Watcher(log_dirs, journal, cluster, now_ms, beat_ms=options.beat_ms, attached=consumers.any())
    structure = Structure(log_dirs, wake.set)
    server = _listen(Service(options.name, journal, consumers, watcher, cluster, wake), options.listen)
    _end_at(stop, wake, child=options.child)
    structure.start()
    address = f"{options.listen.host}:{server.port}"
    if options.address_file is not None:
        _write_address(options.address_file, address)
    log.info("agent listens", extra={"address": address, "journal": journal.id, "agent": options.name})
    try:
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
        more = watcher.turn(structure.take())
        if now_ms() >= next_trim:
            consumers.trim(bounds)
            next_trim = now_ms() + TRIM_EVERY_MS
        if not more:
            wake.wait(LOOK_MS / 1000)
            wake.clear()


def _open_journal(directory: Path, cluster_id: str) -> Journal:
    deadline = time.monotonic() + JOURNAL_WAIT_SECONDS
    while True:
        try:
            return Journal(directory, cluster_id, now_ms)
        except JournalError as error:
            if "held by another agent" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _listen(service: Service, listen: Address) -> AgentServer:
    try:
        return AgentServer(service, listen)
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"cannot listen on {listen}: {error}; name another address with --listen") from error


def _write_address(path: Path, address: str) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(address)
    temporary.replace(path)


def _end_at(stop: threading.Event, wake: threading.Event, *, child: bool) -> None:
    """Let SIGTERM, SIGINT and, for a child, the end of standard input stop the loop."""

    def end(*_: object) -> None:
        stop.set()
        wake.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    if child:
        threading.Thread(target=_wait_for_parent, args=(end,), daemon=True, name="parent").start()


def _wait_for_parent(end: threading.Event | object) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass  # the parent says nothing; the pipe closes with it, however it ends
    end()  # type: ignore[operator]
