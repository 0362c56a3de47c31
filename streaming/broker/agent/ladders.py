"""The ladders of all watched logs: which there are, in which order they are filled, and at which pace; one thread for each log dir.

The segments that the watcher reads come first, then closed ones, the newest first. What was counted of a closed segment is stored.
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from streaming.broker.agent.dir_work import DirLogs, DirThreads
from streaming.broker.agent.laddered_log import LadderedLog
from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.opening import ReadingPace
from streaming.broker.disk.scanning import kept_window
from streaming.broker.disk.segment_files import SegmentKey
from streaming.broker.journal.scan_cache import ScanCache
from streaming.broker.ladder.stretch import OpenedBatches
from streaming.broker.protocol.group_messages import RECORDS, is_counted
from streaming.broker.watcher.tail import Tail
from streaming.common.log_key import KEY, LogKey, key_arrays
from streaming.errors import FormatError
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.sums import Sums
from streaming.kafka.scan.transaction_steps import Steps
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

_Row = tuple[int, int, int, int, int, str]

_ROW = ("log_start", "next_offset", "data", "aborted", "control", "error")

_GONE: _Row = (-1, -1, 0, 0, 0, "")

REST_SECONDS = 5.0
"""How often new logs, gaps and other listings are looked for."""

STORE_SECONDS = 10.0
"""How often ladders are stored."""

RETRY_SECONDS = 30.0
"""How long a log that cannot be read is left alone. Once a file has gone since it was listed, as in a compaction, the next look helps."""

SWEEP_SECONDS = 3600.0
"""How often ladders of segments that have gone while no agent ran are looked for."""

CPU_SHARE = 0.25
"""The most of one core that filling takes."""

BUFFER_BYTES = 2 << 20
"""How much is read at once: it stays in the processor's cache."""


