"""All that `/api/v1/` has of a job, from log dirs that are read once: what is wrong, partitions, transactions, retention, groups."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from streaming.agent.cluster_view import ClusterView
from streaming.api.judged import Judged
from streaming.api.rates import MeanRates
from streaming.api.seen import Seen
from streaming.api.state import State
from streaming.disk.availability import LogDirs
from streaming.disk.logdirs import Partition
from streaming.formatting import format_be, format_count
from streaming.kafka.names import METADATA_TOPIC
from streaming.kafka.servers import server_of
from streaming.metrics.disk_use import full_by_dir
from streaming.metrics.host_families import unobserved
from streaming.metrics.limiter import LimitsOf
from streaming.metrics.observer import AgentStatus
from streaming.offline.doubts import unread
from streaming.offline.group_answer import GroupAnswer
from streaming.offline.group_reading import groups_in, replay_groups
from streaming.offline.offline_agent import NAME
from streaming.offline.open_transactions import see_twice
from streaming.offline.single_reading import SingleReading
from streaming.settings import Settings
from streaming.verdicts.circumstances import Circumstances, thresholds_of
from streaming.verdicts.commands import Commands
from streaming.watcher.cursors import log_id
from streaming.watcher.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    """One reading. ``state`` makes the same messages as a job does; ``groups``: all of them, with their partitions."""

    state: State
    groups: GroupAnswer


def read_everything(
    log_dirs: LogDirs,
    settings: Settings,
    now_ms: int,
    *,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
    progress: Callable[[int], None] = lambda _: None,
) -> Everything:
    """Read all logs once, and judge them as of ``now_ms``, Unix milliseconds. Nothing is open any more when it returns.

    Args:
        progress: called with the number of bytes that were read, again and again.

    Raises:
        UsageError: a ``server.properties`` cannot be read, or a given configuration is not valid.
    """
    before = replay_groups(log_dirs, (), settings, clock, sleep, progress)

    def scope(cluster: ClusterView, _: LimitsOf) -> Scope:
        return Scope(wants=lambda partition: _is_live(cluster, partition), once=True)

    with SingleReading(log_dirs, settings, scope, now_ms, clock=clock, sleep=sleep, progress=progress) as reading:
        shown, snapshot = see_twice(reading)
        groups = groups_in(reading, shown, snapshot, before, (), settings, now_ms)
        agent = _agent(reading)
        server = next(filter(None, (server_of(reading.agent.cluster.broker(broker)) for broker in agent.brokers)), "")
        judged = Judged(
            seen=Seen(shown, snapshot),
            of=Circumstances(
                shown=shown,
                topics=snapshot.topic_names,
                now_ms=now_ms,
                agents=(agent,),
                groups=groups.groups,
                thresholds=thresholds_of(settings),
                commands=Commands(server=server),
                live=False,
                full=full_by_dir(shown, (agent,), now_ms),
                min_isr=reading.min_isr,
            ),
            rates=MeanRates(),
            newest_ms=now_ms,
            unknown=tuple(
                dict.fromkeys((*groups.doubts, *unread(reading.agent, _any, reading.agent.watcher.tails(), ()), *_elsewhere(agent)))
            ),
        )
    return Everything(state=State(lambda: judged), groups=groups)


def _is_live(cluster: ClusterView, partition: Partition) -> bool:
    """Whether a log is no left-over: its topic is there, and its broker has a replica of it."""
    if partition.topic == METADATA_TOPIC:
        return False
    state = cluster.partition(log_id(partition))
    return not cluster.known or (state is not None and partition.log_dir.broker in state.replicas)


def _any(_topic: str, _partition: int) -> bool:
    return True


def _agent(reading: SingleReading) -> AgentStatus:
    """What an agent would say of these log dirs."""
    status = reading.agent.status()
    return AgentStatus(
        name=NAME,
        up=True,
        brokers=tuple(status.brokers),
        cluster_id=status.cluster_id,
        metadata_brokers=frozenset(status.brokers) - frozenset(status.unreadable_metadata),
        log_dirs=tuple(status.log_dirs),
        broker_statuses=tuple(status.broker_statuses),
        unreadable_logs=tuple(status.unreadable_logs),
        logs=status.logs,
    )


def _elsewhere(agent: AgentStatus) -> Iterator[str]:
    """Brokers of which no log dir is read: nothing is known of what they lead."""
    for broker, count in sorted(unobserved(agent.broker_statuses, frozenset(agent.brokers)).items()):
        if count:
            yield f"{format_count(count, 'partition')} {format_be(count)} led by broker {broker}, of which no log dir is read here"
