"""Commits that are newer than what is known of the log that they are of: after its end, as that is known in this round.

A coordinator's log and the log that a group reads may be of two agents, and a commit may come first. So the first time the offset counts
that counted before; where there is none, nothing is known. What stays there in the next round is beyond the end of the log.
"""

from dataclasses import replace

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_places import carried, padded
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.commit_table import CommitRows


class NewerCommits:
    """For one thread."""

    def __init__(self) -> None:
        self._key: Longs = np.empty(0, np.int64)
        self._counted: Longs = np.empty(0, np.int64)
        self._beyond: Longs = np.empty(0, np.int64)  # the offset that was beyond the end in the round before

    def take(self, rows: CommitRows, log_end: Longs) -> tuple[CommitRows, Flags]:
        """Returns the commits that count in this round, and which of them were beyond the end in the round before.

        Args:
            log_end: of each commit's log, `ABSENT` where it is not known.
        """
        if not np.array_equal(rows.key, self._key):
            of, there = carried(self._key, rows.key)
            self._counted, self._beyond = (np.where(there, padded(column)[of], ABSENT) for column in (self._counted, self._beyond))
            self._key = rows.key
        beyond = (log_end >= 0) & (rows.offset > log_end)
        stays = beyond & (self._beyond == rows.offset)
        first = beyond & (self._beyond == ABSENT) & (self._counted >= 0) & (self._counted <= log_end)
        counting = replace(rows, offset=np.where(first, self._counted, rows.offset)) if np.any(first) else rows
        self._counted, self._beyond = counting.offset, np.where(beyond, rows.offset, ABSENT)
        return counting, stays
