"""Finds what changed in one log dir: by inotify if it works, else by comparing directories."""

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path

from streaming.broker.disk.calls import Calling
from streaming.broker.disk.logdirs import live_directories, log_dir_stamp, partition_stamp
from streaming.broker.disk.segment_files import FileIdentity, Stamp
from streaming.broker.watcher import inotify
from streaming.broker.watcher.observation import Observation
from streaming.broker.watcher.timers import is_due
from streaming.kafka.formats.names import parse_partition_dir

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
        self._limit: inotify.Limit | None = None
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
            self._limit = inotify.limit("watches")
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
        if self._confirmed and self._limit != inotify.limit("watches"):
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
