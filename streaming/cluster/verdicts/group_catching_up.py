"""Which partitions are read before retention deletes what comes next there, although that is near: of groups that move, or that will run.

A new group that begins at the earliest record, and one that was reset to it, always have a next record that is among the first to be
deleted. So has a group that reads on in what was appended in one burst, until it is through. They lose nothing if they are faster than
deletion.
"""

from collections.abc import Mapping

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.verdicts.group_usage import Usage
from streaming.cluster.view.fading_rates import Rates
from streaming.common.arrays import Flags

_SPARE = 1.15
"""A group is faster than deletion if it is so much faster than it has to be: rates are measured."""

_NEVER_MS = np.iinfo(np.int64).max


_PAUSES_MS, _OLD_DATA_MS = 30_000, 10_000
"""The rate of a group that has read nothing for longer fades, and shows no more how fast it reads; nor does what is known of long ago."""

_TOO_SLOW = 2.0
"""A group is certainly too slow if it had to be so much faster."""


def outruns(snapshot: GroupSnapshot, usage: Mapping[str, Usage]) -> Flags:
    """Whether each commit's group reads before deletion follows."""
    return _reads_before(snapshot) | _runs_before(snapshot, usage)


def reads_too_little(snapshot: GroupSnapshot) -> Flags:
    """Whether at the rate of each commit's group some segment is deleted before it has read that."""
    too_little: Flags = snapshot.progress.rate < _needed(snapshot)
    return too_little


def falls_short(snapshot: GroupSnapshot, now_ms: int) -> Flags:
    """The same of groups that move, and certainly: rates are measured."""
    since_ms, age_ms, rate = snapshot.progress.stopped_since_ms, snapshot.found.data_age_ms, snapshot.progress.settled_rate
    moves = (rate > 0) & ((since_ms < 0) | (now_ms - age_ms - since_ms < _PAUSES_MS)) & (age_ms <= _OLD_DATA_MS)
    short: Flags = moves & (rate * _TOO_SLOW < _needed(snapshot))
    return short


def _reads_before(snapshot: GroupSnapshot) -> Flags:
    """At its rate it has read each segment before that goes, and it reads more than is appended, so that this stays so."""
    rate, needed = snapshot.progress.lasting_rate, _needed(snapshot)
    appended = snapshot.appended_rate[snapshot.logs.of_row]
    known = (needed >= 0) & (appended >= 0)
    reads: Flags = known & ~snapshot.found.stopped & (rate > appended) & (rate >= _SPARE * needed)
    return reads


def _needed(snapshot: GroupSnapshot) -> Rates:
    """Records a second that each commit's group has to read to be before deletion, `ABSENT` where nothing is foretold."""
    found, lags, logs = snapshot.found, snapshot.found.lags, snapshot.logs
    upto = np.where(lags.reads_uncommitted, logs.high_watermark[logs.of_row], logs.last_stable[logs.of_row])
    dense = np.minimum(np.maximum(lags.left, 0) / np.maximum(upto - lags.next_offset, 1), 1.0)  # a pace counts markers and gaps, too
    known = (found.loss_ms >= 0) & (found.loss_pace >= 0) & (lags.left > 0)
    return np.where(known, found.loss_pace * dense, float(ABSENT))


def _runs_before(snapshot: GroupSnapshot, usage: Mapping[str, Usage]) -> Flags:
    """It is between its runs, and the next one is due before."""
    of = [usage[name] for name in snapshot.rows.group_names]
    run_ms = np.array([each.alive_ms + each.interval_ms if each.between else _NEVER_MS for each in of], np.int64)[snapshot.rows.group]
    runs: Flags = (snapshot.found.loss_ms >= 0) & (run_ms < snapshot.found.loss_ms)
    return runs
