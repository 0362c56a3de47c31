"""What rounds remember of each partition of a group: since when it stands still or is held up, what it has read, and what it has lost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.history_json import KeptCommit
from streaming.cluster.consumers.commit_times import AppendedNext, GroupPast
from streaming.cluster.consumers.group_counting import Counted, Counters, CountingMemory
from streaming.cluster.consumers.group_lag import ABSENT, CODES, Ends, LagReason, Lags, Places, carried, padded
from streaming.cluster.consumers.group_moves import MoveMemory, Place, rows_of
from streaming.cluster.consumers.group_sums import CommitFacts
from streaming.cluster.view.recalled import Recalled
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.commit_table import CommitRows

_Column = TypeVar("_Column", bound=NDArray[Any])

_UNREAD = [CODES[each] for each in (LagReason.NOT_OBSERVED, LagReason.UNREAD, LagReason.CHECKPOINT, LagReason.LEADER, LagReason.UNREADABLE)]
"""Why something is not known that was known while an agent read it, or a log could be read."""

_FACTS = ("stopped", "loss_ms", "loss_pace", "loss_start_of", "loss_at_start", "assumed")


class GroupMemory:
    """What polls remember of all commits: their moves, and what was read and lost. Only the thread that polls uses it.

    Args:
        past: of a command that polls once: then a record is readable since it was appended. None for a job: what happened before its
            first poll is not known.
    """

    def __init__(self, past: GroupPast | None = None) -> None:
        self.recalled: Recalled[Place, KeptCommit] = Recalled()
        """What a job before has kept."""
        self._key: Longs = np.empty(0, np.int64)
        self._moves, self._counting = MoveMemory(past), CountingMemory(watches=past is None)

    def begin(self, rows: CommitRows, steady_ms: int) -> None:
        """A poll begins, with these commits, at ``steady_ms`` of a monotonic clock."""
        if not np.array_equal(rows.key, self._key):
            rows_before, there = carried(self._key, rows.key)
            self._moves.keep(rows_before, there)
            self._counting.keep(rows_before, there, rows.key, steady_ms)
            self._key = rows.key
        if self.recalled:
            self._take_recalled(rows, steady_ms)
        self._counting.begin_round(steady_ms)

    def _take_recalled(self, rows: CommitRows, steady_ms: int) -> None:
        places = list(self.recalled.left)
        there = {place: row for place, row in zip(places, rows_of(rows, places), strict=True) if row != ABSENT}
        found = self.recalled.take(there, steady_ms)
        if found:
            items, kept = np.array([there[place] for place in found], np.int64), list(found.values())
            self._moves.recall(items, kept)
            self._counting.recall(rows.key, items, kept)

    @property
    def counters(self) -> Counters:
        """The totals as they are now; nothing changes them later."""
        return self._counting.counters

    def deleted_to(self, rows: CommitRows, start: Longs, doubtful: Flags) -> Longs:
        """As `CountingMemory.deleted_to`."""
        return self._counting.deleted_to(rows, start, doubtful)

    def deleted(self, rows: CommitRows) -> dict[int, list[int]]:
        """As `CountingMemory.deleted`."""
        return self._counting.deleted(rows.key)

    def update(
        self,
        rows: CommitRows,
        lags: Lags,
        appended: AppendedNext,
        places: Places,
        ends: Ends,
        *,
        holders: Longs,
        holds_ms: Longs,
        now_ms: int,
        steady_ms: int,
    ) -> GroupProgress:
        """Take over what a round has found. Commits are dated by their coordinators, so how long one stands is seen by the present time; if
        the clock is set back, nothing stands since a time to come.

        Args:
            appended: when their next records were.
            places: the positions of the commits.
            ends: of each commit.
            holders, holds_ms: as for `CountingMemory`.
        """
        before = self._moves.unmoved_ms
        moves = self._moves.update(rows, lags, appended, now_ms)
        counted = self._counting.update(
            rows,
            lags,
            places,
            ends,
            holders=holders,
            moves=(before, moves.unmoved_ms),
            holds_ms=holds_ms,
            now_ms=now_ms,
            steady_ms=steady_ms,
        )
        return GroupProgress(**{name: getattr(each, name) for each in (moves, counted) for name in each.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupProgress(Counted):
    """What is known of each partition over the rounds so far.

    ``stopped_earlier``: that is the first round in which it was known, or when its next record was appended at the latest, and it may have
    stopped before. ``held_since_ms``: since when its next record is held back by a transaction: it was appended then at the latest;
    `ABSENT` if it is not.
    """

    committed_ms: Longs  # when it was last committed, as far as stamps can be believed
    stopped_since_ms: Longs  # since when its offset stays although a record is readable, `ABSENT` if that is not so
    stopped_earlier: Flags
    perhaps_since_ms: Longs  # since when it may have stopped, by the earliest time at which its next record was appended
    unmoved_ms: Longs  # since when its offset stays, whatever is readable
    held_since_ms: Longs


class LastKnown:
    """Remembers what each commit stood in when that was last certain. Only the thread that polls uses it."""

    def __init__(self) -> None:
        self._last: tuple[CommitRows, CommitFacts, Longs] | None = None

    def within(self, rows: CommitRows, found: CommitFacts, since_ms: Longs) -> tuple[CommitFacts, Longs]:
        """What a poll has found, and since when commits stand, with what was known of those that no agent reads now."""
        unread = np.isin(found.lags.reason, _UNREAD) & ~found.left_over
        if self._last is not None and unread.any():
            rows_before, last, last_since_ms = self._last
            before, there = carried(rows_before.key, rows.key)
            there &= unread & (padded(rows_before.offset)[before] == rows.offset)
            some, before = np.flatnonzero(there), before[there]
            facts = {name: _put(getattr(found, name), some, getattr(last, name)[before]) for name in _FACTS}
            appended = AppendedNext(
                earliest_ms=_put(found.appended.earliest_ms, some, last.appended.earliest_ms[before]),
                latest_ms=_put(found.appended.latest_ms, some, last.appended.latest_ms[before]),
            )
            found = replace(found, appended=appended, **facts)
            since_ms = _put(since_ms, some, last_since_ms[before])
        self._last = rows, found, since_ms
        return found, since_ms


def _put(column: _Column, some: Longs, values: _Column) -> _Column:
    changed = column.copy()
    changed[some] = values
    return changed
