"""The partitions of groups that have no committed offset: those that are assigned to members, those that the last members subscribed to
if there are none, and those whose first commits wait.

The records that their consumers will read are not on disk, so they have no lag. Their logs have at most as many records as offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streaming.cluster.consumers.group_lag import ABSENT, KNOWN, Codes, LagReason
from streaming.cluster.consumers.group_logs import GroupLogs, TopicPartition, current_replicas
from streaming.cluster.consumers.group_sums import pair_starts
from streaming.cluster.view.exported import Observed, RetentionResults
from streaming.common.arrays import Flags, Longs
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.kafka.groups.commit_table import CommitRows
from streaming.kafka.groups.group_rows import NOT_REPLICATED, GroupFacts, PendingCommit
from streaming.kafka.groups.group_states import GroupState
from streaming.kafka.groups.number_ranges import existing, pairs

MOST_LISTED = 10_000
"""So many partitions without a commit are listed of a group."""

LOG_START_MS = 75_000
"""After so long a log start is known: brokers write those that a client has moved within a minute
(`log.flush.start.offset.checkpoint.interval.ms`)."""

DEFAULT_MS = 7 * 24 * 3_600_000
"""Kafka's default of ``offsets.retention.minutes``."""

_CLASSIC, _SHARE = "Classic", "Share"
_NEVER, _BY_COMMIT = -1, -2


class UncommittedFinder:
    """Finds the partitions without a committed offset; it looks only if there are other commits, members or topics than before.

    Only the thread that polls uses it.
    """

    def __init__(self) -> None:
        self._key: Longs | None = None
        self._of: tuple[Mapping[str, GroupFacts], tuple[PendingCommit, ...], ExistingTopics] | None = None
        self._found: Mapping[str, list[TopicPartition]] = {}

    def find(
        self,
        rows: CommitRows,
        logs: GroupLogs,
        groups: Mapping[str, GroupFacts],
        pending: tuple[PendingCommit, ...],
        topics: ExistingTopics,
    ) -> Mapping[str, list[TopicPartition]]:
        """The partitions without a commit of each group that has some, in order."""
        same = self._of is not None and self._of[0] is groups and self._of[1:] == (pending, topics)
        if not same or self._key is None or not np.array_equal(self._key, rows.key):
            self._key, self._of = rows.key, (groups, pending, topics)
            self._found = _missing(rows, logs, groups, pending, topics)
        return self._found


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingTopics:
    """The topics that exist. ``counts``: how many partitions each has, of those that are known. ``names``: by their ids."""

    counts: Mapping[str, int]
    names: Mapping[str, str]

    @classmethod
    def known_to(
        cls, observed: Observed, topic_ids: Sequence[str], counts: Mapping[str, int] | None, names: Mapping[str, str]
    ) -> ExistingTopics:
        """Those of the cluster; where that is not known, those that are observed."""
        if counts is None:
            most: dict[str, int] = {}
            for name, partition in zip(observed.names, observed.columns["partition"].tolist(), strict=True):
                most[name] = max(most.get(name, 0), partition + 1)
            counts = most
        return cls(counts=counts, names={**names, **dict(zip(topic_ids, observed.names, strict=True))})


def _missing(
    rows: CommitRows, logs: GroupLogs, groups: Mapping[str, GroupFacts], pending: Iterable[PendingCommit], topics: ExistingTopics
) -> Mapping[str, list[TopicPartition]]:
    committed = _committed(rows, logs)
    waiting: dict[str, set[TopicPartition]] = {}
    for each in pending:
        waiting.setdefault(each.group, set()).add((each.topic, each.partition))
    missing: dict[str, list[TopicPartition]] = {}
    for group in sorted({name for name, facts in groups.items() if facts.assigned or facts.last_topics} | waiting.keys()):
        some = {each for each in waiting.get(group, ()) if each[1] not in committed(group, each[0])}
        for topic, partition in _assigned(groups.get(group), topics, lambda topic, group=group: committed(group, topic)):  # type: ignore[misc]
            if len(some) >= MOST_LISTED:
                break
            some.add((topic, partition))
        if some:
            missing[group] = sorted(some)
    return missing


def _committed(rows: CommitRows, logs: GroupLogs) -> Callable[[str, str], Longs]:
    """The partitions of a group's topic that have a commit, ascending."""
    first = pair_starts(rows)
    ends = np.append(first, len(rows))[1:].tolist()
    pairs_of: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for start, end in zip(first.tolist(), ends, strict=True):
        pair = rows.group_names[rows.group[start]], logs.topics[logs.of_row[start]]
        pairs_of.setdefault(pair, []).append((start, end))  # a topic of a share group that had commits with another type, too
    none = np.empty(0, np.int64)

    def partitions(group: str, topic: str) -> Longs:
        parts = [rows.partition[start:end].astype(np.int64) for start, end in pairs_of.get((group, topic), ())]
        return np.unique(np.concatenate(parts)) if parts else none

    return partitions


