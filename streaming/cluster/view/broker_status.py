"""The phase of each broker, from all copies of the metadata log together, and which of its log dirs no agent watches."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from streaming.broker.protocol.cluster_messages import Registered
from streaming.broker.protocol.status_messages import BrokerStatus, ProcessStatus
from streaming.cluster.view.process_reports import broker_processes
from streaming.kafka.formats.metadata_records import Phase
from streaming.rules.broker_process import AWAY, ProcessState

CURRENT_OFFSETS = 120
"""A process runs if its copy of the metadata log is behind by at most so many offsets: an idle controller writes these in a minute."""


@dataclass(frozen=True, slots=True)
class BrokerPhase:
    """A broker's phase, and since when at the latest, Unix seconds; None where that is not known.

    ``registered``: false if it starts, and its process has not registered yet.
    """

    broker: int
    phase: Phase
    since: float | None
    registered: bool = True


def broker_phases(brokers: Sequence[BrokerStatus], remembered: Sequence[BrokerStatus] = ()) -> Iterator[BrokerPhase]:
    """The phase of each registered broker, if known, by the most advanced copy: a broker that is down does not read of its own end.

    A copy that begins with a snapshot does not distinguish a broker that starts from one that is down. Another copy may. Else the broker's
    own copy decides: it grows only while the broker's process runs.

    A broker that leads nothing when it is stopped is fenced at once, without a record of its shutdown
    (`BrokerHeartbeatManager.calculateNextBrokerState`). Its own disk decides then. Either its process has read that it was fenced, which a
    killed process never does, or it has written that it was shut down cleanly. A broker without any replica counts as stopped, too: nobody
    misses it.

    The locks of its log dirs show more. A process that was seen to end serves no more, before the controller misses its heartbeats, and
    also without a controller. A broker that starts without a process does not start. A process that came up, while the registration is
    still the one before it, starts: in the metadata log its broker is as it was left, so for some seconds it even seems to serve. Whether
    log dirs that nobody was seen to hold are those of a broker that serves elsewhere, they do not show: it is as the metadata log has it.

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


def _is_away(phase: Phase | None, process: ProcessStatus | None) -> bool:
    """Whether the broker is down although that is not its phase by the metadata log, or not known."""
    if process is None or phase is Phase.STOPPING:
        return False
    return process.state == ProcessState.ENDED or (process.state == ProcessState.FREE and phase is not Phase.RUNNING)


def _since_ms(registered: Registered, phase: Phase | None, process: ProcessStatus | None) -> int:
    """Since when at the latest the broker has its phase: it is down since its process has ended, if that is known; Unix ms, -1 unknown."""
    if process is None or not (_is_away(phase, process) or (phase is Phase.DOWN and process.state in AWAY)):
        return registered.since_ms
    known = [registered.since_ms if phase is Phase.DOWN else -1, process.since_ms]
    return min((each for each in known if each >= 0), default=-1)


def newest(brokers: Iterable[BrokerStatus]) -> BrokerStatus | None:
    """The broker with the most advanced copy of the metadata log: a broker that is down does not read of its own end."""
    return max(brokers, key=lambda each: each.metadata_offset, default=None)


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


def _was_stopped(registered: Registered, brokers: Iterable[BrokerStatus], *, away: bool) -> bool:
    """Whether the broker's own disk shows that its process ran when it was fenced, or was shut down cleanly.

    Args:
        away: the metadata log has not fenced it since it served, or it has not served: then a clean end alone counts.
    """
    own = [(status, each) for status in brokers if status.broker == registered.broker for each in status.registered]
    same = [(status, each) for status, each in own if (each.broker, each.epoch) == (registered.broker, registered.epoch)]
    return any(status.clean or (each.fenced and not away) for status, each in same)


def _same(each: Registered, other: Registered) -> bool:
    """Whether both are about the same registration, and it is fenced."""
    return (each.broker, each.epoch, each.fenced) == (other.broker, other.epoch, True)
