"""All that `/api/v1/` has of a job, from log dirs that are read once: what is wrong, partitions, transactions, retention, groups."""

import time
from collections.abc import Callable, Iterator

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.disk.availability import LogDirs
from streaming.broker.watcher.registry import Scope
from streaming.cluster.view.host_families import unobserved
from streaming.cluster.view.limiter import LimitsOf
from streaming.cluster.view.observer import AgentStatus
from streaming.common.formatting import format_be, format_count
from streaming.common.settings import Settings
from streaming.pages.api.state import State
from streaming.terminal.offline.cluster_logs import ClusterLogs
from streaming.terminal.offline.doubts import unread
from streaming.terminal.offline.group_reading import groups_in, replay_groups, see_with_commits
from streaming.terminal.offline.judged_reading import agent_of, judged
from streaming.terminal.offline.single_reading import SingleReading


def read_everything(
    log_dirs: LogDirs,
    settings: Settings,
    now_ms: int | None,
    *,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
    progress: Callable[[int], None] = lambda _: None,
) -> State:
    """Read all logs once, and judge them as of ``now_ms``, Unix milliseconds, None for when they were read.

    Nothing is open any more when it returns.

    Args:
        progress: called with the number of bytes that were read, again and again.

    Raises:
        UsageError: a ``server.properties`` cannot be read, or a given configuration is not valid.
    """
    before = replay_groups(log_dirs, (), settings, clock, sleep, progress)

    chosen = list[ClusterLogs]()

    def scope(cluster: ClusterView, _: LimitsOf) -> Scope:
        chosen.append(ClusterLogs(cluster, _any))
        return Scope(wants=chosen[0], once=True)

    with SingleReading(log_dirs, settings, scope, now_ms, clock=clock, sleep=sleep, progress=progress) as reading:
        shown, snapshot, ends = see_with_commits(reading, before)
        groups = groups_in(reading, shown, snapshot, before, (), settings, ends)
        agent = agent_of(reading)
        doubts = (
            *groups.doubts,
            *unread(reading.agent, _any, reading.agent.watcher.tails(), ()),
            *chosen[0].doubts(),
            *_elsewhere(agent),
        )
        found = judged(reading, shown, snapshot, settings, groups=groups.answers, unknown=doubts, whole=True)
    return State.of_log_dirs(found)


def _any(_topic: str, _partition: int) -> bool:
    return True


def _elsewhere(agent: AgentStatus) -> Iterator[str]:
    """Brokers of which no log dir is read: nothing is known of what they lead."""
    for broker, count in sorted(unobserved(agent.broker_statuses, frozenset(agent.brokers)).items()):
        if count:
            yield f"{format_count(count, 'partition')} {format_be(count)} led by broker {broker}, of which no log dir is read here"
