"""The status of brokers and log dirs that does not belong to one log, checked every few seconds."""

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, count
from operator import attrgetter, is_not
from pathlib import Path
from typing import Any

import numpy as np

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.process_watch import ProcessWatch
from streaming.broker.agent.strays import StrayWatch
from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.contents import ContentsReader, DirContents
from streaming.broker.disk.log_inventory import LogInventory
from streaming.broker.disk.logdirs import LogDir
from streaming.broker.disk.opening import Calling, is_short, shortage
from streaming.broker.protocol.cluster_messages import Registered
from streaming.broker.protocol.status_messages import BrokerStatus, LogDirStatus, ProcessStatus
from streaming.broker.watcher.offset_checkpoints import RecoveryPositions
from streaming.broker.watcher.tail import Tail
from streaming.kafka.formats.metadata_records import Phase
from streaming.kafka.formats.names import METADATA_TOPIC, FileKind, FileStage, parse_segment_file, segment_file_name
from streaming.rules.broker_process import AWAY, LockState
from streaming.rules.restart_cost import NOT_KNOWN, LogSegments, RecoveryPoints, not_fsynced_bytes, scanned_bytes

# --- what a start after a crash would cost each log dir, from the logs that are watched: computed again only for logs that have changed.


@dataclass(frozen=True, slots=True)
class DirRestart:
    """A log dir, without the metadata log, which every start reads: logs that a start after a crash reads, bytes of them, and bytes above
    the recovery points. `NOT_KNOWN` where they are not known of every log."""

    logs: int
    scanned: int
    not_fsynced: int


NOTHING_KNOWN = DirRestart(NOT_KNOWN, NOT_KNOWN, NOT_KNOWN)


