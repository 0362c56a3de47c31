"""Which commits are still valid: a commit counts in the history of its log in which it was made, and in no other.

A history ends when its topic is deleted and created again, or when its log loses what a group has read. An offset of an ended history may
exist again, with other records before it: consumers that go on there skip them.

What proves what:

- **created again**: the commit names another topic id than its log has, or is older than its topic. If it is younger, and its group had
  committed offsets of an earlier topic of that name, that is the cause of an offset beyond the end, whatever epochs have begun since.
- **resumed**: the same, and the first commit in the topic is the offset that was deleted with the old one. It may have been read so far by
  chance, as a topic that is filled and read each night; so this is a doubt, also after the group has gone on.
- **cut off**: an unclean election, by the metadata log, began a leader epoch below the offset, after the commit; and the log had once been
  there, for a member of the group made the commit, or a client that named an earlier epoch of the log. If other epochs without a record
  began at the same place, a crash may have taken the records away before; then that is told as possible, and the command is the same.
- **parted**: one of both without the other. A member names an epoch that ends before its offset, and the election was orderly, or is not
  in the metadata log any more: a crash or a lost directory takes records away, and so does a topic that is created again under a
  consumer that goes on. Or nothing shows that the log was there when the unclean election came: too high an offset may have been set
  before.

An epoch that begins below a commit proves neither by itself: each restart of a broker begins one, and an offset that is set by hand,
restored or mirrored before the data is above it. Where nothing is proven the log start is where nothing is skipped.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from streaming.cluster.consumers.group_counting import records_before
from streaming.cluster.consumers.group_lag import ABSENT, CODES, KNOWN, Codes, Ends, LagReason, Lags, Places
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.common.arrays import Flags, Longs
from streaming.common.catalog import EPOCHS
from streaming.kafka.formats.metadata_partitions import BY_UNCLEAN
from streaming.kafka.groups.commit_table import CommitRows
from streaming.kafka.groups.offset_moves import GroupPresence

APART_MS = 5_000
"""The clocks of a coordinator and of a controller are apart by less: what a commit's time is compared with is later by more."""

_NOT_CURRENT = [CODES[reason] for reason in (LagReason.NOT_OBSERVED, LagReason.UNREAD, LagReason.CHECKPOINT)]

LATE_MS = 600_000
"""A consumer learns of another leader epoch within half of this (``metadata.max.age.ms``). An offset that is committed later with an
earlier one is of a client that commits an epoch of long ago with each offset.
"""

