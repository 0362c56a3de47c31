"""Hints that something was created, renamed or removed below a log dir: which directory to check again, never what happened.

inotify reports them at once if it works. If it does not, directories are compared at each poll, at most once a second.
"""

import errno
import logging
import os
import re
import threading
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.utils import BaseThread

from streaming.broker.disk.logdirs import LogDir, live_directories, log_dir_stamp, partition_stamp
from streaming.broker.disk.opening import Calling
from streaming.broker.disk.segment_files import FileIdentity, Stamp
from streaming.broker.watcher.timers import is_due
from streaming.kafka.formats.names import parse_partition_dir

# --- finds what changed in one log dir: by inotify if it works, else by comparing directories.


# --- inotify on one log dir, through a watchdog observer of its own: if it hangs or dies, the other log dirs are not affected.


# modifications are not requested: every append is one, and watchdog would lose events under load
_STRUCTURAL: list[type[FileSystemEvent]] = [
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
]

_starting = threading.Lock()  # only one at a time: new instances and threads between its two listings are its own


class Observation(FileSystemEventHandler):
    """Watches a log dir and the directories in it.

    Args:
        path: the log dir, as the user gave it.
        heard: called by watchdog's thread with each path that was created, moved or removed below it, relative to ``path``.

    Raises:
        OSError: inotify has no instance left, or not a single watch, or the log dir cannot be read.
    """

    def __init__(self, path: Path, heard: Callable[[Path], None]) -> None:
        # watchdog does not follow a symbolic link, and a watch on the link itself reports nothing
        self._real = Path(os.path.realpath(path))
        self._heard = heard
        with _starting:
            before, threads = instances(), _threads()
            self._observer = Observer()
            try:
                self._observer.start()
                self._observer.schedule(self, str(self._real), recursive=True, event_filter=_STRUCTURAL)
            except OSError:
                self.stop()
                raise
            except RuntimeError as error:  # no thread can be started
                self.stop()
                raise OSError(errno.EAGAIN, str(error)) from error
            self._threads = _threads() - threads
            self._instances = self._ours(instances() - before)

    @property
    def alive(self) -> bool:
        """Whether all of watchdog's threads are running."""
        return all(thread.is_alive() for thread in self._threads)

    def watched(self) -> set[int]:
        """The inodes of the directories that are really watched."""
        return watched(self._instances)

    def _ours(self, new: set[int]) -> set[int]:
        """The instances of this observation: the new ones, unless one has the number of another that was closed meanwhile."""
        try:
            inode = self._real.stat().st_ino
        except OSError:
            return new  # gone again: the next check finds that
        if inode in watched(new):
            return new
        return {each for each in instances() if inode in watched({each})}

    def stop(self) -> threading.Thread:
        """Stop watching. Returns the thread that does it: watchdog waits for its own threads, and one of them may hang on a disk."""
        stopping = threading.Thread(target=self._observer.stop, daemon=True, name="stop-observer")
        stopping.start()
        return stopping

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Called by watchdog's thread."""
        for raw in (event.src_path, event.dest_path):
            if raw:
                path = Path(os.fsdecode(raw))
                if path != self._real and path.is_relative_to(self._real):
                    self._heard(path.relative_to(self._real))


def _threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if isinstance(thread, BaseThread)}


log = logging.getLogger(__name__)

ROUNDS = 10
"""Directories with a working watch are compared too, each in every tenth check: this finds changes that inotify has lost."""

VERIFY_MS = 10_000
"""The shortest time between two queries of the kernel's watches, some 3 us for each directory, while directories come and go."""

VERIFY_ANEW_MS = 60_000
"""How often the kernel is queried in any case."""

RETRY_MS = 60_000
"""How long inotify is not used after it has failed; the time doubles each time it fails again."""

RETRY_LIMIT_MS = 3_600_000


