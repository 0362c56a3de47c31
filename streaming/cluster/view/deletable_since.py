"""For how long a segment was seen to be deletable: checks of the broker cannot have missed it for longer than that.

By its times alone, a segment may seem to be overdue for hours at the moment when its limit is lowered, the high watermark moves on, or its
broker begins to lead.
"""

import numpy as np

from streaming.common.arrays import Flags, Longs
from streaming.rules.retention_rule import Bound

_NOT_SEEN, _NOT_DELETABLE = -2, -1


class DeletableSince:
    """Remembers from page to page since when the first segment of each log has been seen to be deletable.

    If a segment was deletable on the first page, it may have been so for as long as its times show. This is believed if the segment is
    still there one check interval later. The same happens after a restart of the job, because nothing is remembered then.
    """

    def __init__(self) -> None:
        self._since = np.empty(0, np.int64)  # by slot: since when it was seen so, or one of the two above
        self._at_first = np.empty(0, np.bool_)  # by slot: it was deletable on the first page

    def bound(self, slots: Longs, now_ms: int) -> Bound:
        """A function that bounds the overdue times of the logs in some slots of the table, at least one. All other slots are forgotten."""
        count = int(slots.max()) + 1
        before, at_first_before = np.full(count, _NOT_SEEN, np.int64), np.zeros(count, np.bool_)
        common = min(count, len(self._since))
        before[:common], at_first_before[:common] = self._since[:common], self._at_first[:common]

        def bounded(judged: Flags, deletable: Flags, overdue: Longs, check_interval: Longs) -> Longs:
            seen = before[slots]
            since = np.where(~judged, seen, np.where(deletable, np.where(seen >= 0, seen, now_ms), _NOT_DELETABLE))
            at_first = np.where(seen >= 0, at_first_before[slots], seen == _NOT_SEEN)
            self._since, self._at_first = np.full(count, _NOT_SEEN, np.int64), np.zeros(count, np.bool_)
            self._since[slots], self._at_first[slots] = since, at_first
            watched = np.maximum(now_ms - since, 0)
            believed: Longs = np.where(at_first, np.where(watched >= check_interval, overdue, 0), np.minimum(overdue, watched))
            return np.where(judged & deletable, believed, overdue)

        return bounded
