"""Which logs are watched, which of them are leaving, because their directories were renamed or removed, and when each of these is gone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.logdirs import LogDir, Partition
from streaming.broker.disk.segment_files import FileIdentity, Segment, list_segments
from streaming.broker.journal.cursor import Cursor, Replays
from streaming.broker.journal.known_producers import KnownProducers
from streaming.broker.watcher.cluster_knowledge import Cluster
from streaming.broker.watcher.log_listing import Listing
from streaming.broker.watcher.relocate import has_files_of, resume
from streaming.broker.watcher.stopped_logs import count_growth
from streaming.broker.watcher.tail import Tail
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind
from streaming.kafka.formats.names import DirState
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

HOLD_MS = 55_000
"""The file of a deleted segment is read to its end, but it is closed this long after its unlink at the latest: it pins disk space."""


class Departures:
    """Which logs are leaving. Only the watcher's thread changes it.

    Args:
        log_dirs: returns the log dirs that were listed last.
    """

    def __init__(
        self,
        watched: WatchedLogs,
        cluster: Cluster,
        log_dirs: Callable[[], Iterable[LogDir]],
        clock_ms: Callable[[], int],
        buffer: Bytes,
    ) -> None:
        self._watched = watched
        self._cluster = cluster
        self._log_dirs = log_dirs
        self._clock_ms = clock_ms
        self._buffer = buffer
        self.leaving: set[LogKey] = set()
        self._succeeded = False  # a log was found that has the name of one that leaves

    def leave(self, key: LogKey, renamed: Iterable[Partition], events: list[Event]) -> bool:
        """Read on in a log whose directory was renamed or removed, to one of ``renamed``; False if there is nothing to read."""
        tail = self._watched.tails.get(key)
        cursor = self._watched.cursors[key] if tail is None else tail.cursor
        try:
            found = find_renamed(key, cursor, renamed)
            if tail is None or not tail.resumed:  # only the cursor of an earlier process is known
                if found is None:
                    return False
                tail, led_to = resume(*found, cursor, self._watched.producers(key), self._buffer)
                events.extend(led_to)
                self._watched.hold(key, tail)
        except OSError as error:  # the next rescan tries again
            log.warning("log that leaves cannot be read now", extra={"log": str(key), "error": str(error)})
            return True
        self._watched.displace(tail)
        tail.leave(found, self._clock_ms())
        self.leaving.add(key)
        if tail.cursor.held:  # the rest of the log is read now or never
            events.extend([tail.appeared(None)] if tail.cursor.replay == Replays.FIRST else [])
            tail.release()
        self._watched.note_change()
        return True

    def note_successor(self) -> None:
        """Note that a log was found that has the name of one that leaves: it comes when the earlier one has left."""
        self._succeeded = True

    def stays(self, tail: Tail, partition: Partition) -> bool:
        """Whether a log that was leaving is back: its directory has the old name again."""
        try:
            back = tail.leaving and has_files_of(tail, list_segments(partition.path))
        except OSError:
            return False
        if back:
            tail.come_back(partition)
            self.leaving.discard(tail.cursor.log)
            self._watched.note_change()
        return back

    def departed(self) -> ListingResult:
        """The logs that have left and have nothing more to read. Call it when everything that can be read was read."""
        found, now = ListingResult([], [], again=self._succeeded), self._clock_ms()
        for key in list(self.leaving):
            tail = self._watched.tails[key]
            if not tail.away and is_over(tail, now):
                self.leaving.discard(key)
                found.events.extend([*count_unread(tail), self.drop(key)])
                found.gone.append(key)
        if found.gone:
            self._succeeded = False
        return found

    def drop(self, gone: LogKey, reason: str = "") -> Event:
        """Forget a log; returns the event that publishes it as gone. ``reason``: by the metadata log if not given.

        It may lie in a log dir that another agent watches. Only if its topic does not exist any more it lies nowhere.
        """
        tail = self._watched.tails.get(gone)
        log_dirs = {str(log_dir.path) for log_dir in self._log_dirs() if log_dir.broker == gone.broker}
        if tail is not None:
            log_dirs.add(str(tail.partition.log_dir.path))
        self._watched.drop(gone)
        if not reason:
            has_topic = self._cluster.has_topic(gone)
            reason = "moved" if has_topic else "deleted"
            if has_topic is False:
                log_dirs = set()
        log.info("log left", extra={"log": str(gone), "reason": reason})
        return Event(kind=Kind.GONE, **gone._asdict(), log_dir="\n".join(sorted(log_dirs)), reason=reason)


class WatchedLogs:
    """Which tail is the current one of a log. Only the watcher's thread changes it.

    The watched logs: the tail of each, by log and by directory, and the cursors of an earlier process that no tail has taken over.

    Args:
        cursors: the cursor of each log at the end of an earlier process.
        producers: the producers of a log at that time.
    """

    def __init__(self, cursors: Iterable[Cursor], producers: Callable[[LogKey], KnownProducers]) -> None:
        self.tails: dict[LogKey, Tail] = {}
        self.cursors = {cursor.log: cursor for cursor in cursors}
        self.producers = producers
        self.back: set[LogKey] = set()  # logs in log dirs that were unavailable: to be listed again
        self._at: dict[Path, Tail] = {}
        self._doubts_of_left = 0
        self._changes = 0
        self._listed: tuple[int, list[Tail]] = (0, [])  # as of so many changes

    @property
    def doubts(self) -> int:
        """Files that did not show what is open in their log, so far."""
        return self._doubts_of_left + sum(tail.doubts for tail in list(self.tails.values()))

    def all(self) -> list[Tail]:
        """The watched logs, not to be written to. Any thread may call it.

        It is the same list until a log comes, goes, moves, leaves, comes back, or its log dir becomes unavailable or available.
        """
        changes, listed = self._changes, self._listed  # the number first: whatever changes from here on shows at the next call
        if listed[0] != changes:
            listed = self._listed = changes, list(self.tails.values())
        return listed[1]

    def note_change(self) -> None:
        """Let `all` return another list: something has changed by now. What changes after this call needs another one."""
        self._changes += 1

    def at(self, directory: Path) -> Tail | None:
        """The tail of the log in a directory."""
        return self._at.get(directory)

    def cursor_of(self, key: LogKey) -> Cursor | None:
        """The cursor of a log, also of an earlier process."""
        tail = self.tails.get(key)
        return self.cursors.get(key) if tail is None else tail.cursor

    def hold(self, key: LogKey, tail: Tail) -> None:
        """Make this tail the current one of its log; it replaces everything that was kept of the log before."""
        before = self.tails.get(key)
        if before is not None:
            self._let_go(before)
        self.cursors.pop(key, None)
        self.tails[key] = tail
        self.note_change()

    def place(self, tail: Tail) -> None:
        """Note that the tail's log lies in its directory under its own name."""
        if self.at(tail.partition.path) is not tail:
            self._at[tail.partition.path] = tail
            self.note_change()

    def displace(self, tail: Tail) -> None:
        """Note that it does so no longer."""
        if self.at(tail.partition.path) is tail:
            del self._at[tail.partition.path]
            self.note_change()

    def drop(self, key: LogKey) -> None:
        """Forget a log."""
        tail = self.tails.pop(key, None)
        self.back.discard(key)
        self.cursors.pop(key, None)
        if tail is not None:
            self._let_go(tail)
            self.note_change()

    def remember(self, key: LogKey, partition: Partition) -> Tail:
        """Hold a tail with nothing but the cursor and the producers of an earlier process, because the log cannot be read now."""
        cursor = self.cursors[key]
        identity = FileIdentity(cursor.device, cursor.inode)
        segment = Segment(cursor.segment, partition.path, False, cursor.position, 0, identity)
        tail = Tail(partition, cursor, Listing((segment,)), self.producers(key), remembered=True)
        self.hold(key, tail)
        return tail

    def part(self, log_dirs: LogDirs) -> None:
        """Stop all calls for logs in unavailable log dirs, and begin again with logs in log dirs that are back."""
        unavailable, barred = log_dirs.unavailable, log_dirs.barred
        for key, tail in self.tails.items():
            path = tail.partition.log_dir.path
            if tail.away == (path in unavailable):
                continue
            if tail.away:
                tail.regain_log_dir()
                self.back.add(key)
            else:
                tail.lose_log_dir(barred=path in barred)
            self.note_change()

    def _let_go(self, tail: Tail) -> None:
        self._doubts_of_left += tail.doubts
        self.displace(tail)
        tail.let_go()


