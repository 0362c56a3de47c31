"""Consumer groups from log dirs, read once: what is left to read, until when, and what holds them up.

First the coordinators' logs are replayed, then the logs are read that groups read: so no commit is newer than the data that it is held
against. Then those logs are counted from the smallest committed offset on.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from streaming.agent.cluster_view import ClusterView
from streaming.disk.availability import LogDirs
from streaming.disk.logdirs import Partition
from streaming.formatting import format_be, format_count, format_list
from streaming.groups.commit_store import CommitStore
from streaming.groups.commit_table import Commits, Current
from streaming.groups.replays import COORDINATED_TOPICS
from streaming.kafka.names import METADATA_TOPIC, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from streaming.kafka.partitioning import coordinator_partition
from streaming.kafka.servers import server_of
from streaming.metrics.limiter import LimitsOf
from streaming.metrics.table import Snapshot
from streaming.metrics.view import View
from streaming.offline.coordinator_replay import Replayed, replay_coordinators
from streaming.offline.doubts import name_leaders, refused, unread
from streaming.offline.group_answer import GroupAnswer
from streaming.offline.group_partitions import GroupPartitions
from streaming.offline.observed_logs import ObservedLog, TopicPartition, observed_logs
from streaming.offline.open_transactions import see_twice
from streaming.offline.read_pace import ReadPace
from streaming.offline.single_reading import SingleReading
from streaming.protocol.group_json import GroupDetail, GroupPartition, GroupSummary
from streaming.settings import Settings
from streaming.short_names import is_short_form, possible_names
from streaming.watcher.cursors import log_id
from streaming.watcher.scope import Scope


def read_groups(
    log_dirs: LogDirs,
    names: Collection[str],
    settings: Settings,
    now_ms: int,
    *,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
    progress: Callable[[int], None] = lambda _: None,
) -> GroupAnswer:
    """Read all groups, or those with these names, as of ``now_ms``, Unix milliseconds. Of the latter the next batch is checked, too.

    Args:
        progress: called with the number of bytes that were read, again and again.

    Raises:
        UsageError: a ``server.properties`` cannot be read, or a given configuration is not valid.
    """
    before = replay_groups(log_dirs, names, settings, clock, sleep, progress)

    def scope(cluster: ClusterView, _: LimitsOf) -> Scope:
        return Scope(wants=_wants(cluster, before.needed, before.coordinators), once=True)

    with SingleReading(log_dirs, settings, scope, now_ms, clock=clock, sleep=sleep, progress=progress) as reading:
        seen, snapshot = see_twice(reading)
        return groups_in(reading, seen, snapshot, before, names, settings, now_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedGroups:
    """What coordinators' logs hold, read before the logs that groups read: ``needed``. ``coordinators``: None for all of them."""

    cluster: ClusterView
    coordinators: frozenset[int] | None
    replayed: Sequence[Replayed]
    needed: frozenset[TopicPartition]
    doubts: Sequence[str]
    paced: ReadPace


def replay_groups(
    log_dirs: LogDirs,
    names: Collection[str],
    settings: Settings,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    progress: Callable[[int], None],
) -> ReplayedGroups:
    """Replay the coordinators' logs of all groups, or of those with these names."""
    cluster = ClusterView(log_dirs)
    cluster.refresh()
    count = cluster.partition_count(OFFSETS_TOPIC)
    whole = not any(map(is_short_form, names))  # else nothing shows to which coordinator the group belongs
    coordinators = frozenset(coordinator_partition(name, count) for name in names) if names and count and whole else None
    paced = ReadPace(settings.read_rate, clock, sleep, progress)
    wanted = frozenset(possible for name in names for possible in possible_names(name)).__contains__ if names else _any
    replayed, doubts = replay_coordinators(log_dirs, coordinators, wanted, settings.groups_limit, paced)
    needed = frozenset(pair for each in replayed for pair in _partitions_of(each, cluster))
    return ReplayedGroups(cluster=cluster, coordinators=coordinators, replayed=replayed, needed=needed, doubts=doubts, paced=paced)