_SEEN = tuple(map(attrgetter, ("last_found", "segments", "cursor", "pace")))
"""Of what a log's values are made, besides its recovery point: its lists, then how far it has grown. Each is replaced when it changes."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """The list by which a log was computed, with the base offset and the size of its active segment then."""

    inventory: LogInventory
    active: int
    size: int


class RestartCosts:
    """One log dir. Only the watcher's thread uses it.

    Args:
        tails: its logs, without the metadata log.
    """

    def __init__(self, tails: Sequence[Tail], points: RecoveryPositions) -> None:
        self._tails = tails
        self._points = points
        self._version = -1  # of the recovery points
        self._seen: list[list[object]] = [[None] * len(tails)] * len(_SEEN)
        self._listed: list[_Listed | None] = [None] * len(tails)
        # by log: its recovery point and position, what a start would read of the list, what has grown since, the end
        self._point, self._position, self._scanned, self._grown, self._end = np.full((5, len(tails)), NOT_KNOWN, np.int64)
        self._sums = DirRestart(0, 0, 0)

    def look(self) -> DirRestart:
        """The log dir as it is now."""
        version, seen = self._points.version, [list(map(get, self._tails)) for get in _SEEN]
        changed = [set(compress(count(), map(is_not, now, before))) for now, before in zip(seen, self._seen, strict=True)]
        others = set(range(len(self._tails))) if version != self._version else set().union(*changed[:2])
        grown = others.union(*changed[2:])
        if grown:
            self._version, self._seen = version, seen
            self._take_lists([number for number in others if self._tails[number].last_found is not None])
            self._take_growth([number for number in grown if self._listed[number] is not None])
            self._sums = self._summed()
        return self._sums

    def _take_lists(self, numbers: Sequence[int]) -> None:
        """Bring up to date what a start would read of the lists of some logs."""
        others: list[int] = []
        points = self._points.of([self._tails[number] for number in numbers])
        for number, point in zip(numbers, points, strict=True):
            last, listed = self._tails[number].last_found, self._listed[number]
            assert last is not None
            if listed is None or listed.inventory is not last.inventory or point != (self._point[number], self._position[number]):
                active = last.inventory.segments[-1]
                self._listed[number] = _Listed(last.inventory, int(active["base_offset"]), int(active["size"]))
                self._point[number], self._position[number] = point
                others.append(number)
        if others:
            segments = LogSegments.of([each.inventory.segments for number in others if (each := self._listed[number]) is not None])
            recovery = RecoveryPoints(offset=self._point[others], position=self._position[others])
            self._scanned[others] = scanned_bytes(segments, recovery)

    def _take_growth(self, numbers: Sequence[int]) -> None:
        """Bring up to date how far some logs have grown. Nearly all do so all the time, while their lists and recovery points stay."""
        rows = [(self._tails[number], each) for number in numbers if (each := self._listed[number]) is not None]
        self._grown[numbers] = [_grown(tail, listed) for tail, listed in rows]
        self._end[numbers] = [_end(tail) for tail, _ in rows]

    def _summed(self) -> DirRestart:
        if any(each is None for each in self._listed) or (self._scanned < 0).any():
            return NOTHING_KNOWN
        scanned = self._scanned + self._grown
        not_fsynced = not_fsynced_bytes(scanned, RecoveryPoints(offset=self._point, position=self._position), self._end)
        return DirRestart(int(np.count_nonzero(scanned)), int(scanned.sum()), int(not_fsynced.sum()))


def _grown(tail: Tail, before: _Listed) -> int:
    """What a log has grown by since it was listed, as far as that is read."""
    cursor = tail.cursor
    if cursor.segment > before.active:
        return cursor.position
    return max(0, cursor.position - before.size) if cursor.segment == before.active else 0


def _end(tail: Tail) -> int:
    """The end of a log, -1 if it is not read to its end."""
    return tail.cursor.next_offset if tail.live and not tail.has_later_segment else -1


# --- how far a start after a crash has come with the logs of a log dir, by the files that it leaves behind. A log is recovered by one
# thread, segment after segment. When one is done, the broker writes a producer snapshot at the offset after it
# (`LogLoader.recoverSegment`), and only this start writes one after its registration. So a segment is done if a snapshot after its base
# offset is younger than that. Inside a segment nothing on disk shows how far it is: all of it is left until it is done. While the broker
# reads one, it writes its index from scratch (`LogSegment.recover`).


MOST_NAMED = 10
"""So many logs that are being recovered are named."""

LEAST_MS = 1_000
LEAST_BYTES = 64 << 20
"""What took less time, or was less, shows no rate: a start does more than read."""


@dataclass(frozen=True, slots=True)
class ToRecover:
    """A log as it was before the start: its directory, and base offset and size of each segment that the start reads."""

    directory: Path
    segments: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovering:
    """What is left of a log dir, in bytes and logs, and the directories of some logs that are being recovered."""

    left: int
    logs: int
    working: tuple[str, ...]
    begun: bool
    """Whether any segment is done: a start after a clean shutdown reads none, but it sets the size of indexes."""


@dataclass(slots=True)
class _Log:
    log: ToRecover
    done: list[tuple[int, int]] = field(default_factory=list)  # when a segment was done, Unix milliseconds, and its bytes

    @property
    def left(self) -> int:
        return sum(size for _, size in self.log.segments) - sum(size for _, size in self.done)


class DirRecovery:
    """The starts of a broker with one log dir. Only one thread uses it."""

    def __init__(self) -> None:
        self.rate = -1.0
        """Bytes a second of the last recovery of which most was seen here, with all its threads; -1 if none was."""
        self._since_ms = -1
        self._logs: dict[Path, _Log] = {}

    def look(self, since_ms: int, logs: Iterable[ToRecover]) -> Recovering:
        """What is left of the start that began then; ``logs`` are taken at the first look at it. Raises OSError: a file cannot be read."""
        if since_ms != self._since_ms:
            self._since_ms = since_ms
            self._logs = {each.directory: _Log(each) for each in logs if any(size for _, size in each.segments)}
        self._look_again()
        unfinished = [each for each in self._logs.values() if each.left]
        working = [each.log.directory.name for each in unfinished if self._is_read(each)]
        return Recovering(
            left=sum(each.left for each in unfinished),
            logs=len(unfinished),
            working=tuple(working[:MOST_NAMED]),
            begun=any(each.done for each in self._logs.values()),
        )

    def end(self) -> None:
        """The start is over. The logs done since the last look, likely the largest ones, count for its rate.

        Raises:
            OSError: a file cannot be read.
        """
        if self._logs:
            self._look_again()
        self._logs, self._since_ms = {}, -1

    def _look_again(self) -> None:
        for each in self._logs.values():
            if each.left:
                self._look_at(each)
        self._measure()

    def _look_at(self, each: _Log) -> None:
        directory = each.log.directory
        try:
            with Calling(directory):
                changed_ms = directory.stat().st_mtime_ns // 1_000_000
            if changed_ms >= self._since_ms:  # only few of those that are left: no log is begun before its thread is done with another
                each.done = list(_done(each.log, self._since_ms))
        except FileNotFoundError:  # it was deleted or put aside: nothing of it is left
            each.log = ToRecover(directory, ())
            each.done = []

    def _is_read(self, each: _Log) -> bool:
        """Whether the index of its next segment has been written since the start began."""
        base_offset = each.log.segments[len(each.done)][0]
        index = each.log.directory / segment_file_name(base_offset, FileKind.INDEX)
        try:
            with Calling(index):
                return index.stat().st_mtime_ns // 1_000_000 >= self._since_ms
        except FileNotFoundError:
            return False

    def _measure(self) -> None:
        """Measure the rate from the first segment that was done to the last: at both, threads had read about as much of other segments.

        Not by the first few that are done: those are small, and while they are read others are.
        """
        done = sorted(each for log in self._logs.values() for each in log.done if each[1])
        if sum(size for _, size in done) < sum(each.left for each in self._logs.values()):
            return
        took_ms, read = (done[-1][0] - done[0][0], sum(size for _, size in done[1:])) if done else (0, 0)
        if took_ms >= LEAST_MS and read >= LEAST_BYTES:
            self.rate = read * 1000 / took_ms


def _done(log: ToRecover, since_ms: int) -> Iterator[tuple[int, int]]:
    """The first segments of a log that are done: when, and their bytes. One that is gone was cut off behind a damaged batch."""
    written: dict[int, int] = {}
    there = set()
    with Calling(log.directory), os.scandir(log.directory) as entries:
        for entry in entries:
            name = parse_segment_file(entry.name)
            if name is None or name.stage is not FileStage.LIVE:
                continue
            if name.kind is FileKind.LOG:
                there.add(name.base_offset)
            elif name.kind is FileKind.SNAPSHOT:
                modified_ms = entry.stat().st_mtime_ns // 1_000_000
                if modified_ms >= since_ms:
                    written[name.base_offset] = modified_ms
    last_ms = since_ms
    for base_offset, size in log.segments:
        after = [(offset, at) for offset, at in written.items() if offset > base_offset]
        if after:
            last_ms = min(after)[1]
        elif size and base_offset in there:
            return
        yield last_ms, size


log = logging.getLogger(__name__)


class RestartStatus:
    """What starts of brokers cost, and how far they have come. Only the watcher's thread uses it.
    Args:
        points: the recovery points of logs.
    """

    def __init__(self, points: RecoveryPositions) -> None:
        self._points = points
        self._costs: dict[Path, RestartCosts] = {}
        self._now = -1
        self._found: dict[Path, DirRestart] = {}
        self._all: Sequence[Tail] = ()
        self._tails: dict[Path, list[Tail]] = {}
        self._began: dict[int, int] = {}
        self._away_ms: dict[int, int] = {}  # the last look without a process
        self._came_up: dict[int, int] = {}  # by broker: as of a start that was seen before the process had registered
        self._starts: dict[Path, DirRecovery] = {}
        self._clean_ms: dict[Path, int] = {}  # when the mark of a clean shutdown was last there

    def look(self, tails: Sequence[Tail], brokers: Iterable[BrokerStatus], now_ms: int) -> None:
        """Take over what is known now. ``tails``: as `streaming.broker.watcher.departures.WatchedLogs.all` returns them."""
        self._now = now_ms
        if tails is not self._all:
            self._take(tails)
        self._found = {path: costs.look() for path, costs in self._costs.items()}
        own = ((status.process, each) for status in brokers for each in status.registered if each.broker == status.broker)
        self._began = {each.broker: began for process, each in own if (began := self._began_ms(process, each)) is not None}

    def _take(self, tails: Sequence[Tail]) -> None:
        self._all, self._tails = tails, {}
        for tail in tails:
            if tail.partition.topic != METADATA_TOPIC:
                self._tails.setdefault(tail.partition.log_dir.path, []).append(tail)
        self._costs = {path: RestartCosts(inside, self._points) for path, inside in self._tails.items()}

    def _began_ms(self, process: ProcessStatus | None, registered: Registered) -> int | None:
        """Since when the broker starts, Unix milliseconds, -1 if that is not known; None if it does not start.

        Logs are read as soon as the process has the metadata, which may be long before the controller accepts its registration. So where
        the process was seen to come up, all that is younger than the last look without it is of this start.
        """
        broker = registered.broker
        if process is not None and process.state in AWAY:
            self._away_ms[broker] = self._now
            self._came_up.pop(broker, None)
            return None
        if process is not None and process.has_not_registered(registered.epoch):
            return self._came_up.setdefault(broker, self._away_ms.get(broker, process.since_ms))
        if registered.phase == Phase.STARTING:
            return self._came_up.get(broker, registered.since_ms)
        self._came_up.pop(broker, None)
        return None

    def within(self, status: LogDirStatus, contents: DirContents) -> LogDirStatus:
        """The status of a log dir, with what a restart costs it."""
        path = contents.log_dir.path
        start = self._starts.setdefault(path, DirRecovery())
        tails = self._tails.get(path, [])
        live = len(contents.live)
        found = self._found.get(path, NOTHING_KNOWN) if live else DirRestart(0, 0, 0)
        if len(tails) < live:  # a log is not watched yet: a sum without it would be too small
            found = NOTHING_KNOWN
        if contents.clean:
            self._clean_ms[path] = self._now
            found = DirRestart(0, 0, found.not_fsynced)
        left = self._left(contents, tails, start)
        return replace(
            status,
            recovery_logs=found.logs,
            recovery_bytes=found.scanned,
            not_fsynced_bytes=found.not_fsynced,
            recovery_rate=start.rate,
            clean=contents.clean and LockState(status.lock).is_held_by_nobody,
            recovering_logs=-1 if left is None else left.logs,
            recovering_bytes=-1 if left is None else left.left,
            recovering=[] if left is None else list(left.working),
        )

    def _left(self, contents: DirContents, tails: list[Tail], start: DirRecovery) -> Recovering | None:
        """What is left of a start after a crash that is going on, None if there is none.

        High watermarks are not written before all logs are loaded (`ReplicaManager`), so once they are, the logs are.
        """
        since_ms = self._began.get(contents.log_dir.broker, -1)
        try:
            if contents.clean or since_ms < 0 or contents.checkpoint_ms >= since_ms:
                start.end()
                return None
            found = start.look(since_ms, map(self._to_recover, tails))
        except OSError as error:
            log.warning("how far a start has come cannot be read", extra={"log_dir": str(contents.log_dir.path), "error": str(error)})
            return None
        return None if self._was_clean(contents, tails) and not found.begun else found

    def _was_clean(self, contents: DirContents, tails: list[Tail]) -> bool:
        """Whether the shutdown before was a clean one. Then the mark was there after the last high watermarks, if anybody looked, and
        every recovery point is at the end of its log (`LogManager.shutdown`).
        """
        if self._clean_ms.get(contents.log_dir.path, -1) > contents.checkpoint_ms:
            return True
        return all(point >= tail.cursor.next_offset for tail, (point, _) in zip(tails, self._points.of(tails), strict=True))

    def _to_recover(self, tail: Tail) -> ToRecover:
        """What a start reads of a log: of the segment that grew, also what came after it was listed, up to where it is read here."""
        sizes, cursor = {each.base_offset: each.size for each in tail.segments}, tail.cursor
        sizes[cursor.segment] = max(sizes.get(cursor.segment, 0), cursor.position)
        ((point, _),) = self._points.of([tail])
        offset = max(point, 0)
        held = max((base_offset for base_offset in sizes if base_offset <= offset), default=-1)
        return ToRecover(tail.partition.path, sorted(each for each in sizes.items() if each[0] >= held))


CHECK_EVERY_MS = 5_000

_OF_CONTENTS = ("checkpoint_ms", "free", "capacity", "delete", "stray", "future", "metadata")


class HostStatus:
    """The status of a host: its log dirs and brokers. The watcher's thread refreshes it; other threads may read its values.

    Args:
        tails: the logs that are watched, as `streaming.broker.watcher.departures.WatchedLogs.all` returns them.
        points: the recovery points of logs; None if no job asks what a restart costs.
        processes: looks at the processes of the brokers; one of its own if it is None.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        cluster: ClusterView,
        tails: Callable[[], Sequence[Tail]],
        clock_ms: Callable[[], int],
        points: RecoveryPositions | None = None,
        processes: ProcessWatch | None = None,
    ) -> None:
        self.log_dirs: list[LogDirStatus] = []
        self.brokers: list[BrokerStatus] = []
        self.logs = 0
        """The number of logs in the log dirs that can be read, watched or not."""
        self._dirs = log_dirs
        self._cluster = cluster
        self._tails = tails
        self._clock_ms = clock_ms
        self.processes = processes or ProcessWatch(log_dirs, clock_ms)
        self._next_check = 0
        self._incomplete = False  # the last check was before all logs were listed
        self._live = 0
        self._besides = _Besides()
        self._down: set[Path] = set()
        self._contents: dict[Path, ContentsReader] = {}
        self._last: dict[Path, LogDirStatus] = {}  # of log dirs that could be listed
        self._unlisted: dict[Path, Mapping[str, str]] = {}
        self._strays = StrayWatch(log_dirs, cluster)
        self._restarts = None if points is None else RestartStatus(points)

    def refresh(self) -> None:
        """Check again if it is time to, or if all logs are listed now that were not at the last check: it lacks their sums."""
        now = self._clock_ms()
        waits = now < self._next_check <= now + CHECK_EVERY_MS  # otherwise the clock was set back
        if waits and not (self._incomplete and _listed(self._tails()) >= self.logs):
            return
        self._next_check = now + CHECK_EVERY_MS
        self._dirs.check()
        self._dirs.log_changes()
        tails = self._tails()
        deleted, index = self._besides.look(tails)
        self.brokers = self.processes.look(self._cluster.statuses())
        self._live = 0
        if self._restarts is not None:
            self._restarts.look(tails, self.brokers, now)
        self.log_dirs = [self._status_of(log_dir, tails, deleted[log_dir.path], index[log_dir.path]) for log_dir in self._dirs]
        self.logs = self._live
        self._incomplete = self._besides.listed < self.logs

    def _status_of(self, log_dir: LogDir, tails: Sequence[Tail], deleted: int, index: int) -> LogDirStatus:
        registered = self._cluster.lists(log_dir)
        unavailable = self._dirs.unavailable.get(log_dir.path)
        if unavailable is not None:
            return _down(log_dir, registered, unavailable)
        try:
            found = self._contents.setdefault(log_dir.path, ContentsReader(log_dir.path)).read(log_dir)
        except OSError as error:
            before = self._last.get(log_dir.path)
            if is_short(error) and before is not None:
                shortage.note()
                return before
            if log_dir.path not in self._down:
                self._down.add(log_dir.path)
                log.error("log dir cannot be listed", extra={"log_dir": str(log_dir.path), "error": str(error)})
            return _down(log_dir, registered, str(error))
        self._down.discard(log_dir.path)
        self._log_unlisted(log_dir, found.unlisted)
        self._live += len(found.live)
        status = LogDirStatus(
            broker=log_dir.broker,
            log_dir=str(log_dir.path),
            up=True,
            registered=registered,
            deleted=deleted,
            index=index,
            **{name: getattr(found, name) for name in _OF_CONTENTS},
            hosts=self._cluster.hosts(log_dir, found.live),
            device=found.device,
            lock=self.processes.lock_of(log_dir),
            recovery_threads=self._cluster.recovery_threads(log_dir.broker),
        )
        if self._restarts is not None:
            status = self._restarts.within(status, found)
        status = self._strays.within(status, found, (tail.partition for tail in tails), self._clock_ms())
        self._last[log_dir.path] = status
        return status

    def _log_unlisted(self, log_dir: LogDir, unlisted: Mapping[str, str]) -> None:
        before, self._unlisted[log_dir.path] = self._unlisted.get(log_dir.path, {}), unlisted
        for path in unlisted.keys() - before.keys():
            log.warning(
                "directory cannot be listed: the sizes of its log dir are without it", extra={"path": path, "error": unlisted[path]}
            )