_EPOCH_BITS = 32
_TIME_BITS = 43
_MOST_MS = (1 << _TIME_BITS) - 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommitHistory:
    """The histories of commits, one item for each. ``cut_off``, ``parted``: not both. The numbers are `ABSENT` where nothing is so."""

    made_anew: Flags  # it is of an earlier topic of that name
    follows_another: Flags  # it is of this topic, and its group had committed offsets of an earlier one
    resumed: Longs  # of these, the offset that was deleted with the old topic, where the first commit in this one is the same
    created_ms: Longs  # when the topic was created, Unix milliseconds
    cut_off: Flags
    parted: Flags
    parted_at: Longs  # of both, where the later epoch begins in the log
    parted_epoch: Longs  # that epoch, of an unclean election if one is known
    parted_ms: Longs  # when it began
    unclean: Flags  # an unclean election cut the log off there: of those that are cut off certainly, of the others perhaps

    @classmethod
    def of(cls, rows: CommitRows, logs: GroupLogs) -> Self:
        """The histories of some commits."""
        epochs = _Epochs(logs)
        log, made_anew, named = logs.of_row, _made_anew(rows, logs), rows.leader_epoch >= 0
        created_ms = epochs.created_ms[log]
        dated = (rows.commit_ms >= 0) & (created_ms >= 0) & ~_named(rows)
        made_anew = made_anew | (dated & (rows.commit_ms + APART_MS < created_ms))
        follows_another = ~made_anew & (rows.former_ms >= 0) & (rows.former_ms < created_ms)
        entry = np.where(named, epochs.after_epoch(log, rows.leader_epoch), epochs.after_time(log, rows.commit_ms))
        election = epochs.unclean_until(log, entry, rows.leader_epoch, rows.commit_ms)
        unclean = election != ABSENT
        began_ms = np.where(unclean, epochs.unclean_ms[election], epochs.began_ms[entry])
        outlived = named & (began_ms >= 0) & (rows.commit_ms > began_ms + LATE_MS)
        later = ~made_anew & ~rows.share & (entry != ABSENT) & ~outlived & (epochs.start_offset[entry] < rows.offset)
        by_member = rows.presence == GroupPresence.THERE
        was_there = by_member | (named & (rows.presence == GroupPresence.NEVER))
        cut_off = later & unclean & was_there & ~follows_another
        parted = later & ~cut_off & (unclean | (by_member & named))
        return cls(
            made_anew=made_anew,
            follows_another=follows_another,
            resumed=np.where(follows_another, rows.resumed, ABSENT),
            created_ms=created_ms,
            cut_off=cut_off,
            parted=parted,
            parted_at=np.where(cut_off | parted, epochs.start_offset[entry], ABSENT),
            parted_epoch=np.where(cut_off | parted, np.where(unclean, epochs.unclean_epoch[election], epochs.epoch[entry]), ABSENT),
            parted_ms=np.where(cut_off | parted, began_ms, ABSENT),
            unclean=(parted & unclean) | (cut_off & epochs.began_by(log, entry, election, rows.leader_epoch)),
        )

    @property
    def ended(self) -> Flags:
        """Where the history of a commit has ended, or perhaps has."""
        return self.made_anew | self.cut_off | self.parted

    def go_on_at(self, rows: CommitRows, reason: Codes, ends: Ends, beyond: Flags) -> Longs:
        """Where consumers go on without skipping a record that they have not read; `ABSENT` where a commit is valid, or not current.

        Args:
            reason: why each commit cannot count.
            ends: of each commit.
            beyond: what is after the end of its log is known to be so.
        """
        outside = beyond & (rows.offset > ends.log_end) & (ends.log_end >= 0)
        above = (rows.offset > ends.log_start) & (ends.log_start >= 0) & ~np.isin(reason, _NOT_CURRENT)
        first = np.where(self.cut_off, np.maximum(self.parted_at, ends.log_start), ends.log_start)
        return np.where(above & (self.ended | outside | (self.resumed > ends.log_start)), first, ABSENT)


