"""Commits that are newer than what is known of the log that they are of: after its end, as that is known in this round.

The log of a coordinator and the log that a group reads may be of two agents, and the leader's may be behind, stand still or be away. So an
offset is beyond the end of a log only if its leader's agent has found the log to end before it later than the job knew of the offset. Until
then the newest offset counts that is within the log, for a while; where there is none, nothing is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_places import carried, padded
from streaming.cluster.view.transaction_columns import READ_AFTER_MS
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.commit_table import CommitRows

LOOKED_MS = 10_000
"""An agent that is not behind has looked at each log within so long."""

WAITS_MS = 60_000
"""For so long an offset within the log counts in place of the newer one, and then nothing is known."""


@dataclass(frozen=True, slots=True, eq=False)
class _Offsets:
    """``offset``: `ABSENT` for none. Of a share group, what it is done with after it belongs to it."""

    offset: Longs
    delivered: Longs
    done: NDArray[np.object_]

    @classmethod
    def none(cls, count: int) -> "_Offsets":
        return cls(np.full(count, ABSENT, np.int64), np.zeros(count, np.int64), np.full(count, None, np.object_))

    def carried(self, before: Longs, there: Flags) -> "_Offsets":
        offset = np.where(there, padded(self.offset)[before], ABSENT)
        return _Offsets(offset, padded(self.delivered)[before], np.append(self.done, np.array([None], np.object_))[before])

    def within(self, log_end: Longs) -> Flags:
        within: Flags = (self.offset >= 0) & (self.offset <= log_end)
        return within

    @classmethod
    def chosen(cls, flags: Sequence[Flags], some: Sequence["_Offsets"]) -> "_Offsets":
        """Of each item that of the first of some whose flag is set; of the last one if none is."""
        columns = ([getattr(each, column.name) for each in some] for column in fields(cls))
        return cls(*(np.select(flags, each[:-1], each[-1]) for each in columns))


class NewerCommits:
    """For one thread."""

    def __init__(self) -> None:
        self._key: Longs = np.empty(0, np.int64)
        self._counted = _Offsets.none(0)  # the newest that was within the log
        self._next = _Offsets.none(0)  # the first that came after it: it counts once the log has grown so far
        self._next_ms: Longs = np.empty(0, np.int64)  # since when it waits for that
        self._newest: Longs = np.empty(0, np.int64)  # that of the round before, `ABSENT` unless it was after the end
        self._newest_ms: Longs = np.empty(0, np.int64)  # since when it is so
        self._proven: Longs = np.empty(0, np.int64)  # whether that is known

    def take(self, rows: CommitRows, log_end: Longs, data_ms: Longs, steady_ms: int) -> tuple[CommitRows, Flags]:
        """Returns the commits that count in this round, and which of them are known to be beyond the end.

        Args:
            log_end: of each commit's log, `ABSENT` where it is not known.
            data_ms: up to when that is known from its leader, by the clock of ``steady_ms``; `ABSENT` where it is not.
        """
        self._carry(rows.key)
        present = _Offsets(rows.offset, rows.delivered, rows.done)
        known = log_end >= 0
        after = known & (rows.offset > log_end)
        same = after & (self._newest == rows.offset)
        since_ms = np.where(same, self._newest_ms, steady_ms)
        newer_ms = np.where(data_ms == ABSENT, ABSENT, data_ms - since_ms)
        proven = same & ((self._proven > 0) | (newer_ms >= READ_AFTER_MS))
        self._counted = _Offsets.chosen((known & ~after, self._next.within(log_end)), (present, self._next, self._counted))
        waits = after & (self._next.offset != ABSENT) & ~self._next.within(log_end)
        self._next = _Offsets.chosen((waits, after), (self._next, present, _Offsets.none(len(rows))))
        self._next_ms = np.where(waits, self._next_ms, steady_ms)
        self._newest, self._newest_ms, self._proven = np.where(after, rows.offset, ABSENT), since_ms, proven.astype(np.int64)
        lately = (newer_ms < LOOKED_MS) & (steady_ms - self._next_ms < WAITS_MS)
        older = after & ~proven & lately & self._counted.within(log_end)
        if not np.any(older):
            return rows, proven
        counting = _Offsets.chosen((older,), (self._counted, present))
        return replace(rows, offset=counting.offset, delivered=counting.delivered, done=counting.done), proven

    def _carry(self, key: Longs) -> None:
        if np.array_equal(key, self._key):
            return
        of, there = carried(self._key, key)
        self._counted, self._next = self._counted.carried(of, there), self._next.carried(of, there)
        columns = (self._next_ms, self._newest, self._newest_ms, self._proven)
        self._next_ms, self._newest, self._newest_ms, self._proven = (np.where(there, padded(column)[of], ABSENT) for column in columns)
        self._key = key
