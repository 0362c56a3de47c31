"""The positions from which groups' partitions are read, kept from round to round: what has to be asked again, and what was answered.

A position stays right as long as its log's edition does, if its next record was below the last stable offset, or may be an aborted one.
Else a transaction that ends may change which record is next.
"""

from dataclasses import dataclass

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT, CODES, KNOWN, Codes, Ends, LagReason, Places
from streaming.common.arrays import Flags, Longs

NUMBERS = tuple(name for name in Places.__slots__ if name not in ("reason", "offset", "edition"))
"""The columns of `Places` that an answer has by these names."""

RETRIED_ROUNDS = 4
"""A position that is not known is asked for again after so many rounds: an agent fills its ladders for minutes. One that was known in the
round before is asked for again in the next: a file was deleted while its agent looked, and its next listing shows that."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answered:
    """Positions, one item for each offset that was asked for. ``decided``: no transaction that ends changes the next record."""

    reason: Codes
    edition: Longs
    decided: Flags
    numbers: dict[str, Longs]


class PlaceMemory:
    """Positions by the keys of commits. For one thread."""

    def __init__(self) -> None:
        self._key: Longs = np.empty(0, np.int64)
        self._decided: Flags = np.empty(0, np.bool_)
        self._lately: Flags = np.empty(0, np.bool_)  # not known, but known in the answer before
        self._reason: Codes = np.empty(0, np.int8)
        self._for_all: Flags = np.empty(0, np.bool_)  # asked for, whether the agent knows that or not
        self._columns: dict[str, Longs] = {name: np.empty(0, np.int64) for name in ("offset", "edition", *NUMBERS)}
        self._round = 0

    def begin(self, key: Longs) -> None:
        """A round begins, with these keys in ascending order: what is known of the others is forgotten."""
        self._round += 1
        if np.array_equal(key, self._key):
            return
        rows, there = carried(self._key, key)
        self._columns = {name: np.where(there, padded(column)[rows], ABSENT) for name, column in self._columns.items()}
        self._decided, self._lately = (there & np.append(each, False)[rows] for each in (self._decided, self._lately))
        self._for_all = there & np.append(self._for_all, False)[rows]
        self._reason = np.where(there, np.append(self._reason, KNOWN)[rows], CODES[LagReason.FILLING])
        self._key = key

    @property
    def places(self) -> Places:
        """The positions, in the order of the keys, until the next answer."""
        return Places(reason=self._reason, **self._columns)

    def wanted(self, start: Longs, ends: Ends, moved: Flags, reads_uncommitted: Flags) -> Longs:
        """The rows whose position has to be asked, the most important first.

        Args:
            start: where each row is read from.
            ends: of each row.
            moved: whether the last stable offset or the high watermark of its log is another one than in the round before.
            reads_uncommitted: whether the group reads records of aborted transactions, too.
        """
        can = (ends.reason == KNOWN) & (ends.counted != CODES[LagReason.VERSION])
        needed = can & (start < ends.high_watermark) & (start >= 0)
        known = self._reason == KNOWN
        other = needed & ((self._columns["offset"] != start) | (self._for_all != reads_uncommitted))
        old = needed & ~other & known & (self._columns["edition"] != ends.edition) & (ends.edition != ABSENT)
        undecided = needed & ~other & ~old & known & ~self._decided & moved
        again = needed & ~other & ~known
        again = again & (self._lately | np.bool_(self._round % RETRIED_ROUNDS == 0))
        return np.concatenate([np.flatnonzero(each) for each in (other, old, undecided, again)])

    def answer(self, rows: Longs, offset: Longs, reads_uncommitted: Flags, positions: Answered) -> None:
        """Set the positions of some rows that were asked for."""
        self._lately[rows] = (self._reason[rows] == KNOWN) & (positions.reason != KNOWN)
        self._reason[rows], self._decided[rows], self._for_all[rows] = positions.reason, positions.decided, reads_uncommitted
        self._columns["offset"][rows], self._columns["edition"][rows] = offset, positions.edition
        for name in NUMBERS:
            self._columns[name][rows] = positions.numbers[name]


def carried(before: Longs, after: Longs) -> tuple[Longs, Flags]:
    """For each key after, its row among the keys before, and whether it was there; both in ascending order."""
    rows = np.searchsorted(before, after)
    there = padded(before)[rows] == after
    there[rows == len(before)] = False
    return rows, there


def padded(column: Longs) -> Longs:
    """The column with one more number, which is `ABSENT`."""
    return np.append(column, ABSENT)