class Ladders:
    """Its threads call `step`, the watcher's thread `note`; any thread may call the rest.

    Args:
        tails: the logs that are watched at this moment.
        rate: bytes that are read in a second, of all logs together.
        wait: waits for some seconds; returns whether the agent ends.

    ``opened``: what was seen in batches that had to be opened.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        tails: Callable[[], list[Tail]],
        cache: ScanCache,
        clock_ms: Callable[[], int],
        *,
        rate: int,
        wait: Callable[[float], bool],
        cpu_share: float = CPU_SHARE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.opened = OpenedBatches()
        self._log_dirs = log_dirs
        self._cache = cache
        self._clock_ms = clock_ms
        self._wait = wait
        self._pace = ReadingPace(rate, cpu_share)
        self._clock = clock
        self._dirs = {path: _LadderDir(path, log_dirs, tails, clock) for path in (each.path for each in log_dirs)}
        self._threads = DirThreads("ladders", self._dirs, self.step)
        self._swept = clock()
        self.errors = 0
        """How often a log could not be read."""
        self.totals = RecordTotals(self.all, self._error)
        """How many records logs have."""

    def start(self, stop: threading.Event) -> None:
        """Fill ladders until ``stop`` is set."""
        self._threads.start(stop)

    def join(self, seconds: float) -> None:
        """Wait at most so long until the threads have ended, and store what was counted."""
        self._threads.join(seconds)
        for here in self._dirs.values():
            self._store(here)

    # --- the watcher's thread

    def note(self, tail: Tail, batches: Batches, sums: Sums, seen_ms: int, steps: Steps) -> None:
        """Add a range that is read at the tail's cursor, before the cursor moves."""
        found = self._of_tail(tail)
        if found is not None:
            found.note(batches, sums, seen_ms, steps, self._clock_ms())

    def note_plain(self, tail: Tail, next_offset: int, records: int, size: int, seen_ms: int, batches: Callable[[], Batches]) -> None:
        """Add a range without transactional and control batches that is read at the tail's cursor, before the cursor moves."""
        found = self._of_tail(tail)
        if found is not None:
            found.note_plain(next_offset, records, size, seen_ms, batches, self._clock_ms())

    def _of_tail(self, tail: Tail) -> LadderedLog | None:
        found = self._dirs[tail.partition.log_dir.path].logs.all.get(tail.cursor.log)
        return found if found is not None and found.tail is tail else None

    # --- the thread of a log dir

    def step(self, path: Path) -> float:
        """Do what is due in a log dir, then fill for some seconds. Returns for how many seconds to rest."""
        here = self._dirs[path]
        here.logs.meet()
        ends = self._clock() + REST_SECONDS
        try:
            self._urgent(path, here, here.buffer)
            while self._clock() < ends:
                if not self._fill_next(path, here):
                    break
            else:
                return 0.0
        except _StopError:
            pass
        finally:
            if self._clock() - here.stored_at >= STORE_SECONDS:
                self._keep(here)
        return REST_SECONDS

    def _keep(self, here: "_LadderDir") -> None:
        here.stored_at = self._clock()
        self._store(here)
        self._sweep()

    def _urgent(self, path: Path, here: "_LadderDir", buffer: Bytes) -> None:
        """Begin ladders, and close their gaps."""
        here.looked_at = self._clock()
        here.awake = {key: each for key, each in here.logs.all.items() if not each.goes_on_resting()}
        for key, each in here.awake.items():
            self._try(here, key, partial(self._see_to, path, here, each, buffer))

    def _see_to(self, path: Path, here: "_LadderDir", each: LadderedLog, buffer: Bytes) -> None:
        seen = each.wake()
        if not each.valid:
            each.begin(buffer, self._paced(path))
        if each.valid and each.has_gap:
            try:
                each.catch_up(buffer, self._paced(path), self._clock_ms())
            except _StopError:
                raise
            except Exception:
                each.end()
                raise
        here.gone |= each.compare()
        if each.start_is_due:
            each.place_start()
        each.rest_if_done(seen)

    def _fill_next(self, path: Path, here: "_LadderDir") -> bool:
        """Count the newest segment that is not counted; returns whether there was one."""
        if not here.due:
            now = self._clock()
            waiting: list[tuple[int, LogKey]] = []
            for key, each in here.awake.items():
                if key in here.logs.all and not here.logs.waits(key, now):
                    try:
                        modified = each.next_modified_ms()
                    except Exception as error:  # noqa: BLE001 - as in `_try`
                        self._leave_alone(here, key, error)
                    else:
                        waiting += [] if modified is None else [(modified, key)]
            here.due = [key for _, key in sorted(waiting)]
        if not here.due:
            return False
        chosen = here.due.pop()
        found = here.logs.all.get(chosen)
        if found is not None and found.valid:
            self._try(here, chosen, partial(self._fill, path, here, found))
        return True

    def _fill(self, path: Path, here: "_LadderDir", each: LadderedLog) -> None:
        each.fill(self._stored, here.buffer, self._attentive(path, here, self._paced(path)))
        if each.start_is_due:
            each.place_start()

    def _attentive(self, path: Path, here: "_LadderDir", paced: Callable[[int], None]) -> Callable[[int], None]:
        """Look after what is urgent now and then while a large segment is filled."""

        def attentive(size: int) -> None:
            paced(size)
            if self._clock() - here.looked_at >= REST_SECONDS:
                here.logs.meet()
                self._urgent(path, here, here.second)

        return attentive

    def _stored(self, key: SegmentKey) -> bytes | None:
        return self._cache.ladder(key)

    def _try(self, here: "_LadderDir", key: LogKey, what: Callable[[], object]) -> None:
        """Do something with a log. If that fails in any way, this log is left alone for a while."""
        if here.logs.waits(key, self._clock()):
            return
        try:
            what()
        except _StopError:
            raise
        except Exception as error:  # noqa: BLE001 - one log must not hold up those beside it
            self._leave_alone(here, key, error)
        else:
            here.logs.succeeded(key)

    def _leave_alone(self, here: "_LadderDir", key: LogKey, error: Exception) -> None:
        """Count and name what failed. Raises MemoryError: no log causes that."""
        if isinstance(error, MemoryError):
            raise error
        self.errors += 1
        rest = REST_SECONDS if isinstance(error, FileNotFoundError) else RETRY_SECONDS
        here.logs.failed(key, error, self._clock(), rest, rest)
        extra = {"log": str(key), "error": str(error)}
        if isinstance(error, (OSError, FormatError)):
            log.info("a log cannot be counted now", extra=extra)
        else:
            log.error("an unexpected error keeps a log from being counted for a while", exc_info=error, extra=extra)

    def _paced(self, path: Path) -> Callable[[int], None]:
        """What waits after each window that is read, as long as the pace asks for since now."""
        before = time.thread_time()

        def paced(size: int) -> None:
            nonlocal before
            now = time.thread_time()
            if self._wait(self._pace.spent(size, now - before, self._clock())) or path in self._log_dirs.unavailable:
                raise _StopError
            before = time.thread_time()

        return paced

    # --- what is stored

    def _store(self, here: "_LadderDir") -> None:
        logs = [each for each in list(here.logs.all.values()) if each.has_unsaved]
        found = {key: ladder for each in logs for key, ladder in each.unsaved().items()}
        gone = here.gone - found.keys()
        if found or gone:
            self._cache.keep_ladders(found, gone)
            for each in logs:
                each.note_saved(found)
        here.gone = set()

    def _sweep(self) -> None:
        """Forget ladders of segments that have gone while no agent ran."""
        if self._clock() - self._swept < SWEEP_SECONDS or self._log_dirs.unavailable:
            return
        self._swept = self._clock()
        there = {SegmentKey.of(segment) for each in self.all() for segment in each.tail.segments}
        gone = self._cache.laddered() - there
        if gone:
            self._cache.keep_ladders({}, gone)

    # --- any thread

    def of(self, key: LogKey) -> LadderedLog | None:
        """The ladder of a log in a log dir that may be read."""
        for path, here in self._dirs.items():
            found = here.logs.all.get(key)
            if found is not None and path not in self._log_dirs.unavailable:
                return found
        return None

    def _error(self, each: LadderedLog) -> str:
        """Why a log is not counted, "" if it only waits for that."""
        failures = (here.logs.failures.get(each.tail.cursor.log) for here in self._dirs.values())
        return each.damage or next((failure.error for failure in failures if failure is not None), "")

    def all(self) -> list[LadderedLog]:
        """The ladders of all logs."""
        return [each for here in self._dirs.values() for each in list(here.logs.all.values())]

    @property
    def unfilled_bytes(self) -> int:
        """The bytes of closed segments that are not counted."""
        return sum(each.unfilled_bytes for each in self.all())

    @property
    def nbytes(self) -> int:
        """The memory that ladders take, without Python's own."""
        return sum(map(attrgetter("nbytes"), self.all()))


