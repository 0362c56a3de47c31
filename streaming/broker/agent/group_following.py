"""Follows the logs of all group coordinators in the log dirs: which there are, how fast they are read, and what to do if one cannot be.

Each log dir has a thread of its own. It reads only from log dirs that are available, and only what the watcher has published.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from threading import Lock

import numpy as np

from streaming.broker.agent.dir_work import DirLogs, DirThreads
from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.locate import LARGEST_BATCH_BYTES, batches_between
from streaming.broker.disk.opening import ReadingPace, bytes_read
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.protocol.group_messages import FollowedLog, Following, KnownLog
from streaming.broker.watcher.tail import Tail
from streaming.common.log_key import LogKey
from streaming.errors import FormatError
from streaming.kafka.formats.layout import CURRENT_MAGIC
from streaming.kafka.groups.group_rows import GroupChanges
from streaming.kafka.groups.log_replay import GroupLimit
from streaming.kafka.groups.replays import COORDINATED_TOPICS, Replay, new_replay
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

PIECE_BYTES = 512 << 10
"""How much is read and parsed at once: other threads wait for parts of that time."""

ANEW_SECONDS = 10.0
"""How long a log is left alone at least after it was read again. One that is cleaned all the time is read again a tenth of the time."""

_REST = 9

REST_SECONDS = 1.0
"""How often the logs of a log dir are checked for growth."""

RETRY_SECONDS = 10.0
"""How long a log that cannot be read is left alone, the first time; each time twice as long."""

MOST_RETRY_SECONDS = 600.0

CPU_SHARE = 0.3
"""The most of one core that a first reading takes. Following the logs of a busy coordinator takes a few percent."""


class GroupFollowing:
    """All coordinators' logs of an agent. Its threads call `step`; any thread may call `changes` and read the numbers.

    Args:
        tails: the logs that are watched at this moment.
        rate: bytes that are read in a second, of all logs together.
        groups_limit: the most groups that are followed.
        cpu_share: the most of one core that is used.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        tails: Callable[[], list[Tail]],
        *,
        rate: int,
        groups_limit: int,
        cpu_share: float = CPU_SHARE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log_dirs = log_dirs
        self._limits = {topic: GroupLimit(groups_limit) for topic in COORDINATED_TOPICS}  # a share group is in both
        self._pace = ReadingPace(rate, cpu_share)
        self._clock = clock
        self._process, self._numbers = uuid.uuid4().hex, count(1)
        self._dirs = {
            path: DirLogs(
                path,
                log_dirs,
                tails,
                wants=COORDINATED_TOPICS.__contains__,
                new=lambda tail: ReplayedLog(tail, partial(self._new, tail.cursor.log)),
                let_go=lambda log, _: log.close(),
                clock=clock,
            )
            for path in (each.path for each in log_dirs)
        }
        self._buffers: dict[Path, Bytes] = {path: np.empty(PIECE_BYTES, np.uint8) for path in self._dirs}
        self._threads = DirThreads("groups", self._dirs, self.step)
        self.errors = 0
        """How often a log could not be read on."""

    def start(self, stop: threading.Event) -> None:
        """Follow the logs until ``stop`` is set."""
        self._threads.start(stop)

    def join(self, seconds: float) -> None:
        """Wait at most so long until the threads have ended."""
        self._threads.join(seconds)

    def step(self, path: Path) -> float:
        """Read one piece of each log in a log dir that has grown. Returns for how many seconds to rest."""
        here = self._dirs[path]
        here.meet()
        read, spent, now, more = bytes_read(), time.thread_time(), self._clock(), False
        for key, each in list(here.all.items()):
            if path in self._log_dirs.unavailable:
                break
            if each.unread(now) and not here.waits(key, now):
                more = self._read(path, key, each, now) or more
        rest = self._pace.spent(bytes_read() - read, time.thread_time() - spent, self._clock())
        return rest if more else max(rest, REST_SECONDS)

    def _new(self, key: LogKey, replaced: Replay | None) -> Replay:
        limit = self._limits[key.topic] if replaced is None else self._limits[key.topic].beside(replaced.groups)
        return new_replay(key, f"{self._process}.{next(self._numbers)}", limit)

    def _read(self, path: Path, key: LogKey, each: ReplayedLog, now: float) -> bool:
        """Read a piece; returns whether there is more to read at once."""
        here = self._dirs[path]
        try:
            more = each.step(self._buffers[path], now)
        except Exception as error:  # noqa: BLE001 - an error in one log does not stop the others
            self._fail(here, key, each, now, error)
            return False
        if each.read:
            here.succeeded(key)
        return more

    def _fail(self, here: DirLogs[ReplayedLog], key: LogKey, each: ReplayedLog, now: float, error: Exception) -> None:
        self.errors += 1
        rest = here.failed(key, error, now, RETRY_SECONDS, MOST_RETRY_SECONDS)
        each.begin_again()
        log.warning(
            "a group coordinator's log cannot be read: its groups are not known until it can",
            exc_info=None if isinstance(error, (OSError, FormatError)) else error,
            extra={"log": str(key), "path": each.tail.path, "error": str(error), "again_in_seconds": rest},
        )

    # --- called from other threads

    def changes(self, requests: Iterable[KnownLog]) -> Iterator[GroupChanges | FollowedLog]:
        """The changes of each log since the versions that a job knows, one log after the other."""
        had = {LogKey(each.broker, each.topic, each.coordinator, each.topic_id): each for each in requests}
        unavailable = self._log_dirs.unavailable
        for path, here in self._dirs.items():
            for key, each in list(here.all.items()):
                if path in unavailable or each.tail.away:
                    yield followed(each.tail, Following.UNAVAILABLE)
                else:
                    yield each.answer(had.get(key))

    def counts(self) -> Counter[Following]:
        """How many logs are read, being read, or unavailable."""
        found = Counter[Following]()
        unavailable = self._log_dirs.unavailable
        for path, here in self._dirs.items():
            for each in list(here.all.values()):
                found[Following.UNAVAILABLE if path in unavailable else Following.READ if each.read else Following.READING] += 1
        return found


