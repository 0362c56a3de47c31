"""Log dirs read once, as `/api/v1/` of a job has them: everything, or one list, of some topics or of all."""

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from datetime import timedelta
from math import inf

import numpy as np

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.disk.availability import LogDirs
from streaming.broker.protocol.listing_json import TRANSACTIONS_PATH
from streaming.broker.protocol.status_json import EVENTS_PATH
from streaming.broker.watcher.registry import Scope
from streaming.cluster.view.host_families import unobserved
from streaming.cluster.view.observer import AgentStatus
from streaming.cluster.view.table import Snapshot
from streaming.cluster.view.view import View
from streaming.common.log_key import LogKey
from streaming.common.settings import Settings
from streaming.common.units import format_be, format_count, format_word
from streaming.kafka.formats.names import TRANSACTION_TOPIC
from streaming.kafka.groups.replays import COORDINATED_TOPICS
from streaming.pages.api.state import State
from streaming.rules.broker_process import ProcessState
from streaming.rules.limits import LimitsOf
from streaming.rules.retention_rule import ABSENT
from streaming.rules.transaction_verdicts import TransactionVerdict
from streaming.terminal.offline.cluster_logs import ASSUMED_LIMITS, ClusterLogs, no_metadata, other_dirs
from streaming.terminal.offline.doubts import missing_coordinators, refused, unread
from streaming.terminal.offline.group_reading import RECALL_SECONDS, groups_in, replay_groups, see_with_commits
from streaming.terminal.offline.offline_agent import OfflineAgent
from streaming.terminal.offline.single_reading import SingleReading, agent_of, judged, names_of, see_twice, tails_of

Progress = Callable[[int], None]
"""Called with the number of bytes that were read, again and again."""


def read_everything(log_dirs: LogDirs, settings: Settings, now_ms: int | None, progress: Progress = lambda _: None) -> State:
    """Read all logs once, and judge them as of ``now_ms``, Unix milliseconds, None for when they were read.

    Nothing is open any more when it returns.

    Raises:
        UsageError: a ``server.properties`` cannot be read, or a given configuration is not valid.
    """
    before = replay_groups(log_dirs, (), settings, time.time, time.sleep, progress)
    chosen = list[ClusterLogs]()

    def scope(cluster: ClusterView, _: LimitsOf) -> Scope:
        cluster.recall(RECALL_SECONDS)
        chosen.append(ClusterLogs(cluster, _any))
        return Scope(wants=chosen[0], once=True)

    with SingleReading(log_dirs, settings, scope, now_ms, progress=progress) as reading:
        shown, snapshot, ends = see_with_commits(reading, before)
        groups = groups_in(reading, shown, snapshot, before, (), settings, ends)
        doubts = (
            *groups.doubts,
            *unread(reading.agent, _any, reading.agent.watcher.tails(), ()),
            *chosen[0].doubts(),
            *_elsewhere(agent_of(reading)),
        )
        return State.of_log_dirs(judged(reading, shown, snapshot, settings, groups=groups.answers, unknown=doubts, whole=True))


def _any(_topic: str, _partition: int) -> bool:
    return True


def _elsewhere(agent: AgentStatus) -> Iterator[str]:
    """Brokers of which no log dir is read: nothing is known of what they lead."""
    for broker, count in sorted(unobserved(agent.broker_statuses, frozenset(agent.brokers)).items()):
        if count:
            yield f"{format_count(count, 'partition')} {format_be(count)} led by broker {broker}, of which no log dir is read here"


def read_topics(
    log_dirs: LogDirs, topics: Collection[str], settings: Settings, now_ms: int | None, progress: Progress = lambda _: None
) -> State:
    """The same with what the list of topics needs of some topics, none for all: their logs and segments, and all commits.

    Open transactions are not looked for, and what groups have left to read is not counted.
    """
    before, chosen = replay_groups(log_dirs, (), settings, time.time, time.sleep, progress), list[ClusterLogs]()

    def is_about(topic: str, _partition: int) -> bool:
        return not topics or topic in topics

    def scope(cluster: ClusterView, _: LimitsOf) -> Scope:
        chosen.append(ClusterLogs(cluster, is_about, needed=COORDINATED_TOPICS.__contains__))
        return Scope(wants=chosen[0], opens=lambda _: False, once=True)

    with SingleReading(log_dirs, settings, scope, now_ms, progress=progress) as reading:
        shown, snapshot, ends = see_with_commits(reading, before)
        groups = groups_in(reading, shown, snapshot, before, (), settings, ends, counted=False)
        exported = [tail for tail in tails_of(reading, shown, snapshot) if tail is not None]
        doubts = (
            *groups.doubts,
            *unread(reading.agent, is_about, exported, chosen[0].listed),
            *refused(reading.agent, is_about),
            *chosen[0].doubts(),
            *(() if topics else _elsewhere(agent_of(reading))),
        )
        return State.of_log_dirs(judged(reading, shown, snapshot, settings, groups=groups.answers, unknown=doubts))


