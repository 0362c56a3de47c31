"""Which partitions are read before retention deletes what comes next there, although that is near: of groups that move, or that will run.

A new group that begins at the earliest record, and one that was reset to it, always have a next record that is among the first to be
deleted. So has a group that reads on in what was appended in one burst, until it is through. They lose nothing if they are faster than
deletion.
"""

from collections.abc import Mapping

import numpy as np

from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.verdicts.group_usage import Usage
from streaming.common.arrays import Flags

_SPARE = 1.15
"""A group is faster than deletion if it is so much faster than it has to be: rates are measured."""

_NEVER_MS = np.iinfo(np.int64).max


def outruns(snapshot: GroupSnapshot, usage: Mapping[str, Usage]) -> Flags:
    """Whether each commit's group reads before deletion follows."""
    return _reads_before(snapshot) | _runs_before(snapshot, usage)


def _reads_before(snapshot: GroupSnapshot) -> Flags:
    """At its rate it has read each segment before that goes, and it reads more than is appended, so that this stays so."""
    found, lags, logs, rate = snapshot.found, snapshot.found.lags, snapshot.logs, snapshot.progress.lasting_rate
    appended = snapshot.appended_rate[logs.of_row]
    upto = np.where(lags.reads_uncommitted, logs.high_watermark[logs.of_row], logs.last_stable[logs.of_row])
    dense = np.minimum(np.maximum(lags.left, 0) / np.maximum(upto - lags.next_offset, 1), 1.0)  # a pace counts markers and gaps, too
    needed = _SPARE * found.loss_pace * dense
    known = (found.loss_ms >= 0) & (found.loss_pace >= 0) & (appended >= 0) & (lags.left > 0)
    reads: Flags = known & ~found.stopped & (rate > appended) & (rate >= needed)
    return reads


def _runs_before(snapshot: GroupSnapshot, usage: Mapping[str, Usage]) -> Flags:
    """It is between its runs, and the next one is due before."""
    of = [usage[name] for name in snapshot.rows.group_names]
    run_ms = np.array([each.alive_ms + each.interval_ms if each.between else _NEVER_MS for each in of], np.int64)[snapshot.rows.group]
    runs: Flags = (snapshot.found.loss_ms >= 0) & (run_ms < snapshot.found.loss_ms)
    return runs
