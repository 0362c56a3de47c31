"""Checks the closed segments of all log dirs in the background, one thread for each, window by window."""

from __future__ import annotations

import logging
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from mmap import PAGESIZE
from pathlib import Path

import google_crc32c
import numpy as np

from streaming.broker.disk.availability import LogDir, LogDirs
from streaming.broker.disk.locate import without_replaced
from streaming.broker.disk.logdirs import live_directories
from streaming.broker.disk.opening import ReadingPace, ThreadCalls, bytes_read, calls_of_this_thread
from streaming.broker.disk.segment_files import OpenSegment, Segment, SegmentKey, file_stamp, list_segments, read_leader_epochs
from streaming.broker.scrub.scrub_progress import Findings, FoundSegment, ScrubProgress, file_of, load, store
from streaming.kafka.formats.checkpoint_files import EpochEntry
from streaming.kafka.formats.layout import (
    CHECKED_FROM,
    CURRENT_MAGIC,
    HEADER_BYTES,
    MAGIC_AT,
    OLD_CHECKED_FROM,
    read_base_offset,
    read_crc,
    read_leader_epoch,
    read_size,
)
from streaming.kafka.formats.names import LEADER_EPOCH_CHECKPOINT
from streaming.kafka.scan.headers import columns_of, raw_headers
from streaming.kafka.scan.soundness import CheckPosition, Damage, Fault, SegmentFacts, check_batches, check_end, check_order
from streaming.kafka.scan.walk import Bytes, Stop

log = logging.getLogger(__name__)

WINDOW_BYTES = 1 << 20
"""How many bytes are read between two rests."""

_SEEDED_BYTES = WINDOW_BYTES // 2
"""For fewer bytes than this, a walk from batch to batch is as fast as using the index."""

CPU_SHARE = 0.03
"""The most of one core that a scrub uses. Small batches cost more for each byte than large ones, so the rate alone is not enough."""

SWEEP_EVERY_MS = 60_000
"""How often the findings are checked for segments that are gone."""

_DIRECTORY = SegmentKey(-1, -1, -1, -1, -1)
"""The key of something that is no segment: a directory, or a small file in it."""

IDLE_SECONDS = 10.0
"""The longest rest between two steps while no pass is due."""

KEEP_EVERY_SECONDS = 10.0

UNAVAILABLE_SECONDS = 5.0
"""How long to wait before an unavailable log dir is tried again."""


class DirThread:
    """The thread of one log dir.

    Args:
        keep_in: the file for its progress; None: it is not kept.
    """

    def __init__(
        self, path: Path, log_dirs: LogDirs, options: ScrubOptions, pace: ReadingPace, keep_in: Path | None, clock_ms: Callable[[], int]
    ) -> None:
        self.path = path
        self._log_dirs = log_dirs
        self._options = options
        self._pace = pace
        self._keep_in = keep_in
        self._clock_ms = clock_ms
        self._scrub: LogDirScrub | None = None
        self._log_dir: LogDir | None = None
        self._calls = ThreadCalls()
        self._last_call: tuple[object, int, float] = (None, -1, 0.0)
        self._kept_at = time.monotonic()
        self._buffer = np.empty(WINDOW_BYTES, np.uint8)
        self.progress: PassProgress | None = None

    def run(self, stop: threading.Event) -> None:
        """Scrub until ``stop`` is set."""
        self._calls = calls_of_this_thread()
        rest = 0.0
        while not stop.wait(rest):
            rest = self.step()
        self._keep()

    def step(self) -> float:
        """Do one thing. Returns for how many seconds to rest."""
        log_dir = next((each for each in self._log_dirs.available if each.path == self.path), None)
        if log_dir is None:
            return UNAVAILABLE_SECONDS
        # the scrub of the log dir; a new one if another disk has replaced the previous disk
        if self._scrub is None or self._log_dir != log_dir:
            progress = ScrubProgress() if self._keep_in is None else load(self._keep_in)
            if progress.directory_id != log_dir.directory_id:
                progress = ScrubProgress(directory_id=log_dir.directory_id)
            self._scrub, self._log_dir = LogDirScrub(log_dir.path, self._options.every_ms, self._clock_ms, progress), log_dir
        scrub = self._scrub
        read, spent = bytes_read(), time.thread_time()
        idle = 0.0
        try:
            idle = scrub.step(self._buffer)
        except OSError as error:
            log.debug("scrub waits for a log dir that cannot be listed", extra={"log_dir": str(self.path), "error": str(error)})
            idle = IDLE_SECONDS
        except Exception as error:  # a defect of the scrub at one file: the other files are still checked
            log.exception("scrub skips what it cannot check", extra={"log_dir": str(self.path)})
            scrub.pass_over(error)
        self.progress = scrub.progress
        if time.monotonic() - self._kept_at >= KEEP_EVERY_SECONDS:
            self._keep()
        return max(idle, self._pace.spent(bytes_read() - read, time.thread_time() - spent, time.monotonic()))

    def _keep(self) -> None:
        self._kept_at = time.monotonic()
        if self._scrub is None or self._keep_in is None:
            return
        try:
            store(self._keep_in, self._scrub.kept)
        except OSError as error:
            log.warning("progress of the scrub cannot be saved", extra={"path": str(self._keep_in), "error": str(error)})

    def waits(self, now: float) -> tuple[str, float]:
        """The file of the current call, and for how many seconds this method has seen it; "" if there is none. Only one thread calls it."""
        path, count = self._calls.path, self._calls.count
        if path is None or (path, count) != self._last_call[:2]:
            self._last_call = (path, count, now)
        return ("", 0.0) if path is None else (str(path), now - self._last_call[2])


