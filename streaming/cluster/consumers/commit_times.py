"""When each group committed, by a clock that can be believed: coordinators stamp commits, and a coordinator's clock may be wrong.

A stamp of a time to come shows nothing, and neither does one that was old when it came. Whoever watches sees a commit come: between two
rounds. Coordinators themselves go by the stamps, so when offsets expire is told by these.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.commit_table import CommitRows
from streaming.kafka.groups.group_rows import GroupFacts, PendingCommit
from streaming.kafka.groups.rhythm import SHORT_MS

AHEAD_MS = 60_000
"""A clock that is ahead by no more than that is right."""

LATE_MS = 600_000
"""What comes so long after its stamp was stamped by a clock that is behind; an agent that was away for a moment is none."""

PendingKey = tuple[str, str, int, int, int]


def is_ahead(stamp_ms: Longs, now_ms: int) -> Flags:
    """Which stamps are of a time to come."""
    ahead: Flags = stamp_ms > now_ms + AHEAD_MS
    return ahead


def believed(stamp_ms: Longs, now_ms: int) -> Longs:
    """The stamps, `ABSENT` where they are of a time to come."""
    return np.where(is_ahead(stamp_ms, now_ms), ABSENT, np.minimum(stamp_ms, now_ms))


def committed_ms(stamp_ms: Longs, before_ms: Longs, before_stamp_ms: Longs, last_ms: int, now_ms: int) -> Longs:
    """When commits were made, `ABSENT` where that is not known.

    Args:
        before_ms: what is known of the commit that each had in the round before, at ``last_ms``.
        before_stamp_ms: the stamp of that one, `ABSENT` where there was none.
    """
    came = (before_stamp_ms != ABSENT) & (stamp_ms != before_stamp_ms)
    late = came & (stamp_ms < last_ms - LATE_MS)
    when = np.where(came & is_ahead(stamp_ms, now_ms), now_ms, np.where(late, min(last_ms, now_ms), believed(stamp_ms, now_ms)))
    same = (before_stamp_ms == stamp_ms) & (before_ms != ABSENT)
    found: Longs = np.where(stamp_ms < 0, ABSENT, np.where(same, np.minimum(before_ms, now_ms), when))
    return found


class PendingTimes:
    """Since when commits wait for a transaction: not since a time to come. For one thread.

    Args:
        watches: whether there are rounds before and after.
    """

    def __init__(self, *, watches: bool) -> None:
        self._watches = watches
        self._first_ms: dict[PendingKey, int] = {}

    def update(self, pending: Iterable[PendingCommit], now_ms: int) -> tuple[PendingCommit, ...]:
        """What waits in this round. A commit that is stamped ahead has waited since it was first seen, and it is not known since when for
        whoever looks once.
        """
        if not self._watches:
            return tuple(replace(each, commit_ms=ABSENT) if each.commit_ms > now_ms + AHEAD_MS else each for each in pending)
        found, first_ms = [], dict[PendingKey, int]()
        for each in pending:
            if each.commit_ms > now_ms or self._key(each) in self._first_ms:
                key = self._key(each)
                first_ms[key] = min(self._first_ms.get(key, now_ms), now_ms)
                each = replace(each, commit_ms=min(each.commit_ms, first_ms[key]))
            found.append(each)
        self._first_ms = first_ms
        return tuple(found)

    @staticmethod
    def _key(pending: PendingCommit) -> PendingKey:
        return pending.group, pending.topic, pending.partition, pending.producer_id, pending.record_offset


WITHIN_TIMES = 2
"""A group is in its rhythm for so many times its usual interval after a commit."""


def usual_intervals(names: Sequence[str], groups: Mapping[str, GroupFacts]) -> Longs:
    """The usual interval of each group, `ABSENT` where it is not known."""
    each = map(groups.get, names)
    return np.array([ABSENT if facts is None else facts.interval_ms for facts in each], np.int64)


def last_commits(rows: CommitRows, committed_ms: Longs) -> Longs:
    """When each group last committed, by its number; `ABSENT` where it has no commit, or where that is not known."""
    last = np.full(len(rows.group_names), ABSENT, np.int64)
    np.maximum.at(last, rows.group, committed_ms)
    return last


def rhythm_ms(interval_ms: Longs) -> Longs:
    """For how long groups may pause and are in their rhythm; 0 for those that commit all the time, and where the interval is not known."""
    return np.where(interval_ms > SHORT_MS, WITHIN_TIMES * interval_ms, 0)
