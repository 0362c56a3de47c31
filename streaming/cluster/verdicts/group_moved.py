"""Which commits are such that somebody moved them, for the judge and for the metric of its alert: the last move of each counts."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.common.arrays import Flags, Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MovedRows:
    """One item for each commit. ``at_ms``: when it was last moved in one direction, Unix milliseconds, `ABSENT` if it was not.

    ``settled``: whether that is certain for one of these moves, because no program has gone on with it.
    """

    at_ms: Longs
    settled: Flags

    @classmethod
    def of(cls, snapshot: GroupSnapshot, now_ms: int, *, forwards: bool) -> Self:
        """The moves that somebody should know, of a snapshot as it is judged at some time."""
        at_ms, settled = np.full(len(snapshot.rows), ABSENT, np.int64), np.zeros(len(snapshot.rows), np.bool_)
        for each in snapshot.moved.shown:
            if each.move.forwards == forwards and not snapshot.found.left_over[each.row]:
                at_ms[each.row] = max(int(at_ms[each.row]), each.move.at_ms)
                settled[each.row] |= each.is_settled(now_ms)
        return cls(at_ms=at_ms, settled=settled)


def last_skips(snapshot: GroupSnapshot, now_ms: int) -> Longs:
    """When records were last skipped by hand, of each pair of group and topic, Unix milliseconds; `ABSENT` where none were."""
    at_ms = np.full(len(snapshot.pairs), ABSENT, np.int64)
    for each in snapshot.moved.shown:
        if each.move.forwards and each.is_settled(now_ms) and not snapshot.found.left_over[each.row]:
            pair = int(np.searchsorted(snapshot.pairs.first, each.row, side="right")) - 1
            at_ms[pair] = max(int(at_ms[pair]), each.move.at_ms)
    return at_ms
