"""The scrub of an agent: a thread for each log dir, so that a call that does not return stops only that log dir."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.calls import ThreadCalls, bytes_read, calls_of_this_thread
from streaming.broker.disk.identity import LogDir
from streaming.broker.disk.logdirs import live_directories
from streaming.broker.disk.replay import without_replaced
from streaming.broker.disk.segment_files import Segment, SegmentKey, file_stamp, list_segments, read_leader_epochs
from streaming.broker.scrub.findings import Findings, FoundSegment
from streaming.broker.scrub.scrub_pace import ScrubPace
from streaming.broker.scrub.scrub_progress import ScrubProgress, file_of, load, store
from streaming.broker.scrub.segment_check import WINDOW_BYTES, ChangedError, SegmentCheck
from streaming.kafka.formats.checkpoint_files import EpochEntry
from streaming.kafka.formats.names import LEADER_EPOCH_CHECKPOINT
from streaming.kafka.scan.walk import Bytes

# --- checks a log dir, pass after pass: every closed segment of every live replica, in the order of their names.


log = logging.getLogger(__name__)

SWEEP_EVERY_MS = 60_000
"""How often the findings are checked for segments that are gone."""

_DIRECTORY = SegmentKey(-1, -1, -1, -1, -1)
"""The key of something that is no segment: a directory, or a small file in it."""

IDLE_SECONDS = 10.0
"""The longest rest between two steps while no pass is due."""


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


class LogDirScrub:
    """The scrub of one log dir. For one thread: it calls `step` again and again, and rests between.

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
            self._list()
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

    def _list(self) -> None:
        """List the logs of this pass. Logs that appear later wait for the next pass."""
        self._directories = sorted(live_directories(self._log_dir, {}))
        if self._resume is not None:  # go on after the part that an earlier process has checked
            self._next = sum(name < self._resume.directory for name in self._directories)
            if self._directories[self._next : self._next + 1] == [self._resume.directory]:
                self._checked_base = self._resume.behind

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


def _is_closed(check: SegmentCheck, buffer: Bytes) -> bool:
    """Whether a segment is still the same file, followed by the same: after a truncation it may be active, a compaction joins segments."""
    there = without_replaced(list_segments(check.segment.directory), buffer)
    return any(segment == check.segment and following.base_offset == check.following.base_offset for segment, following in pairwise(there))


def _is_there(damaged: FoundSegment) -> bool:
    """Whether the file of a finding is still there and unchanged. If this cannot be checked, it is taken to be there."""
    try:
        identity, size = file_stamp(damaged.path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return damaged.key.inode < 0 or (identity.device, identity.inode, size) == (damaged.key.device, damaged.key.inode, damaged.key.size)


KEEP_EVERY_SECONDS = 10.0

UNAVAILABLE_SECONDS = 5.0
"""How long to wait before an unavailable log dir is tried again."""


@dataclass(frozen=True, slots=True)
class ScrubOptions:
    """``rate``: bytes a second, 0 for no scrub; ``every_ms``: a pass begins this long after the previous one began."""

    rate: int
    every_ms: int


@dataclass(frozen=True, slots=True)
class ScrubReport:
    """The scrub of one log dir; ``waits_at``: the file of a call that has not returned for ``waiting`` seconds."""

    log_dir: LogDir
    progress: PassProgress
    waits_at: str
    waiting: float


class DirThread:
    """The thread of one log dir.

    Args:
        keep_in: the file for its progress.
    """

    def __init__(
        self, path: Path, log_dirs: LogDirs, options: ScrubOptions, pace: ScrubPace, keep_in: Path, clock_ms: Callable[[], int]
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
        scrub = self._scrub_of(log_dir)
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

    def _scrub_of(self, log_dir: LogDir) -> LogDirScrub:
        """The scrub of the log dir; a new one if another disk has replaced the previous disk."""
        if self._scrub is None or self._log_dir != log_dir:
            progress = load(self._keep_in)
            if progress.directory_id != log_dir.directory_id:
                progress = ScrubProgress(directory_id=log_dir.directory_id)
            self._scrub, self._log_dir = LogDirScrub(log_dir.path, self._options.every_ms, self._clock_ms, progress), log_dir
        return self._scrub

    def _keep(self) -> None:
        self._kept_at = time.monotonic()
        if self._scrub is None:
            return
        try:
            store(self._keep_in, self._scrub.kept)
        except OSError as error:
            log.warning("progress of the scrub cannot be saved", extra={"path": str(self._keep_in), "error": str(error)})

    def waits(self, now: float) -> tuple[str, float]:
        """The file of the current call, and for how many seconds this method has seen that call; "" if there is none. For one thread."""
        path, count = self._calls.path, self._calls.count
        if path is None or (path, count) != self._last_call[:2]:
            self._last_call = (path, count, now)
        return ("", 0.0) if path is None else (str(path), now - self._last_call[2])


class Scrub:
    """All threads of an agent.

    Args:
        directory: where they store their progress.
    """

    def __init__(self, log_dirs: LogDirs, options: ScrubOptions, directory: Path, clock_ms: Callable[[], int]) -> None:
        self.options = options
        self._log_dirs = log_dirs
        pace = ScrubPace(options.rate)
        paths = [log_dir.path for log_dir in log_dirs]
        self._dirs = [DirThread(path, log_dirs, options, pace, file_of(directory, path), clock_ms) for path in paths]
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
        """How far the scrub of each log dir has come. For any thread."""
        log_dirs = {log_dir.path: log_dir for log_dir in self._log_dirs}
        with self._asking:
            now = time.monotonic()
            return [
                ScrubReport(log_dirs[each.path], each.progress, *each.waits(now))
                for each in self._dirs
                if each.progress is not None and each.path in log_dirs
            ]
