"""The rhythm of a group: how long it usually is from one commit to the next, told by the commits in its coordinator's log.

A job that runs once an hour commits every few seconds while it runs, and then pauses: its pauses are its rhythm. So the usual interval is
the second longest of those that count. What came once may be an outage, what came twice is a habit; and an interval counts for ten times
its own length, so that a habit of long ago is forgotten.

Compaction leaves the last commit of each partition. Two commits of one partition that are both there followed each other at any rate, and
if the first of them was the last commit of the group, nothing of the group lies between.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

SHORT_MS = 60_000
"""What follows within a minute is not told apart: the shortest usual interval."""

COUNTS_TIMES = 10
"""An interval counts for so many times its own length."""

LONGEST_MS = 1 << 42
"""No interval is longer than 140 years, whatever a damaged clock has written."""


class _Interval(NamedTuple):
    length_ms: int
    ended_ms: int

    def counts(self, at_ms: int) -> bool:
        return at_ms - self.ended_ms <= COUNTS_TIMES * self.length_ms


@dataclass(slots=True, eq=False)
class Rhythm:
    """Of one group. ``usual_ms``: its usual interval, -1 while fewer than two are known.

    Of the intervals of about one length, from a power of two to the next, the last two are kept: more are never needed.
    """

    usual_ms: int = -1
    _last_ms: int = -1
    _short: int = 0
    _intervals: dict[int, tuple[_Interval, ...]] = field(default_factory=dict)

    def committed(self, before_ms: int, at_ms: int) -> bool:
        """A partition was committed, and ``before_ms`` the last time before, -1 for none; returns whether the usual interval changed."""
        length = min(at_ms - before_ms, LONGEST_MS)
        follows = 0 <= self._last_ms <= before_ms and length > 0
        self._last_ms = max(self._last_ms, at_ms)
        if not follows:
            return False
        if length > SHORT_MS:
            of = length.bit_length()
            self._intervals[of] = (*self._intervals.get(of, ())[-1:], _Interval(length, at_ms))
        elif self._short >= 2 and not self._intervals:
            return False
        else:
            self._short = min(self._short + 1, 2)
        usual = self._usual(at_ms)
        changed, self.usual_ms = usual != self.usual_ms, usual
        return changed

    def _usual(self, at_ms: int) -> int:
        """The second longest interval that counts."""
        counting = {of: some for of, each in self._intervals.items() if (some := tuple(one for one in each if one.counts(at_ms)))}
        self._intervals = counting
        lengths = sorted((one.length_ms for some in counting.values() for one in some), reverse=True)
        lengths += [SHORT_MS] * self._short
        return lengths[1] if len(lengths) > 1 else -1