class _Besides:
    """The bytes besides the segments in directories of logs, by log dir: of segments that are to be unlinked, and of other files."""

    def __init__(self) -> None:
        self._tails: Sequence[Tail] = ()
        self._inventories: list[LogInventory | None] = []
        self.listed = 0
        """How many logs have been listed, by the last look."""
        self._deleted, self._index = Counter[Path](), Counter[Path]()

    def look(self, tails: Sequence[Tail]) -> tuple[Counter[Path], Counter[Path]]:
        """Both, by what was found last of each log."""
        inventories = [None if (found := tail.last_found) is None else found.inventory for tail in tails]
        if tails is not self._tails or any(map(is_not, inventories, self._inventories)):
            self._tails, self._inventories = tails, inventories
            self.listed = len(inventories) - inventories.count(None)
            self._deleted, self._index = Counter(), Counter()
            for tail, inventory in zip(tails, inventories, strict=True):
                if inventory is not None:
                    self._deleted[tail.partition.log_dir.path] += inventory.deleted_bytes
                    self._index[tail.partition.log_dir.path] += inventory.index_bytes
        return self._deleted, self._index


def _listed(tails: Sequence[Tail]) -> int:
    return len(tails) - [tail.last_found for tail in tails].count(None)


def _down(log_dir: LogDir, registered: bool | None, problem: str) -> LogDirStatus:
    sizes: dict[str, Any] = dict.fromkeys((*_OF_CONTENTS, "deleted", "index"), -1)
    return LogDirStatus(broker=log_dir.broker, log_dir=str(log_dir.path), up=False, registered=registered, problem=problem, **sizes)