@dataclass(frozen=True, slots=True)
class ScrubOptions:
    """``rate``: bytes a second, 0 for no scrub; ``every_ms``: a pass begins this long after the previous one began."""

    rate: int
    every_ms: int


class LogDirScrub:
    """The scrub of one log dir. Only one thread uses it: it calls `step` again and again, and rests between.

    Args:
        every_ms: a pass begins this long after the previous one began, or when that is finished.
        progress: the progress of an earlier process.
    """

    def __init__(self, log_dir: Path, every_ms: int, clock_ms: Callable[[], int], progress: ScrubProgress) -> None:
        self._log_dir = log_dir
        self._every_ms = every_ms
        self._clock_ms = clock_ms
        self._directory_id = progress.directory_id
        self._began_ms, self._ended_ms, self._checked = progress.began_ms, progress.ended_ms, progress.checked
        self._findings = Findings(_is_there, progress.found)
        self._swept_ms = 0
        self._resume = progress if progress.running else None
        self._running = progress.running
        self._directories: list[str] | None = None
        self._next = 0  # the directory that the pass is at
        self._checked_base = -1  # base offset of the last segment of it that was checked
        self._check: SegmentCheck | None = None
        self._so_far: FoundSegment | None = None

    @property
    def progress(self) -> PassProgress:
        """How far it has come."""
        logs = len(self._directories or ())
        return PassProgress(self._began_ms, self._ended_ms, logs, min(self._next, logs), self._checked, self._findings.segments)

    @property
    def kept(self) -> ScrubProgress:
        """The progress to store."""
        directories, at = self._directories or [], self._next
        return ScrubProgress(
            directory_id=self._directory_id,
            began_ms=self._began_ms,
            ended_ms=self._ended_ms,
            running=self._running,
            directory=directories[at] if at < len(directories) else "",
            behind=self._checked_base if self._check is None else self._check.segment.base_offset - 1,
            key=None if self._check is None else SegmentKey.of(self._check.segment),
            position=0 if self._check is None else self._check.position,
            checked=self._checked,
            found=self._findings.segments,
        )

    def step(self, buffer: Bytes) -> float:
        """Do one thing: check a window, or find the next segment. Returns for how many seconds there is nothing to do.

        Raises:
            OSError: the log dir cannot be listed now.
        """
        now = self._clock_ms()
        if not 0 <= now - self._swept_ms < SWEEP_EVERY_MS:
            self._swept_ms = now
            self._findings.sweep()
        if self._check is not None:
            self._go_on(self._check, buffer)
        elif not self._running:
            return self._begin_pass(now)
        elif self._directories is None:
            # list the logs of this pass. Logs that appear later wait for the next pass
            self._directories = sorted(live_directories(self._log_dir, {}))
            if self._resume is not None:  # go on after the part that an earlier process has checked
                self._next = sum(name < self._resume.directory for name in self._directories)
                if self._directories[self._next : self._next + 1] == [self._resume.directory]:
                    self._checked_base = self._resume.behind
        elif self._next < len(self._directories):
            self._find_next(self._log_dir / self._directories[self._next], buffer)
        else:
            self._running, self._ended_ms = False, now
            log.info("scrub has finished a log dir", extra={"log_dir": str(self._log_dir), "checked_bytes": self._checked})
        return 0.0

    def _begin_pass(self, now: int) -> float:
        waited = now - self._began_ms
        if self._began_ms >= 0 and 0 <= waited < self._every_ms:
            return min(IDLE_SECONDS, (self._every_ms - waited) / 1000)
        self._running, self._began_ms = True, now
        self._directories, self._next, self._checked_base = None, 0, -1
        return 0.0

    def _find_next(self, directory: Path, buffer: Bytes) -> None:
        segments = self._segments(directory, buffer)
        if segments is None:
            return
        resume, self._resume = self._resume, None
        closed = next((pair for pair in pairwise(segments) if pair[0].base_offset > self._checked_base), None)
        if closed is None:
            self._next, self._checked_base = self._next + 1, -1
            return
        segment, following = closed
        key = SegmentKey.of(segment)
        position = resume.position if resume is not None and resume.key == key else 0
        self._checked_base = segment.base_offset
        self._check = SegmentCheck(segment, following, self._epochs(directory), position)
        before = [damage for damage in self._findings.of(segment.path, key).damages if damage.position < position]
        self._so_far = FoundSegment(segment.path, key).with_damages(before)

    def _segments(self, directory: Path, buffer: Bytes) -> Sequence[Segment] | None:
        """What holds the log now, nothing if it has just gone or cannot be listed; None if a compaction goes on: list it once more."""
        try:
            listed = list_segments(directory)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            self._note_unreadable(directory, _DIRECTORY, error)
            return ()
        self._findings.note(FoundSegment(directory, _DIRECTORY), whole=True)
        try:
            return without_replaced(listed, buffer)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._note_unreadable(directory, _DIRECTORY, error)
            return ()

    def _epochs(self, directory: Path) -> Sequence[EpochEntry]:
        path = directory / LEADER_EPOCH_CHECKPOINT
        try:
            epochs = read_leader_epochs(directory)
        except OSError as error:  # the CRCs can be checked all the same
            self._note_unreadable(path, _DIRECTORY, error)
            return ()
        self._findings.note(FoundSegment(path, _DIRECTORY), whole=True)
        return epochs

    def _go_on(self, check: SegmentCheck, buffer: Bytes) -> None:
        assert self._so_far is not None
        before = check.checked
        try:
            damages = check.advance(buffer)
            if damages and not _is_closed(check, buffer):
                raise ChangedError
        except (ChangedError, FileNotFoundError):
            self._check = None
            return
        except OSError as error:
            self._note_unreadable(check.segment.path, self._so_far.key, error)
            self._check = None
            return
        self._checked += check.checked - before
        self._so_far = self._so_far.with_damages(damages)
        if damages or check.done:
            self._findings.note(self._so_far, whole=check.done)
        if check.done:
            self._check = None

    def pass_over(self, error: Exception) -> None:
        """Skip the current segment or log, because an unexpected error has occurred there."""
        if self._check is not None:
            self._note_unreadable(self._check.segment.path, SegmentKey.of(self._check.segment), error)
            self._check = None
        else:
            self._next, self._checked_base = self._next + 1, -1

    def _note_unreadable(self, path: Path, key: SegmentKey, error: Exception) -> None:
        self._findings.note(replace(self._findings.of(path, key), error=str(error) or repr(error)), whole=True)


