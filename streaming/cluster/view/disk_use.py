"""What a job knows of disks: sizes and segments of all replicas, free space as agents report it, and when each log dir is full."""

from collections.abc import Iterator, Sequence

import numpy as np

from streaming.broker.disk.dir_usage import DiskFileKind
from streaming.broker.protocol.status_messages import LogDirStatus
from streaming.cluster.usage.disk_answer import DiskContents
from streaming.cluster.usage.reckoning import DirFacts, LogsThere, Reckoning, ReplicaSizes, RestartFacts
from streaming.cluster.view.disk_forecasts import ByDir, DiskHistory, space_of
from streaming.cluster.view.exported import Observed
from streaming.cluster.view.observer import AgentStatus
from streaming.cluster.view.table import Table
from streaming.cluster.view.view import View
from streaming.kafka.formats.names import METADATA_TOPIC
from streaming.rules.restart_cost import RecoveryPoints
from streaming.rules.space_outlook import NEVER

_KINDS = {
    "deleted": DiskFileKind.DELETED,
    "delete": DiskFileKind.DELETE,
    "stray": DiskFileKind.STRAY,
    "future": DiskFileKind.FUTURE,
    "index": DiskFileKind.INDEX,
    "metadata": DiskFileKind.METADATA,
}
"""The kinds that agents tell apart, by their names in `LogDirStatus`."""


def full_now(table: Table, view: View, agents: Sequence[AgentStatus], now_ms: int) -> ByDir:
    """`full_by_dir` of a job, which looks at free bytes each time, and at all logs once a minute, or more often while a disk fills fast."""
    history = table.disk_history
    lacks = _lacks(view.observed)
    dirs = [(agent, each) for agent in agents for each in agent.log_dirs if each.up and each.free >= 0]
    found = space_of((_device(*each), each[1].free, each[1].capacity, lacks.get((each[1].broker, each[1].log_dir), 0)) for each in dirs)
    filling = history is not None and history.look(found, now_ms)
    return table.full_times.of(lambda: full_by_dir(view, agents, now_ms, history), now_ms, filling=filling)


def _lacks(observed: Observed) -> dict[tuple[int, str], int]:
    """The bytes that replicas out of sync have still to copy, by broker and log dir, by the mean size of an offset of their leaders."""
    columns, replicas = observed.columns, observed.replica_offsets
    behind = np.flatnonzero((replicas["in_sync"] == 0) & (replicas["in_sync_replicas"] >= 0) & (replicas["replica_lag_offsets"] > 0))
    if not len(behind):
        return {}
    leading = np.flatnonzero(observed.roles.leads)
    leader_of = np.full(int(columns["replicas_of"].max()) + 1, -1, np.int64)
    leader_of[columns["replicas_of"][leading]] = leading
    leader = leader_of[columns["replicas_of"][behind]]
    offsets = columns["log_end_offset"][leader] - np.maximum(columns["log_start_offset"][leader], 0)
    share = np.minimum(replicas["replica_lag_offsets"][behind] / np.maximum(offsets, 1), 1.0)
    lacking = np.where(leader >= 0, np.maximum(replicas["size_bytes"][leader], 0) * share, 0.0)
    by_dir = np.bincount(columns["log_dir"][behind], lacking, minlength=len(observed.log_dirs))
    return {place: round(size) for place, size in zip(observed.log_dirs, by_dir.tolist(), strict=True) if size}


def _device(agent: AgentStatus, status: LogDirStatus) -> int:
    return hash((agent.name, status.device if status.device >= 0 else status.log_dir))


def full_by_dir(view: View, agents: Sequence[AgentStatus], now_ms: int, history: DiskHistory | None = None) -> dict[tuple[int, str], float]:
    """`full_times` of the log dirs of some agents."""
    return dict(full_times(disk_found(view, agents, now_ms, history)))


def full_times(disk: DiskContents) -> Iterator[tuple[tuple[int, str], float]]:
    """Unix seconds by broker and path; without log dirs of which it is not known, or that are not full within a year."""
    reckoning = Reckoning(disk.dirs, disk.replicas, disk.logs, disk.now_ms)
    for number, each in enumerate(disk.dirs):
        found = reckoning.full(number)
        if found is not None and found.at_ms != NEVER:
            yield (each.broker, each.log_dir), found.at_ms / 1000


