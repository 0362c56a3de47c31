"""The rhythm of all groups, as columns: when each last committed, and how long it usually is from one of its commits to the next."""

from collections.abc import Mapping, Sequence

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT
from streaming.common.arrays import Longs
from streaming.kafka.groups.commit_table import CommitRows
from streaming.kafka.groups.group_rows import GroupFacts
from streaming.kafka.groups.rhythm import SHORT_MS

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