def groups_in(
    reading: SingleReading,
    seen: View,
    snapshot: Snapshot,
    before: ReplayedGroups,
    names: Collection[str],
    settings: Settings,
    now_ms: int,
) -> GroupAnswer:
    """The groups, held against logs that were read after the coordinators' logs had been replayed."""
    logs = observed_logs(reading, seen, snapshot)
    commits = _commits(before.replayed, logs)
    partitions = GroupPartitions(
        reading.agent.cluster,
        seen,
        logs,
        commits,
        _unmoved(commits, before.replayed),
        before.paced,
        now_ms,
        check=bool(names),
        stopped_after=settings.group_stopped_after,
    )
    found = partitions.by_group()
    details = [_detail(name, found.get(name, []), commits, logs, now_ms) for name in sorted(found.keys() | commits.groups.keys())]
    tails = [tail for tail in reading.agent.watcher.tails() if (tail.cursor.log.topic, tail.cursor.log.partition) in logs]
    reads = partial(_reads, before.needed, before.coordinators)
    doubts = [*before.doubts, *partitions.doubts, *unread(reading.agent, reads, tails, ()), *refused(reading.agent, reads)]
    doubts += _unread_coordinators(commits, before.cluster, before.coordinators)
    there = {each.summary.group for each in details}
    return GroupAnswer(
        groups=tuple(details),
        missing=tuple(sorted(name for name in set(names) if not there.intersection(possible_names(name)))),
        doubts=tuple(doubts),
        coordinators=sum(log.observed for log in commits.logs),
    )


def _any(_: str) -> bool:
    return True


def _partitions_of(replayed: Replayed, cluster: ClusterView) -> Iterator[TopicPartition]:
    for rows in (replayed.changes.commits, replayed.changes.pending):
        columns = (rows[name].to_pylist() for name in ("topic", "topic_id", "partition"))
        for topic, topic_id, number in zip(*columns, strict=True):
            yield topic or cluster.topic_name(topic_id) or "", number


def _wants(cluster: ClusterView, needed: Collection[TopicPartition], coordinators: Collection[int] | None) -> Callable[[Partition], bool]:
    """Selects the logs that the groups read, and those of the coordinators, as far as their brokers have replicas of them."""

    def wants(partition: Partition) -> bool:
        name, number = partition.topic, partition.partition
        if not _reads(needed, coordinators, name, number):
            return False
        state = cluster.partition(log_id(partition))
        return not cluster.known or (state is not None and partition.log_dir.broker in state.replicas)

    return wants


def _reads(needed: Collection[TopicPartition], coordinators: Collection[int] | None, topic: str, partition: int) -> bool:
    own = topic in COORDINATED_TOPICS and (topic != OFFSETS_TOPIC or coordinators is None or partition in coordinators)
    return topic != METADATA_TOPIC and (own or topic == TRANSACTION_TOPIC or (topic, partition) in needed)


def _commits(replayed: Iterable[Replayed], logs: Mapping[TopicPartition, ObservedLog]) -> Commits:
    """What counts: of each coordinators' log the current replica, below its high watermark."""
    store = CommitStore()
    for each in replayed:
        store.take(str(each.partition.path), each.changes)
    currents = {
        pair: Current(str(each.path), each.ends.high_watermark)
        for pair, each in logs.items()
        if each.key.topic in COORDINATED_TOPICS and each.ends is not None
    }
    return store.table(currents)


def _unmoved(commits: Commits, replayed: Iterable[Replayed]) -> dict[tuple[str, str, int], tuple[int, int]]:
    chosen = {log.agent for log in commits.logs if log.observed}
    return {key: since for each in replayed if str(each.partition.path) in chosen for key, since in each.since.items()}