class LogDirWatch:
    """One thread calls `look` and `stop`; watchdog's thread calls `heard`.

    Args:
        path: the log dir as the user gave it; hints are this path and those of partition directories in it.
        hinted: called at once with each hint of inotify.
    """

    def __init__(self, path: Path, hinted: Callable[[Path], None]) -> None:
        self.path = path
        self.error = ""  # why inotify is not used here
        self._hinted = hinted
        self._begun = False
        self._observation: Observation | None = None
        self._limit: Limit | None = None
        self._retry_at, self._retry_ms = 0, RETRY_MS
        self._identity: FileIdentity | None = None  # None while the log dir is away
        self._stamp: Stamp | None = None
        self._inodes: dict[str, int] = {}  # of the live partition directories, by name
        self._stamps: dict[str, Stamp | None] = {}
        self._missing: set[str] = set()  # these have no known watch: they are compared in each check
        self._suspected: set[str] = set()  # the kernel did not watch these at the last query
        self._confirmed: set[str] = set()  # nor at the query before that
        self._denied: set[str] = set()  # those of them that this process may not read: watchdog skips them
        self._verify_at = self._verified_at = 0
        self._round = 0
        self._heard: set[str] = set()  # inotify has reported these since they were compared
        self._unheard: set[str] = set()  # had changed at the last check, and inotify had not reported it
        self._lock = threading.Lock()  # for `_heard`

    @property
    def unwatched(self) -> int:
        """How many partition directories have no working watch."""
        return len(self._inodes) if self._observation is None else len(self._confirmed)

    @property
    def denied(self) -> list[Path]:
        """Partition directories that have no watch because this process may not read them."""
        return sorted(self.path / name for name in self._denied & self._confirmed)

    def look(self, now: int, *, everything: bool) -> set[Path]:
        """Compare the directories with the last check; returns what has changed, whether inotify has reported it or not.

        Args:
            everything: compare every directory, also those that are watched.
        """
        hints: set[Path] = set()
        try:
            identity, stamp = log_dir_stamp(self.path, now)
        except OSError:  # the rescan reports it
            hints.update(self._away())
        else:
            if identity != self._identity:
                hints.update((self.path, *(self.path / name for name in self._inodes)))
                self._identity, self._stamp = identity, None
                self._begin_anew(now)
            self._observe_if_due(now)
            if (stamp is None or stamp != self._stamp) and self._list(now):
                hints.add(self.path)
            self._stamp = stamp
            hints.update(self.path / name for name in self._compare(now, everything=everything))
        begun, self._begun = self._begun, True
        return hints if begun else set()  # at first everything is listed anyway

    def heard(self, below: Path) -> None:
        """Note that inotify reported a change at ``below``, a path in the log dir."""
        name = below.parts[0]
        if parse_partition_dir(name) is None:
            return  # a checkpoint at the root is replaced every 5 seconds: no change of structure
        with self._lock:
            self._heard.add(name)
        self._hinted(self.path if len(below.parts) == 1 else self.path / name)

    def stop(self) -> threading.Thread | None:
        """Stop inotify; returns the thread that does it, if there is anything to stop."""
        observation, self._observation = self._observation, None
        self._missing = set(self._inodes)
        self._suspected, self._confirmed, self._unheard = set(), set(), set()
        return None if observation is None else observation.stop()

    def _away(self) -> set[Path]:
        hints = set() if self._identity is None else {self.path}
        self.stop()
        self._identity = self._stamp = None
        self._inodes, self._missing = {}, set()
        return hints

    # --- inotify

    def _begin_anew(self, now: int) -> None:
        self.stop()
        self._retry_at, self._retry_ms = now, RETRY_MS

    def _observe_if_due(self, now: int) -> None:
        if self._observation is not None and not self._observation.alive:
            self._fail(now, "a thread of the observer has ended")
        if self._observation is not None and is_due(now, self._verify_at, VERIFY_ANEW_MS):
            self._verify(now)
        if self._observation is None and is_due(now, self._retry_at, RETRY_LIMIT_MS):
            self._limit = limit("watches")
            try:
                with Calling(self.path):  # it walks through the whole log dir
                    self._observation = Observation(self.path, self.heard)
            except OSError as error:
                self._fail(now, os.strerror(error.errno) if error.errno else str(error))
            else:
                self.error = ""
                self._stamp = None  # no one has reported the changes until now
                self._verify_at = now + 1  # in the next check

    def _fail(self, now: int, why: str) -> None:
        """Do without inotify for a while."""
        self.error = why
        log.debug("inotify does not work", extra={"log_dir": str(self.path), "error": why})
        self.stop()
        self._retry_at, self._retry_ms = now + self._retry_ms, min(RETRY_LIMIT_MS, 2 * self._retry_ms)

    def _verify(self, now: int) -> None:
        """Query which directories the kernel watches: watchdog silently skips directories that it cannot add."""
        assert self._observation is not None
        watched = self._observation.watched()
        missing = {name for name, inode in self._inodes.items() if inode not in watched}
        self._confirmed = missing & self._suspected  # one query may be too early: watchdog may not have added the watch yet
        with Calling(self.path):
            self._denied = {name for name in self._confirmed if not self._may_read(name)}
        self._missing = self._suspected = missing
        self._verified_at = now
        self._verify_at = now + (VERIFY_MS if missing - self._confirmed else VERIFY_ANEW_MS)
        if self._confirmed and self._limit != limit("watches"):
            self._begin_anew(now)

    def _may_read(self, name: str) -> bool:
        """Whether inotify accepts this directory (``inotify_add_watch(2)``, EACCES)."""
        directory = self.path / name
        return os.access(directory, os.R_OK, effective_ids=True) or not os.access(directory, os.F_OK, effective_ids=True)

    # --- comparing

    def _list(self, now: int) -> bool:
        """List the log dir; returns whether partition directories have come or gone."""
        try:
            found = live_directories(self.path, self._inodes)
        except OSError:
            return False
        if found == self._inodes:
            return False
        new = {name for name, inode in found.items() if self._inodes.get(name) != inode}
        self._inodes = found
        self._stamps = {name: stamp for name, stamp in self._stamps.items() if name in found and name not in new}
        self._missing = {name for name in self._missing if name in found} | new
        self._confirmed = {name for name in self._confirmed if name in found}
        with self._lock:
            self._heard.intersection_update(found)
        if new:
            self._verify_at = min(self._verify_at, max(now + 1, self._verified_at + VERIFY_MS))
        return True

    def _compare(self, now: int, *, everything: bool) -> list[str]:
        """The directories that have changed, or may have changed, since they were compared last."""
        self._round += 1
        names = list(self._inodes)
        due = set(names if everything else names[self._round % ROUNDS :: ROUNDS]) | self._missing
        with self._lock:
            missed = self._unheard - self._heard
            heard = self._heard & due
            self._heard -= heard
        if missed:
            self._fail(now, "it did not report a change")
        self._unheard = set()
        changed = []
        for name in due:
            try:
                stamp = partition_stamp(self.path, name, now)
            except OSError:  # gone: the log dir's stamp shows it; or unreadable: an attempt to read it shows it
                self._stamps.pop(name, None)
                continue
            first, before = name not in self._stamps, self._stamps.get(name)
            self._stamps[name] = stamp
            if first or (stamp is not None and stamp == before):
                continue
            changed.append(name)
            if name in self._missing or name in heard or before is None:
                continue
            if stamp is None:  # it changed too recently to judge: inotify may report it soon
                self._stamps[name] = before
            else:
                self._unheard.add(name)
        with self._lock:
            self._heard |= {name for name in heard if self._stamps.get(name) is None}
        return changed


