"""Hints that something was created, renamed or removed below a log dir: which directory to check again, never what happened.

What counts is the comparison of the directories' stamps at each look. inotify names directories before that, where it works; nothing relies
on it, and nothing checks whether it works.
"""

import logging
import os
import threading
import warnings
from collections.abc import Callable, Container, Iterable
from pathlib import Path

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

from streaming.broker.disk.logdirs import LogDir, live_directories, log_dir_stamp, written_times
from streaming.broker.disk.segment_files import STAMP_RELIABLE_MS, FileIdentity, Stamp
from streaming.broker.watcher.timers import is_due
from streaming.kafka.formats.names import parse_partition_dir

log = logging.getLogger(__name__)

# watchdog warns of a directory that came while it walked through the log dir, and so is watched twice
warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)

LOOK_MS = 1_000
"""The least time from one look to the next."""

LOOKED_AT_PER_MS = 2
"""Directories for each millisecond between two looks: a directory takes a microsecond, so looks take some 0.3 % of a core at most."""

# modifications are not requested: every append is one, and watchdog would lose events under load
_STRUCTURAL: list[type[FileSystemEvent]] = [
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
]


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
        self._lock = threading.Lock()
        self._hints: set[Path] = set()
        self._next_look, self._rest_ms = 0, LOOK_MS

    def take(self) -> set[Path]:
        """The hints since the last call. Comparing makes all its calls into the log dirs here, in the caller's thread."""
        now = self._clock_ms()
        found: set[Path] = set()
        if is_due(now, self._next_look, self._rest_ms):
            barred = self._barred()
            for watch in self._watches:
                if watch.path not in barred:
                    found |= watch.look(now)
            self._rest_ms = max(LOOK_MS, sum(len(watch.directories) for watch in self._watches) // LOOKED_AT_PER_MS)
            self._next_look = now + self._rest_ms
        with self._lock:
            hints, self._hints = self._hints, set()
        return hints | found

    def stop(self) -> None:
        """Stop inotify, without waiting for its end."""
        for watch in self._watches:
            watch.stop()

    def _hint(self, path: Path) -> None:
        with self._lock:
            self._hints.add(path)
        self._wake()


class LogDirWatch:
    """Finds what changed in one log dir since the last look. Only one thread uses it.

    Args:
        path: the log dir as the user gave it; hints are this path and those of partition directories in it.
        hinted: called by watchdog's thread at once with each hint of inotify.
    """

    def __init__(self, path: Path, hinted: Callable[[Path], None]) -> None:
        self.path = path
        self.directories: dict[str, int] = {}
        """The inodes of the live partition directories, by name."""
        self._hinted = hinted
        self._hints: InotifyHints | None = None
        self._identity: FileIdentity | None = None  # None while the log dir is away
        self._stamp: Stamp | None = None
        self._times: dict[str, int] = {}  # by name, nanoseconds
        self._reliable_ns = 0  # a time before this was reliable at the last look

    def look(self, now: int) -> set[Path]:
        """Compare all directories with the last look; returns what has changed, the log dir itself at the first look."""
        try:
            identity, stamp = log_dir_stamp(self.path, now)
        except OSError:  # the rescan reports it
            return self._away()
        found: set[Path] = set()
        if identity != self._identity:
            found.update((self.path, *(self.path / name for name in self.directories)))
            self._begin(identity)
        if (stamp is None or stamp != self._stamp) and self._list(stamp):
            found.add(self.path)
        found.update(self.path / name for name in self._compare(now))
        return found

    def stop(self) -> None:
        """Stop inotify."""
        if self._hints is not None:
            self._hints.stop()
        self._hints = None

    def _away(self) -> set[Path]:
        found = set() if self._identity is None else {self.path}
        self.stop()
        self._identity, self.directories, self._times = None, {}, {}
        return found

    def _begin(self, identity: FileIdentity) -> None:
        self.stop()
        self._hints = InotifyHints(self.path, self._hinted)
        self._identity, self._stamp = identity, None

    def _list(self, stamp: Stamp | None) -> bool:
        """List the log dir; returns whether partition directories have come or gone."""
        before, self._stamp = self.directories, None
        try:
            self.directories = live_directories(self.path, before)
        except OSError:  # the next look tries again
            return False
        self._stamp = stamp
        self._times = {name: time for name, time in self._times.items() if self.directories.get(name) == before[name]}
        return self.directories != before

    def _compare(self, now: int) -> list[str]:
        """The directories that have changed, or may have changed, since they were compared last.

        One that is gone shows in the log dir's stamp; one that is new was listed; one that is unreadable shows when it is read.
        """
        times, known, reliable_ns = written_times(self.path, self.directories), self._times, self._reliable_ns
        changed = [name for name, time in times.items() if name in known and (time != known[name] or time >= reliable_ns)]
        known.update(times)
        self._reliable_ns = (now - STAMP_RELIABLE_MS) * 1_000_000
        return changed


class InotifyHints(FileSystemEventHandler):
    """What inotify says of a log dir and the directories in it, by an observer of watchdog's for this log dir alone.

    It begins, and ends, in a thread of its own: a disk that does not answer delays no other log dir, and then its hints are missed.

    Args:
        path: the log dir, as the user gave it.
        hinted: called with the log dir, or the partition directory in it, in which something was created, renamed or removed.
    """

    def __init__(self, path: Path, hinted: Callable[[Path], None]) -> None:
        self._path = path
        self._hinted = hinted
        self._real = path
        self._stopped = threading.Event()
        try:
            threading.Thread(target=self._run, daemon=True, name="inotify-hints").start()
        except RuntimeError as error:  # no thread can be started
            self._do_without(error)

    def stop(self) -> None:
        """Stop it soon."""
        self._stopped.set()

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Hint at the log dir or partition directory of an event. Only watchdog's thread calls it."""
        for raw in (event.src_path, event.dest_path):
            path = Path(os.fsdecode(raw))
            if self._real in path.parents:
                name, *below = path.relative_to(self._real).parts
                if parse_partition_dir(name) is not None:  # a checkpoint at the root is replaced every 5 seconds: no change of structure
                    self._hinted(self._path / name if below else self._path)

    def _run(self) -> None:
        try:
            # watchdog does not follow a symbolic link, and a watch on the link itself reports nothing
            self._real = Path(os.path.realpath(self._path))
            observer = Observer()
        except (OSError, RuntimeError) as error:
            self._do_without(error)
            return
        try:
            observer.start()
            observer.schedule(self, str(self._real), recursive=True, event_filter=_STRUCTURAL)
            self._stopped.wait()
        except (OSError, RuntimeError) as error:
            self._do_without(error)
        finally:
            observer.stop()

    def _do_without(self, error: Exception) -> None:
        log.warning(
            "inotify does not work here: changes are found by comparing directories",
            extra={"log_dir": str(self._path), "error": str(error)},
        )
