"""The phase of each broker, whether its process is there, and the partitions of the cluster, from all that agents report of each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from streaming.broker.protocol.cluster_messages import (
    AffectedPartition,
    MetadataChanges,
    PackedMessage,
    PartitionCounts,
    Reassignment,
    Registered,
)
from streaming.broker.protocol.listing_json import AwayBroker
from streaming.broker.protocol.status_messages import BrokerStatus, LogDirStatus, ProcessStatus, ScrubStatus
from streaming.cluster.view.family import EVERYTHING, Export
from streaming.common.definitions import replica_metrics
from streaming.common.definitions.client_family import client_family
from streaming.errors import AgentError
from streaming.kafka.formats.metadata_records import Phase
from streaming.rules.broker_process import AWAY, LockState, ProcessState

if TYPE_CHECKING:
    from prometheus_client import Metric as Samples


log = logging.getLogger(__name__)

FENCED_MS = 60_000
"""A controller has fenced a broker by then whose process has ended (``broker.session.timeout.ms``, 9 s by default)."""

_NOT_ASKED = "not all log dirs that it is registered with are asked"
_RUNS_ELSEWHERE = "its .lock is not held, but the controller gets heartbeats of it: this is a copy, or it runs where its locks are not seen"

CURRENT_OFFSETS = 120
"""A process runs if its copy of the metadata log is behind by at most so many offsets: an idle controller writes these in a minute."""

_Report = TypeVar("_Report", LogDirStatus, ScrubStatus)
_Packed = TypeVar("_Packed", bound=PackedMessage)

EXAMPLES = 5
"""The most partitions of a topic that are exported for each problem."""

MOST_AFFECTED = 1_000
"""The most partitions that are exported in all, the offline ones first."""

_COUNTED = {
    replica_metrics.TOPIC_OFFLINE: "offline",
    replica_metrics.TOPIC_UNDER_MIN_ISR: "under_min_isr",
    replica_metrics.TOPIC_UNDER_REPLICATED: "under_replicated",
}


def broker_phases(brokers: Sequence[BrokerStatus], remembered: Sequence[BrokerStatus] = ()) -> Iterator[BrokerPhase]:
    """The phase of each registered broker, if known, by the most advanced copy: a broker that is down does not read of its own end.

    A copy that begins with a snapshot does not distinguish a broker that starts from one that is down. Another copy may. Else the broker's
    own copy decides: it grows only while the broker's process runs.

    A broker that leads nothing when it is stopped is fenced at once, without a record of its shutdown
    (`BrokerHeartbeatManager.calculateNextBrokerState`). Its own disk decides then. Either its process has read that it was fenced, which a
    killed process never does, or it has written that it was shut down cleanly. A broker without any replica counts as stopped, too: no
    partition misses it.

    The locks of its log dirs show more. A process that was seen to end serves no more, before the controller misses its heartbeats, and
    also without a controller. A broker that starts without a process does not start. A process that came up, while the registration is
    still the one before it, starts: in the metadata log its broker is as it was left, so for some seconds it even seems to serve. Whether
    log dirs that no process was seen to hold are those of a broker that serves elsewhere, they do not show: it is as the metadata log has
    it.

    Args:
        remembered: the last statuses of agents that do not answer any more.
    """
    latest = newest(brokers)
    if latest is None:
        return
    processes = broker_processes(brokers)
    for registered in sorted(latest.registered, key=lambda each: each.broker):
        process = processes.get(registered.broker)
        phase = _phase(registered, latest, brokers, process)
        if process is not None and process.has_not_registered(registered.epoch):
            since = process.since_ms / 1000 if process.since_ms >= 0 else None
            yield BrokerPhase(registered.broker, Phase.STARTING, since, registered=False)
            continue
        since_ms, away = _since_ms(registered, phase, process), _is_away(phase, process)
        if away:
            phase = Phase.DOWN
        if phase is Phase.DOWN and (registered.replicas is False or _was_stopped(registered, [*brokers, *remembered], away=away)):
            phase = Phase.STOPPING
        if phase is not None:
            yield BrokerPhase(registered.broker, phase, None if since_ms < 0 else since_ms / 1000)


@dataclass(frozen=True, slots=True)
class BrokerPhase:
    """A broker's phase, and since when at the latest, Unix seconds; None where that is not known."""

    broker: int
    phase: Phase
    since: float | None
    registered: bool = True  # false if it starts, and its process has not registered yet


def newest(brokers: Iterable[BrokerStatus]) -> BrokerStatus | None:
    """The broker with the most advanced copy of the metadata log: a broker that is down does not read of its own end."""
    return max(brokers, key=lambda each: each.metadata_offset, default=None)


