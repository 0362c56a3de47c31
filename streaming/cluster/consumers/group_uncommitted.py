"""The partitions of groups that have no committed offset: those that are assigned to members, and those whose first commits wait.

What their consumers will read is not on disk, so they have no lag. Their logs have at most as many records as offsets.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT, LagReason
from streaming.cluster.consumers.group_logs import GroupLogs, TopicPartition, current_replicas
from streaming.cluster.consumers.group_sums import pair_starts
from streaming.cluster.view.exported import Observed
from streaming.common.arrays import Longs
from streaming.kafka.groups.commit_table import CommitRows
from streaming.kafka.groups.group_rows import GroupFacts, PendingCommit
from streaming.kafka.groups.number_ranges import existing, pairs

MOST_LISTED = 10_000
"""So many partitions without a commit are listed of a group."""


class Uncommitted(NamedTuple):
    """A partition without a commit, and its log as it is observed, `ABSENT` where it is not.

    ``reason``: why it is not known whether it has none, None if it is.
    """

    topic: str
    partition: int
    topic_id: str = ""
    broker: int = ABSENT
    log_start: int = ABSENT
    high_watermark: int = ABSENT
    last_stable: int = ABSENT
    reason: LagReason | None = None

    @property
    def records(self) -> int:
        """At most so many records are in its log, `ABSENT` if that is not known."""
        return max(self.high_watermark - self.log_start, 0) if min(self.high_watermark, self.log_start) >= 0 else ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingTopics:
    """The topics that exist. ``counts``: how many partitions each has, of those that are known. ``names``: by their ids."""

    counts: Mapping[str, int]
    names: Mapping[str, str]

    @classmethod
    def known_to(
        cls, observed: Observed, topic_ids: Sequence[str], counts: Mapping[str, int] | None, names: Mapping[str, str]
    ) -> "ExistingTopics":
        """Those of the cluster; where that is not known, those that are observed."""
        if counts is None:
            most: dict[str, int] = {}
            for name, partition in zip(observed.names, observed.columns["partition"].tolist(), strict=True):
                most[name] = max(most.get(name, 0), partition + 1)
            counts = most
        return cls(counts=counts, names={**names, **dict(zip(topic_ids, observed.names, strict=True))})


class UncommittedFinder:
    """Looks for them only if there are other commits, members or topics than before. For one thread."""

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


def _missing(
    rows: CommitRows, logs: GroupLogs, groups: Mapping[str, GroupFacts], pending: Iterable[PendingCommit], topics: ExistingTopics
) -> Mapping[str, list[TopicPartition]]:
    committed = _committed(rows, logs)
    waiting: dict[str, set[TopicPartition]] = {}
    for each in pending:
        waiting.setdefault(each.group, set()).add((each.topic, each.partition))
    missing: dict[str, list[TopicPartition]] = {}
    for group in sorted({name for name, facts in groups.items() if facts.assigned} | waiting.keys()):
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
    """The partitions that are assigned, exist, and have no commit."""
    for entry in facts.assigned if facts is not None else ():
        topic, ranges = existing(entry, lambda topic_id: topics.names.get(topic_id, ""), lambda name: topics.counts.get(name, 0))
        there = committed(topic)
        for first, last in pairs(ranges):
            if last + 1 - first > np.searchsorted(there, last + 1) - np.searchsorted(there, first):
                missing = np.setdiff1d(np.arange(first, last + 1), there, assume_unique=True)
                yield from ((topic, partition) for partition in missing[:MOST_LISTED].tolist())
