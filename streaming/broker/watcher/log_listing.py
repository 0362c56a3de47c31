"""Lists the log dirs: which logs are there, in which directory, and which may be where nothing can be read now."""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.identity import UNKNOWN_BROKER
from streaming.broker.disk.logdirs import LogDir, Partition, partitions_by_name
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.disk.shortage import is_short, shortage
from streaming.broker.disk.topic_ids import TopicIds
from streaming.broker.journal.cursor import Cursor
from streaming.broker.watcher.copies import LogCopies
from streaming.broker.watcher.cursors import log_id
from streaming.broker.watcher.same_log import has_files_of, holds_cursor
from streaming.broker.watcher.watched_logs import WatchedLogs
from streaming.common.log_key import LogKey
from streaming.kafka.formats.names import DirState

log = logging.getLogger(__name__)


class LogListing:
    """The last listing. Only the watcher's thread changes it.

    Args:
        log_dirs: no call is made into an unavailable one, and nothing in it is gone. It contains every reason why one is unavailable.
        copies: decides between several directories of one log.
        wants: whether the directory of a live log is watched.
    """

    def __init__(self, log_dirs: LogDirs, watched: WatchedLogs, copies: LogCopies, wants: Callable[[Partition], bool]) -> None:
        self._log_dirs = log_dirs
        self._watched = watched
        self._copies = copies
        self._wants = wants
        self.topic_ids = TopicIds()
        self.moving: frozenset[tuple[int, str, int]] = frozenset()  # broker, topic and partition of copies of moves between log dirs
        self.renamed: dict[int, list[Partition]] = {}  # directories of logs that leave, by partition number
        self._by_name: dict[Path, dict[str, Partition]] = {}  # what was listed last in each log dir
        self.unlisted: Mapping[Path, str] = {}  # log dirs that are available and could not be listed
        self._seen_in: frozenset[Path] = frozenset()  # the log dirs that were listed last time

    def find(self) -> dict[LogKey, Partition]:
        """The directory of each log that is there. In log dirs that are unavailable none is."""
        copies: dict[LogKey, list[Partition]] = {}
        self.renamed, moving = {}, set[tuple[int, str, int]]()
        for partition in self._listed():
            if partition.state in (DirState.DELETE, DirState.STRAY):
                self.renamed.setdefault(partition.partition, []).append(partition)
            elif partition.state is DirState.LIVE:
                known = self._as_known(partition)
                copies.setdefault(log_id(known), []).append(known)
            else:
                moving.add((partition.log_dir.broker, partition.topic, partition.partition))
        if moving != self.moving:
            self.moving = frozenset(moving)
        found: dict[LogKey, Partition] = {}
        for key, those in copies.items():
            tail = self._watched.tails.get(key)
            one = those[0] if len(those) == 1 else self._copies.choose(key, those, None if tail is None else tail.partition)
            if not self._is_elsewhere(key, one):
                found[key] = one
        return found

    def _is_elsewhere(self, key: LogKey, copy: Partition) -> bool:
        """Whether the log itself is in an unavailable log dir, and this copy is an old one."""
        tail, away = self._watched.tails.get(key), self._log_dirs.unavailable
        if not away or (tail is not None and not tail.away):
            return False
        cursor = self._watched.cursors.get(key) if tail is None else tail.cursor
        return cursor is not None and not self._copies.goes_on_in(copy, cursor)

    def seen(self) -> list[LogDir]:
        """The log dirs whose logs are known by the last listing."""
        return [log_dir for log_dir in self._log_dirs if log_dir.path in self._seen_in]

    def unseen(self) -> list[Path]:
        """The log dirs whose logs are not known now. Any thread may call it."""
        seen = self._seen_in
        return [log_dir.path for log_dir in self._log_dirs if log_dir.path not in seen]

    def unreadable_directories(self) -> dict[Path, str]:
        """The directories in available log dirs whose ``partition.metadata`` cannot be read, and why. Any thread may call it."""
        unavailable = self._log_dirs.unavailable
        return {path: why for path, why in dict(self.topic_ids.unreadable).items() if path.parent not in unavailable}

    def missing(self, logs: Collection[LogKey], leaving: Collection[LogKey]) -> list[LogKey]:
        """The logs that are known and neither found nor leaving, and that may not be where nothing can be read now."""
        there = {*logs, *leaving}
        return [key for key in (*self._watched.tails, *self._watched.cursors) if key not in there and self.hidden_in(key) is None]

    def hidden_in(self, key: LogKey) -> LogDir | None:
        """The log dir that may still contain a log that was not found, because it cannot be read now; None if there is none."""
        tail = self._watched.tails.get(key)
        for log_dir in self._log_dirs if tail is None or not tail.resumed else (tail.partition.log_dir,):
            if log_dir.broker in (key.broker, UNKNOWN_BROKER) and (
                log_dir.path in self._log_dirs.unavailable
                or log_dir.path in self.unlisted
                or self.topic_ids.read(log_dir.path / str(key)) is None
            ):
                return log_dir
        return None

    # --- which log a directory contains

    def _as_known(self, partition: Partition) -> Partition:
        """The directory with its topic id; if it has lost that, with the topic id of the log that it still contains."""
        if partition.topic_id:
            return partition
        tail = self._watched.at(partition.path)
        try:
            if tail is not None and tail.cursor.log.topic_id:
                return replace(partition, topic_id=tail.cursor.log.topic_id if has_files_of(tail, list_segments(partition.path)) else "")
            for cursor in self._kept_as(partition):
                if holds_cursor(partition.path, cursor):
                    return replace(partition, topic_id=cursor.log.topic_id)
        except OSError as error:
            log.info("log cannot be listed", extra={"path": str(partition.path), "error": str(error)})
        return partition

    def _kept_as(self, partition: Partition) -> list[Cursor]:
        """The cursors of an earlier process in logs of this name that have a topic id."""
        named = log_id(partition)
        if not self._watched.cursors or named in self._watched.cursors:
            return []
        return [cursor for key, cursor in self._watched.cursors.items() if key.topic_id and key._replace(topic_id="") == named]

    def _listed(self) -> list[Partition]:
        """The directories in the log dirs that are available before and after the listing."""
        self._log_dirs.check()
        listed: dict[LogDir, Collection[Partition]] = {}
        unlisted: dict[Path, str] = {}
        for log_dir in self._log_dirs.available:
            try:
                found = partitions_by_name(log_dir, self.topic_ids.read, self._by_name.get(log_dir.path, {}))
                self._by_name[log_dir.path] = found
                listed[log_dir] = found.values()
            except OSError as error:
                if is_short(error):
                    shortage.note()
                unlisted[log_dir.path] = str(error)
        self._log_dirs.check()  # a log dir that was unmounted meanwhile seemed empty
        self._log_dirs.log_changes()
        available = set(self._log_dirs.available)
        for log_dir in listed.keys() - available:
            unlisted[log_dir.path] = "it was exchanged while it was listed"
        for path, why in unlisted.items():
            if path not in self._log_dirs.unavailable and self.unlisted.get(path) != why and not shortage.lasts:
                log.error("log dir cannot be listed", extra={"log_dir": str(path), "error": why})
        self.unlisted = unlisted
        self._seen_in = frozenset(log_dir.path for log_dir in listed if log_dir in available)
        self._watched.part(self._log_dirs)
        there = (partition for log_dir, partitions in listed.items() if log_dir in available for partition in partitions)
        return [each for each in there if each.state is not DirState.LIVE or self._wants(each)]
