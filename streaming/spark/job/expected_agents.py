"""Which agents without an address are still missed: after a while, not those that were renamed, moved or scaled away."""

from collections.abc import Collection, Iterable, Mapping

from streaming.cluster.view.broker_status import broker_phases
from streaming.cluster.view.observer import AgentStatus
from streaming.cluster.view.reported_once import each_broker
from streaming.kafka.formats.metadata_brokers import Phase

GONE_SECONDS = 3600.0
"""An agent without an address for so long was taken away, if its broker does not run either."""


class ExpectedAgents:
    """Remembers since when agents that once took part have had no address. For one thread.

    An address that is configured itself stays as long as the job runs. Behind a name (dns:///) addresses come and go with the pods.
    """

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def missed(self, statuses: Mapping[str, AgentStatus], answering: Mapping[str, AgentStatus], now: float) -> list[str]:
        """Those of ``statuses`` that are not among ``answering`` and should be.

        An agent is not missed if agents that are up watch all of its log dirs: it was renamed, or moved. It is not missed either if it has
        had no address for an hour, and its brokers do not run or are not known: it was taken away with them. If a broker runs and no
        agent watches it, its agent is missed for as long as that lasts.

        Args:
            statuses: the agents of the last poll, also those that were down.
            answering: the agents that this poll has found at some address, up or down.
            now: seconds of `time.monotonic`.
        """
        away = {name: status for name, status in statuses.items() if status.brokers and name not in answering}
        self._since = {name: self._since.get(name, now) for name in away}
        watched = {directory for status in answering.values() if status.up for directory in status.directories}
        running = _running(answering.values())
        return [
            name
            for name, status in away.items()
            if not _is_replaced(status, watched) and (now - self._since[name] < GONE_SECONDS or running & set(status.brokers))
        ]


def _is_replaced(status: AgentStatus, watched: Collection[str]) -> bool:
    return bool(status.directories) and all(directory in watched for directory in status.directories)


def _running(statuses: Iterable[AgentStatus]) -> set[int]:
    """Brokers that run, by the metadata of agents that are up, but are watched by none of these agents."""
    up = [status for status in statuses if status.up]
    watched = {broker for status in up for broker in status.brokers}
    brokers = each_broker(each for status in up for each in status.broker_statuses)
    return {each.broker for each in broker_phases(brokers) if each.phase is Phase.RUNNING} - watched