def _assigned(facts: GroupFacts | None, topics: ExistingTopics, committed: Callable[[str], Longs]) -> Iterator[TopicPartition]:
    """The partitions that are assigned, or will be when members come back, exist, and have no commit."""
    if facts is None or facts.members == NOT_REPLICATED:  # its first commits may be above the high watermark of its coordinator's log, too
        return
    counts, names = topics.counts, topics.names
    assigned = [existing(entry, lambda of: names.get(of, ""), lambda name: counts.get(name, 0)) for entry in facts.assigned]
    assigned += [(topic, (0, counts[topic] - 1)) for topic in facts.last_topics if counts.get(topic, 0) > 0]
    for topic, ranges in assigned:
        there = committed(topic)
        for first, last in pairs(ranges):
            if last + 1 - first > np.searchsorted(there, last + 1) - np.searchsorted(there, first):
                missing = np.setdiff1d(np.arange(first, last + 1), there, assume_unique=True)
                yield from ((topic, partition) for partition in missing[:MOST_LISTED].tolist())


def with_logs(
    missing: Mapping[str, list[TopicPartition]], observed: Observed, topic_ids: Sequence[str], reasons: Mapping[str, LagReason]
) -> dict[str, list[Uncommitted]]:
    """The partitions with their logs as they are now. ``reasons``: why commits of a group are not known."""
    if not missing:
        return {}
    replicas = current_replicas(observed, {topic for partitions in missing.values() for topic, _ in partitions})
    columns, offsets = observed.columns, observed.replica_offsets

    def of(group: str, topic: str, partition: int) -> Uncommitted:
        item = replicas.get((topic, partition))
        if item is None:
            return Uncommitted(topic, partition, reason=reasons.get(group))
        return Uncommitted(
            topic,
            partition,
            topic_ids[item],
            int(columns["broker"][item]),
            int(columns["log_start_offset"][item]),
            int(offsets["high_watermark"][item]),
            int(offsets["last_stable_offset"][item]),
            reasons.get(group),
        )

    return {group: [of(group, *each) for each in partitions] for group, partitions in missing.items()}


class Uncommitted(NamedTuple):
    """A partition without a commit, and its log as it is observed, `ABSENT` where it is not."""

    topic: str
    partition: int
    topic_id: str = ""
    broker: int = ABSENT
    log_start: int = ABSENT
    high_watermark: int = ABSENT
    last_stable: int = ABSENT
    reason: LagReason | None = None  # why it is not known whether it has none, None if it is

    @property
    def records(self) -> int:
        """At most so many records are in its log, `ABSENT` if that is not known."""
        return max(self.high_watermark - self.log_start, 0) if min(self.high_watermark, self.log_start) >= 0 else ABSENT


class Isolations:
    """Remembers what was proved of a group as long as it has offsets. Only the thread that polls uses it.

    Which groups read uncommitted: those that have committed an offset which no consumer of committed data gets. The isolation of
    consumers is not on disk, and it is that of all consumers of a group, as far as it is set sensibly. A consumer with
    ``read_committed`` never gets beyond the first record of a transaction that is open, so an offset behind it is the proof. A
    transaction whose marker is in the log proves nothing: the high watermark, and with it the last stable offset, may be known too
    late. Nor does one whose first record is deleted, for then consumers begin at the log start, which is behind it; and that may be
    known too late as well.
    """

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._seen: dict[str, _Seen] = {}

    def update(self, rows: CommitRows, logs: GroupLogs, reason: Codes, data_ms: Longs, steady_ms: int, *, once: bool) -> Flags:
        """Take over what the commits of a round prove. Returns which of them are of groups that read uncommitted.

        Args:
            reason: the code of why each commit cannot count.
            data_ms: up to when each log is known, by the steady clock, `ABSENT` where it is not.
            once: no poll follows.
        """
        self._see(rows, logs, _proving(rows, logs, reason), steady_ms)
        if self._seen:
            self._prove(logs, data_ms, once)
        if not self._names:
            return np.zeros(len(rows), np.bool_)
        of_group = np.array([name in self._names for name in rows.group_names], np.bool_)
        flags: Flags = of_group[rows.group] & ~rows.share
        self._names &= {rows.group_names[group] for group in np.unique(rows.group[flags]).tolist()}
        return flags

    def _see(self, rows: CommitRows, logs: GroupLogs, proving: Flags, steady_ms: int) -> None:
        groups, where = np.unique(rows.group[proving], return_index=True)
        logs_of = logs.of_row[proving][where]
        for group, log in zip(groups.tolist(), logs_of.tolist(), strict=True):
            name = rows.group_names[group]
            if name not in self._names:
                self._seen.setdefault(name, _Seen(int(logs.code[log]), int(logs.open_from[log]), steady_ms))

    def _prove(self, logs: GroupLogs, data_ms: Longs, once: bool) -> None:
        for name, seen in list(self._seen.items()):
            log = int(np.searchsorted(logs.code, seen.code))
            if log == len(logs) or logs.code[log] != seen.code or logs.log_start[log] > seen.open_from:
                del self._seen[name]
            elif once or data_ms[log] - seen.since_ms >= LOG_START_MS:
                del self._seen[name]
                self._names.add(name)