def read_list(
    path: str, log_dirs: LogDirs, topics: Collection[str], settings: Settings, now_ms: int | None, progress: Progress = lambda _: None
) -> State:
    """The same with what one list needs of some topics, none for all: open transactions, what is kept, or what admins did.

    Whether a transaction ends the coordinators' logs show. Of what is kept, an open transaction holds back the cleaner, but no deletion: so
    what is open is needed of logs that are compacted alone.
    """
    transactions, admins, chosen = path == TRANSACTIONS_PATH, path == EVENTS_PATH, list[ClusterLogs]()

    def is_about(topic: str, _partition: int) -> bool:
        return not admins and (not topics or topic in topics)

    def scope(cluster: ClusterView, limits_of: LimitsOf) -> Scope:
        if not transactions:
            cluster.recall(inf if admins else RECALL_SECONDS)

        def opens(log: LogKey) -> bool:
            return transactions or limits_of(log.broker, log.topic, cluster.configs(log)).compacts

        chosen.append(ClusterLogs(cluster, is_about, needed=lambda topic: transactions and topic == TRANSACTION_TOPIC))
        return Scope(wants=chosen[0], opens=opens, once=True)

    with SingleReading(log_dirs, settings, scope, now_ms, progress=progress) as reading:
        view, snapshot = see_twice(reading) if transactions else reading.see()
        view = view if transactions else _without_unsought(view)
        exported = [tail for tail in tails_of(reading, view, snapshot) if tail is not None]
        doubts = (
            *(other_dirs(log_dirs, reading.agent.cluster) if transactions and not log_dirs.searched else ()),
            *unread(reading.agent, is_about, exported, chosen[0].listed),
            *refused(reading.agent, is_about),
            *chosen[0].doubts(),
            *(
                _unclaimed(topics, settings, view, snapshot)
                if transactions
                else _without_metadata(reading.agent, view, snapshot, admins=admins)
            ),
        )
        return State.of_log_dirs(judged(reading, view, snapshot, settings, unknown=doubts))


def _without_unsought(view: View) -> View:
    """The view without the last stable offsets of logs that are not compacted: their open transactions were not looked for."""
    sought = np.array([limits is not None and limits.compacts for limits in view.logs.limits], np.bool_)
    known = np.where(sought, view.logs["last_stable_offset"], ABSENT)
    return replace(view, logs=replace(view.logs, derived={**view.logs.derived, "last_stable_offset": known}))


def _unclaimed(topics: Collection[str], settings: Settings, view: View, snapshot: Snapshot) -> Iterator[str]:
    """Which coordinators' logs are missing, if a transaction has no verdict without them.

    Where all are read, the entry of one that has just begun may have come between two looks: it cannot hang yet.
    """
    names, silent_ms = names_of(view, snapshot), settings.hanging_after / timedelta(milliseconds=1)
    all_read = view.observed.coordinators.coordinators.complete
    if any(
        each.verdict == TransactionVerdict.UNKNOWN.label and not (all_read and snapshot.now_ms - each.last_append_ms <= silent_ms)
        for each in view.logs.late
        if not topics or names[each.log] in topics
    ):
        yield missing_coordinators(view.observed.coordinators)


def _without_metadata(agent: OfflineAgent, view: View, snapshot: Snapshot, *, admins: bool) -> Iterator[str]:
    lacks = "what admins did is known from other copies at best" if admins else "its leaders and the limits of its topics are not known"
    for each in agent.host_status.brokers:
        if each.expected and not each.readable:
            yield (
                f"the metadata log of broker {each.broker} cannot be read here, so {lacks}: "
                "run as the broker's user, or name the log dir that has __cluster_metadata-0 too"
            )
    for broker, error in agent.cluster.past_errors().items() if admins else ():
        yield f"the metadata log of broker {broker} cannot be read from before its newest snapshot, so less is known of admins: {error}"
    if admins and agent.cluster.of_zookeeper:
        yield no_metadata(agent.cluster, "what admins did is not known")
    for each in agent.host_status.brokers if agent.cluster.of_zookeeper else ():
        process = each.process
        if process is not None and process.state == ProcessState.UNKNOWN:  # as of a copy that was made a moment ago
            goes = "What is due goes with its next check, or only after it starts"
            yield f"whether broker {each.broker} runs is not known: {process.why}. {goes}"
    if agent.cluster.of_zookeeper and any(limits is not None and limits.assumed for limits in view.logs.limits):
        yield no_metadata(agent.cluster, ASSUMED_LIMITS)
    for item, limits in enumerate(view.logs.limits):
        if limits is None:
            topic, partition, broker = (int(view.logs[name][item]) for name in ("topic", "partition", "broker"))
            yield f"{format_word(snapshot.topic_names[topic])}-{partition} of broker {broker}: its segments cannot be listed"
