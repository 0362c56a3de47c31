"""Log dirs read once for `segtail disk`: sizes of everything, and of live logs the times, the limits and the high watermark."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.process_watch import ProcessWatch
from streaming.broker.agent.strays import StrayKind, strays_in
from streaming.broker.agent.topic_configs import running_configs
from streaming.broker.disk.availability import LogDir, LogDirs
from streaming.broker.disk.broker_processes import was_shut_down_cleanly
from streaming.broker.disk.deleted_files import deleted_open
from streaming.broker.disk.dir_usage import DirUsage, DiskFileKind, read_log_dir
from streaming.broker.disk.logdirs import load_offset_checkpoint
from streaming.broker.disk.opening import written_ms
from streaming.broker.disk.segment_times import LogTimes, SegmentTimes
from streaming.broker.protocol.disk_json import LeftoverFiles
from streaming.cluster.usage.disk_answer import DiskContents
from streaming.cluster.usage.reckoning import DirFacts, LogsThere, ReplicaSizes, RestartFacts, Trial, trying
from streaming.cluster.view.broker_status import away_brokers, broker_processes
from streaming.cluster.view.page_context import context_of
from streaming.common.catalog import UNREADABLE
from streaming.common.log_key import LogKey
from streaming.common.rows import SEGMENTS
from streaming.common.settings import Settings
from streaming.common.units import format_count, format_name
from streaming.kafka.formats import names
from streaming.kafka.formats.names import DirState, PartitionDir
from streaming.rules.limits import Limiter, LimitsOf
from streaming.rules.restart_cost import NO_ENTRY, LogSegments, RecoveryPoints, not_fsynced_bytes, scanned_bytes
from streaming.rules.retention_rule import LogFacts, SegmentColumns, away_of
from streaming.terminal.offline.cluster_logs import ASSUMED_LIMITS, is_foreign, no_metadata, other_dirs, unseen_dirs
from streaming.terminal.offline.read_pace import uncollected

STUCK_MS = 3_600_000
"""A file that is being deleted, moved or compacted, and has not changed for so long, has probably been left behind."""

_NOT_LIVE = [DiskFileKind.FUTURE, DiskFileKind.DELETED, DiskFileKind.DELETE, DiskFileKind.CLEANER, DiskFileKind.STRAY]


def read_disk(log_dirs: LogDirs, settings: Settings, question: DiskQuestion) -> DiskContents:
    """Read log dirs.

    Raises:
        UsageError: a ``server.properties`` cannot be read, or a given configuration is not valid.
    """
    limiter = context_of(settings, once=True).limiter
    with uncollected():
        return _Reading(log_dirs, limiter, question).found()


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskQuestion:
    """What is asked of log dirs: as of ``now_ms``, with ``free`` bytes (None: what is free now), with settings that are tried."""

    now_ms: int
    free: int | None = None
    trials: Sequence[Trial] = ()


class _Reading:
    """One reading of the log dirs. Only one thread uses it."""

    def __init__(self, log_dirs: LogDirs, limiter: Limiter, question: DiskQuestion) -> None:
        self._log_dirs = log_dirs
        self._question = question
        self._limiter = limiter
        self._cluster = ClusterView(log_dirs, running_configs(log_dirs, limiter.is_given))
        self._cluster.refresh()
        self._processes = ProcessWatch(self._log_dirs, lambda: time.time_ns() // 1_000_000)
        # the brokers whose log dirs no process holds. The locks are asked now, whatever time everything is judged as of
        self._away = away_brokers(broker_processes(self._processes.look(self._cluster.statuses())))
        self._strays = {str(each.partition.path): str(each.kind) for each in strays_in(self._log_dirs.available, self._cluster)}
        self._times = SegmentTimes()
        self._topics: list[str] = []
        self._columns: list[NDArray[np.int64]] = []
        self._items: list[int] = []
        self._logs: list[_Log] = []
        self._dirs: list[DirFacts] = []
        self._leftovers: list[LeftoverFiles] = []
        self._links: list[str] = []
        self._moving = set[tuple[int, str, int]]()

    def found(self) -> DiskContents:
        for log_dir in self._log_dirs:
            reason = self._log_dirs.unavailable.get(log_dir.path)
            try:
                usage = read_log_dir(log_dir.path) if reason is None else None
            except OSError as error:
                usage, reason = None, str(error)
            if usage is None:
                self._dirs.append(
                    DirFacts(
                        broker=log_dir.broker,
                        log_dir=str(log_dir.path),
                        up=False,
                        problem=reason or "",
                        device=-1,
                        free=-1,
                        capacity=-1,
                        checkpoint_ms=-1,
                        kinds={},
                        unread={},
                    )
                )
            else:
                self._take(log_dir, usage)
        self._leftovers += [
            LeftoverFiles(path=path, kind=kind, taken=0, since_ms=written_ms(path))
            for path, kind in self._strays.items()
            if kind == StrayKind.UNNAMED
        ]
        self._leftovers += [
            LeftoverFiles(path=each.path, kind="deleted_open", taken=each.taken, since_ms=-1)
            for each in deleted_open([each.path for each in self._log_dirs.available])
        ]
        trials, logs = self._question.trials, self._logs_there(self._limiter.now())
        columns = np.concatenate(self._columns) if self._columns else np.empty((0, 8), np.int64)
        return DiskContents(
            dirs=self._dirs,
            replicas=ReplicaSizes(
                topics=self._topics,
                partition=columns[:, 0],
                directory=columns[:, 1],
                taken=columns[:, 2],
                apparent=columns[:, 3],
                segments=columns[:, 4],
                not_live=columns[:, 5],
                live=columns[:, 6] > 0,
                unread=columns[:, 7] > 0,
            ),
            logs=logs,
            leftovers=self._leftovers,
            doubts=list(self._doubts(logs)),
            now_ms=self._question.now_ms,
            tried=self._logs_there(self._limiter.trying(trying(trials)).now()) if trials else None,
            what_if=[each.text for each in trials],
            away=self._away,
            beside=[] if self._log_dirs.searched else list(other_dirs(self._log_dirs, self._cluster)),
        )

    def _take(self, log_dir: LogDir, usage: DirUsage) -> None:
        before, number = len(self._topics), len(self._dirs)
        replicas = [(row, name) for row, name in enumerate(usage.names) if name is not None]
        rows = np.array([row for row, _ in replicas], np.int64)
        self._topics += [name.topic for _, name in replicas]
        self._moving |= {(log_dir.broker, name.topic, name.partition) for _, name in replicas if name.state is DirState.FUTURE}
        self._leftovers += self._foreign(log_dir, usage)
        unread = dict(usage.unread)
        known = len(self._logs)
        self._read_logs(log_dir, usage, {row: before + item for item, (row, _) in enumerate(replicas)}, unread)
        failed = [name.state is DirState.LIVE and _directory(log_dir, name) in unread for _, name in replicas]
        self._columns.append(
            np.stack(
                [
                    np.array([name.partition for _, name in replicas], np.int64),
                    np.full(len(rows), number),
                    usage.taken[rows].sum(axis=1),
                    usage.apparent[rows].sum(axis=1),
                    usage.apparent[rows, DiskFileKind.SEGMENT],
                    usage.taken[rows][:, _NOT_LIVE].sum(axis=1),
                    np.array([name.state is DirState.LIVE for _, name in replicas], np.int64),
                    np.array(failed, np.int64),
                ],
                axis=1,
            )
        )
        restart = self._restart(log_dir, self._logs[known:], whole=not any(failed))
        self._links += usage.links
        self._leftovers += [
            LeftoverFiles(path=each.path, kind=self._strays.pop(each.path, each.kind.word), taken=each.taken, since_ms=each.changed_ms)
            for each in usage.leftovers
            if each.kind is DiskFileKind.STRAY or self._question.now_ms - each.changed_ms > STUCK_MS
        ]
        taken, apparent = usage.taken.sum(axis=0).tolist(), usage.apparent.sum(axis=0).tolist()
        self._dirs.append(
            DirFacts(
                broker=log_dir.broker,
                log_dir=str(log_dir.path),
                up=True,
                problem="",
                device=usage.device,
                free=usage.free if self._question.free is None else self._question.free,
                capacity=usage.capacity if self._question.free is None else -1,
                checkpoint_ms=written_ms(log_dir.path / names.HIGH_WATERMARK_CHECKPOINT),
                kinds={kind.word: (taken[kind], apparent[kind]) for kind in DiskFileKind},
                unread=unread,
                waiting=sum(
                    each.taken
                    for each in usage.leftovers
                    if each.kind in (DiskFileKind.DELETED, DiskFileKind.DELETE) and self._question.now_ms - each.changed_ms <= STUCK_MS
                ),
                restart=restart,
            )
        )

    def _foreign(self, log_dir: LogDir, usage: DirUsage) -> Iterator[LeftoverFiles]:
        """Live logs that the metadata does not know. They take space, so they are in the rows as well."""
        for row, name in enumerate(usage.names):
            if name is None or name.state is not DirState.LIVE:
                continue
            if is_foreign(self._cluster, LogKey(log_dir.broker, name.topic, name.partition, "")):
                path = _directory(log_dir, name)
                yield LeftoverFiles(path=path, kind="foreign", taken=int(usage.taken[row].sum()), since_ms=written_ms(path))

    def _read_logs(self, log_dir: LogDir, usage: DirUsage, items: dict[int, int], unread: dict[str, str]) -> None:
        ends = load_offset_checkpoint(log_dir, names.HIGH_WATERMARK_CHECKPOINT).offsets
        starts = load_offset_checkpoint(log_dir, names.LOG_START_OFFSET_CHECKPOINT).offsets or {}
        recovery = load_offset_checkpoint(log_dir, names.RECOVERY_POINT_CHECKPOINT).offsets
        segments = usage.segments
        begins = np.flatnonzero(np.diff(segments["directory"], prepend=-1)).tolist()
        for begin, end in pairwise([*begins, len(segments)]):
            own = segments[begin:end]
            row = int(own["directory"][0])
            name = usage.names[row]
            assert name is not None
            directory = _directory(log_dir, name)
            try:
                times = self._times.of_log(directory, own)
            except FileNotFoundError:  # rolled, deleted or compacted after it was listed
                continue
            except OSError as error:
                unread[directory] = error.strerror or str(error)
                continue
            place = (name.topic, name.partition)
            self._items.append(items[row])
            self._logs.append(self._read(log_dir, name, own, times, (_entry(ends, place), starts.get(place, -1), _entry(recovery, place))))

    def _read(self, log_dir: LogDir, name: PartitionDir, own: NDArray[np.void], times: LogTimes, checkpoints: tuple[int, int, int]) -> _Log:
        listed = np.empty(len(own), SEGMENTS)
        for column in ("base_offset", "size", "modified_ms"):
            listed[column] = own[column]
        listed["largest_timestamp"] = times.largest
        listed["size"][-1] = times.active_bytes
        key = LogKey(log_dir.broker, name.topic, name.partition, "")
        return _Log(
            key=key,
            segments=listed,
            log_start=max(int(own["base_offset"][0]), checkpoints[1]),
            log_end=times.end_offset if times.end_offset >= 0 else int(own["base_offset"][-1]) + 1,
            checkpoint=checkpoints[0],
            recovery_point=checkpoints[2],
            first_ms=times.first_ms,
            active_first_ms=times.active_first_ms,
        )

    def _restart(self, log_dir: LogDir, logs: Sequence[_Log], *, whole: bool) -> RestartFacts:
        """What a start after a crash reads, by the recovery points now. ``whole``: all logs were read."""
        logs = [log for log in logs if log.key.topic != names.METADATA_TOPIC]
        threads = self._cluster.recovery_threads(log_dir.broker, self._limiter.given(log_dir.broker))
        if not whole:
            return RestartFacts(threads=threads)
        if not logs:
            return RestartFacts(logs=0, scanned=0, not_fsynced=0, threads=threads)
        points = _points(logs)
        scanned = scanned_bytes(LogSegments.of([log.segments for log in logs]), points)
        if (scanned < 0).any():
            return RestartFacts(threads=threads)
        not_fsynced = int(not_fsynced_bytes(scanned, points, np.array([log.log_end for log in logs], np.int64)).sum())
        if was_shut_down_cleanly(log_dir.path):
            clean = self._processes.lock_of(log_dir).is_held_by_nobody
            return RestartFacts(logs=0, scanned=0, not_fsynced=not_fsynced, threads=threads, clean=clean)
        return RestartFacts(logs=int(np.count_nonzero(scanned)), scanned=int(scanned.sum()), not_fsynced=not_fsynced, threads=threads)

    def _logs_there(self, limits_of: LimitsOf) -> LogsThere:
        facts = self._facts(limits_of)
        return LogsThere(
            items=np.array(self._items, np.int64),
            logs=SegmentColumns(facts),
            limits=[each.limits for each in facts],
            first_ms=np.array([log.first_ms for log in self._logs], np.int64),
            active_first_ms=np.array([log.active_first_ms for log in self._logs], np.int64),
            watched=np.full(len(facts), -1.0),
            points=_points(self._logs),
            assigned=np.array([self._assigned(log) for log in self._logs], np.int64),
            away=away_of(np.array([log.key.broker for log in self._logs], np.int64), [each.broker for each in self._away]),
        )

    def _assigned(self, log: _Log) -> int:
        state = self._cluster.partition(log.key)
        return -1 if state is None else len(state.replicas)

    def _facts(self, limits_of: LimitsOf) -> list[LogFacts]:
        ends = {(log.key.topic, log.key.partition, log.key.broker): log.log_end for log in self._logs}
        return [
            LogFacts(
                segments=log.segments,
                log_start_offset=log.log_start,
                log_end_offset=log.log_end,
                high_watermark=self._high_watermark(log, ends),
                last_stable_offset=-1,
                cleaner_checkpoint=-1,
                oldest_record_ms=log.first_ms,
                limits=limits_of(log.key.broker, log.key.topic, self._cluster.configs(log.key)),
                moving=(log.key.broker, log.key.topic, log.key.partition) in self._moving,
            )
            for log in self._logs
        ]

    def _high_watermark(self, log: _Log, ends: Mapping[tuple[str, int, int], int]) -> int:
        """Up to where a log is replicated: by the logs of the in-sync replicas if all of them are here, else by the checkpoint, if it says.

        The checkpoint of a running broker is seconds old: a high watermark in the active segment follows the end of the log.
        """
        state = self._cluster.partition(log.key)
        in_sync = [] if state is None else [ends.get((log.key.topic, log.key.partition, broker), -1) for broker in state.isr]
        if in_sync and min(in_sync) >= 0:
            return min(log.log_end, *in_sync)
        active = int(log.segments["base_offset"][-1])
        return log.log_end if log.checkpoint >= active else max(log.checkpoint, -1)

    def _doubts(self, logs: LogsThere) -> Iterator[str]:
        yield from unseen_dirs(self._log_dirs, self._cluster)
        if not self._cluster.known and any(each.assumed for each in logs.limits):
            yield no_metadata(self._cluster, ASSUMED_LIMITS)
        if self._times.undated:
            yield f"the time index of {format_count(self._times.undated, 'segment')} is missing or wrong: the time of the file is taken"
        if self._links:
            some = ", ".join(format_name(path, 300) for path in self._links[:3])
            yield f"{format_count(len(self._links), 'symbolic link')} {'is' if len(self._links) == 1 else 'are'} not followed: {some}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Log:
    """A live log as it was read; ``checkpoint``: its high watermark by the checkpoint, -1 none, `UNREADABLE` for a file without a use."""

    key: LogKey
    segments: NDArray[np.void]
    log_start: int
    log_end: int
    checkpoint: int
    recovery_point: int
    first_ms: int
    active_first_ms: int


def _directory(log_dir: LogDir, name: PartitionDir) -> str:
    """That of a live log."""
    return f"{log_dir.path}/{name.topic}-{name.partition}"


def _entry(checkpoint: Mapping[tuple[str, int], int] | None, place: tuple[str, int]) -> int:
    return UNREADABLE if checkpoint is None else checkpoint.get(place, NO_ENTRY)


def _points(logs: Sequence[_Log]) -> RecoveryPoints:
    """What lies below a recovery point in its segment counts as above it: the index was not read."""
    offset = np.array([log.recovery_point for log in logs], np.int64)
    return RecoveryPoints(offset=offset, position=np.zeros_like(offset))
