"""Log dirs read once for one list: open transactions, or what is kept, of some topics or of all. The rows are those that a job has."""

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

import numpy as np

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.disk.availability import LogDirs
from streaming.broker.watcher.registry import Scope
from streaming.cluster.view.limiter import LimitsOf
from streaming.cluster.view.table import Snapshot
from streaming.cluster.view.view import View
from streaming.common.formatting import format_word
from streaming.common.log_key import LogKey
from streaming.common.settings import Settings
from streaming.kafka.formats.names import TRANSACTION_TOPIC
from streaming.pages.api.state import State
from streaming.rules.segment_columns import ABSENT
from streaming.rules.transaction_verdicts import TransactionVerdict
from streaming.terminal.offline.cluster_logs import ClusterLogs
from streaming.terminal.offline.doubts import missing_coordinators, refused, unread
from streaming.terminal.offline.judged_reading import judged
from streaming.terminal.offline.offline_agent import OfflineAgent
from streaming.terminal.offline.single_reading import SingleReading, names_of, see_twice, tails_of
from streaming.terminal.offline.unseen_dirs import ASSUMED_LIMITS, no_metadata

Clock = Callable[[], float]
"""The time at which files are read, Unix seconds."""

Progress = Callable[[int], None]
"""Called with the number of bytes that were read, again and again."""


def read_transactions(
    log_dirs: LogDirs,
    topics: Collection[str],
    settings: Settings,
    now_ms: int | None,
    progress: Progress = lambda _: None,
    *,
    clock: Clock = time.time,
) -> State:
    """Read the logs of topics and those of coordinators, and judge what is open as of ``now_ms``, Unix milliseconds, None for when they
    were read.

    Raises:
        UsageError: a ``server.properties`` cannot be read, or a given configuration is not valid.
    """
    silent_ms = settings.hanging_after.total_seconds() * 1000

    def unclaimed(_: OfflineAgent, view: View, snapshot: Snapshot) -> Iterator[str]:
        names = names_of(view, snapshot)
        open_here = (each for each in view.logs.late if not topics or names[each.log] in topics)
        if any(
            each.verdict == TransactionVerdict.UNKNOWN.label and snapshot.now_ms - each.last_append_ms > silent_ms for each in open_here
        ):
            yield missing_coordinators(view.observed.coordinators)

    return _read(log_dirs, topics, settings, now_ms, progress, clock, see_twice, unclaimed, needed=TRANSACTION_TOPIC)


def read_retention(
    log_dirs: LogDirs,
    topics: Collection[str],
    settings: Settings,
    now_ms: int | None,
    progress: Progress = lambda _: None,
    *,
    clock: Clock = time.time,
) -> State:
    """Read the logs of topics, and judge what is kept of them as of ``now_ms``, Unix milliseconds, None for when they were read.

    Raises:
        UsageError: a ``server.properties`` cannot be read, or a given configuration is not valid.
    """
    return _read(log_dirs, topics, settings, now_ms, progress, clock, SingleReading.see, _without_limits, compacted=True)


def _read(
    log_dirs: LogDirs,
    topics: Collection[str],
    settings: Settings,
    now_ms: int | None,
    progress: Progress,
    clock: Clock,
    look: Callable[[SingleReading], tuple[View, Snapshot]],
    unknown: Callable[[OfflineAgent, View, Snapshot], Iterator[str]],
    *,
    needed: str = "",
    compacted: bool = False,
) -> State:
    """Read and judge.

    Args:
        topics: none for all.
        unknown: what of this list is not known besides what could not be read, in sentences.
        needed: a topic whose logs are read in any case.
        compacted: what is open is needed of logs that are compacted alone: it holds back the cleaner, but no deletion.
    """
    chosen = list[ClusterLogs]()

    def is_about(topic: str, _partition: int) -> bool:
        return not topics or topic in topics

    def scope(cluster: ClusterView, limits_of: LimitsOf) -> Scope:
        def opens(log: LogKey) -> bool:
            return not compacted or limits_of(log.broker, log.topic, cluster.configs(log)).compacts

        chosen.append(ClusterLogs(cluster, is_about, needed=needed.__eq__))
        return Scope(wants=chosen[0], opens=opens, once=True)

    with SingleReading(log_dirs, settings, scope, now_ms, clock=clock, progress=progress) as reading:
        view, snapshot = look(reading)
        view = _without_unsought(view) if compacted else view
        exported = [tail for tail in tails_of(reading, view, snapshot) if tail is not None]
        doubts = (
            *unread(reading.agent, is_about, exported, chosen[0].listed),
            *refused(reading.agent, is_about),
            *chosen[0].doubts(),
            *unknown(reading.agent, view, snapshot),
        )
        return State.of_log_dirs(judged(reading, view, snapshot, settings, unknown=doubts))


def _without_unsought(view: View) -> View:
    """The view without the last stable offsets of logs that are not compacted: nobody has looked for their open transactions."""
    sought = np.array([limits is not None and limits.compacts for limits in view.logs.limits], np.bool_)
    known = np.where(sought, view.logs["last_stable_offset"], ABSENT)
    return replace(view, logs=replace(view.logs, derived={**view.logs.derived, "last_stable_offset": known}))


def _without_limits(agent: OfflineAgent, view: View, snapshot: Snapshot) -> Iterator[str]:
    for each in agent.host_status.brokers:
        if each.expected and not each.readable:
            yield (
                f"the metadata log of broker {each.broker} cannot be read here, so its leaders and the limits of its topics are not known: "
                "run as the broker's user, or name the log dir that has __cluster_metadata-0 too"
            )
    if agent.cluster.of_zookeeper and any(limits is not None and limits.assumed for limits in view.logs.limits):
        yield no_metadata(agent.cluster, ASSUMED_LIMITS)
    for item, limits in enumerate(view.logs.limits):
        if limits is None:
            topic, partition, broker = (int(view.logs[name][item]) for name in ("topic", "partition", "broker"))
            yield f"{format_word(snapshot.topic_names[topic])}-{partition} of broker {broker}: its segments cannot be listed"