class _LadderDir:
    """The logs of one log dir. Only its thread changes it."""

    def __init__(self, path: Path, log_dirs: LogDirs, tails: Callable[[], list[Tail]], clock: Callable[[], float]) -> None:
        self.logs = DirLogs(path, log_dirs, tails, wants=is_counted, new=LadderedLog, let_go=self._let_go, clock=clock)
        self.awake: dict[LogKey, LadderedLog] = {}  # logs in which something was to be done at the last look
        self.due: list[LogKey] = []  # logs with segments to fill, the one with the newest last
        self.gone: set[SegmentKey] = set()
        self.stored_at = self.looked_at = clock()
        self.buffer: Bytes = kept_window(BUFFER_BYTES)
        self.second: Bytes = kept_window(BUFFER_BYTES)  # for gaps that are closed while a segment is filled

    def _let_go(self, log: LadderedLog, gone: bool) -> None:
        self.gone |= log.stored_keys if gone else set()


class RecordTotals:
    """The totals of records of all logs, and which have changed since which version. Thread-safe.

    How many records each log has, in versions: what has changed since one can be asked for.

    Args:
        logs: the ladders of all logs.
        error: why one that has no totals has none, "" if it only waits for them.
    """

    def __init__(self, logs: Callable[[], Iterable[LadderedLog]], error: Callable[[LadderedLog], str]) -> None:
        self._logs = logs
        self._error = error
        self._lock = threading.Lock()
        self._known: dict[LogKey, _Known] = {}
        self.process = uuid.uuid4().hex
        """Versions of another process mean nothing."""
        self._number = 0

    def changes(self, process: str, number: int) -> tuple[int, bool, pa.RecordBatch]:
        """The present version, whether these are all rows, and the rows (`RECORDS`) that changed since ``number``."""
        with self._lock:
            self._look()
            whole = process != self.process or number > self._number or number <= 0
            chosen = {key: each.row for key, each in self._known.items() if (each.row is not _GONE if whole else each.changed > number)}
            return self._number, whole, _batch(chosen)

    def _look(self) -> None:
        """Bring the known logs up to date: the logs that are found now count, and a known log that is not found counts as gone."""
        before, stamp = self._known, self._number + 1
        self._known = {key: known if known.row is _GONE else _Known(_GONE, None, stamp) for key, known in before.items()}
        for each in self._logs():
            key, done = each.tail.cursor.log, each.done_at  # before its totals: what happens meanwhile shows the next time
            known = before.get(key, _NOTHING)
            row = known.row if done is not None and known.done is done else self._row(each)
            if row is not _GONE:
                self._known[key] = _Known(row, done, known.changed if known.row == row else stamp)
        if any(known.changed == stamp for known in self._known.values()):
            self._number = stamp

    def _row(self, each: LadderedLog) -> _Row:
        found = each.totals()
        if found is not None:
            return *found, ""
        error = self._error(each)
        return (*_GONE[:-1], error) if error else _GONE


class _Known(NamedTuple):
    """``changed``: the version of the last change. ``done``: when the log came to rest, if it did: until it wakes, the row is the same."""

    row: _Row
    done: object | None
    changed: int


def _batch(rows: dict[LogKey, _Row]) -> pa.RecordBatch:
    columns = dict(zip(KEY, key_arrays(rows), strict=True))
    values = list(zip(*rows.values(), strict=True)) or [()] * len(_ROW)
    columns |= {name: pa.array(value, RECORDS.field(name).type) for name, value in zip(_ROW, values, strict=True)}
    return pa.RecordBatch.from_arrays([columns[name] for name in RECORDS.names], schema=RECORDS)


_NOTHING = _Known(_GONE, None, 0)


class _StopError(OSError):
    """The log dir may not be read any more, or the agent ends."""
