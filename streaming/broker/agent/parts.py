"""The parts of an agent that work on one journal: the watcher's thread, what checks and replaces it, the answers, the scrub."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.dir_work import DirCalls
from streaming.broker.agent.group_answers import GroupAnswers
from streaming.broker.agent.group_following import GroupFollowing
from streaming.broker.agent.health_server import Pulse
from streaming.broker.agent.host_status import HostStatus
from streaming.broker.agent.jobs import Jobs, is_full
from streaming.broker.agent.ladders import Ladders
from streaming.broker.agent.polling_thread import HostWatch, PollingThread, Polls
from streaming.broker.agent.security import ServerFiles
from streaming.broker.agent.service import Service
from streaming.broker.agent.topic_configs import running_configs
from streaming.broker.disk.availability import FirstRead
from streaming.broker.disk.logdirs import LogDir, LogDirs
from streaming.broker.journal.journal import Journal
from streaming.broker.journal.scan_cache import ScanCache
from streaming.broker.protocol.status_messages import BlockedFile, CorruptBatch, CorruptLog, ScrubStatus, UnreadableFile
from streaming.broker.scrub.scrub_progress import FoundSegment
from streaming.broker.scrub.threads import Scrub, ScrubOptions, ScrubReport
from streaming.broker.watcher.structure import Structure
from streaming.broker.watcher.tail import Tail
from streaming.broker.watcher.watcher import Watcher
from streaming.common.short_names import redacted
from streaming.common.units import Address
from streaming.kafka.formats.names import PartitionDir, parse_partition_dir
from streaming.rules.broker_process import NEVER_LOOKED, ProcessState, ends_ms, lets_go

log = logging.getLogger(__name__)

MOST_NAMED = 50
"""The most damaged positions, logs and files of a log dir that are named; the others are counted."""

_WAITS_SECONDS = 5.0
"""A call that takes no longer than this is not reported."""

POLL_SECONDS = 1.0
"""How often the watcher's thread is checked."""

PATIENCE_POLLS = 5
"""After this many checks that find the same call, the call counts as one that does not return.

For a log dir that answered later after all, the number is doubled each time.
"""

MOST_PATIENCE_POLLS = 60

END_SECONDS = 5.0
"""How long the watcher has to end when the agent is stopped."""


