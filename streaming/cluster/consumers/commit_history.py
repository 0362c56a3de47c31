"""Which commits are still valid: a commit counts in the history of its log in which it was made, and in no other.

A history ends when its topic is deleted and made anew, or when an unclean election cuts off what a group has read. An offset of an ended
history may exist again, with other records before it: consumers that go on there skip them. The id of the topic, when it was created, the
leader epochs of its log, and of the commit its leader epoch or else its time decide whether that is so, and where consumers have to go on.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from streaming.cluster.consumers.group_counting import records_before
from streaming.cluster.consumers.group_lag import ABSENT, CODES, KNOWN, Codes, Ends, LagReason, Lags, Places
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.common.arrays import Flags, Longs
from streaming.common.catalog import EPOCHS
from streaming.kafka.groups.commit_table import CommitRows

APART_MS = 5_000
"""The clocks of a coordinator and of a controller are apart by less: what a commit's time is compared with is later by more."""

_NOT_CURRENT = [CODES[reason] for reason in (LagReason.NOT_OBSERVED, LagReason.UNREAD, LagReason.CHECKPOINT)]

LATE_MS = 600_000
"""A consumer learns of another leader epoch within half of this (``metadata.max.age.ms``). What is committed later with an earlier one is
of a client that commits an epoch of long ago with each offset.
"""

