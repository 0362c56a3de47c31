"""Which offsets nobody uses any more, and when a coordinator may delete them (`OffsetExpirationConditionImpl`, `cleanupExpiredOffsets`).

It counts from the last commit, or for an empty classic group from when it became empty. Offsets of topics that a group is subscribed to,
those of classic groups with members and without known topics, and those of share groups do not expire.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.cluster.consumers.group_sums import pair_starts
from streaming.cluster.view.exported import Observed, RetentionResults
from streaming.common.arrays import Flags, Longs
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.kafka.groups.commit_table import CommitRows
from streaming.kafka.groups.group_rows import GroupFacts
from streaming.kafka.groups.group_states import GroupState

DEFAULT_MS = 7 * 24 * 3_600_000
"""Kafka's default of ``offsets.retention.minutes``."""

_CLASSIC, _SHARE = "Classic", "Share"
_NEVER, _BY_COMMIT = -1, -2


def left_over(rows: CommitRows, logs: GroupLogs, groups: Mapping[str, GroupFacts]) -> Flags:
    """The commits of topics that no member of their groups subscribes to."""
    if not len(rows):
        return np.empty(0, np.bool_)
    topics = logs.topics
    return _of_pairs(rows, groups, logs.of_row, lambda group, log: _is_left(group, topics[log])).astype(np.bool_)


def expirations(rows: CommitRows, groups: Mapping[str, GroupFacts], retention_ms: int) -> Longs:
    """When each commit may be deleted, in Unix milliseconds; `ABSENT` while it may not."""
    if not len(rows):
        return np.empty(0, np.int64)
    since = _of_pairs(rows, groups, rows.topic, lambda group, topic: _since(group, rows.topic_names[topic]))
    counted = np.where(since == _BY_COMMIT, rows.commit_ms, since)
    ends = np.where(rows.expire_ms >= 0, rows.expire_ms, counted + retention_ms)
    found: Longs = np.where((since == _NEVER) | rows.share | (counted < 0), ABSENT, ends)
    return found


def _of_pairs(
    rows: CommitRows, groups: Mapping[str, GroupFacts], topic: NDArray[Any], decide: Callable[[GroupFacts | None, int], int]
) -> Longs:
    """What is decided of each group and topic, for all commits of both; ``topic``: the number of each commit's."""
    first = pair_starts(rows)
    pairs = zip(rows.group[first].tolist(), topic[first].tolist(), strict=True)
    each = [decide(groups.get(rows.group_names[group]), number) for group, number in pairs]
    return np.repeat(np.array(each, np.int64), np.diff(np.append(first, len(rows))))


def offsets_retention_ms(observed: Observed, retention: RetentionResults) -> int:
    """``offsets.retention.minutes`` of the first broker with a coordinator's log: all have the same one."""
    limits = zip(retention.items.tolist(), retention.limits, strict=True)
    known = (each.offsets_retention_ms for item, each in limits if each and observed.names[item] == OFFSETS_TOPIC)
    return next(known, DEFAULT_MS)


def _is_left(group: GroupFacts | None, topic: str) -> bool:
    """Whether members of a group subscribe to topics, and none of them to this one.

    Without members nobody knows who comes back; of those of a classic group that is rebalancing, or that are no consumers, it is not known.
    """
    if group is None or group.members <= 0 or not group.topics or topic in group.topics or group.state == GroupState.UNKNOWN:
        return False
    return group.type != _CLASSIC or group.state == GroupState.STABLE


def _since(group: GroupFacts | None, topic: str) -> int:
    """From when the retention of a group's offsets of a topic counts: a time, `_BY_COMMIT`, or `_NEVER`."""
    if group is None:
        return _BY_COMMIT  # it has only commits
    if group.type == _SHARE:
        return _NEVER
    if _is_left(group, topic):
        return _BY_COMMIT
    if group.type != _CLASSIC:
        return _NEVER if topic in group.topics else _BY_COMMIT
    if not group.protocol:
        return _BY_COMMIT
    if group.state == GroupState.EMPTY:
        return group.state_ms if group.state_ms >= 0 else _BY_COMMIT
    return _NEVER