class Parts:
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
        self._pulse, self._polls, self._ending, self._began_ms = pulse, polls, ending, now_ms()
        self._unknown = set[tuple[int, str]]()  # what was logged of processes of which it is not known whether they have ended
        self._jobs, self._cache = Jobs(journal.id), ScanCache(options.cache)
        scrub = ScrubOptions(options.scrub_rate, options.scrub_every_ms)
        self._scrub = Scrub(log_dirs, scrub, options.cache, now_ms) if scrub.rate else None
        self.ladders = self._new_ladders() if options.ladder_rate else None
        self.blocking = Blocking(log_dirs, self._start, journal.fence, silent)
        self.following = GroupFollowing(log_dirs, self._tails, rate=options.read_rate, groups_limit=options.groups_limit)

    def _new_ladders(self) -> Ladders:
        rate, wait = self._options.ladder_rate, self._ending.event.wait
        return Ladders(self._log_dirs, self._tails, self._cache, now_ms, rate=rate, wait=wait)

    def _start(self) -> PollingThread:
        """Start a thread that polls the log dirs, from what is published. Log dirs that do not answer are left alone."""
        structure = Structure(self._log_dirs, self._polls.want, now_ms, lambda: self._log_dirs.barred)
        rate, stop = self._options.read_rate, self._ending.event
        thread = PollingThread(self._watch, structure, read_rate=rate, pulse=self._pulse, stop=stop, polls=self._polls)
        thread.start()
        return thread

    def _watch(self, should_stop: Callable[[], bool]) -> HostWatch:
        configs = running_configs(self._log_dirs, lambda _: self._options.limits_given)
        cluster = ClusterView(self._log_dirs, configs, recalls=True)
        watcher = Watcher(
            self._log_dirs,
            self._journal,
            cluster,
            now_ms,
            producers_limit=self._options.producers_limit,
            redact=self._redact,
            attached=self._journal.begun,
            should_stop=should_stop,
            noting=self.ladders,
            cache=self._cache,
            is_full=partial(is_full, self._journal, self._jobs),
        )
        return HostWatch(watcher, cluster, HostStatus(self._log_dirs, cluster, watcher.tails, now_ms, watcher.recovery))

    def service(self) -> Service:
        """The agent's answers to jobs."""
        return Service(
            self._options.name,
            self._journal,
            self._jobs,
            lambda: self.blocking.current.host_watch,
            self._polls,
            self._pulse,
            self._blocked,
            scrubs=lambda: [] if self._scrub is None else scrub_statuses(self._scrub.reports()),
            redact=self._redact,
            started_ms=self._began_ms,
            about_groups=GroupAnswers(
                journal=self._journal,
                jobs=self._jobs,
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
        resources.callback(self._ending.end)  # before they are waited for: an agent that cannot listen got no signal

    def run(self) -> None:
        """Do all periodic work except the watcher's, until the agent is stopped."""
        stop = self._ending.event
        while not stop.is_set():
            self.blocking.poll()
            self._let_go()
            stop.wait(POLL_SECONDS)

    def _let_go(self) -> None:
        """End the agent, if it is to, once no process of its brokers is there."""
        after_ms = self._options.let_go_after_ms
        if not after_ms or self._ending.event.is_set():
            return
        looks, at_ms = self.blocking.current.host_watch.host_status.processes.last_looks(), now_ms()
        # say once for each reason why it is not known whether a broker has ended, and when the agent ends all the same
        for broker, process in looks.items():
            if process.state is not ProcessState.UNKNOWN or process is NEVER_LOOKED or (broker, process.why) in self._unknown:
                continue
            self._unknown.add((broker, process.why))
            ends = ends_ms(process, began_ms=self._began_ms, after_ms=self._options.let_go_after_ms)
            log.warning(
                "it is not known whether the process of this broker has ended: the agent ends if nothing else is seen for so long",
                extra={"broker": broker, "why": process.why, "seconds": None if ends is None else max(0, ends - at_ms) // 1000},
            )
        if lets_go(list(looks.values()), began_ms=self._began_ms, after_ms=after_ms, now_ms=at_ms):
            log.info(
                "no broker has had these log dirs for so long that the agent ends, so that their volumes may go to another node",
                extra={"agent": self._options.name, "let_go_after_ms": after_ms, "states": ",".join(each.state for each in looks.values())},
            )
            self._ending.end()

    def end(self) -> None:
        """Let the watcher end. If it waits in a call, it is left behind and ends with the process."""
        self._ending.end()
        self.blocking.current.thread.join(END_SECONDS)
        if self.blocking.current.alive:
            log.warning(
                "the watcher waits in a call that does not return: the agent stops without it",
                extra={"path": str(self.blocking.current.calls.path)},
            )

    def _blocked(self) -> list[BlockedFile]:
        calls = self.blocking.blocked
        return [
            BlockedFile(call.log_dir.broker, str(call.log_dir.path), str(call.path), round(self.blocking.blocked_for(call), 1))
            for call in calls
        ]

    def _redact(self, name: str) -> str:
        """A transactional id or a group as it leaves this host."""
        return redacted(name, cluster_id=self._log_dirs.cluster_id) if self._options.redact_ids else name


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """The options of an agent.

    ``child``: print the address on standard output once the agent listens, and end when standard input ends; ``read_rate``: bytes of a
    backlog for each second; ``groups_limit``: how many consumer groups are followed; ``ladder_rate``: bytes of closed segments that are
    counted in a second, 0 for none; ``scrub_rate``: bytes of closed segments that are checked in a second, 0 for none; ``metrics_listen``:
    the address of the agent's own metrics, None for none; ``web_config``: how they are secured; ``let_go_after_ms``: how long the processes
    of all brokers have to be away until the agent ends by itself, 0 for never; ``limits_given``: whether settings name what brokers are
    started with: the job that reads it says of which broker none is known.
    """

    name: str
    log_dirs: tuple[Path, ...]
    cache: Path | None
    listen: Address
    files: ServerFiles
    metrics_listen: Address | None
    web_config: Path | None
    read_rate: int
    groups_limit: int
    ladder_rate: int
    producers_limit: int
    redact_ids: bool
    scrub_rate: int
    scrub_every_ms: int
    child: bool
    let_go_after_ms: int = 0
    limits_given: bool = False


class Ending:
    """Set once the agent has to end. ``polls``: the requests that the watcher's thread waits for, so that it notices at once."""

    def __init__(self, polls: Polls) -> None:
        self.event = threading.Event()
        self._polls = polls

    def end(self) -> None:
        """End the agent."""
        self.event.set()
        self._polls.want()

    def end_at_signals(self) -> None:
        """End at SIGTERM and SIGINT, however often they come. Only the main thread may call it.

        A handler runs in the middle of whatever the main thread does, another handler included, and would wait for ever for a lock that
        this holds. So the signal wakes a thread.
        """
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _do_nothing)
        threading.Thread(target=_wait_for_signal, args=(reader, self.end), daemon=True, name="signals").start()

    def end_with_parent(self) -> None:
        """End at the end of standard input."""
        threading.Thread(target=_wait_for_parent, args=(self.end,), daemon=True, name="parent").start()


def _do_nothing(*_: object) -> None:
    """The thread has been told already."""


def _wait_for_signal(reader: int, end: Callable[[], None]) -> None:
    while os.read(reader, 1)[0] == signal.SIGHUP:
        pass  # it is for the log's level
    end()


def _wait_for_parent(end: Callable[[], None]) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass  # the parent sends nothing; the pipe closes with the parent, however it ends
    end()


def now_ms() -> int:
    """The clock, Unix milliseconds."""
    return time.time_ns() // 1_000_000


class Blocking:
    """Checks the watcher's thread and replaces it. One thread calls `poll`; others read ``blocked`` and ``current``.

    Handles log dirs whose file system does not answer. The sign of such a log dir is a call of the watcher that does not return. The
    log dir is not used until the call returns. A call into a dead disk, or to a file server that is away, cannot be ended from
    outside. So another watcher replaces the one that waits in the call. The new watcher leaves that log dir alone and continues from
    the journal, as after a crash. The old one may no longer write. If its call returns after all, the log dir is used again.

    Args:
        start: starts a watcher's thread.
        fence: stops a thread from writing into the journal from now on.
        silent: attempts to read log dirs that have not returned; these log dirs are barred already.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        start: Callable[[], PollingThread],
        fence: Callable[[threading.Thread], None],
        silent: Iterable[FirstRead] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log_dirs = log_dirs
        self._start = start
        self._fence = fence
        self._clock = clock
        self._waiting: dict[Path, tuple[BlockedCall, PollingThread | FirstRead]] = {}
        self._patience: dict[Path, int] = {}
        self._same = 0
        self._last_call: tuple[object, int] = (None, -1)  # the call that the last check found
        for read in silent:
            log_dir = self._log_dir_of(read.path)
            assert log_dir is not None
            self._waiting[read.path] = BlockedCall(log_dir, Path(read.at), clock()), read
        self.current = start()
        """The watcher's thread that is in use."""

    @property
    def blocked(self) -> list[BlockedCall]:
        """The calls that have not returned, one for each log dir."""
        return [call for call, _ in list(self._waiting.values())]  # a copy at once, because other threads read it

    def poll(self) -> None:
        """Check the thread once. Call it every `POLL_SECONDS`. Raises Exception: the one that ended the watcher's thread."""
        if self._take_back():
            return
        if self.current.error is not None:
            raise self.current.error
        calls = self.current.calls
        path, count = calls.path, calls.count
        # checks are counted, not seconds: while the machine is suspended, no check runs
        self._same = self._same + 1 if path is not None and (path, count) == self._last_call else 0
        self._last_call = (path, count)
        log_dir = None if path is None else self._log_dir_of(Path(path))
        if path is not None and log_dir is not None and self._same >= self._patience.get(log_dir.path, PATIENCE_POLLS):
            self._leave(log_dir, Path(path))

    def blocked_for(self, call: BlockedCall) -> float:
        """The seconds for which the call has not returned."""
        return self._clock() - call.since

    def _log_dir_of(self, path: Path) -> LogDir | None:
        roots = {log_dir.path: log_dir for log_dir in self._log_dirs}
        return next((roots[root] for root in (path, *path.parents) if root in roots), None)

    def _leave(self, log_dir: LogDir, path: Path) -> None:
        log.error(
            "a call into a log dir does not return: the log dir is not watched until it does",
            extra={"log_dir": str(log_dir.path), "path": str(path)},
        )
        call = BlockedCall(log_dir, path, self._clock() - self._same * POLL_SECONDS)
        self._waiting[log_dir.path] = call, self.current
        self._log_dirs.bar(log_dir.path, f"{path} does not answer")
        self._start_anew()

    def _take_back(self) -> bool:
        """Use log dirs again after their call has returned. Returns whether there was one."""
        ended = [path for path, (_, thread) in self._waiting.items() if not thread.alive]  # a thread in its next call is alive, too
        for path in ended:
            del self._waiting[path]
            self._patience[path] = min(MOST_PATIENCE_POLLS, 2 * self._patience.get(path, PATIENCE_POLLS))
            log.warning("log dir answers again", extra={"log_dir": str(path)})
            self._log_dirs.unbar(path)
        if ended:
            self._start_anew()
        return bool(ended)

    def _start_anew(self) -> None:
        """Replace the current watcher by another one."""
        self.current.replace()
        self._fence(self.current.thread)
        self._same, self._last_call = 0, (None, -1)
        self.current = self._start()


@dataclass(frozen=True, slots=True)
class BlockedCall:
    """A call that has not returned. ``path``: the file or directory; ``since``: seconds of a monotonic clock."""

    log_dir: LogDir
    path: Path
    since: float


def scrub_statuses(reports: Iterable[ScrubReport]) -> list[ScrubStatus]:
    """The status of each log dir."""
    return [_status(report) for report in reports]


def _status(report: ScrubReport) -> ScrubStatus:
    progress = report.progress
    damaged = [(segment, partition) for segment in progress.segments if segment.batches and (partition := _partition(segment)) is not None]
    unreadable = [segment for segment in progress.segments if segment.error]
    batches = Counter[PartitionDir]()
    for segment, partition in damaged:
        batches[partition] += segment.batches
    waits = report.waiting >= _WAITS_SECONDS
    return ScrubStatus(
        broker=report.log_dir.broker,
        log_dir=str(report.log_dir.path),
        began_ms=progress.began_ms,
        ended_ms=progress.ended_ms,
        logs=progress.logs,
        logs_checked=progress.logs_checked,
        checked=progress.checked,
        corrupt=batches.total(),
        unreadable=len(unreadable),
        waits_at=report.waits_at if waits else "",
        waits_seconds=round(report.waiting, 1) if waits else 0.0,
        corrupt_batches=list(_corrupt_batches(damaged))[:MOST_NAMED],
        corrupt_logs=[CorruptLog(each.topic, each.partition, count) for each, count in batches.most_common(MOST_NAMED)],
        unreadable_files=[UnreadableFile(str(segment.path), segment.error) for segment in unreadable[:MOST_NAMED]],
    )


def _partition(segment: FoundSegment) -> PartitionDir | None:
    return parse_partition_dir(segment.path.parent.name)


def _corrupt_batches(damaged: Iterable[tuple[FoundSegment, PartitionDir]]) -> Iterator[CorruptBatch]:
    """The first damaged position of each segment, then the others."""
    named = [
        (number, CorruptBatch(partition.topic, partition.partition, str(segment.path), damage.position, damage.offset, str(damage.fault)))
        for segment, partition in damaged
        for number, damage in enumerate(segment.damages)
    ]
    return (batch for _, batch in sorted(named, key=lambda each: each[0]))


def send_address(address: str) -> None:
    """Send the agent's address to its parent, on standard output."""
    try:
        os.write(sys.stdout.fileno(), f"{address}\n".encode())
    except BrokenPipeError:
        log.debug("the parent has ended")  # the end of standard input shows it as well
