"""Where each broker stands, by what all copies of the metadata log say together, and which of its log dirs nobody watches."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from streaming.agent.messages import BrokerStatus, Registered
from streaming.kafka.metadata_brokers import Phase

CURRENT_OFFSETS = 120
"""A copy of the metadata log that is behind by no more than an idle controller writes in a minute belongs to a process that runs."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A broker's phase, and since when at the latest, Unix seconds; None where that is not known."""

    broker: int
    phase: Phase
    since: float | None


def standings(brokers: Sequence[BrokerStatus], remembered: Sequence[BrokerStatus] = ()) -> Iterator[Standing]:
    """Of each registered broker whose phase is known, by the copy that has come furthest: a broker that is down does not hear of its end.

    A copy that begins with a snapshot cannot tell a broker that starts from one that is down. Another copy may; else the broker's own does,
    which grows only while its process runs.

    A broker that leads nothing when it is stopped is fenced at once, without a record of its shutdown
    (`BrokerHeartbeatManager.calculateNextBrokerState`). Its own disk tells: its process read of its fencing, which one that was killed
    never does, or it has written that it was shut down cleanly. One without any replica counts as stopped, too: nobody misses it.

    Args:
        remembered: what agents said last that do not answer any more.
    """
    latest = newest(brokers)
    if latest is None:
        return
    for registered in sorted(latest.registered, key=lambda each: each.broker):
        phase = _phase(registered, latest, brokers)
        if phase is Phase.DOWN and (registered.replicas is False or _was_stopped(registered, [*brokers, *remembered])):
            phase = Phase.STOPPING
        if phase is not None:
            yield Standing(registered.broker, phase, None if registered.since_ms < 0 else registered.since_ms / 1000)


def newest(brokers: Iterable[BrokerStatus]) -> BrokerStatus | None:
    """The one whose copy of the metadata log has come furthest: a broker that is down does not hear of its own end."""
    return max(brokers, key=lambda each: each.metadata_offset, default=None)


def unwatched_log_dirs(
    brokers: Iterable[BrokerStatus], watched: Mapping[int, frozenset[str]], unnamed: Mapping[int, int]
) -> dict[int, int]:
    """How many log dirs a broker is registered with that no agent watches; only of brokers whose registration lists any.

    Args:
        watched: the directory ids that agents watch, of each broker.
        unnamed: how many log dirs of each broker agents watch whose directory id was never readable.
    """
    registered = {each.broker: set(each.log_dirs) for each in sorted(brokers, key=lambda each: each.metadata_offset) if each.log_dirs}
    return {
        broker: max(0, len(directories - watched.get(broker, frozenset())) - unnamed.get(broker, 0))
        for broker, directories in sorted(registered.items())
    }


def _phase(registered: Registered, latest: BrokerStatus, brokers: Sequence[BrokerStatus]) -> Phase | None:
    if registered.phase:
        return Phase(registered.phase)
    if not registered.fenced:
        return Phase.RUNNING
    if registered.epoch < 0:  # an agent of an earlier version
        return None
    same = [(status.metadata_offset, each) for status in brokers for each in status.registered if _same(each, registered)]
    told = [(offset, each.phase) for offset, each in same if each.phase]
    if told:
        return Phase(max(told)[1])
    own = next((status.metadata_offset for status in brokers if status.broker == registered.broker), -1)
    return Phase.STARTING if own >= latest.metadata_offset - CURRENT_OFFSETS else Phase.DOWN


def _was_stopped(registered: Registered, brokers: Iterable[BrokerStatus]) -> bool:
    """Whether the broker's own disk says that its process was there when it was fenced, or ended in an orderly way."""
    own = ((status, each) for status in brokers if status.broker == registered.broker for each in status.registered)
    return any((each.fenced or status.clean) and (each.broker, each.epoch) == (registered.broker, registered.epoch) for status, each in own)


def _same(each: Registered, other: Registered) -> bool:
    """Whether both tell of one registration, fenced."""
    return (each.broker, each.epoch, each.fenced) == (other.broker, other.epoch, True)