def broker_processes(brokers: Sequence[BrokerStatus]) -> dict[int, ProcessStatus]:
    """What is known of the process of each broker.

    Whether the process of each broker is there, by what all agents have asked of its log dirs, and by what the cluster knows of it.

    Args:
        brokers: the status of each, by `streaming.cluster.view.broker_status.each_broker`.
    """
    latest = max(brokers, key=lambda each: each.metadata_offset, default=None)
    registered = {} if latest is None else {each.broker: each for each in latest.registered}
    appended_ms = -1 if latest is None else latest.appended_ms
    found = {each.broker: (each, each.process) for each in brokers if each.process is not None}
    return {
        broker: _judged(process, status, registered.get(broker), -1 if latest is status else appended_ms)
        for broker, (status, process) in sorted(found.items())
    }


def _judged(process: ProcessStatus, status: BrokerStatus, registered: Registered | None, appended_ms: int) -> ProcessStatus:
    """The report, unless something else shows that it is not the whole truth.

    Args:
        appended_ms: when another broker's copy of the metadata log, the most advanced one, last grew; -1 where that is not known.
    """
    if process.state not in AWAY:
        return process
    is_enough = process.keeps_metadata and process.state == ProcessState.FREE
    if status.log_dirs and not is_enough and not {*status.log_dirs} <= {*process.free}:
        return _unknown(process, _NOT_ASKED)
    away_ms = process.since_ms if process.since_ms >= 0 else process.last_ms
    if registered is not None and not registered.fenced and appended_ms - away_ms > FENCED_MS:
        return _unknown(process, _RUNS_ELSEWHERE)
    return process


def _unknown(process: ProcessStatus, why: str) -> ProcessStatus:
    return replace(process, state=ProcessState.UNKNOWN, why=why, since_ms=-1)


def _phase(registered: Registered, latest: BrokerStatus, brokers: Sequence[BrokerStatus], process: ProcessStatus | None) -> Phase | None:
    """The phase by the metadata log, and where that does not show it, by whether the process came up or the broker's own copy grows."""
    if registered.phase:
        return Phase(registered.phase)
    if not registered.fenced:
        return Phase.RUNNING
    if registered.epoch < 0:  # its registration does not name it
        return None
    same = [(status.metadata_offset, each) for status in brokers for each in status.registered if _same(each, registered)]
    phases = [(offset, each.phase) for offset, each in same if each.phase]
    if phases:
        return Phase(max(phases)[1])
    if process is not None and process.state == ProcessState.UP and process.since_ms >= 0:
        return Phase.STARTING
    own = next((status.metadata_offset for status in brokers if status.broker == registered.broker), -1)
    return Phase.STARTING if own >= latest.metadata_offset - CURRENT_OFFSETS else Phase.DOWN


def _same(each: Registered, other: Registered) -> bool:
    """Whether both are about the same registration, and it is fenced."""
    return (each.broker, each.epoch, each.fenced) == (other.broker, other.epoch, True)


def _since_ms(registered: Registered, phase: Phase | None, process: ProcessStatus | None) -> int:
    """Since when at the latest the broker has its phase: it is down since its process has ended, if that is known; Unix ms, -1 unknown."""
    if process is None or not (_is_away(phase, process) or (phase is Phase.DOWN and process.state in AWAY)):
        return registered.since_ms
    known = [registered.since_ms if phase is Phase.DOWN else -1, process.since_ms]
    return min((each for each in known if each >= 0), default=-1)


def _is_away(phase: Phase | None, process: ProcessStatus | None) -> bool:
    """Whether the broker is down although that is not its phase by the metadata log, or not known."""
    if process is None or phase is Phase.STOPPING:
        return False
    return process.state == ProcessState.ENDED or (process.state == ProcessState.FREE and phase is not Phase.RUNNING)


def _was_stopped(registered: Registered, brokers: Iterable[BrokerStatus], *, away: bool) -> bool:
    """Whether the broker's own disk shows that its process ran when it was fenced, or was shut down cleanly.

    Args:
        away: the metadata log has not fenced it since it served, or it has not served: then a clean end alone counts.
    """
    own = [(status, each) for status in brokers if status.broker == registered.broker for each in status.registered]
    same = [(status, each) for status, each in own if (each.broker, each.epoch) == (registered.broker, registered.epoch)]
    return any(status.clean or (each.fenced and not away) for status, each in same)


