"""The watched logs: the tail of each, by log and by directory, and the cursors of an earlier process that no tail has taken over."""

from collections.abc import Callable, Iterable
from pathlib import Path

from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.logdirs import Partition
from streaming.broker.disk.segment_files import FileIdentity, Segment
from streaming.broker.journal.cursor import Cursor
from streaming.broker.journal.producer_pages import KnownProducers
from streaming.broker.watcher.tail import Tail
from streaming.common.log_key import LogKey


class WatchedLogs:
    """Which tail is the current one of a log. Only the watcher's thread changes it.

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
        tail = Tail(partition, cursor, [segment], self.producers(key), remembered=True)
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
