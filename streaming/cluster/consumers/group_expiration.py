"""When a coordinator may delete the offsets of a group that nobody uses (`OffsetExpirationConditionImpl`, `cleanupExpiredOffsets`).

It counts from the last commit, or for an empty classic group from when it became empty. Offsets of topics that a group is subscribed to,
those of classic groups with members and without known topics, and those of share groups do not expire.
"""

from collections.abc import Mapping

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_sums import pair_starts
from streaming.cluster.view.exported import Observed, RetentionResults
from streaming.common.arrays import Longs
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.kafka.groups.commit_table import CommitRows
from streaming.kafka.groups.group_rows import GroupFacts
from streaming.kafka.groups.group_states import GroupState

DEFAULT_MS = 7 * 24 * 3_600_000
"""Kafka's default of ``offsets.retention.minutes``."""

_CLASSIC, _SHARE = "Classic", "Share"
_NEVER, _BY_COMMIT = -1, -2


def expirations(rows: CommitRows, groups: Mapping[str, GroupFacts], retention_ms: int) -> Longs:
    """When each commit may be deleted, in Unix milliseconds; `ABSENT` while it may not."""
    if not len(rows):
        return np.empty(0, np.int64)
    first = pair_starts(rows)
    groups_of, topics_of = rows.group[first].tolist(), rows.topic[first].tolist()
    each = [_since(groups.get(rows.group_names[group]), rows.topic_names[topic]) for group, topic in zip(groups_of, topics_of, strict=True)]
    since = np.repeat(np.array(each, np.int64), np.diff(np.append(first, len(rows))))
    counted = np.where(since == _BY_COMMIT, rows.commit_ms, since)
    ends = np.where(rows.expire_ms >= 0, rows.expire_ms, counted + retention_ms)
    found: Longs = np.where((since == _NEVER) | rows.share | (counted < 0), ABSENT, ends)
    return found


def offsets_retention_ms(observed: Observed, retention: RetentionResults) -> int:
    """``offsets.retention.minutes`` of the first broker with a coordinator's log: all have the same one."""
    limits = zip(retention.items.tolist(), retention.limits, strict=True)
    known = (each.offsets_retention_ms for item, each in limits if each and observed.names[item] == OFFSETS_TOPIC)
    return next(known, DEFAULT_MS)


def _since(group: GroupFacts | None, topic: str) -> int:
    """From when the retention of a group's offsets of a topic counts: a time, `_BY_COMMIT`, or `_NEVER`."""
    if group is None:
        return _BY_COMMIT  # it has only commits
    if group.type == _SHARE:
        return _NEVER
    if group.type != _CLASSIC:
        return _NEVER if topic in group.topics else _BY_COMMIT
    if not group.protocol:
        return _BY_COMMIT
    if group.state == GroupState.EMPTY:
        return group.state_ms if group.state_ms >= 0 else _BY_COMMIT
    return _BY_COMMIT if group.state == GroupState.STABLE and group.topics and topic not in group.topics else _NEVER