class _Epochs:
    """The leader epochs of some logs, one after the other; the last item stands for none."""

    def __init__(self, logs: GroupLogs) -> None:
        every = np.frombuffer(b"".join(logs.epochs), EPOCHS)
        log = np.repeat(np.arange(len(logs)), [len(each) // EPOCHS.itemsize for each in logs.epochs])
        self.created_ms = np.full(len(logs), ABSENT, np.int64)
        first, oldest_ms = every["epoch"] == 0, logs.oldest_ms[log]
        # a controller writes topics down that were there before when a cluster leaves ZooKeeper: then records are older than their topic
        dated = ~first | (oldest_ms < 0) | (oldest_ms + APART_MS >= every["began_ms"])
        unclean = every["began_ms"] < ABSENT
        began_ms = np.where(unclean, BY_UNCLEAN - every["began_ms"], np.where(dated, every["began_ms"], ABSENT))
        self.created_ms[log[first]] = began_ms[first]
        there = every["start_offset"] >= 0
        self._log = log[there]
        self.epoch, self.start_offset, self.began_ms = (
            np.append(values[there].astype(np.int64), ABSENT) for values in (every["epoch"], every["start_offset"], began_ms)
        )
        self._unclean_log = np.append(log[unclean], ABSENT)
        self.unclean_epoch, self.unclean_ms = (np.append(values[unclean].astype(np.int64), ABSENT) for values in (every["epoch"], began_ms))

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

    def unclean_until(self, log: Longs, entry: Longs, epoch: Longs, at_ms: Longs) -> Longs:
        """The last unclean election after each commit until an entry begins, `ABSENT` if there was none.

        The log may have no entry of its epoch: of epochs without a record, the last one is left. ``epoch``: that a commit names, else
        ``at_ms`` says what is after it.
        """
        keys = (self._unclean_log[:-1] << _EPOCH_BITS) | self.unclean_epoch[:-1]
        found = np.searchsorted(keys, (log << _EPOCH_BITS) | np.maximum(self.epoch[entry], 0), side="right") - 1
        after = np.where(epoch >= 0, self.unclean_epoch[found] > epoch, self.unclean_ms[found] > at_ms + APART_MS)
        return np.where((entry != ABSENT) & (found >= 0) & (self._unclean_log[found] == log) & after, found, ABSENT)

    def began_by(self, log: Longs, entry: Longs, election: Longs, epoch: Longs) -> Flags:
        """Whether an unclean election began an entry, and no epoch was between that and the one before: the log has no entry of an epoch
        without a record, and who led in that one may have lost records already. ``epoch``: that a commit names.
        """
        one = np.maximum(entry, 0) - 1  # the last item stands for none
        before = np.where(np.append(self._log, ABSENT)[one] == log, self.epoch[one], ABSENT)
        last = np.maximum(before, epoch)
        began: Flags = (
            (entry > 0) & (election != ABSENT) & (self.unclean_epoch[election] == self.epoch[entry]) & (last == self.epoch[entry] - 1)
        )
        return began

    def _first(self, log: Longs, keys: Longs, wanted: Longs) -> Longs:
        """The first item of each log whose key is greater."""
        found = np.searchsorted(keys, wanted, side="right")
        there = np.append(self._log, ABSENT)[found] == log
        return np.where(there, found, ABSENT)


def _made_anew(rows: CommitRows, logs: GroupLogs) -> Flags:
    """The commits that name another topic id than their log has: they are of a topic that was deleted."""
    numbers = {name: number for number, name in enumerate(rows.topic_ids)}
    of_log = np.array([numbers.get(topic_id, ABSENT) if topic_id else -2 for topic_id in logs.topic_ids], np.int64)
    if not len(rows):
        return np.zeros(0, np.bool_)
    theirs = of_log[logs.of_row]
    other: Flags = _named(rows) & (theirs != -2) & (theirs != rows.topic_id)
    return other


def _named(rows: CommitRows) -> Flags:
    """The commits that name the id of their topic."""
    named: Flags = np.array([bool(name) for name in rows.topic_ids], np.bool_)[rows.topic_id]
    return named


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Invalid:
    """The commits that are not valid, one item for each commit: ``history`` is that of each.

    ``go_on_at``: as `CommitHistory.go_on_at`. ``passed``: records between there and the committed offset, or the end of the log; nothing
    shows that the group has read one of them. `ABSENT` where they are not counted.
    """

    history: CommitHistory
    go_on_at: Longs
    passed: Longs
    beyond: Flags  # it is after the end of its log

    @classmethod
    def of(cls, history: CommitHistory, go_on_at: Longs, lag: Lags, ends: Ends, places: Places, there: Places) -> Self:
        """Count what lies between. ``there``: the positions of ``go_on_at``."""
        upto, edition = records_before(np.minimum(lag.start, ends.high_watermark), places, ends, lag.reads_uncommitted)
        before = np.where(lag.reads_uncommitted, there.data, there.kept)
        counted = (there.offset == go_on_at) & (there.reason == KNOWN) & (there.edition == edition) & (edition != ABSENT)
        empty = (go_on_at >= 0) & (go_on_at >= ends.high_watermark)
        passed = np.where(empty, 0, np.where(counted, np.maximum(upto - before, 0), ABSENT))
        beyond = lag.reason == CODES[LagReason.BEYOND]
        return cls(history=history, go_on_at=go_on_at, passed=np.where(go_on_at >= 0, passed, ABSENT), beyond=beyond)

    @property
    def skips(self) -> Flags:
        """Where consumers go on in the middle of what they have not read. Offsets beyond the ends of their logs are not among these.

        Of a topic that was created again that is so, too, as long as it is empty: without a reset they may go on after its first records.
        """
        ended = self.history.ended | (self.history.resumed >= 0)
        skips: Flags = ended & (self.go_on_at >= 0) & ((self.passed != 0) | self.history.made_anew) & ~self.beyond
        return skips

    @property
    def doubted(self) -> Flags:
        """Where only the first commit in a topic that was created again shows that something was skipped."""
        doubted: Flags = (self.history.resumed >= 0) & ~self.history.ended
        return doubted
