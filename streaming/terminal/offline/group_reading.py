"""Consumer groups from log dirs, read once: what is left to read, until when, what holds them up, and checkpoints of queries.

First the coordinators' logs are replayed, then the logs are read that groups read. Both take long, so then both are read on: what has come
meanwhile takes milliseconds. So no commit is newer than the data that it is held against, and hardly older. Then those logs are counted
from the smallest committed offset on.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from urllib.parse import unquote

import streaming
from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.disk.availability import LogDirs
from streaming.broker.protocol.group_json import GROUPS_PATH, GroupDetail, GroupPage, GroupSummary, ReadMoments
from streaming.broker.protocol.listing_json import ALL_ROWS, AwayBroker
from streaming.broker.watcher.cursors import log_id
from streaming.broker.watcher.registry import Scope
from streaming.broker.watcher.tail import Tail
from streaming.cluster.consumers.group_details import GroupDetails
from streaming.cluster.consumers.group_logs import TopicPartition
from streaming.cluster.consumers.group_partitions import GroupPartitions, open_since
from streaming.cluster.consumers.group_questions import Question
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.consumers.group_tracker import GroupTracker, RoundView, currents
from streaming.cluster.consumers.query_groups import PREFIX, QueryGroups, plain_name
from streaming.cluster.verdicts.circumstances import causes_of, changes_of
from streaming.cluster.verdicts.commands import Commands
from streaming.cluster.verdicts.group_bounds import bounds_of
from streaming.cluster.verdicts.group_judge import judge_groups
from streaming.cluster.view.family import EVERYTHING
from streaming.cluster.view.table import Snapshot
from streaming.cluster.view.view import View
from streaming.common.log_key import LogKey
from streaming.common.query_checkpoints import QueryCheckpoint
from streaming.common.settings import Settings
from streaming.common.short_names import is_short_form, possible_names
from streaming.common.units import format_be, format_count, format_list
from streaming.errors import QueryCheckpointError, UsageError
from streaming.kafka.formats.metadata_records import server_of_any
from streaming.kafka.formats.names import METADATA_TOPIC, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC, coordinator_partition
from streaming.kafka.groups.commit_table import CoordinatorLog, Current, LogName
from streaming.kafka.groups.group_rows import GroupChanges
from streaming.kafka.groups.number_ranges import existing, pairs
from streaming.kafka.groups.replays import COORDINATED_TOPICS
from streaming.pages.api.listed_groups import JUDGED_BY, CommitsSeen, GroupResults, ListedGroups
from streaming.pages.api.paging import page_request
from streaming.pages.listings.declared_lists import GROUPS
from streaming.queries import CheckpointReader, Found, LocalCheckpoint, QueryLook, QueryLooks
from streaming.rules.limits import LimitsOf
from streaming.terminal.offline.cluster_logs import ClusterLogs, no_metadata
from streaming.terminal.offline.coordinator_logs import CoordinatorLogs, CoordinatorReading, Replayed
from streaming.terminal.offline.doubts import name_leaders, ragged_bytes, refused, silent, unread
from streaming.terminal.offline.local_agent import DiskPast, LocalAgent, ask_locally
from streaming.terminal.offline.offline_agent import NAME
from streaming.terminal.offline.read_pace import ReadPace
from streaming.terminal.offline.single_reading import SingleReading, agent_of, see_twice

LOOK_SECONDS = 10.0
"""How long a command waits for a file system. A checkpoint on one that does not answer is not known."""

_PARTS_OF_SECOND = 10
"""Few bytes are as many as `read_rate` allows in this part of a second."""

RECALL_SECONDS = 2.0
"""For so long it is looked up when leader epochs began, with which commits without one are compared, and what admins did."""

_MORE_LOOKS = 2
"""So often logs are looked at again of which files were taken away while they were counted."""

_MOST_READINGS = 5
"""So often coordinators' logs are read on that grow as fast as they are read."""