class ReplayedLog:
    """One log under one tail. One thread calls `step`; others may call `answer`.

    Args:
        new: makes an empty replay with a new edition; of the limit it may take what the other one takes that it is to replace.
    """

    def __init__(self, tail: Tail, new: Callable[[Replay | None], Replay]) -> None:
        self.tail = tail
        self._new = new
        self._lock = threading.Lock()  # protects the replay; it is never held while a file is read
        self._reading = ReplayReading(tail, new(None), self._lock)
        self._anew: ReplayReading | None = None
        self._due = False  # whether to read it from its first byte again
        self._begun = self._rested = 0.0  # when that began last, and when it may begin again
        self._read = False

    def unread(self, now: float) -> bool:
        """Whether something is published that is not replayed, as far as this can be known without a call into the log dir."""
        return not self._read or self._reading.broken or self._reading.has_more or self._reads_anew(now)

    def _reads_anew(self, now: float) -> bool:
        return self._anew is not None or (self._due and now >= self._rested)

    @property
    def read(self) -> bool:
        """Whether it was read up to what was published at some moment."""
        return self._read

    def step(self, buffer: Bytes, now: float) -> bool:
        """Read one piece; returns whether there is more.

        Args:
            buffer: the same one at each call, as pieces remain in it.
            now: seconds of a steady clock.

        Raises:
            FormatError: there is something else than a batch, with file and position.
            OSError: the log cannot be read now.
        """
        if self._reading.broken:
            self.begin_again()
        more = self._reading.step(buffer)
        self._due |= self._reading.took_cleaned()
        if more:
            return True
        self._read = True
        return self._reads_anew(now) and self._step_anew(buffer, now)

    def _step_anew(self, buffer: Bytes, now: float) -> bool:
        if self._anew is None:
            self._due, self._begun = False, now
            self._anew = ReplayReading(self.tail, self._new(self._reading.replay), self._lock)
        try:
            if self._anew.step(buffer):
                return True
        except (OSError, FormatError) as error:
            self._end_anew(now, due=True)
            context = {"log": str(self.tail.cursor.log), "error": str(error), "again_in_seconds": self._rested - now}
            level = logging.INFO if isinstance(error, FileNotFoundError) else logging.WARNING  # it is being cleaned right now
            log.log(level, "a group coordinator's log cannot be read anew now, which was cleaned before it was read", extra=context)
            return False
        with self._lock:
            self._anew.replay.replace(self._reading.replay)
            self._reading = self._anew
        self._end_anew(now, due=self._reading.took_cleaned())
        return False

    def _end_anew(self, now: float, *, due: bool) -> None:
        self._anew, self._due = None, due
        self._rested = now + max(ANEW_SECONDS, _REST * (now - self._begun))

    def adopt(self, tail: Tail) -> bool:
        """Go on under the tail of another watcher, which goes on from the journal; False if it found another log there."""
        if not self._reading.adopt(tail):
            return False
        if self._anew is not None:
            self._anew, self._due = None, True
        self.tail = tail
        return True

    def begin_again(self) -> None:
        """Forget everything, and read it again from the first byte."""
        with self._lock:
            self._reading.replay.close()
            self._reading = ReplayReading(self.tail, self._new(None), self._lock)
            self._read = False
        self._anew, self._due = None, False

    def close(self) -> None:
        """Give back what it takes of the limit of groups. Nothing may be called after that but `answer`."""
        with self._lock:
            self._reading.replay.close()
            self._read = False

    def answer(self, request: KnownLog | None) -> GroupChanges | FollowedLog:
        """The changes since the version that a job knows."""
        with self._lock:
            if not self._read or self._reading.broken:
                return followed(self.tail, Following.READING)
            replay = self._reading.replay
            return replay.changes(request.version if request is not None and request.edition == replay.edition else 0)


