"""What agents report about brokers, log dirs and scrubs, as metric families. Of an agent that is down nothing is exported: it is old."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from streaming.broker.protocol.cluster_messages import Registered
from streaming.broker.protocol.status_messages import BlockedFile, BrokerStatus, LogDirStatus, ScrubStatus
from streaming.cluster.view.broker_status import broker_phases, broker_processes, is_given_up, newest, unwatched_log_dirs
from streaming.cluster.view.table import Replica
from streaming.common.definitions import broker_metrics
from streaming.common.definitions.client_family import client_family
from streaming.kafka.formats.metadata_records import Phase
from streaming.rules.broker_process import AWAY, ProcessState

if TYPE_CHECKING:
    from prometheus_client import Metric as Samples


_OTHER = ("deleted", "delete", "stray", "future", "index", "metadata")
"""Kinds of bytes that belong to no live log, by the names of `streaming.broker.protocol.status_messages.LogDirStatus`."""

_SET_ASIDE = ("stray_only", "unnamed")
"""Logs that no broker serves, or will, by the same names."""

_RESTART = {
    broker_metrics.LOG_DIR_RECOVERY: "recovery_bytes",
    broker_metrics.LOG_DIR_NOT_FSYNCED: "not_fsynced_bytes",
    broker_metrics.LOG_DIR_RECOVERING: "recovering_bytes",
}
"""What a restart costs, by the same names; -1 is not known."""


def scrub_families(scrubs: Sequence[ScrubStatus]) -> Iterator[Samples]:
    """One family per metric. ``scrubs``: of the agents that are up."""
    yield client_family(broker_metrics.SCRUB_CHECKED, ((_of(each), each.checked) for each in scrubs))
    yield client_family(broker_metrics.SCRUB_PASS_RATIO, ((_of(each), _ratio(each)) for each in scrubs if each.began_ms >= 0))
    yield client_family(broker_metrics.SCRUB_PASS_START, ((_of(each), each.began_ms / 1000) for each in scrubs if each.began_ms >= 0))
    yield client_family(broker_metrics.SCRUB_LAST_PASS, ((_of(each), each.ended_ms / 1000) for each in scrubs if each.ended_ms >= 0))
    yield client_family(broker_metrics.SCRUB_CORRUPT, ((_of(each), each.corrupt) for each in scrubs))
    yield client_family(broker_metrics.SCRUB_UNREADABLE, ((_of(each), each.unreadable) for each in scrubs))
    yield client_family(
        broker_metrics.SCRUB_BLOCKED, (((*_of(each), each.waits_at), each.waits_seconds) for each in scrubs if each.waits_at)
    )
    yield client_family(broker_metrics.SCRUB_CORRUPT_PLACE, _corrupt_batches(scrubs))


def _of(status: LogDirStatus | ScrubStatus) -> tuple[str, str]:
    return "" if status.broker < 0 else str(status.broker), status.log_dir


def _ratio(scrub: ScrubStatus) -> float:
    if scrub.ended_ms >= scrub.began_ms:
        return 1.0
    return scrub.logs_checked / scrub.logs if scrub.logs else 0.0


def _corrupt_batches(scrubs: Iterable[ScrubStatus]) -> Iterator[tuple[tuple[object, ...], float]]:
    for scrub in scrubs:
        for each in scrub.corrupt_batches:
            segment = PurePath(each.path).name
            yield (*_of(scrub), each.topic, each.partition, segment, each.offset, each.fault), each.position


def families(
    brokers: Sequence[BrokerStatus],
    log_dirs: Sequence[LogDirStatus],
    watched: Watched,
    blocked: Iterable[BlockedFile] = (),
    full: Mapping[tuple[int, str], float] | None = None,
) -> Iterator[Samples]:
    """One family per metric.

    Args:
        brokers: of the agents that are up.
        log_dirs: of the same agents.
        blocked: files in which calls of agents that are up wait.
        full: when log dirs are full, Unix seconds, by broker and path.
    """
    readable = [each for each in log_dirs if each.up]
    processes = broker_processes(brokers)
    used = ((_of(each), each.up and each.registered is not False and not is_given_up(each, processes)) for each in log_dirs)
    yield client_family(broker_metrics.LOG_DIR_UP, used)
    yield client_family(broker_metrics.LOG_DIR_BLOCKED, (((each.broker, each.log_dir, each.path), each.seconds) for each in blocked))
    yield client_family(broker_metrics.LOG_DIR_FREE, ((_of(each), each.free) for each in readable))
    yield client_family(broker_metrics.LOG_DIR_CAPACITY, ((_of(each), each.capacity) for each in readable))
    yield client_family(
        broker_metrics.LOG_DIR_FULL,
        ((_of(each), at) for each in readable if (at := (full or {}).get((each.broker, each.log_dir))) is not None),
    )
    yield client_family(
        broker_metrics.LOG_DIR_CHECKPOINT, ((_of(each), each.checkpoint_ms / 1000) for each in readable if is_checkpointed(each))
    )
    yield client_family(broker_metrics.LOG_DIR_OTHER, (((*_of(each), kind), getattr(each, kind)) for each in readable for kind in _OTHER))
    aside = (((*_of(each), kind), getattr(each, kind)) for each in readable for kind in _SET_ASIDE)
    yield client_family(broker_metrics.LOG_DIR_SET_ASIDE, aside)
    for metric, name in _RESTART.items():
        yield client_family(metric, ((_of(each), size) for each in readable if (size := getattr(each, name)) >= 0))
    yield client_family(broker_metrics.BROKER_FENCED, (((each.broker,), each.fenced) for each in _registered(brokers)))
    seen = {broker: each.state for broker, each in processes.items() if each.state in (ProcessState.UP, *AWAY)}
    yield client_family(broker_metrics.PROCESS_UP, (((broker,), state == ProcessState.UP) for broker, state in seen.items()))
    yield from _broker_families(brokers, watched.remembered)
    yield client_family(
        broker_metrics.UNOBSERVED, (((broker,), count) for broker, count in sorted(unobserved(brokers, watched.brokers).items()))
    )
    unwatched = unwatched_log_dirs(brokers, watched.directories, watched.unnamed) if watched.complete else {}
    yield client_family(broker_metrics.UNWATCHED_LOG_DIRS, (((broker,), count) for broker, count in unwatched.items()))
    yield client_family(broker_metrics.CONTROLLER, (((), controller) for controller in _controller(brokers)))


@dataclass(frozen=True, slots=True)
class Watched:
    """What agents watch, whether they are up or down: brokers, directory ids of log dirs, and how many log dirs have no known id."""

    brokers: frozenset[int]
    directories: Mapping[int, frozenset[str]]
    unnamed: Mapping[int, int]
    complete: bool
    """Every agent has reported what it watches."""
    remembered: Sequence[BrokerStatus] = ()
    """The last broker statuses of agents that are down."""


def is_checkpointed(each: LogDirStatus) -> bool:
    """Whether a running broker writes its high watermarks there: it does if it has a replica there, and uses the log dir."""
    return each.checkpoint_ms >= 0 and each.hosts and each.registered is not False


def _registered(brokers: Iterable[BrokerStatus]) -> list[Registered]:
    latest = newest(brokers)
    return [] if latest is None else sorted(latest.registered, key=lambda each: each.broker)


def _broker_families(brokers: Sequence[BrokerStatus], remembered: Sequence[BrokerStatus]) -> Iterator[Samples]:
    """The phases of brokers, and how their copies of the metadata log grow."""
    found = list(broker_phases(brokers, remembered))
    yield client_family(broker_metrics.BROKER_STATUS, (((each.broker, phase), phase is each.phase) for each in found for phase in Phase))
    yield client_family(broker_metrics.BROKER_STATUS_SINCE, (((each.broker,), each.since) for each in found if each.since is not None))
    readable = [each for each in brokers if each.metadata_offset >= 0]
    yield client_family(broker_metrics.METADATA_OFFSET, (((each.broker,), each.metadata_offset) for each in readable))
    growing = [each for each in readable if each.appended_ms >= 0]
    yield client_family(broker_metrics.METADATA_LAST_APPEND, (((each.broker,), each.appended_ms / 1000) for each in growing))
    yield client_family(broker_metrics.METADATA_SNAPSHOT_READABLE, (((each.broker,), each.snapshot) for each in readable))


def unobserved(brokers: Iterable[BrokerStatus], watched: frozenset[int]) -> dict[int, int]:
    """How many partitions each broker leads, for brokers that no agent watches."""
    latest = newest(brokers)
    return {} if latest is None else {led.broker: led.partitions for led in latest.led if led.broker not in watched}


def _controller(brokers: Iterable[BrokerStatus]) -> list[int]:
    """The controller that most brokers name; empty if no broker names one."""
    named = Counter(each.controller for each in brokers if each.controller >= 0)
    return [named.most_common(1)[0][0]] if named else []


def last_written(brokers: Iterable[BrokerStatus], log_dirs: Iterable[LogDirStatus]) -> dict[int, int]:
    """When each broker last wrote into its log dirs, Unix milliseconds, -1 not known: one that runs does so every five seconds."""
    times = [(each.broker, each.appended_ms) for each in brokers]
    found = dict[int, int]()
    for broker, at_ms in (*times, *((each.broker, each.checkpoint_ms) for each in log_dirs if is_checkpointed(each))):
        found[broker] = max(at_ms, found.get(broker, -1))
    return found


def fenced(brokers: Iterable[BrokerStatus]) -> list[int]:
    """Brokers that the controller has fenced off."""
    return [each.broker for each in _registered(brokers) if each.fenced]


def coordinator_partitions(brokers: Iterable[BrokerStatus]) -> int | None:
    """How many partitions `__transaction_state` has: 0 if there is no such topic, None if it is not known."""
    return max((each.transaction_partitions for each in brokers if each.transaction_partitions is not None), default=None)


def corrupt_replicas(scrubs: Iterable[ScrubStatus]) -> dict[Replica, int]:
    """The damaged places of each replica that has any."""
    return {Replica(scrub.broker, each.topic, each.partition): each.batches for scrub in scrubs for each in scrub.corrupt_logs}
