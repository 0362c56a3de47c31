"""What the partitions of each pair of group and topic come to: sums, the oldest unread record, the soonest loss.

Commits are sorted by key, so the partitions of a pair are neighbours. A sum is a lower bound if some partitions are not known, and `ABSENT`
if none is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.cluster.consumers.commit_history import Invalid
from streaming.cluster.consumers.commit_times import AppendedNext
from streaming.cluster.consumers.group_counting import PAIR_BITS
from streaming.cluster.consumers.group_lag import ABSENT, KNOWN, REASONS, Lags
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.cluster.view.fading_rates import Rates
from streaming.cluster.view.family import TEXT, Export, escape, labels, text
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.commit_table import CommitRows

UNTIMED = -2
"""The time of an unread record that is not known, while others may be."""

_FAR = np.iinfo(np.int64).max


def pair_sums(rows: CommitRows, facts: CommitFacts) -> PairSums:
    """Sum over the partitions of each pair."""
    first = pair_starts(rows)
    lags = facts.lags
    known = lags.reason == KNOWN

    def total(values: Longs | Flags) -> Longs:
        return _reduced(np.add, values.astype(np.int64), first)

    def lower_bound(values: Longs) -> Longs:
        there = values >= 0
        return np.where(total(there) > 0, total(np.where(there, values, 0)), ABSENT)

    def earliest(values: Longs) -> Longs:
        return earliest_of(values, first)

    unread = lags.next_offset >= 0
    return PairSums(
        first=first,
        number=rows.key[first] >> PAIR_BITS,
        partitions=np.diff(np.append(first, len(rows))),
        known=total(known),
        unknown=np.stack([total(lags.reason == code) for code in range(len(REASONS))]),
        lag_offsets=lower_bound(lags.offsets),
        read_committed=lower_bound(lags.read_committed),
        read_uncommitted=lower_bound(lags.read_uncommitted),
        bytes=lower_bound(lags.bytes),
        oldest_ms=earliest(lags.next_ms),
        oldest_append_ms=earliest(np.where(unread & (lags.next_append_ms < 0), UNTIMED, lags.next_append_ms)),
        oldest_timestamp_ms=earliest(np.where(unread & (lags.next_timestamp_ms < 0), UNTIMED, lags.next_timestamp_ms)),
        loss_ms=earliest(facts.loss_ms),
        loss_start_of=earliest(facts.loss_start_of),
        assumed=total(facts.assumed),
        expiration_ms=earliest(np.where(facts.left_over, ABSENT, facts.expiration_ms)),
        last_commit_ms=latest_of(rows.commit_ms, first),
        stopped=total(facts.stopped),
        beyond=total(lags.beyond),
        invalid=total((facts.invalid.beyond | (facts.invalid.skips & ~facts.invalid.doubted)) & ~facts.left_over),
        below=total(lags.below > 0),
        buffered=lower_bound(np.where(facts.buffered, np.where(facts.lost_records >= 0, facts.lost_records, lags.below), ABSENT)),
        reads_uncommitted=total(lags.reads_uncommitted),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommitFacts:
    """What a round has found about each commit; times in Unix milliseconds, `ABSENT` for none.

    ``loss_pace``, ``loss_start_of``, ``loss_at_start``: as `streaming.rules.group_loss.Losses` has them.
    """

    lags: Lags
    appended: AppendedNext  # when the next record was
    stopped: Flags
    perhaps_stopped: Flags  # whether it has stopped depends on when its next record was appended, and nothing shows that
    lost_records: Longs  # those that were deleted unread, `ABSENT` where only their offsets are known (``lags.below``)
    buffered: Flags  # consumers may have what is deleted in memory, so it is not lost yet
    loss_doubtful: Flags  # perhaps none of the offsets that were deleted unread was a record
    loss_ms: Longs
    loss_pace: Rates
    loss_start_of: Longs
    loss_at_start: Flags
    holding_ms: Longs  # since when the transaction is open that holds it back, as in `RoundView`
    assumed: Flags  # something is unread, and the limits by which retention deletes it are assumed
    expiration_ms: Longs
    data_age_ms: Longs  # what is known is older than the round by so much: how long something lasts is told as of then
    invalid: Invalid  # those that are not valid any more
    left_over: Flags  # no member subscribes to their topic, so they have not stopped and lose nothing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairSums:
    """One item for each pair.

    ``oldest_``: the earliest time of an unread record; `ABSENT` if there is none or no partition is known, `UNTIMED` if the time of one is
    not known.
    """

    first: Longs  # the index of its first commit
    number: Longs  # the pair's number, see `CommitRows.key`
    partitions: Longs
    known: Longs  # how many partitions are known
    unknown: Longs  # by `REASONS`, shape (reasons, pairs)
    lag_offsets: Longs
    read_committed: Longs
    read_uncommitted: Longs
    bytes: Longs
    oldest_ms: Longs  # the earliest that is known, as `Lags.next_ms`
    oldest_append_ms: Longs
    oldest_timestamp_ms: Longs
    loss_ms: Longs
    loss_start_of: Longs  # the first broker whose start a loss waits for
    assumed: Longs
    expiration_ms: Longs
    last_commit_ms: Longs
    stopped: Longs
    beyond: Longs
    invalid: Longs
    below: Longs
    buffered: Longs
    reads_uncommitted: Longs  # how many partitions are of a group that is known to; all or none

    def __len__(self) -> int:
        return len(self.first)

    @property
    def left(self) -> Longs:
        """The records that are left, by the isolation that the group is known to have, as `Lags.left`."""
        return np.where(self.reads_uncommitted > 0, self.read_uncommitted, self.read_committed)


def pair_starts(rows: CommitRows) -> Longs:
    """The index of the first commit of each pair of group and topic."""
    pair = rows.key >> PAIR_BITS
    return np.flatnonzero(np.append(True, pair[1:] != pair[:-1])) if len(rows) else np.empty(0, np.int64)


def _reduced(function: np.ufunc, values: Longs, first: Longs) -> Longs:
    reduced: Longs = function.reduceat(values, first) if len(first) else np.empty(0, np.int64)
    return reduced


def earliest_of(times: Longs, first: Longs) -> Longs:
    """The earliest time of each pair whose first commits these are; `ABSENT` if it has none."""
    least = _reduced(np.minimum, np.where(times == ABSENT, _FAR, times), first)
    return np.where(least == _FAR, ABSENT, least)


def latest_of(times: Longs, first: Longs) -> Longs:
    """The latest time of each pair whose first commits these are; `ABSENT` if it has none."""
    return _reduced(np.maximum, times, first)


def count_of(flags: Flags, first: Longs) -> Longs:
    """How many commits of each pair whose first commits these are have a flag."""
    return _reduced(np.add, flags.astype(np.int64), first)


class LabelMaker:
    """Keeps the labels from poll to poll. Only the thread that polls uses it."""

    def __init__(self, export: Export) -> None:
        self._export = export
        self._made: tuple[Longs, list[str], PairLabels] | None = None

    def of(self, rows: CommitRows, logs: GroupLogs, pairs: PairSums) -> PairLabels:
        """The labels of these pairs."""
        if self._made is None or not np.array_equal(self._made[0], pairs.number) or self._made[1] != logs.topics:
            self._made = pairs.number, logs.topics, self._make(rows, logs, pairs)
        return self._made[2]

    def _make(self, rows: CommitRows, logs: GroupLogs, pairs: PairSums) -> PairLabels:
        groups = [rows.group_names[number] for number in rows.group[pairs.first].tolist()]
        topics = [logs.topics[log] for log in logs.of_row[pairs.first].tolist()]
        wanted = {name: self._export.has_consumer(name) for name in set(groups)}
        exported = {name: self._export.has_topic(name) for name in set(topics)}
        names = zip(groups, topics, strict=True)
        found = [(labels(group=group, topic=topic), pair) for pair, (group, topic) in enumerate(names) if wanted[group] and exported[topic]]
        found = sorted(dict(found).items())  # a name that a group had with another type before, too
        shown = np.array([pair for _, pair in found], np.int64)
        rank = np.full(len(pairs), -1, np.int64)
        rank[shown] = np.arange(len(shown))
        return PairLabels(shown=shown, labels=pa.array([label for label, _ in found], TEXT), rank=rank)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairLabels:
    """The pairs of group and topic that are exported."""

    shown: Longs  # their indexes, in the order of the page
    labels: pa.LargeStringArray  # of these
    rank: Longs  # the place of each pair in ``shown``, -1 if it is not exported


def partition_labels(pairs: PairLabels, pair_of: Longs, partition: Longs) -> pa.LargeStringArray:
    """The labels of partitions, whose pairs are all exported."""
    numbers = pc.cast(pa.array(partition), TEXT)
    return pc.binary_join_element_wise(pairs.labels.take(pa.array(pairs.rank[pair_of])), text(',partition="'), numbers, text('"'), text(""))


def with_label(labels: pa.LargeStringArray, name: str, value: str) -> pa.LargeStringArray:
    """The labels with one more."""
    return pc.binary_join_element_wise(labels, text(f'{name}="{escape(value)}"'), text(","))
