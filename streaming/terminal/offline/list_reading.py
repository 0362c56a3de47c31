"""Log dirs read once for one list: open transactions, or what is kept, of some topics or of all. The rows are those that a job has."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.disk.availability import LogDirs
from streaming.broker.watcher.scope import Scope
from streaming.cluster.view.limiter import LimitsOf
from streaming.cluster.view.table import Snapshot
from streaming.cluster.view.view import View
from streaming.common.formatting import format_word
from streaming.common.log_key import LogKey
from streaming.common.settings import Settings
from streaming.kafka.formats.names import TRANSACTION_TOPIC
from streaming.pages.api.state import State
from streaming.rules.transaction_verdicts import TransactionVerdict
from streaming.terminal.offline.cluster_logs import ClusterLogs
from streaming.terminal.offline.doubts import missing_coordinators, refused, unread
from streaming.terminal.offline.judged_reading import judged
from streaming.terminal.offline.offline_agent import OfflineAgent
from streaming.terminal.offline.single_reading import SingleReading, names_of, see_twice, tails_of

Progress = Callable[[int], None]
"""Called with the number of bytes that were read, again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Topics:
    """The topics that are asked for; all of them if there is none."""

    names: frozenset[str]

    def has(self, topic: str) -> bool:
        return not self.names or topic in self.names

    def counts(self, topic: str, _partition: int) -> bool:
        return self.has(topic)


def read_transactions(
    log_dirs: LogDirs, topics: Collection[str], settings: Settings, now_ms: int, progress: Progress = lambda _: None
) -> State:
    """Read the logs of topics and those of coordinators, and judge what is open as of ``now_ms``, Unix milliseconds.

    Raises:
        UsageError: a ``server.properties`` cannot be read, or a given configuration is not valid.
    """
    asked, chosen = _Topics(names=frozenset(topics)), list[ClusterLogs]()

    def scope(cluster: ClusterView, _: LimitsOf) -> Scope:
        chosen.append(ClusterLogs(cluster, asked.counts, needed=lambda topic: topic == TRANSACTION_TOPIC))
        return Scope(wants=chosen[0], once=True)

    with SingleReading(log_dirs, settings, scope, now_ms, progress=progress) as reading:
        seen, snapshot = see_twice(reading)
        tails = [tail for tail in tails_of(reading, seen, snapshot) if tail is not None]
        doubts = [*unread(reading.agent, asked.counts, tails, chosen[0].listed), *refused(reading.agent, asked.counts), *chosen[0].doubts()]
        names, silent_ms = names_of(seen, snapshot), settings.hanging_after.total_seconds() * 1000
        open_here = (each for each in seen.logs.late if asked.has(names[each.log]))
        if any(each.verdict == TransactionVerdict.UNKNOWN.label and now_ms - each.last_ms > silent_ms for each in open_here):
            doubts.append(missing_coordinators(seen.observed.coordinators))
        return State.of_log_dirs(judged(reading, seen, snapshot, settings, now_ms, unknown=doubts))


def read_retention(
    log_dirs: LogDirs, topics: Collection[str], settings: Settings, now_ms: int, progress: Progress = lambda _: None
) -> State:
    """Read the logs of topics, and judge what is kept of them as of ``now_ms``, Unix milliseconds.

    Raises:
        UsageError: a ``server.properties`` cannot be read, or a given configuration is not valid.
    """
    asked, chosen = _Topics(names=frozenset(topics)), list[ClusterLogs]()

    def scope(cluster: ClusterView, limits_of: LimitsOf) -> Scope:
        def compacts(log: LogKey) -> bool:  # open transactions hold back the cleaner, but no deletion
            return limits_of(log.broker, log.topic, cluster.configs(log)).compacts

        chosen.append(ClusterLogs(cluster, asked.counts))
        return Scope(wants=chosen[0], opens=compacts, once=True)

    with SingleReading(log_dirs, settings, scope, now_ms, progress=progress) as reading:
        seen, snapshot = reading.see()
        exported = [tail for tail in tails_of(reading, seen, snapshot) if tail is not None]
        doubts = (
            *unread(reading.agent, asked.counts, exported, chosen[0].listed),
            *refused(reading.agent, asked.counts),
            *chosen[0].doubts(),
            *_without_metadata(reading.agent),
            *_without_segments(seen, snapshot),
        )
        return State.of_log_dirs(judged(reading, seen, snapshot, settings, now_ms, unknown=doubts))


def _without_metadata(agent: OfflineAgent) -> Iterator[str]:
    for each in agent.host_status.brokers:
        if each.expected and not each.readable:
            yield (
                f"the metadata log of broker {each.broker} cannot be read here, so its leaders and the limits of its topics are not known: "
                "run as the broker's user, or name the log dir that has __cluster_metadata-0 too"
            )


def _without_segments(seen: View, snapshot: Snapshot) -> Iterator[str]:
    for item, limits in enumerate(seen.logs.limits):
        if limits is None:
            topic, partition, broker = (int(seen.logs[name][item]) for name in ("topic", "partition", "broker"))
            yield f"{format_word(snapshot.topic_names[topic])}-{partition} of broker {broker}: its segments cannot be listed"