def read_groups(
    log_dirs: LogDirs,
    names: Collection[str],
    settings: Settings,
    now_ms: int | None,
    *,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
    progress: Callable[[int], None] = lambda _: None,
) -> GroupReading:
    """Read all groups, or those with these names, as of ``now_ms``, Unix milliseconds, None for when the ends of logs were read.

    Args:
        progress: called with the number of bytes that were read, again and again.

    Raises:
        UsageError: a ``server.properties`` cannot be read, or a given configuration is not valid.
    """
    wanted, names = names, {*names, *map(plain_name, names)}  # of a query whose name a group of Kafka's has, too
    before = replay_groups(log_dirs, names, settings, clock, sleep, progress)
    reads, chosen = before.reads, list[ClusterLogs]()

    def scope(cluster: ClusterView, _: LimitsOf) -> Scope:
        cluster.recall(RECALL_SECONDS)
        chosen.append(ClusterLogs(cluster, reads if names else lambda _topic, _partition: True))
        return Scope(wants=lambda partition: chosen[0](partition) and reads(partition.topic, partition.partition), once=True)

    with SingleReading(log_dirs, settings, scope, now_ms, clock=clock, sleep=sleep, progress=progress) as reading:
        seen, snapshot, read = see_with_commits(reading, before)
        groups = groups_in(reading, seen, snapshot, before, wanted, settings, read)
        return replace(groups, doubts=(*groups.doubts, *chosen[0].doubts()))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReading:
    """The answers; the names that were given and are not there; and what is not known, in sentences."""

    answers: ListedGroups
    missing: tuple[str, ...]
    doubts: tuple[str, ...]
    away: tuple[AwayBroker, ...] = ()  # brokers whose log dirs no process holds

    def judged_by(self, query: str) -> GroupReading:
        """The same, judged by the parameters `JUDGED_BY` of a query."""
        return replace(self, answers=self.answers.rejudged(query))

    def answer(self, path: str, query: str = "") -> GroupPage | GroupDetail | None:
        """What a job answers: the page at `GROUPS_PATH`, or the group at a path below it, None if it is not there."""
        if path != GROUPS_PATH:
            return self.answers.named(unquote(path.removeprefix(f"{GROUPS_PATH}/")))
        page = self.answers.page(page_request(query, GROUPS, ALL_ROWS, JUDGED_BY))
        return replace(page, version=streaming.__version__, doubts=[*self.doubts], away=[*self.away])


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
    few_bytes = settings.read_rate // _PARTS_OF_SECOND
    logs = CoordinatorLogs(
        CoordinatorReading(wanted=wanted, groups_limit=settings.groups_limit, paced=paced, clock_ms=lambda: int(clock() * 1000))
    )
    logs.read(log_dirs, coordinators)
    _read_on(logs, few_bytes)  # what is committed for the first time meanwhile, is read too
    queries = OfflineQueries(settings.spark_checkpoints, names)
    queries.look()
    found = [(each, each.replay.changes(0)) for each in logs.replayed]
    return ReplayedGroups(
        cluster=cluster,
        coordinators=coordinators,
        logs=logs,
        needed=frozenset([*queries.places, *(place for each in found for place in _partitions_of(*each, cluster))]),
        topics=frozenset(topic for each, changes in found for topic in each.subscribed(changes)),
        paced=paced,
        few_bytes=few_bytes,
        queries=queries,
    )


class OfflineQueries:
    """Looks at the checkpoints as often as logs are read on; the last look counts.

    Args:
        names: only the queries of groups with these names; none for all.
    """

    def __init__(self, checkpoints: Collection[QueryCheckpoint], names: Collection[str] = ()) -> None:
        self.checkpoints = [each for each in checkpoints if not names or f"{PREFIX}{each.name}" in {*map(plain_name, names)}]
        self._looks = QueryLooks({each.name: _look(each) for each in self.checkpoints})
        self._found: dict[str, Found] = {}

    def look(self) -> None:
        """Look at them now."""
        if self.checkpoints:
            silent = (QueryCheckpointError(f"{each.shown} does not answer") for each in self.checkpoints)
            self._found = {**dict(zip((each.name for each in self.checkpoints), silent, strict=True)), **self._looks.look(LOOK_SECONDS)}

    @property
    def places(self) -> Iterator[TopicPartition]:
        """The partitions that they read."""
        return (
            (position.topic, position.partition)
            for found in self._found.values()
            if isinstance(found, QueryLook)
            for position in found.positions
        )

    def put_into(self, queries: QueryGroups) -> None:
        """Pass on what was found last. No look follows it."""
        queries.take(self._found, 0)
        self._looks.close()


