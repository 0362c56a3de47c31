"""Which partition of a group has most of its lag: records are held against records, or else offsets against offsets.

Offsets are no records: markers have some, and compaction leaves gaps. So where the records of one partition are not counted, those of the
others are no measure of it, and offsets are compared of all of them.
"""

from dataclasses import dataclass

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT, CODES, LagReason
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.verdicts.group_bounds import GroupBounds
from streaming.common.arrays import Flags, Longs


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeLag:
    """The lag of a group, `ABSENT` where that of some partition is not known: in records, or ``in_offsets``."""

    total: int = ABSENT
    in_offsets: bool = False


UNKNOWN_LAG = WholeLag()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shares:
    """``total``, ``in_offsets``: of each group, as in `WholeLag`. ``part``: that of each commit, `ABSENT` where its topic is gone, or where
    the agent of its leader does not answer: its offsets are of the last moment in which it did."""

    total: Longs
    in_offsets: Flags
    part: Longs

    def of(self, number: int) -> WholeLag:
        """The whole lag of a group, by its number among the names of the snapshot; `ABSENT` for one without a commit."""
        return UNKNOWN_LAG if number == ABSENT else WholeLag(total=int(self.total[number]), in_offsets=bool(self.in_offsets[number]))


def shares(snapshot: GroupSnapshot) -> Shares:
    """What each partition has of its group's lag."""
    rows, lags = snapshot.rows, snapshot.found.lags
    there = lags.reason != CODES[LagReason.TOPIC_GONE]
    groups = len(rows.group_names)
    in_offsets = _some(rows.group[there & (lags.left < 0)], groups)
    heard = lags.reason != CODES[LagReason.LEADER]
    part = np.where(there & heard, np.where(in_offsets[rows.group], lags.offsets, lags.left), ABSENT)
    total = np.zeros(groups, np.int64)
    np.add.at(total, rows.group, np.maximum(part, 0))
    total[_some(rows.group[there & (part < 0)], groups)] = ABSENT
    return Shares(total=total, in_offsets=in_offsets, part=part)


def skewed(snapshot: GroupSnapshot, of_groups: Shares, bounds: GroupBounds) -> Flags:
    """The partition that has most of its group's lag, if there are others."""
    rows, part = snapshot.rows, of_groups.part
    most, count = (np.zeros(len(of_groups.total), np.int64) for _ in range(2))
    np.maximum.at(most, rows.group, part)
    np.add.at(count, rows.group, part != ABSENT)
    skew = (count > 1) & (of_groups.total >= bounds.skewed_records) & (most >= bounds.skewed_share * of_groups.total)
    flags: Flags = skew[rows.group] & (part == most[rows.group])
    return flags


def _some(groups: Longs, count: int) -> Flags:
    """Which of the groups are among these."""
    flags: Flags = np.zeros(count, np.bool_)
    flags[groups] = True
    return flags
