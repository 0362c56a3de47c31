"""Whether the process of each broker is there, by what all agents have asked of its log dirs, and by what the cluster knows of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from streaming.broker.protocol.cluster_messages import Registered
from streaming.broker.protocol.listing_json import AwayBroker
from streaming.broker.protocol.status_messages import BrokerStatus, LogDirStatus, ProcessStatus
from streaming.rules.broker_process import AWAY, LockState, ProcessState

FENCED_MS = 60_000
"""A controller has fenced a broker by then whose process has ended (``broker.session.timeout.ms``, 9 s by default)."""

_NOT_ASKED = "not all log dirs that it is registered with are asked"
_RUNS_ELSEWHERE = "its .lock is not held, but the controller gets heartbeats of it: this is a copy, or it runs where its locks are not seen"


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


def broker_processes(brokers: Sequence[BrokerStatus]) -> dict[int, ProcessStatus]:
    """What is known of the process of each broker.

    Args:
        brokers: the status of each, by `streaming.cluster.view.reported_once.each_broker`.
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
    if status.log_dirs and not {*status.log_dirs} <= {*process.free}:
        return _unknown(process, _NOT_ASKED)
    away_ms = process.since_ms if process.since_ms >= 0 else process.last_ms
    if registered is not None and not registered.fenced and appended_ms - away_ms > FENCED_MS:
        return _unknown(process, _RUNS_ELSEWHERE)
    return process


def _unknown(process: ProcessStatus, why: str) -> ProcessStatus:
    return replace(process, state=ProcessState.UNKNOWN, why=why, since_ms=-1)


def away_brokers(processes: Mapping[int, ProcessStatus]) -> list[AwayBroker]:
    """The brokers without a process, as pages name them."""
    away = {broker: each for broker, each in processes.items() if each.state in AWAY}
    return [AwayBroker(broker=broker, last_ms=each.last_ms, ended_ms=each.since_ms) for broker, each in sorted(away.items())]


def is_given_up(log_dir: LogDirStatus, processes: Mapping[int, ProcessStatus]) -> bool:
    """Whether the broker has let go of a log dir although its process is there: after an I/O error it uses it no more."""
    process = processes.get(log_dir.broker)
    return log_dir.lock == LockState.FREE and process is not None and process.state == ProcessState.UP
