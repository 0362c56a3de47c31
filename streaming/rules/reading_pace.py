"""How fast a reader has to be so that it is always ahead of what deletes the first segments of a log: one pace for each offset.

It must have read each segment before that goes, this one and all after it: many records that were appended at once go at once, whenever the
first of them does.
"""

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.rules.retention_passes import FAR
from streaming.rules.segment_columns import SegmentColumns

Paces = NDArray[np.float64]

_AT_ONCE = 1 << 20  # so many pairs of an offset and a segment are compared at once


def paces(logs: SegmentColumns, goes: Longs, ends: Longs, owner: Longs, offset: Longs, item: Longs, now_ms: int) -> Paces:
    """Offsets a second from now on, 0 where nothing is deleted.

    Args:
        goes: from when on each segment may be deleted once those before it are, Unix milliseconds, `FAR` for never.
        ends: up to which offset each will hold records then.
        owner: the log of each offset, as an index in ``logs``.
        item: the segment that holds it.
    """
    found = np.zeros(len(owner))
    for log in np.unique(owner).tolist():
        mine, first, last = np.flatnonzero(owner == log), int(logs.first[log]), int(logs.last[log])
        gone_ms = np.maximum.accumulate(goes[first : last + 1])
        seconds = np.where(gone_ms < FAR, np.maximum(gone_ms - now_ms, 1) / 1000, np.inf)
        found[mine] = _most(ends[first : last + 1], seconds, offset[mine], item[mine] - first)
    return found


def _most(ends: Longs, seconds: Paces, offset: Longs, item: Longs) -> Paces:
    """The highest pace that a segment of one log needs, for each offset: of its own segment and of those after it."""
    found, step = np.empty(len(offset)), max(_AT_ONCE // len(ends), 1)
    number = np.arange(len(ends))
    for start in range(0, len(offset), step):
        some = slice(start, start + step)
        needed = np.maximum(ends - offset[some, None], 0) / seconds
        found[some] = np.where(number >= item[some, None], needed, 0.0).max(axis=1)
    return found