def away_brokers(processes: Mapping[int, ProcessStatus]) -> list[AwayBroker]:
    """The brokers without a process, as pages name them."""
    away = {broker: each for broker, each in processes.items() if each.state in AWAY}
    return [AwayBroker(broker=broker, last_ms=each.last_ms, ended_ms=each.since_ms) for broker, each in sorted(away.items())]


def is_given_up(log_dir: LogDirStatus, processes: Mapping[int, ProcessStatus]) -> bool:
    """Whether the broker has let go of a log dir although its process is there: after an I/O error it uses it no more."""
    process = processes.get(log_dir.broker)
    return log_dir.lock == LockState.FREE and process is not None and process.state == ProcessState.UP


def server_of_cluster(brokers: Iterable[BrokerStatus]) -> str:
    """Where clients reach the cluster, HOST:PORT: a broker that is not fenced if there is one; "" if none is known."""
    latest = newest(brokers)
    reached = [] if latest is None else [each for each in latest.registered if each.server]
    return min(reached, key=lambda each: (each.fenced, each.broker)).server if reached else ""


def unwatched_log_dirs(
    brokers: Iterable[BrokerStatus], watched: Mapping[int, frozenset[str]], unnamed: Mapping[int, int]
) -> dict[int, int]:
    """How many registered log dirs of each broker no agent watches; only for brokers whose registration lists any.

    Args:
        watched: the directory ids that agents watch, by broker.
        unnamed: how many watched log dirs have a directory id that was never readable, by broker.
    """
    registered = {each.broker: set(each.log_dirs) for each in sorted(brokers, key=lambda each: each.metadata_offset) if each.log_dirs}
    return {
        broker: max(0, len(directories - watched.get(broker, frozenset())) - unnamed.get(broker, 0))
        for broker, directories in sorted(registered.items())
    }


def each_broker(statuses: Iterable[BrokerStatus]) -> list[BrokerStatus]:
    """The status with the most advanced copy of the metadata log, with what any agent has found out about the broker's files."""
    by_broker: dict[int, BrokerStatus] = {}
    for each in statuses:
        other = by_broker.setdefault(each.broker, each)
        if other is not each:
            best = max(other, each, key=lambda status: (status.readable, status.expected, status.metadata_offset))
            snapshot = any(status.readable and status.snapshot for status in (other, each)) or best.snapshot
            process = process_by_all([other.process, each.process])
            by_broker[each.broker] = replace(best, snapshot=snapshot, clean=other.clean or each.clean, process=process)
    return list(by_broker.values())


def process_by_all(reports: Iterable[ProcessStatus | None]) -> ProcessStatus | None:
    """What agents have found out together that have asked the same or different log dirs of a broker; None if none of them asks.

    It is up if any of them sees that. That it is away needs all of them.
    """
    known = [each for each in reports if each is not None]
    up = max((each for each in known if each.state == ProcessState.UP), key=lambda each: each.before, default=None)
    if up is not None or not known:
        return up
    free = sorted({name for each in known for name in each.free})
    unknown = next((each for each in known if each.state not in AWAY), None)
    if unknown is not None:
        return replace(unknown, free=free)
    ended = [each for each in known if each.state == ProcessState.ENDED]
    latest = max(ended or known, key=lambda each: each.last_ms)
    return replace(latest, free=free)


def each_log_dir(statuses: Iterable[LogDirStatus]) -> list[LogDirStatus]:
    """That of an agent that can read the log dir, with the latest checkpoint."""
    return _best_of_each(statuses, lambda status: (status.up, status.checkpoint_ms))


def _best_of_each(reports: Iterable[_Report], rank: Callable[[_Report], tuple[int, ...]]) -> list[_Report]:
    """The report with the highest rank of each log dir, the first of equals."""
    by_log_dir: dict[tuple[int, str], _Report] = {}
    for each in reports:
        other = by_log_dir.setdefault((each.broker, each.log_dir), each)
        by_log_dir[each.broker, each.log_dir] = max(other, each, key=rank)
    return list(by_log_dir.values())


def each_scrub(scrubs: Iterable[ScrubStatus]) -> list[ScrubStatus]:
    """That which has found most, with the latest pass."""
    return _best_of_each(scrubs, lambda scrub: (scrub.corrupt, scrub.unreadable, scrub.ended_ms))


