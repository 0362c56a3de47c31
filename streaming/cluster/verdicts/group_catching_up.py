"""Which partitions are read before retention deletes what comes next there, although that is near: of groups that move, or that will run.

A new group that begins at the earliest record, and one that was reset to it, always have a next record that is among the first to be
deleted. They lose nothing if they move away from it.
"""

from collections.abc import Mapping

import numpy as np

from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.verdicts.group_usage import Usage
from streaming.common.arrays import Flags

_NEVER_MS = np.iinfo(np.int64).max


def outruns(snapshot: GroupSnapshot, usage: Mapping[str, Usage], now_ms: int) -> Flags:
    """Whether each commit's group reads before deletion follows."""
    return _moves_away(snapshot, now_ms) | _runs_before(snapshot, usage)


def _moves_away(snapshot: GroupSnapshot, now_ms: int) -> Flags:
    """It moves through its log faster than time passes, reads more than is appended, and has read what goes next before that goes."""
    found, progress, appended = snapshot.found, snapshot.progress, snapshot.appended_rate[snapshot.logs.of_row]
    stake = np.maximum(found.loss_end - found.lags.next_offset, 0)
    in_time = stake * 1000 < np.maximum(progress.rate, 0.0) * (found.loss_ms - now_ms)
    moves: Flags = (progress.speed > 1) & (appended >= 0) & (progress.rate > appended) & (found.loss_ms >= 0) & in_time
    return moves


def _runs_before(snapshot: GroupSnapshot, usage: Mapping[str, Usage]) -> Flags:
    """It is between its runs, and the next one is due before."""
    of = [usage[name] for name in snapshot.rows.group_names]
    run_ms = np.array([each.alive_ms + each.interval_ms if each.between else _NEVER_MS for each in of], np.int64)[snapshot.rows.group]
    runs: Flags = (snapshot.found.loss_ms >= 0) & (run_ms < snapshot.found.loss_ms)
    return runs