# --- reads from the kernel which directories inotify watches, and how many it may watch. See ``proc(5)``, "inotify" below
# ``/proc/pid/fdinfo``, and ``inotify(7)``. Watchdog does not report which watches it could not add.


_DESCRIPTORS = Path("/proc/self/fd")
_WATCH = re.compile(rb"^inotify wd:\w+ ino:(\w+)", re.MULTILINE)

_LIMITS = {
    "instances": ("fs.inotify.max_user_instances", "user.max_inotify_instances"),
    "watches": ("fs.inotify.max_user_watches", "user.max_inotify_watches"),
}


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on what one user may have, and the name of its sysctl."""

    sysctl: str
    value: int

    def __str__(self) -> str:
        return f"{self.sysctl} = {self.value}"


def limit(what: str) -> Limit | None:
    """The effective bound on ``instances`` or ``watches``: a user namespace may have its own lower bound. None if it is not known."""
    found = []
    for sysctl in _LIMITS[what]:
        try:
            found.append(Limit(sysctl, int(Path("/proc/sys", *sysctl.split(".")).read_text())))
        except (OSError, ValueError):
            continue  # no such sysctl on this kernel
    return min(found, key=lambda each: each.value, default=None)


def instances() -> set[int]:
    """The descriptors of this process that are inotify instances; none if the kernel does not list them."""
    found: set[int] = set()
    try:
        descriptors = list(_DESCRIPTORS.iterdir())
    except OSError:
        return found
    for descriptor in descriptors:
        try:
            target = os.readlink(descriptor)  # noqa: PTH115  # no file: its target is no path
        except OSError:
            continue  # closed since the listing
        if target == "anon_inode:inotify":
            found.add(int(descriptor.name))
    return found


def watched(descriptors: set[int]) -> set[int]:
    """The inodes that these instances watch; none for a closed instance, or if the kernel does not list them."""
    found: set[int] = set()
    for descriptor in descriptors:
        try:
            text = Path(f"/proc/self/fdinfo/{descriptor}").read_bytes()
        except OSError:
            continue
        found.update(int(inode, 16) for inode in _WATCH.findall(text))
    return found


LOOK_MS = 1_000
"""How often directories are checked for changes that inotify does not report."""

_ENOUGH_WATCHES = 1 << 20

_SHORT = frozenset(os.strerror(code) for code in (errno.EMFILE, errno.ENOSPC))
"""The errors of the kernel when a limit on instances or watches is reached."""

_STOP_SECONDS = 5.0
"""How long to wait for watchdog's threads at the end: one of them may hang on a disk that does not answer."""