def _detail(
    name: str, partitions: list[GroupPartition], commits: Commits, logs: Mapping[TopicPartition, ObservedLog], now_ms: int
) -> GroupDetail:
    facts = commits.groups.get(name)
    coordinator = facts.coordinator if facts is not None else next((each.coordinator for of in partitions for each in of.pending), -1)
    observed = logs.get((OFFSETS_TOPIC, coordinator)) or next((each for pair in _pairs(partitions) if (each := logs.get(pair))), None)
    return GroupDetail(
        at_ms=now_ms,
        summary=_summary(name, partitions, commits),
        partitions=sorted(partitions, key=lambda each: (-each.lag, each.topic, each.partition)),
        clients=[] if facts is None else list(facts.clients),
        hosts=[] if facts is None else list(facts.hosts),
        server=server_of(observed.broker if observed is not None else None),
    )


def _pairs(partitions: Iterable[GroupPartition]) -> Iterator[TopicPartition]:
    return ((each.topic, each.partition) for each in partitions)


def _summary(name: str, partitions: Sequence[GroupPartition], commits: Commits) -> GroupSummary:
    def total(of: str) -> int:
        known = [value for each in partitions if (value := getattr(each, of)) >= 0]
        return sum(known) if known else -1

    def earliest(of: str) -> int:
        return min((at for each in partitions if (at := getattr(each, of)) >= 0), default=-1)

    found = GroupSummary(
        group=name,
        partitions=len(partitions),
        unknown=sum(each.unknown != "" for each in partitions),
        stopped=sum(each.stopped_since_ms >= 0 for each in partitions),
        held=sum(each.held for each in partitions),
        beyond_end=sum(each.unknown == "beyond_end" for each in partitions),
        below_start=sum(each.lost_offsets > 0 for each in partitions),
        pending=sum(len(each.pending) for each in partitions),
        oldest_pending_ms=min((of.since_ms for each in partitions for of in each.pending if of.since_ms >= 0), default=-1),
        lag_offsets=total("lag_offsets"),
        lag_records_read_committed=total("lag_records_read_committed"),
        lag_records_read_uncommitted=total("lag_records_read_uncommitted"),
        lag_bytes=total("lag_bytes"),
        oldest_append_ms=earliest("next_append_ms"),
        oldest_timestamp_ms=earliest("next_timestamp_ms"),
        loss_ms=earliest("loss_ms"),
        limits_assumed=any(each.limits_assumed for each in partitions),
        last_commit_ms=max((each.commit_ms for each in partitions), default=-1),
        expiration_ms=earliest("expiration_ms"),
    )
    facts = commits.groups.get(name)
    if facts is None:
        return found
    return replace(
        found,
        type=facts.type,
        protocol=facts.protocol,
        state=facts.state,
        members=facts.members,
        epoch=facts.epoch,
        state_ms=facts.state_ms,
    )


def _unread_coordinators(commits: Commits, cluster: ClusterView, asked: Collection[int] | None) -> Iterator[str]:
    """Which coordinators' logs are missing, and what of the others was not understood."""
    if asked is None and not cluster.known:
        yield f"no metadata log can be read here, so nothing shows how many partitions {OFFSETS_TOPIC} has"
    for topic in (OFFSETS_TOPIC, SHARE_STATE_TOPIC):
        read = {log.partition for log in commits.logs if log.topic == topic and log.observed}
        wanted = asked if topic == OFFSETS_TOPIC and asked is not None else range(cluster.partition_count(topic) or 0)
        missing = sorted(set(wanted) - read)
        if missing:
            names = format_list([str(number) for number in missing], 10)
            yield (
                f"{format_count(len(missing), 'partition')} of {topic} {format_be(len(missing))} not read from a current replica: {names}. "
                f"Groups of {'this coordinator' if len(missing) == 1 else 'these coordinators'} are missing, or not known as they are now; "
                f"{name_leaders(len(missing))}"
            )
    for log in commits.logs:
        if log.observed and log.unreadable:
            count, be = format_count(log.unreadable, "record"), format_be(log.unreadable)
            yield f"{count} of {log.topic}-{log.partition} {be} damaged or of a later version of Kafka"
        if log.observed and log.omitted:
            count, be = format_count(log.omitted, "group"), format_be(log.omitted)
            yield f"{count} of {log.topic}-{log.partition} {be} left out: groups_limit is lower"
