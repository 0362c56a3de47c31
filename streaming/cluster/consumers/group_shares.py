"""What share groups are done with after their start offsets: from where on they have something left, and how much before it was done.

Kafka moves a start offset on only now and then: until then the first offsets after it may all be done with.
"""

from typing import NamedTuple

import numpy as np

from streaming.common.arrays import Longs
from streaming.kafka.groups.commit_table import CommitRows
from streaming.kafka.groups.offset_ranges import after, between


class Done(NamedTuple):
    """How many offsets of each range are done with, at least and at most: the same, but where only the number of all is known."""

    least: Longs
    most: Longs


def starts(rows: CommitRows, log_start: Longs) -> Longs:
    """From which offset on each commit has something to read: from the log start if that is later, and not what is done already."""
    found = np.maximum(rows.offset, log_start)
    for row in np.flatnonzero(rows.share & (rows.offset >= 0) & (rows.delivered > 0)).tolist():
        found[row] = after(rows.done[row] or (), int(found[row]))
    return found


def first_undone(rows: CommitRows) -> Longs:
    """The first offset of each commit that its group is not done with, whatever has been deleted."""
    return starts(rows, rows.offset)


def done_between(rows: CommitRows, first: Longs, end: Longs) -> Done:
    """What each commit's group is done with from one offset on and before another; 0 of all that are no share groups."""
    least, most = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    for row in np.flatnonzero(rows.share & (rows.offset >= 0) & (end > first)).tolist():
        ranges = rows.done[row]
        if ranges is None:
            most[row] = min(int(rows.delivered[row]), int(end[row] - first[row]))
        else:
            least[row] = most[row] = between(ranges, int(first[row]), int(end[row]))
    return Done(least, most)
