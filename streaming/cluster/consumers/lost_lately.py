"""What the partitions of groups have lost within the last 24 hours: how much, and when last.

Few partitions lose something, and few of those often. So losses are kept apart from the commits, those of one hour as one: they go
together, a day after the last of them.
"""

from dataclasses import dataclass

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT
from streaming.common.arrays import Flags, Longs

LOST_LATELY_MS = 24 * 3_600_000
"""For so long a loss is remembered."""

_HOUR_MS = 3_600_000
_NONE: Longs = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LostLately:
    """One item for each commit: what was lost in records, and in offsets whose records were not counted, and when last, Unix
    milliseconds; 0, 0 and `ABSENT` where no loss was seen, and `ABSENT` in all where nobody watched.
    """

    records: Longs
    offsets: Longs
    last_ms: Longs

    @classmethod
    def unwatched(cls, count: int) -> "LostLately":
        """Of so many commits that are looked at once: what was lost before is not known."""
        unknown = np.full(count, ABSENT, np.int64)
        return cls(records=unknown, offsets=unknown, last_ms=unknown)


class LossMemory:
    """Remembers losses by the keys of their commits. For one thread."""

    def __init__(self) -> None:
        self._key, self._hour, self._last_ms, self._records, self._offsets = (_NONE,) * 5

    def keep(self, key: Longs) -> None:
        """Forget the losses of commits that are not among these, sorted."""
        if len(self._key):
            self._choose(np.isin(self._key, key))

    def add(self, key: Longs, records: Longs, offsets: Longs, now_ms: int) -> None:
        """Losses of now. What is a day old is forgotten, and nothing was lost at a time to come, if the clock was set back."""
        if len(self._key):
            self._last_ms = np.minimum(self._last_ms, now_ms)
            self._choose(now_ms - self._last_ms <= LOST_LATELY_MS)
        self.recall(key, records, offsets, np.full(len(key), now_ms))

    def recall(self, key: Longs, records: Longs, offsets: Longs, at_ms: Longs) -> None:
        """Losses of other times."""
        if not len(key):
            return
        hour = at_ms // _HOUR_MS
        both = np.stack([np.append(self._key, key), np.append(self._hour, hour)])
        (self._key, self._hour), item = np.unique(both, axis=1, return_inverse=True)
        self._last_ms = self._joined(np.maximum, item, self._last_ms, at_ms)
        self._records = self._joined(np.add, item, self._records, records)
        self._offsets = self._joined(np.add, item, self._offsets, offsets)

    def of(self, key: Longs) -> LostLately:
        """Of each of these commits, sorted by their keys, what it has lost."""
        records, offsets, last_ms = np.zeros(len(key), np.int64), np.zeros(len(key), np.int64), np.full(len(key), ABSENT)
        if len(self._key):
            item = np.searchsorted(key, self._key)
            np.add.at(records, item, self._records)
            np.add.at(offsets, item, self._offsets)
            np.maximum.at(last_ms, item, self._last_ms)
        return LostLately(records=records, offsets=offsets, last_ms=last_ms)

    def _joined(self, how: np.ufunc, item: Longs, before: Longs, now: Longs) -> Longs:
        joined = np.zeros(len(self._key), np.int64)
        how.at(joined, item.ravel(), np.append(before, now))
        return joined

    def _choose(self, some: Flags) -> None:
        if not some.all():
            columns = self._key, self._hour, self._last_ms, self._records, self._offsets
            self._key, self._hour, self._last_ms, self._records, self._offsets = (column[some] for column in columns)