def disk_found(view: View, agents: Sequence[AgentStatus], now_ms: int, history: DiskHistory | None = None) -> DiskContents:
    """What is known of the log dirs of some agents. Of topics that are not exported nothing is known but what they take.

    If an agent is down, what it has sent of its log dirs is out of date, and they count as not readable.
    """
    observed, retention = view.observed, view.retention
    statuses = {(status.broker, status.log_dir): (agent, status) for agent in agents for status in agent.log_dirs}
    numbers = {place: number for number, place in enumerate(statuses)}
    held = np.zeros(len(statuses), np.int64)
    directory = np.array([numbers.get(place, -1) for place in observed.log_dirs] or [-1], np.int64)[observed.columns["log_dir"]]
    sizes = np.maximum(observed.replica_offsets["size_bytes"], 0)
    data = np.array([name != METADATA_TOPIC for name in observed.names], np.bool_)
    here = directory >= 0
    there = np.flatnonzero(here & data)
    with_metadata = set(directory[~data].tolist())
    np.add.at(held, directory[there], sizes[there])
    shown = retention.items[here[retention.items]]
    place_of = np.full(len(observed.names), -1, np.int64)
    place_of[shown] = np.where(data[shown], np.arange(len(shown)), -1)  # retention frees nothing of the metadata log
    size = sizes[shown]
    lacks = _lacks(observed)
    dirs = [
        _facts(agent, status, int(held[number]), number in with_metadata, lacks.get(place, 0))
        for number, (place, (agent, status)) in enumerate(statuses.items())
    ]
    return DiskContents(
        dirs=dirs if history is None else history.within(dirs, now_ms),
        replicas=ReplicaSizes(
            topics=[observed.names[item] for item in shown.tolist()],
            partition=observed.columns["partition"][shown],
            directory=directory[shown],
            taken=size,
            apparent=size,
            segments=np.where(data[shown], size, 0),
            not_live=np.zeros_like(size),
            live=np.ones(len(shown), np.bool_),
            unread=np.zeros(len(shown), np.bool_),
        ),
        logs=_logs_there(view, place_of),
        leftovers=[],
        doubts=[f"agent {agent.name} does not answer" for agent in agents if not agent.up and not agent.log_dirs],
        now_ms=now_ms,
    )


def _facts(agent: AgentStatus, status: LogDirStatus, held: int, with_metadata: bool, lacks: int) -> DirFacts:
    up = agent.up and status.up
    kinds = {DiskFileKind.SEGMENT.word: (held, held)} | {kind.word: (max(0, getattr(status, name)), -1) for name, kind in _KINDS.items()}
    if not with_metadata:  # agents add the log of the metadata and the small files at the root up
        kinds[DiskFileKind.CHECKPOINT.word] = kinds.pop(DiskFileKind.METADATA.word)
    return DirFacts(
        broker=status.broker,
        log_dir=status.log_dir,
        up=up,
        problem=status.problem if agent.up else f"agent {agent.name} does not answer",
        device=_device(agent, status),
        free=status.free,
        capacity=status.capacity,
        checkpoint_ms=status.checkpoint_ms,
        kinds=kinds if up else {},
        unread={},
        lacks=lacks,
        waiting=max(0, status.deleted) + max(0, status.delete) if up else 0,
        restart=RestartFacts(
            logs=status.recovery_logs,
            scanned=status.recovery_bytes,
            not_fsynced=status.not_fsynced_bytes,
            rate=status.recovery_rate,
            threads=status.recovery_threads,
            clean=status.clean,
            left_logs=status.recovering_logs,
            left_bytes=status.recovering_bytes,
            working=tuple(status.recovering),
        ),
    )


def _logs_there(view: View, place_of: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> LogsThere:
    retention, columns = view.retention, view.observed.columns
    items = retention.items[retention.listed.items]
    known = np.flatnonzero(place_of[items] >= 0)
    limits = [limit for item in retention.listed.items[known].tolist() if (limit := retention.limits[item]) is not None]
    decided = view.observed.decided.take(items[known])
    return LogsThere(
        items=place_of[items[known]],
        logs=retention.listed.logs.take(known),
        limits=limits,
        first_ms=retention.listed.logs.oldest_record[known],
        active_first_ms=columns["active_first_timestamp"][items[known]],
        watched=retention.watched[known],
        points=RecoveryPoints(offset=decided.recovery_point, position=decided.recovery_position),
        assigned=decided.all_replicas,
        away=retention.columns["away"][retention.listed.items[known]],
    )