class Structure:
    """Collects the partition directories in which something happened; a change directly in a log dir is a hint for the log dir.

    Args:
        wake: called, by a thread of watchdog's, when there is a hint to take.
        barred: the log dirs into which no call may be made now.
    """

    def __init__(
        self,
        log_dirs: Iterable[LogDir],
        wake: Callable[[], None],
        clock_ms: Callable[[], int],
        barred: Callable[[], Container[Path]] = frozenset,
    ) -> None:
        self._wake = wake
        self._clock_ms = clock_ms
        self._barred = barred
        self._watches = [LogDirWatch(log_dir.path, self._hint) for log_dir in log_dirs]
        self._alarm = _Alarm()
        self._lock = threading.Lock()
        self._hints: set[Path] = set()
        self._started = False
        self._next_look = 0
        self._errors: dict[Path, str] = {}  # of log dirs, as they were logged
        self._warned = False  # of directories without a watch

    @property
    def unwatched(self) -> int:
        """How many partition directories have no inotify watch that is known to work."""
        return sum(watch.unwatched for watch in self._watches)

    def start(self) -> None:
        """Let the next `take` begin to watch."""
        self._started = True
        logging.getLogger("watchdog").addHandler(self._alarm)

    def stop(self) -> None:
        """Stop watching."""
        self._started = False
        logging.getLogger("watchdog").removeHandler(self._alarm)
        for stopping in [watch.stop() for watch in self._watches]:
            if stopping is not None:
                stopping.join(_STOP_SECONDS)

    def take(self) -> set[Path]:
        """The hints since the last call. All calls into the log dirs are made here, in the caller's thread."""
        now = self._clock_ms()
        found: set[Path] = set()
        if self._started and is_due(now, self._next_look, LOOK_MS):
            self._next_look = now + LOOK_MS
            everything, barred = self._alarm.taken(), self._barred()
            for watch in self._watches:
                if watch.path not in barred:
                    found |= watch.look(now, everything=everything)
            self._report()
        with self._lock:
            hints, self._hints = self._hints, set()
        return hints | found

    def _hint(self, path: Path) -> None:
        with self._lock:
            self._hints.add(path)
        self._wake()

    def _report(self) -> None:
        """Log once what inotify cannot do, and what would correct it."""
        for watch in self._watches:
            if watch.error and watch.error != self._errors.get(watch.path):
                log.warning(
                    "inotify does not work here: directories are compared at each poll instead",
                    extra={"log_dir": str(watch.path), "error": watch.error, **_limits_reached(watch.error)},
                )
            self._errors[watch.path] = watch.error
        working = [watch for watch in self._watches if not watch.error]
        short = sum(watch.unwatched for watch in working)
        if short and not self._warned:
            _log_short(short, [directory for watch in working for directory in watch.denied])
        self._warned = short > 0


class _Alarm(logging.Handler):
    """Notices that watchdog has lost something: it reports an overflow of the kernel's queue only in its log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._raised = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:  # whatever it is, hints may be missing
        self._raised.set()

    def taken(self) -> bool:
        """Whether watchdog has logged something since the last call."""
        raised = self._raised.is_set()
        self._raised.clear()
        return raised


def _log_short(short: int, denied: list[Path]) -> None:
    """Log why directories have no watch: a higher limit does not help directories that may not be read."""
    if denied:
        log.warning(
            "directories may not be read and have no inotify watch: they are compared at each poll instead",
            extra={
                "directories": len(denied),
                "error": os.strerror(errno.EACCES),
                "first": str(denied[0]),
                "remedy": "let the agent's user read and enter them",
            },
        )
    if short > len(denied):
        bound = limit("watches")
        log.warning(
            "directories have no inotify watch: they are compared at each poll instead",
            extra={
                "directories": short - len(denied),
                **_limits("watches"),
                **({} if bound is None else {"remedy": f"sysctl -w {bound.sysctl}={max(_ENOUGH_WATCHES, 2 * bound.value)}"}),
            },
        )


def _limits_reached(error: str) -> dict[str, Any]:
    """The limits, if inotify has failed because of one of them."""
    return _limits("instances") | _limits("watches") if error in _SHORT else {}


def _limits(what: str) -> dict[str, Any]:
    bound = limit(what)
    return {} if bound is None else {f"limit_of_{what}": str(bound)}