_EPOCH_BITS = 32
_TIME_BITS = 43
_MOST_MS = (1 << _TIME_BITS) - 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommitHistory:
    """The histories of commits, one item for each.

    ``parted_at``: from there on its log has records of leader epochs that began after the commit, though the committed offset is above;
    `ABSENT` where that is not so, or not known.
    """

    made_anew: Flags  # it is of an earlier topic of that name
    follows_another: Flags  # it is of this topic, and its group had committed offsets of an earlier one
    created_ms: Longs  # when the topic was created, Unix milliseconds, `ABSENT` where that is not known
    parted_at: Longs
    parted_epoch: Longs  # the first of these epochs
    parted_ms: Longs  # when it began, `ABSENT` if that is not known

    @classmethod
    def of(cls, rows: CommitRows, logs: GroupLogs) -> Self:
        """The histories of some commits."""
        epochs = _Epochs(logs)
        log, made_anew = logs.of_row, _made_anew(rows, logs)
        created_ms = epochs.created_ms[log]
        dated = (rows.commit_ms >= 0) & (created_ms >= 0) & ~_named(rows)
        made_anew = made_anew | (dated & (rows.commit_ms + APART_MS < created_ms))
        by_epoch, by_time = epochs.after_epoch(log, rows.leader_epoch), epochs.after_time(log, rows.commit_ms)
        began_ms = epochs.began_ms[by_epoch]
        outlived = (by_epoch != ABSENT) & (began_ms >= 0) & (rows.commit_ms > began_ms + LATE_MS)
        entry = np.where(rows.leader_epoch < 0, by_time, np.where(outlived, ABSENT, by_epoch))
        parted = ~made_anew & ~rows.share & (entry != ABSENT) & (epochs.start_offset[entry] < rows.offset)
        return cls(
            made_anew=made_anew,
            follows_another=~made_anew & (rows.former_ms >= 0) & (rows.former_ms < created_ms),
            created_ms=created_ms,
            parted_at=np.where(parted, epochs.start_offset[entry], ABSENT),
            parted_epoch=np.where(parted, epochs.epoch[entry], ABSENT),
            parted_ms=np.where(parted, epochs.began_ms[entry], ABSENT),
        )

    def go_on_at(self, rows: CommitRows, reason: Codes, ends: Ends, beyond: Flags) -> Longs:
        """Where consumers go on without skipping a record that they have not read; `ABSENT` where a commit is valid, or not current.

        Args:
            reason: why each commit cannot count.
            ends: of each commit.
            beyond: what is after the end of its log is known to be so.
        """
        outside = beyond & (rows.offset > ends.log_end) & (ends.log_end >= 0)
        above = (rows.offset > ends.log_start) & (ends.log_start >= 0) & ~np.isin(reason, _NOT_CURRENT)
        first = np.where(self.parted_at >= 0, np.maximum(self.parted_at, ends.log_start), ends.log_start)
        return np.where(above & (self.made_anew | (self.parted_at >= 0) | outside), first, ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Invalid:
    """The commits that are not valid, one item for each commit: ``history`` is that of each.

    ``go_on_at``: as `CommitHistory.go_on_at`. ``passed``: records between there and the committed offset, or the end of the log; nothing
    shows that the group has read one of them. `ABSENT` where they are not counted.
    """

    history: CommitHistory
    go_on_at: Longs
    passed: Longs

    @classmethod
    def of(cls, history: CommitHistory, go_on_at: Longs, lag: Lags, ends: Ends, places: Places, there: Places) -> Self:
        """Count what lies between. ``there``: the positions of ``go_on_at``."""
        upto, edition = records_before(np.minimum(lag.start, ends.high_watermark), places, ends, lag.reads_uncommitted)
        before = np.where(lag.reads_uncommitted, there.data, there.kept)
        counted = (there.offset == go_on_at) & (there.reason == KNOWN) & (there.edition == edition) & (edition != ABSENT)
        empty = (go_on_at >= 0) & (go_on_at >= ends.high_watermark)
        passed = np.where(empty, 0, np.where(counted, np.maximum(upto - before, 0), ABSENT))
        return cls(history=history, go_on_at=go_on_at, passed=np.where(go_on_at >= 0, passed, ABSENT))

    def skips(self, lag: Lags) -> Flags:
        """Where consumers go on in the middle of what they have not read. What is beyond the end of its log is not among these."""
        ended = self.history.made_anew | (self.history.parted_at >= 0)
        skips: Flags = ended & (self.go_on_at >= 0) & (self.passed != 0) & (lag.reason != CODES[LagReason.BEYOND])
        return skips


class _Epochs:
    """The leader epochs of some logs, one after the other; the last item stands for none."""

    def __init__(self, logs: GroupLogs) -> None:
        every = np.frombuffer(b"".join(logs.epochs), EPOCHS)
        log = np.repeat(np.arange(len(logs)), [len(each) // EPOCHS.itemsize for each in logs.epochs])
        self.created_ms = np.full(len(logs), ABSENT, np.int64)
        first, oldest_ms = every["epoch"] == 0, logs.oldest_ms[log]
        # a controller writes topics down that were there before when a cluster leaves ZooKeeper: then records are older than their topic
        dated = ~first | (oldest_ms < 0) | (oldest_ms + APART_MS >= every["began_ms"])
        began_ms = np.where(dated, every["began_ms"], ABSENT)
        self.created_ms[log[first]] = began_ms[first]
        there = every["start_offset"] >= 0
        self._log = log[there]
        self.epoch, self.start_offset, self.began_ms = (
            np.append(values[there].astype(np.int64), ABSENT) for values in (every["epoch"], every["start_offset"], began_ms)
        )

    def after_epoch(self, log: Longs, epoch: Longs) -> Longs:
        """The first epoch of each log that is later than another one, `ABSENT` if it has none."""
        return self._first(log, (self._log << _EPOCH_BITS) | self.epoch[:-1], (log << _EPOCH_BITS) | np.maximum(epoch, 0))

    def after_time(self, log: Longs, at_ms: Longs) -> Longs:
        """The first epoch of each log that may have begun after a time, where one surely has; else `ABSENT`.

        Those of which nothing shows when they began, right before one that is later, are among those that may have.
        """
        began = np.minimum(self.began_ms[:-1], _MOST_MS) + 1
        numbers, same = np.arange(len(self._log)), self._log[1:] == self._log[:-1]
        known = np.maximum.accumulate(np.where(began > 0, numbers, -1)) if len(numbers) else numbers
        begins = np.searchsorted(self._log, self._log)  # the first epoch of the same log
        since = begins.copy()
        since[1:] = np.where(same, np.maximum(known[:-1] + 1, begins[1:]), begins[1:])
        times = np.maximum.accumulate((self._log << _TIME_BITS) | began) if len(numbers) else began
        after = np.clip(at_ms, 0, _MOST_MS - APART_MS) + APART_MS + 1
        found = self._first(log, times, (log << _TIME_BITS) | after)
        return np.where((found == ABSENT) | (at_ms < 0), ABSENT, np.append(since, ABSENT)[found])

    def _first(self, log: Longs, keys: Longs, wanted: Longs) -> Longs:
        """The first item of each log whose key is greater."""
        found = np.searchsorted(keys, wanted, side="right")
        there = np.append(self._log, ABSENT)[found] == log
        return np.where(there, found, ABSENT)


def _named(rows: CommitRows) -> Flags:
    """The commits that name the id of their topic."""
    named: Flags = np.array([bool(name) for name in rows.topic_ids], np.bool_)[rows.topic_id]
    return named


def _made_anew(rows: CommitRows, logs: GroupLogs) -> Flags:
    """The commits that name another topic id than their log has: they are of a topic that was deleted."""
    numbers = {name: number for number, name in enumerate(rows.topic_ids)}
    of_log = np.array([numbers.get(topic_id, ABSENT) if topic_id else -2 for topic_id in logs.topic_ids], np.int64)
    if not len(rows):
        return np.zeros(0, np.bool_)
    theirs = of_log[logs.of_row]
    other: Flags = _named(rows) & (theirs != -2) & (theirs != rows.topic_id)
    return other