class ReplayReading:
    """One replay of a log under one tail, from its first byte. One thread uses it.

    Reads a group coordinator's log into a replay, in pieces, and notices what was cleaned before it could be read. One pass reads
    what is published at its beginning, from files that were all there at once. The next pass reads other files: if the cleaner was
    between the two, a tombstone may be gone that deletes what the first one has read (`delete.retention.ms`). Then offsets are
    missing.

    Args:
        lock: is held while the replay changes, and never while a file is read.
    """

    def __init__(self, tail: Tail, replay: Replay, lock: Lock) -> None:
        self.replay = replay
        self._tail, self._breaks = tail, tail.breaks
        self._lock = lock
        self._pieces: Iterator[tuple[Batches, int]] | None = None
        self._buffer: Bytes | None = None
        self._end = 0  # where the pass ends
        self._whole = 0  # where the first pass ended: before that, all was cleaned before anything was read
        self._cleaned = False

    @property
    def broken(self) -> bool:
        """Whether the watcher did not just go on since this began: then it is of no more use."""
        return self._tail.breaks != self._breaks

    @property
    def has_more(self) -> bool:
        """Whether something is published that is not replayed."""
        return self.replay.upto < published(self._tail)

    def took_cleaned(self) -> bool:
        """Whether records were cleaned, since the last such question, between what one pass and a later one has read."""
        cleaned, self._cleaned = self._cleaned, False
        return cleaned

    def adopt(self, tail: Tail) -> bool:
        """Go on under the tail of another watcher, which goes on from the journal; False if it found another log there."""
        if tail.breaks or self.broken or tail.cursor.next_offset < self.replay.upto:
            return False
        self._tail, self._breaks = tail, 0
        return True

    def step(self, buffer: Bytes) -> bool:
        """Read one piece; returns whether there is more.

        Args:
            buffer: the same one at each call, as pieces remain in it.

        Raises:
            FormatError: there is something else than a batch, with file and position.
            OSError: the log cannot be read now.
        """
        if self._pieces is None:
            self._end = published(self._tail)
            if self.replay.upto >= self._end:
                return False
            self._whole = self._whole or self._end
            self._open(buffer)
        assert self._pieces is not None
        piece = next(self._pieces, None)
        if self.broken:  # what was just read may be of either log
            return True
        if piece is None:
            self._pieces = self._buffer = None
            self._cleaned |= self._whole <= self.replay.upto < self._end
            with self._lock:
                self.replay.advance(self._end)
            return True
        self._take(piece[0])
        if self.replay.upto >= self._end:
            self._pieces = self._buffer = None  # no file stays open while nothing is published
        return True

    def _take(self, batches: Batches) -> None:
        assert self._buffer is not None
        needed = int(batches.positions[-1] + batches.size[-1])
        if needed <= len(self._buffer):
            apply = self.replay.read(batches, self._buffer)
            self._cleaned |= self._misses(batches)
            with self._lock:
                apply()
            return
        if needed > LARGEST_BATCH_BYTES:
            raise FormatError(f"a batch of {needed} bytes at offset {batches.base_offset[-1]}")
        self._open(np.empty(needed, np.uint8))  # of a batch that is larger than the buffer only the header was read

    def _open(self, buffer: Bytes) -> None:
        self._buffer = buffer
        self._pieces = batches_between(list_segments(self._tail.partition.path), self.replay.upto, self._end, buffer)

    def _misses(self, batches: Batches) -> bool:
        """Whether offsets of a later pass are in no record, between batches or in them: a broker appends without gaps."""
        before = np.append(self.replay.upto, batches.last_offset[:-1] + 1)
        offsets = batches.last_offset + 1 - np.minimum(batches.base_offset, before)
        missing = (offsets > batches.records) & (batches.magic == CURRENT_MAGIC)
        return bool((missing & (before >= self._whole)).any())


def published(tail: Tail) -> int:
    """Up to which offset the journal has a log, 0 if it has nothing of it."""
    cursor = None if tail.published is None else tail.published.cursor
    return 0 if cursor is None else cursor.next_offset


def followed(tail: Tail, following: Following) -> FollowedLog:
    """A log whose commits are not known now."""
    log = tail.cursor.log
    return FollowedLog(broker=log.broker, topic=log.topic, topic_id=log.topic_id, coordinator=log.partition, following=following)