def _is_there(damaged: FoundSegment) -> bool:
    """Whether the file of a finding is still there and unchanged. If this cannot be checked, it is taken to be there."""
    try:
        identity, size = file_stamp(damaged.path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return damaged.key.inode < 0 or (identity.device, identity.inode, size) == (damaged.key.device, damaged.key.inode, damaged.key.size)


class SegmentCheck:
    """A check that goes on from window to window; ``done`` when the end is reached.

    Checks one closed segment window by window. The file is open only while a window is read: it may be deleted meanwhile.

    Args:
        following: the segment after it.
        epochs: the leader epochs of the log.
        position: where an earlier process stopped; a batch begins there.
    """

    def __init__(self, segment: Segment, following: Segment, epochs: Sequence[EpochEntry], position: int = 0) -> None:
        self.segment, self.following = segment, following
        self.done = False
        self.checked = 0
        """The number of checked bytes; bytes in which no batch was found do not count."""
        self._around = SegmentFacts(segment.base_offset, following.base_offset, epochs)
        self._reached = CheckPosition(position, segment.base_offset)
        self._large: _Large | None = None
        self._search_from: int | None = None

    @property
    def position(self) -> int:
        """The first byte that has not been checked. A batch begins there, or no batch was found from there on."""
        return self._reached.position

    def advance(self, buffer: Bytes) -> tuple[Damage, ...]:
        """Check one window. A window that seems damaged is read once more: if it is whole then, the disk is not damaged.

        Raises:
            ChangedError: the file is another one by now.
            OSError: the file cannot be read.
        """
        try:
            file = self.segment.open()
        except FileNotFoundError as error:
            raise ChangedError from error
        with file:
            self._refuse_changed(file)
            found = self._window(file, buffer)
            self._refuse_changed(file)
            return found

    def _refuse_changed(self, file: OpenSegment) -> None:
        segment = self.segment
        if (file.identity, file.size(), file.modified_ms()) != (segment.identity, segment.size, segment.modified_ms):
            raise ChangedError

    def _window(self, file: OpenSegment, buffer: Bytes) -> tuple[Damage, ...]:
        if self._large is not None:
            return self._go_through(self._large, file, buffer)
        if self._search_from is not None:
            return self._search(self._search_from, file, buffer)
        at = self._reached
        window = _read(file, buffer, at.position)
        size = len(window)
        seeds = file.seeds(at.position, at.position + size) - at.position if size >= _SEEDED_BYTES else None
        checked = check_batches(window, at, self._around, seeds)
        if checked.damages:
            window = _read(file, buffer, at.position)
            checked = check_batches(window, at, self._around, seeds)
        self._reached = checked.reached
        self.checked += self.position - at.position
        if checked.stop is Stop.END:
            return checked.damages + self._at_end() if self.position >= self.segment.size else checked.damages
        if checked.stop is Stop.SHORT and checked.reached.position > at.position:
            return checked.damages
        return checked.damages + self._unwhole(checked.stop, window[checked.reached.position - at.position :])

    def _at_end(self) -> tuple[Damage, ...]:
        self.done = True
        return check_end(self._reached, _first_epoch(self.following))

    def _unwhole(self, stop: Stop, rest: Bytes) -> tuple[Damage, ...]:
        """Begin with bytes that are no batch, or a batch that is larger than a window; ``rest``: the part of them that was read."""
        begin, head = self.position, rest[:HEADER_BYTES].tobytes()
        size = read_size(head)
        whole = stop is Stop.SHORT and len(head) > MAGIC_AT and begin + size <= self.segment.size
        if whole and head[MAGIC_AT] <= CURRENT_MAGIC:
            at = begin + (CHECKED_FROM if head[MAGIC_AT] == CURRENT_MAGIC else OLD_CHECKED_FROM)
            self._large = _Large(begin, begin + size, head, at)
            return ()
        self._search_from = begin + 1
        return (Damage(Fault.FRAMING, begin, self._reached.next_offset),)

    def _go_through(self, large: _Large, file: OpenSegment, buffer: Bytes) -> tuple[Damage, ...]:
        """Check one more window of a batch that is larger than a window."""
        window = _read(file, buffer, large.position)[: large.end - large.position]
        if not len(window):
            raise ChangedError
        current = large.header[MAGIC_AT] == CURRENT_MAGIC
        large.crc = google_crc32c.extend(large.crc, window) if current else zlib.crc32(window.data, large.crc)
        large.position += len(window)
        if large.position < large.end:
            return ()
        self._large, self.checked = None, self.checked + large.end - large.begin
        stored = read_crc(large.header)
        found: tuple[Damage, ...] = ()
        if stored != large.crc:
            found = (Damage(Fault.CRC, large.begin, read_base_offset(large.header)),)
            self._reached = replace(self._reached, position=large.end)
        else:
            batches = columns_of(np.zeros(1, np.int64), raw_headers(np.frombuffer(large.header, np.uint8), np.zeros(1, np.int64)))
            if not current:  # a message of an old format contains its number of records inside: its own offset is that of the last one
                batches.last_offset[:] = batches.base_offset
            reached, order = check_order(batches, self._reached, self._around)
            self._reached, found = replace(reached, position=large.end), tuple(order)
        return found

    def _search(self, begin: int, file: OpenSegment, buffer: Bytes) -> tuple[Damage, ...]:
        """Find the next batch that the index names and whose CRC is right. If there is none, the check of the segment is done."""
        seeds = file.seeds(begin, self.segment.size)
        if not len(seeds):
            self._reached = replace(self._reached, position=self.segment.size)
            self.done = True
            return ()
        first = int(seeds[0])
        window = _read(file, buffer, first)
        for seed in seeds[seeds < first + len(window)].tolist():
            if self._is_sound(window[seed - first :]):
                self._reached, self._search_from = CheckPosition(seed, self._reached.next_offset, last=None), None
                return ()
            self._search_from = seed + 1
        return ()

    def _is_sound(self, window: Bytes) -> bool:
        """Whether a window begins with a whole batch of this segment."""
        head = window[:HEADER_BYTES].tobytes()
        size = read_size(head)
        if not MAGIC_AT < size <= len(window):
            return False
        checked = check_batches(window[:size], CheckPosition(0, self._around.base_offset), self._around)
        return checked.reached.position == size and not checked.damages


@dataclass(slots=True)
class _Large:
    """A batch that is larger than a window. Its CRC is computed in pieces."""

    begin: int
    end: int
    header: bytes
    position: int
    crc: int = 0


class ChangedError(Exception):
    """The segment is no longer the file that was listed: deleted, compacted, moved, truncated. The findings of its check do not count."""


def _read(file: OpenSegment, buffer: Bytes, position: int) -> Bytes:
    """The bytes from a position on. The buffer begins with the position's page, so fewer bytes may fit.

    Windows have whole pages: if a page is read in part, the kernel frees neither it nor the memory that is in one piece with it.
    """
    begin = position // PAGESIZE * PAGESIZE if len(buffer) >= 2 * PAGESIZE else position
    size = file.read_into(buffer, begin, spare_cache=True)
    return buffer[position - begin : max(size, position - begin)]


def _first_epoch(segment: Segment) -> int:
    """The leader epoch of a segment's first batch; -1 if there is no batch yet, or its format has no leader epoch."""
    try:
        with segment.open() as file:
            page = _read(file, np.empty(2 * PAGESIZE, np.uint8), 0)
    except OSError:  # it is gone or cannot be read: its own check reports that
        return -1
    return read_leader_epoch(page[:HEADER_BYTES].tobytes())


@dataclass(frozen=True, slots=True)
class PassProgress:
    """How far a scrub has come. Times are Unix milliseconds, -1 never.

    The current pass has checked ``logs_checked`` of ``logs``. ``checked``: the bytes that were ever checked.
    """

    began_ms: int
    ended_ms: int
    logs: int
    logs_checked: int
    checked: int
    segments: tuple[FoundSegment, ...]


def _is_closed(check: SegmentCheck, buffer: Bytes) -> bool:
    """Whether a segment is still the same file, followed by the same: after a truncation it may be active, a compaction joins segments."""
    there = without_replaced(list_segments(check.segment.directory), buffer)
    return any(segment == check.segment and following.base_offset == check.following.base_offset for segment, following in pairwise(there))


class Scrub:
    """All threads of an agent.

    Checks a log dir, pass after pass: every closed segment of every live replica, in the order of their names.

    Args:
        directory: where they store their progress; None: nowhere, so that each process begins from scratch.
    """

    def __init__(self, log_dirs: LogDirs, options: ScrubOptions, directory: Path | None, clock_ms: Callable[[], int]) -> None:
        self.options = options
        self._log_dirs = log_dirs
        pace = ReadingPace(options.rate, CPU_SHARE)
        paths = [log_dir.path for log_dir in log_dirs]
        files = {path: None if directory is None else file_of(directory, path) for path in paths}
        self._dirs = [DirThread(path, log_dirs, options, pace, files[path], clock_ms) for path in paths]
        self._threads: list[threading.Thread] = []
        self._asking = threading.Lock()

    def start(self, stop: threading.Event) -> None:
        """Scrub until ``stop`` is set."""
        self._threads = [threading.Thread(target=each.run, args=(stop,), daemon=True, name=f"scrub of {each.path}") for each in self._dirs]
        for thread in self._threads:
            thread.start()

    def join(self, seconds: float) -> None:
        """Wait at most ``seconds`` until all threads have stored their progress. A thread that waits in a call ends with the process."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def reports(self) -> list[ScrubReport]:
        """How far the scrub of each log dir has come. Any thread may call it."""
        log_dirs = {log_dir.path: log_dir for log_dir in self._log_dirs}
        with self._asking:
            now = time.monotonic()
            return [
                ScrubReport(log_dirs[each.path], each.progress, *each.waits(now))
                for each in self._dirs
                if each.progress is not None and each.path in log_dirs
            ]


@dataclass(frozen=True, slots=True)
class ScrubReport:
    """The scrub of one log dir; ``waits_at``: the file of a call that has not returned for ``waiting`` seconds."""

    log_dir: LogDir
    progress: PassProgress
    waits_at: str
    waiting: float