@dataclass(frozen=True, slots=True)
class _Seen:
    """An offset behind the first record of an open transaction: the log by its code, that record's offset, and since when it is known."""

    code: int
    open_from: int
    since_ms: int


def _proving(rows: CommitRows, logs: GroupLogs, reason: Codes) -> Flags:
    open_from, log_end = logs.open_from[logs.of_row], logs.log_end[logs.of_row]
    sound = (reason == KNOWN) & (logs.reason[logs.of_row] == KNOWN) & ~rows.share
    proving: Flags = sound & (open_from != ABSENT) & (rows.offset > open_from) & (rows.offset <= log_end)
    return proving


def left_over(rows: CommitRows, logs: GroupLogs, groups: Mapping[str, GroupFacts]) -> Flags:
    """The commits of topics that no member of their groups subscribes to."""
    if not len(rows):
        return np.empty(0, np.bool_)
    topics = logs.topics
    return _of_pairs(rows, groups, logs.of_row, lambda group, log: _is_left(group, topics[log])).astype(np.bool_)


def _of_pairs(
    rows: CommitRows, groups: Mapping[str, GroupFacts], topic: NDArray[Any], decide: Callable[[GroupFacts | None, int], int]
) -> Longs:
    """What is decided of each group and topic, for all commits of both; ``topic``: the number of each commit's."""
    first = pair_starts(rows)
    pairs = zip(rows.group[first].tolist(), topic[first].tolist(), strict=True)
    each = [decide(groups.get(rows.group_names[group]), number) for group, number in pairs]
    return np.repeat(np.array(each, np.int64), np.diff(np.append(first, len(rows))))


def _is_left(group: GroupFacts | None, topic: str) -> bool:
    """Whether members of a group subscribe to topics, and none of them to this one; of one without members, its last ones: consumers that
    come back are of the same program, as far as anything shows that.

    It is not known of members of a classic group that is rebalancing, or that are no consumers, nor of those of which compaction has left
    nothing.
    """
    if group is None or group.members < 0 or group.state == GroupState.UNKNOWN:
        return False
    topics = group.topics if group.members else group.last_topics
    if not topics or topic in topics:
        return False
    return group.type != _CLASSIC or group.state == GroupState.STABLE or not group.members


def expirations(rows: CommitRows, groups: Mapping[str, GroupFacts], retention_ms: int) -> Longs:
    """When each commit may be deleted, in Unix milliseconds; `ABSENT` while it may not.

    Which offsets nobody uses any more, and when a coordinator may delete them (`OffsetExpirationConditionImpl`,
    `cleanupExpiredOffsets`). It counts from the last commit, or for an empty classic group from when it became empty. Offsets of
    topics that a group is subscribed to, those of classic groups with members and without known topics, and those of share groups do
    not expire.
    """
    if not len(rows):
        return np.empty(0, np.int64)
    since = _of_pairs(rows, groups, rows.topic, lambda group, topic: _since(group, rows.topic_names[topic]))
    counted = np.where(since == _BY_COMMIT, rows.commit_ms, since)
    ends = np.where(rows.expire_ms >= 0, rows.expire_ms, counted + retention_ms)
    found: Longs = np.where((since == _NEVER) | rows.share | (counted < 0), ABSENT, ends)
    return found


def _since(group: GroupFacts | None, topic: str) -> int:
    """The time from which the retention of a group's offsets of a topic counts, `_BY_COMMIT`, or `_NEVER`."""
    if group is None:
        return _BY_COMMIT  # it has only commits
    if group.type == _SHARE:
        return _NEVER
    if group.members > 0 and _is_left(group, topic):
        return _BY_COMMIT
    if group.type != _CLASSIC:
        return _NEVER if topic in group.topics else _BY_COMMIT
    if not group.protocol:
        return _BY_COMMIT
    if group.state == GroupState.EMPTY:
        return group.state_ms if group.state_ms >= 0 else _BY_COMMIT
    return _NEVER


def offsets_retention_ms(observed: Observed, retention: RetentionResults) -> int:
    """``offsets.retention.minutes`` of the first broker with a coordinator's log: all have the same one."""
    limits = zip(retention.items.tolist(), retention.limits, strict=True)
    known = (each.offsets_retention_ms for item, each in limits if each and observed.names[item] == OFFSETS_TOPIC)
    return next(known, DEFAULT_MS)