def families(newest: BrokerStatus | None, export: Export = EVERYTHING, min_isr: Callable[[int], int] = lambda _: 1) -> Iterator[Samples]:
    """One family per metric; none if no copy can be read.

    Args:
        newest: the status of the broker with the most advanced copy, among those whose agents count.
        min_isr: returns min.insync.replicas of a broker, if the metadata log sets none.
    """
    counts = None if newest is None else judged_counts(newest.counts, min_isr(newest.broker))
    if counts is None or not export.has_metric(replica_metrics.TOPIC_PARTITIONS):
        return
    topics = [each for each in counts.topics if export.has_topic(each.topic)]
    yield client_family(replica_metrics.TOPIC_PARTITIONS, (([each.topic], each.partitions) for each in topics))
    for metric, name in _COUNTED.items():
        yield client_family(metric, (([each.topic], getattr(each, name)) for each in topics if getattr(each, name)))
    yield client_family(replica_metrics.AFFECTED_PARTITION, ((_labels(each), 1) for each in _examples(counts.affected, export)))
    recovering = (each for each in counts.recovering if export.has_topic(each.topic))
    yield client_family(replica_metrics.RECOVERING, (([each.topic, str(each.partition)], 1) for each in recovering))


@lru_cache(maxsize=4)
def judged_counts(packed: str, min_isr: int) -> PartitionCounts | None:
    """The counts, with partitions under min ISR also if only a ``server.properties`` sets min.insync.replicas.

    None if there are none, or if they are not understood.
    """
    counts = _unpacked(packed)
    if counts is None:
        return None
    open_topics = {each.topic: each for each in counts.topics if each.in_sync}
    topics = [
        replace(each, under_min_isr=sum(count for sizes, count in each.in_sync.items() if _is_under(sizes, min_isr)))
        if each.in_sync
        else each
        for each in counts.topics
    ]
    affected = [_worse(each, min_isr, open_topics[each.topic].in_sync) if each.topic in open_topics else each for each in counts.affected]
    return replace(counts, topics=topics, affected=affected)


@lru_cache(maxsize=4)
def _unpacked(packed: str) -> PartitionCounts | None:
    """The counts; None if there are none, or if they are not understood."""
    return _understood(PartitionCounts, packed, "counts of partitions")


def _understood(kind: type[_Packed], packed: str, what: str) -> _Packed | None:
    try:
        return kind.unpack(packed) if packed else None
    except AgentError as error:
        log.error("%s are not understood: is the agent of another version?", what, extra={"error": str(error)})
        return None


def _is_under(sizes: str, min_isr: int) -> bool:
    in_sync, _, replicas = sizes.partition("/")
    return int(in_sync) < (min(min_isr, int(replicas)) if replicas else min_isr)


def _worse(partition: AffectedPartition, min_isr: int, in_sync: Mapping[str, int]) -> AffectedPartition:
    """The partition. An under-replicated one is under min ISR too, if partitions of its topic with as many replicas in sync are."""
    alike = [sizes for sizes in in_sync if sizes.startswith(f"{len(partition.in_sync)}/")]
    under = partition.problem == "under_replicated" and any(_is_under(sizes, min_isr) for sizes in alike)
    return replace(partition, problem="under_min_isr") if under else partition


def _labels(partition: AffectedPartition) -> list[str]:
    brokers = (",".join(map(str, some)) for some in (partition.in_sync, partition.out_of_sync, partition.electable))
    return [partition.topic, str(partition.partition), partition.problem, str(partition.leader), *brokers]


def _examples(affected: Iterable[AffectedPartition], export: Export) -> Iterator[AffectedPartition]:
    """A few partitions of each topic and problem, those in the order of the list."""
    left: dict[tuple[str, str], int] = {}
    named = 0
    for each in affected:
        if export.has_topic(each.topic):
            most = min(left.setdefault((each.topic, each.problem), EXAMPLES), MOST_AFFECTED - named)
            for number in each.partitions[:most]:
                left[each.topic, each.problem] -= 1
                named += 1
                yield replace(each, partition=number)


def reassignments(newest: BrokerStatus | None) -> list[Reassignment]:
    """The reassignments that are under way."""
    counts = None if newest is None else _unpacked(newest.counts)
    return [] if counts is None else counts.reassignments


def topic_partitions(newest: BrokerStatus | None) -> dict[str, int] | None:
    """How many partitions each topic of the cluster has, None if that is not known."""
    counts = None if newest is None else _unpacked(newest.counts)
    return None if counts is None else {each.topic: each.partitions for each in counts.topics}


def topic_ids(newest: BrokerStatus | None) -> dict[str, str] | None:
    """The id of each topic of the cluster; None if that is not known."""
    counts = None if newest is None else _unpacked(newest.counts)
    return None if counts is None else {each.topic: each.topic_id for each in counts.topics}


@lru_cache(maxsize=4)
def admin_changes(packed: str) -> MetadataChanges | None:
    """What admins did; None if that is not known, or not understood."""
    return _understood(MetadataChanges, packed, "changes of the metadata log")
