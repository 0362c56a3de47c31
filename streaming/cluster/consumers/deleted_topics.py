"""What groups still had to read of topics that were deleted.

With a topic its records go, and its coordinators delete the commits of it a moment later, so that no row shows the loss any more.

- It is proven by the deletion in the metadata log, which names the topic's id, and by what a round before it has counted.
- A commit that its coordinator deletes looks the same in its log, if it expired or was deleted by hand: the topic is still there.
- What was appended between that round and the deletion is not in it, so it is a lower bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from streaming.broker.protocol.history_json import DeletedTopic
from streaming.cluster.consumers.group_counting import LOST_LATELY_MS
from streaming.cluster.consumers.group_lag import ABSENT, KNOWN, Lags, carried, padded
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.commit_table import CommitRows

NOTICED_MS = 600_000
"""A deletion is known within seconds of the commits that go with it. Commits that went without one are forgotten after so long."""

MOST_KEPT = 10_000
"""The most losses that are remembered, the newest."""

_COLUMNS = ("topic", "left", "offsets", "counted_ms")


class DeletedTopics:
    """Remembers what was left of each commit, and what was left of those of deleted topics.

    ``recalled``: what a job before has found. Records that were deleted before the first poll were never counted here, and are left out.
    Only the thread that polls uses it.
    """

    def __init__(self) -> None:
        self.recalled: Sequence[DeletedTopic] = ()
        self._rows: CommitRows | None = None
        self._columns: dict[str, Longs] = {name: np.empty(0, np.int64) for name in _COLUMNS}
        self._numbers: dict[str, int] = {}  # of topics' ids, as the columns have them
        self._gone: list[_Count] = []  # of commits that are not there any more, or are of another topic of that name
        self._handled: set[str] | None = None  # ids of topics whose deletion was met
        self._found: list[DeletedTopic] = []

    def update(
        self, rows: CommitRows, logs: GroupLogs, lags: Lags, left_over: Flags, deletions: Mapping[str, int], now_ms: int
    ) -> tuple[DeletedTopic, ...]:
        """A round is over: all losses of the last day.

        Args:
            left_over: of which commits the group does not read the topic any more.
            deletions: when each deleted topic was deleted, Unix milliseconds, by its id.
        """
        if self._handled is None:
            self._handled, self._found = {*deletions}, [*self.recalled]
        self._carry(rows, now_ms)
        self._count(rows, logs, lags, left_over, now_ms)
        new = {topic_id: at_ms for topic_id, at_ms in deletions.items() if topic_id not in self._handled}
        if new:
            self._handled.update(new)
            here = [each for each in self._of_rows(np.flatnonzero(self._columns["counted_ms"] >= 0)) if each.topic_id in new]
            self._found += _sums([*self._gone, *here], new)
        self._gone = [each for each in self._gone if now_ms - each.counted_ms <= NOTICED_MS and each.topic_id not in new]
        self._found = [each for each in self._found if now_ms - each.at_ms <= LOST_LATELY_MS][-MOST_KEPT:]
        return tuple(self._found)

    def _carry(self, rows: CommitRows, now_ms: int) -> None:
        """Take over the columns for the commits that are there now, and set aside what was left of those that are gone."""
        before = self._rows
        if before is not None and not np.array_equal(before.key, rows.key):
            self._set_aside(~np.isin(before.key, rows.key))
            rows_before, there = carried(before.key, rows.key)
            self._columns = {name: np.where(there, padded(column)[rows_before], ABSENT) for name, column in self._columns.items()}
        elif before is None:
            self._columns = {name: np.full(len(rows), ABSENT, np.int64) for name in _COLUMNS}
        self._rows = rows

    def _count(self, rows: CommitRows, logs: GroupLogs, lags: Lags, left_over: Flags, now_ms: int) -> None:
        topics = np.array([self._numbers.setdefault(each, len(self._numbers)) for each in logs.topic_ids], np.int64)[logs.of_row]
        known, there = lags.reason == KNOWN, logs.item[logs.of_row] != ABSENT
        counted = there & (known | (lags.offsets >= 0)) & ~rows.share
        self._set_aside(counted & (self._columns["topic"] != topics))
        values = {
            "topic": topics,
            "left": np.where(left_over, 0, np.where(known, lags.left, ABSENT)),
            "offsets": np.where(left_over, 0, np.maximum(lags.offsets, 0)),
            "counted_ms": np.full(len(rows), now_ms, np.int64),
        }
        self._columns = {name: np.where(counted, values[name], column) for name, column in self._columns.items()}

    def _set_aside(self, some: Flags) -> None:
        """Keep what was left of some commits, if anything was: their rows go, or are of another topic from now on."""
        left = (self._columns["left"] > 0) | (self._columns["offsets"] > 0)
        self._gone += self._of_rows(np.flatnonzero(some & left))

    def _of_rows(self, some: Longs) -> list[_Count]:
        rows = self._rows
        assert rows is not None
        ids = [*self._numbers]
        return [
            _Count(
                rows.group_names[rows.group[row]],
                rows.topic_names[rows.topic[row]],
                ids[self._columns["topic"][row]],
                *(int(self._columns[name][row]) for name in _COLUMNS[1:]),
            )
            for row in some.tolist()
        ]


@dataclass(frozen=True, slots=True)
class _Count:
    """What was left of one commit when that was counted last."""

    group: str
    topic: str
    topic_id: str
    left: int  # records, ABSENT where only offsets are known
    offsets: int
    counted_ms: int


def _sums(counts: Sequence[_Count], deletions: Mapping[str, int]) -> list[DeletedTopic]:
    """What groups had left of each deleted topic, those that had nothing left out."""
    by_pair: dict[tuple[str, str, str], list[_Count]] = {}
    for each in counts:
        if each.topic_id in deletions:
            by_pair.setdefault((each.group, each.topic, each.topic_id), []).append(each)
    found = [
        DeletedTopic(
            group=group,
            topic=topic,
            topic_id=topic_id,
            records=sum(max(each.left, 0) for each in some),
            offsets=sum(each.offsets for each in some if each.left == ABSENT),
            at_ms=deletions[topic_id],
            counted_ms=min(each.counted_ms for each in some),
        )
        for (group, topic, topic_id), some in sorted(by_pair.items())
    ]
    return [each for each in found if each.records or each.offsets]