def find_renamed(log_id: LogKey, cursor: Cursor, renamed: Iterable[Partition]) -> tuple[Partition, tuple[Segment, ...]] | None:
    """The directory to which a log's directory was renamed, found by the file of the cursor; None if there is none.

    Raises:
        OSError: a directory that may be the one cannot be read now.
    """
    for each in renamed:
        # the broker shortens a name that would be too long
        if each.log_dir.broker != log_id.broker or each.partition != log_id.partition or not log_id.topic.startswith(each.topic):
            continue
        try:
            segments = list_segments(each.path)
        except FileNotFoundError:  # removed since it was listed
            continue
        if any(segment.identity == FileIdentity(cursor.device, cursor.inode) for segment in segments):
            return each, segments
    return None


@dataclass(frozen=True, slots=True)
class ListingResult:
    """The result of a listing of the log dirs: events in order, and the logs that are gone. ``again``: list again at once."""

    events: list[Event]
    gone: list[LogKey]
    again: bool = False


def is_over(tail: Tail, now_ms: int) -> bool:
    """Whether nothing more can be read of a leaving log."""
    if tail.cursor.stopped or (tail.live and not tail.has_later_segment):
        return True
    if tail.file is not None:
        if not tail.file.unlinked():
            return False
        return not 0 <= now_ms - tail.miss_file(now_ms) < HOLD_MS
    if tail.partition.state is DirState.LIVE:  # its directory was not found under another name
        return True
    try:
        return not has_files_of(tail, list_segments(tail.partition.path))
    except FileNotFoundError:
        return True
    except OSError:  # it is there, and may be readable again
        return False


def count_unread(tail: Tail) -> list[Event]:
    """A SKIPPED event for the bytes of a log that has left and that could not be read, by the sizes that were listed last."""
    cursor = tail.cursor
    if cursor.stopped:
        return count_growth(tail)
    unread = tail.bytes_left_unread()
    if unread <= 0:
        return []
    log.warning(
        "log left before it was read",
        extra={"log": str(cursor.log), "path": tail.path, "position": cursor.position, "offset": cursor.next_offset, "bytes": unread},
    )
    # the end of the log is not known; it reached at least its last segment
    next_offset = max(cursor.next_offset, tail.segments[-1].base_offset) + 1
    return [
        replace(
            tail.event(Kind.SKIPPED),
            reason="deleted",
            base_offset=cursor.next_offset,
            next_offset=next_offset,
            end_position=0,
            bytes=unread,
        )
    ]