def _look(checkpoint: QueryCheckpoint) -> Callable[[], QueryLook]:
    if checkpoint.local is None:
        return partial(_refuse, checkpoint)
    return CheckpointReader(checkpoint.shown, LocalCheckpoint(checkpoint.local)).look


def _refuse(checkpoint: QueryCheckpoint) -> QueryLook:
    raise QueryCheckpointError(_needs_job(checkpoint))


def _needs_job(checkpoint: QueryCheckpoint) -> str:
    return (
        f"the checkpoint {checkpoint.shown} is on a file system that only Spark's JVM reads, which no command starts: "
        "give it to a job (spark_checkpoints) and ask that with --job, or name a copy in a directory"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedGroups:
    """What coordinators' logs hold, read before the logs that groups read: those that are ``needed``, and those of ``topics``, of which the
    partitions without a commit are on no list. ``coordinators``: None for all of them.
    """

    cluster: ClusterView
    coordinators: frozenset[int] | None
    logs: CoordinatorLogs
    needed: frozenset[TopicPartition]
    topics: frozenset[str]
    paced: ReadPace
    few_bytes: int
    queries: OfflineQueries

    def read_on(self) -> None:
        """Read what has come since, until that is little; the last time it takes milliseconds."""
        _read_on(self.logs, self.few_bytes)
        self.queries.look()

    def reads(self, topic: str, partition: int) -> bool:
        """Whether the answers need a log."""
        own = topic in COORDINATED_TOPICS and (topic != OFFSETS_TOPIC or self.coordinators is None or partition in self.coordinators)
        needed = topic in self.topics or (topic, partition) in self.needed
        return topic != METADATA_TOPIC and (own or topic == TRANSACTION_TOPIC or needed)


def _read_on(logs: CoordinatorLogs, few_bytes: int) -> None:
    for _ in range(_MOST_READINGS):
        if logs.read_on() <= few_bytes:
            break


def _any(_: str) -> bool:
    return True


def _partitions_of(replayed: Replayed, changes: GroupChanges, cluster: ClusterView) -> Iterator[TopicPartition]:
    """What a log's groups have committed, and what their members are assigned."""
    for topic, topic_id, number in replayed.places(changes):
        yield topic or cluster.topic_name(topic_id) or "", number
    for entry in replayed.assigned(changes):
        topic, ranges = existing(entry, lambda each: cluster.topic_name(each) or "", lambda name: cluster.partition_count(name) or 0)
        yield from ((topic, number) for first, last in pairs(ranges) for number in range(first, last + 1))


def see_with_commits(reading: SingleReading, before: ReplayedGroups) -> tuple[View, Snapshot, EndMoments]:
    """Read on in the coordinators' logs, right then in all others, and see; also when the others were read on."""
    before.read_on()
    from_ms = reading.agent.now_ms
    reading.again()
    seen, snapshot = see_twice(reading)
    return seen, snapshot, EndMoments(from_ms=from_ms, until_ms=reading.read_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndMoments:
    """Between which moments the ends of logs were read, Unix milliseconds."""

    from_ms: int
    until_ms: int


def moments(replayed: Sequence[Replayed], high_watermarks: Sequence[int], ends: EndMoments) -> ReadMoments | None:
    """Those of coordinators' logs, of which what is below high watermarks counts; None if there are none."""
    if not replayed:
        return None
    return ReadMoments(
        commits_from_ms=min(each.as_of_ms(upto) for each, upto in zip(replayed, high_watermarks, strict=True)),
        commits_until_ms=max(each.read_ms for each in replayed),
        ends_from_ms=ends.from_ms,
        ends_until_ms=ends.until_ms,
    )


def groups_in(
    reading: SingleReading,
    logs: View,
    snapshot: Snapshot,
    before: ReplayedGroups,
    names: Collection[str],
    settings: Settings,
    ends: EndMoments,
    *,
    counted: bool = True,
) -> GroupReading:
    """The groups, held against logs that were read after the coordinators' logs had been replayed.

    Checkpoints of streaming queries, read by a command: those in directories of this machine, for no command starts a JVM.

    Args:
        counted: what is left to read is counted, for which the logs of data have to be scanned.
    """
    tails = {tail.cursor.log: tail for tail in reading.agent.watcher.tails()}
    directories = {key: tail.partition.path for key, tail in tails.items()}
    now_ms = reading.now_ms
    view = _view(reading, logs, snapshot, tails, now_ms)
    replayed = [
        each for each in before.logs.replayed if directories.get(log_id(each.partition), each.partition.path) == each.partition.path
    ]
    current = currents(view)
    cut = [
        name
        for name, each in _named(replayed)
        if each.is_cut and name in current and current[name].is_of(NAME, each.partition.log_dir.broker)
    ]
    view = replace(view, cut=cut, coordinators=before.coordinators)
    high_watermarks = [_high_watermark(each, current) for each in replayed]
    as_of = [each.as_of(upto) for each, upto in zip(replayed, high_watermarks, strict=True)]
    stopped_after_ms = settings.group_stopped_after // timedelta(milliseconds=1)
    agent = LocalAgent(directories, reading.agent.cluster, before.paced)
    past = DiskPast(as_of, agent, now_ms)
    tracker = GroupTracker(EVERYTHING, stopped_after_ms, past, settings.throwaway_groups, before.queries.checkpoints)
    before.queries.put_into(tracker.queries)
    for each in as_of:
        for changes in each.changes:
            tracker.store.take(NAME, changes)
    groups = _tracked(tracker, view, agent, counted=counted)
    observed = {(key.topic, key.partition) for key in tails}
    reads = before.reads
    those = [tail for key, tail in tails.items() if (key.topic, key.partition) in observed and key not in agent.doubted]
    doubts = [*before.logs.doubts, *agent.doubts, *unread(reading.agent, reads, those, ()), *refused(reading.agent, reads)]
    doubts += silent(agent_of(reading), now_ms)
    unmarked = sorted({name for name, each in _named(replayed) if each.replicated == -1 and name not in current})
    doubts += _unmarked(unmarked)
    doubts += _unread_coordinators(groups.coordinators, before.cluster, before.coordinators, unmarked)
    doubts += (f"{group}: {doubt}" for group, facts in groups.queries.items() for doubt in facts.doubts)
    answers = ListedGroups(
        judged=judge_groups(groups, now_ms, bounds_of(settings)),
        results=GroupResults(groups, _any),
        messages=lambda: GroupPartitions(groups, logs, snapshot.topic_names),
        details=lambda messages: GroupDetails(messages, {NAME: agent}, ask_locally),
        commands=partial(_commands, reading.agent.cluster, groups),
        causes=causes_of(changes_of(reading.agent.host_status.brokers), logs, snapshot.topic_names),
        read=moments(replayed, high_watermarks, ends),
        commits_seen=_commits_seen(replayed),
    )
    there = {*answers.totals.names}
    return GroupReading(
        answers=answers,
        missing=tuple(sorted(name for name in set(names) if not there.intersection(possible_names(name)))),
        doubts=tuple(doubts),
        away=tuple(reading.away),
    )


def _view(reading: SingleReading, logs: View, snapshot: Snapshot, tails: Mapping[LogKey, Tail], now_ms: int) -> RoundView:
    """What the only round knows of the logs."""
    observed, cluster = logs.observed, reading.agent.cluster
    topic_ids = [snapshot.topic_ids[slot] for slot in observed.columns["slot"].tolist()]
    keys = map(LogKey, observed.columns["broker"].tolist(), observed.names, observed.columns["partition"].tolist(), topic_ids)
    ragged = [
        item
        for item, key in enumerate(keys)
        if (tail := tails.get(key)) is not None and (tail.cursor.stopped or ragged_bytes(tail, reading.agent.now_ms))
    ]
    topics = cluster.topic_names()
    return RoundView(
        observed=observed,
        retention=lambda: logs.retention,
        topic_ids=topic_ids,
        agents=snapshot.agents,
        heard={NAME},
        now_ms=now_ms,
        steady_ms=0,
        cluster_topics={topic: cluster.partition_count(topic) or 0 for topic in topics} if cluster.known else None,
        topic_names={each: topic for each in cluster.topic_ids() or () if (topic := cluster.topic_name(each))},
        damaged=ragged,
        once=True,
        holding=open_since(logs, snapshot.topic_names),
    )


def _named(replayed: Iterable[Replayed]) -> Iterator[tuple[LogName, Replayed]]:
    return (((each.partition.topic, each.partition.partition), each) for each in replayed)


def _high_watermark(replayed: Replayed, current: Mapping[LogName, Current]) -> int:
    """That of a coordinator's log, by the current replica, else by its own checkpoint."""
    log = replayed.partition
    found = current.get((log.topic, log.partition))
    return replayed.replicated if found is None else found.high_watermark


def _tracked(tracker: GroupTracker, view: RoundView, agent: LocalAgent, *, counted: bool) -> GroupSnapshot:
    """The only round. Logs are counted only from the first offset on that a commit needs, or from the last stable one before it.

    Retention and cleaners may take files away meanwhile. Such logs are counted again, and asked for where they begin now.
    """
    about_ends = tracker.begin(view)
    if not counted:
        return tracker.finish()
    about_commits = tracker.ask(_without_limit)
    about_moves = tracker.ask_moves(sys.maxsize)
    begins = _begins([*about_commits, *about_moves])
    agent.count(begins)
    questions = [*about_ends, *about_commits]
    _answer(tracker, agent, questions)
    for _ in range(_MORE_LOOKS):
        if replaced := begins.keys() & agent.replaced:
            agent.count({key: begins[key] for key in replaced})
            _answer(tracker, agent, questions)
        later = tracker.ask(_without_limit)
        if not (replaced or later):
            break
        questions += later
        _answer(tracker, agent, later)
    for question in about_moves:
        tracker.answer_moves(question, agent.positions(question.asked))
    return tracker.finish()


def _without_limit(_: str) -> int:
    return sys.maxsize


def _begins(about_commits: Iterable[Question]) -> dict[LogKey, int]:
    """From which offset on each log has to be counted."""
    begins: dict[LogKey, int] = {}
    for question in about_commits:
        columns = (question.asked[name].to_pylist() for name in ("broker", "topic", "partition", "topic_id", "offset"))
        for broker, topic, partition, topic_id, offset, stable in zip(*columns, question.stable.tolist(), strict=True):
            key = LogKey(broker, topic, partition, topic_id)
            begins[key] = min(offset, stable, begins.get(key, offset))
    return begins


def _answer(tracker: GroupTracker, agent: LocalAgent, questions: Iterable[Question]) -> None:
    for question in questions:
        tracker.answer(question, agent.positions(question.asked))


def _unmarked(logs: Sequence[LogName]) -> Iterator[str]:
    """The coordinators' logs of which nothing shows how far they are replicated."""
    if logs:
        names = format_list([f"{topic}-{partition}" for topic, partition in logs], 10)
        yield (
            f"no high watermark of {names} was written, so what groups have committed there is not known; "
            "--set assume_replicated=true counts to the end of the log, if no metadata log is here"
        )


def _unread_coordinators(
    logs: Sequence[CoordinatorLog], cluster: ClusterView, partitions: Collection[int] | None, unmarked: Collection[LogName]
) -> Iterator[str]:
    """Which coordinators' logs are missing or have lost their ends, and what of the others was not understood."""
    if partitions is None and not cluster.known:
        yield no_metadata(cluster, f"nothing shows how many partitions {OFFSETS_TOPIC} has")
    for topic in (OFFSETS_TOPIC, SHARE_STATE_TOPIC):
        read = {log.partition for log in logs if log.topic == topic and log.observed}
        wanted = partitions if topic == OFFSETS_TOPIC and partitions is not None else range(cluster.partition_count(topic) or 0)
        missing = sorted(set(wanted) - read - {partition for name, partition in unmarked if name == topic})
        if missing:
            names = format_list([str(number) for number in missing], 10)
            yield (
                f"{format_count(len(missing), 'partition')} of {topic} {format_be(len(missing))} not read from a current replica: {names}. "
                f"Groups of {'this coordinator' if len(missing) == 1 else 'these coordinators'} are missing, or not known as they are now; "
                f"{name_leaders(len(missing))}"
            )
    yield from _cut(logs)
    for log in logs:
        if log.observed and log.unreadable:
            count, be = format_count(log.unreadable, "record"), format_be(log.unreadable)
            yield f"{count} of {log.topic}-{log.partition} {be} damaged or of a later version of Kafka"
        if log.observed and log.omitted:
            count, be = format_count(log.omitted, "group"), format_be(log.omitted)
            yield f"{count} of {log.topic}-{log.partition} {be} left out: groups_limit is lower"


def _cut(logs: Iterable[CoordinatorLog]) -> Iterator[str]:
    """The coordinators' logs that have lost their ends."""
    cut = [f"{log.topic}-{log.partition}" for log in logs if log.observed and log.late]
    if cut:
        one = len(cut) == 1
        yield (
            f"{format_count(len(cut), 'log')} of coordinators {'ends' if one else 'end'} below the high watermark of "
            f"{'its' if one else 'their'} own checkpoint: {format_list(cut, 10)}. The newest commits are missing, so what "
            f"{'its' if one else 'their'} groups have committed is not known, and groups may be missing"
        )


def _commands(cluster: ClusterView, groups: GroupSnapshot, summary: GroupSummary) -> Commands:
    """The commands for a group: where its coordinator is, or else one of its logs."""
    facts = groups.groups.get(summary.group)
    logs = groups.logs
    rows = groups.rows_of(summary.group)
    brokers = [log.broker for log in groups.coordinators if facts is not None and log.partition == facts.coordinator]
    brokers += [int(logs.broker[logs.of_row[row]]) for row in rows[:1]]
    return Commands(server=server_of_any(map(cluster.broker, brokers)))


def _commits_seen(replayed: Sequence[Replayed]) -> CommitsSeen:
    """What all coordinators' logs have of commits, each by the replica that goes furthest; of some of these by the one with most."""
    best: dict[int, Replayed] = {}
    for each in (each for each in replayed if each.partition.topic == OFFSETS_TOPIC):
        other = best.get(each.partition.partition)
        if other is None or (each.upto, -each.noted.since_ms) > (other.upto, -other.noted.since_ms):
            best[each.partition.partition] = each
    last_ms: dict[str, int] = {}
    for each in replayed:
        for topic, at_ms in each.noted.last_ms.items():
            last_ms[topic] = max(last_ms.get(topic, at_ms), at_ms)
    since = [-1 if each.end > each.upto else each.noted.since_ms for each in best.values()]  # what came before its last segment is gone
    return CommitsSeen(last_ms=last_ms, since_ms=-1 if min(since, default=0) < 0 else max(since, default=0))


def refuse_remote(checkpoints: Collection[QueryCheckpoint]) -> None:
    """Check that no JVM is needed.

    Raises:
        UsageError: one of them is on a file system that only Spark's JVM reads.
    """
    for each in checkpoints:
        if each.local is None:
            raise UsageError(_needs_job(each))
