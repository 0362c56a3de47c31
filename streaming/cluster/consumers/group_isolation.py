"""Which groups read uncommitted: those that have committed an offset which no consumer of committed data gets.

The isolation of consumers is not on disk, and it is that of all consumers of a group, as far as anybody sets it sensibly. A consumer with
``read_committed`` never gets beyond the first record of a transaction that is open, so an offset behind it is the proof. A transaction
whose marker is in the log proves nothing: the high watermark, and with it the last stable offset, may be known too late.
"""

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT, KNOWN, Codes
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.common.arrays import Flags
from streaming.kafka.groups.commit_table import CommitRows


class Isolations:
    """Remembers what was proved of a group as long as it has offsets. For one thread."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def update(self, rows: CommitRows, logs: GroupLogs, reason: Codes) -> Flags:
        """Take over what the commits of a round prove. Returns which of them are of groups that read uncommitted.

        Args:
            reason: the code of why each commit cannot count.
        """
        proving = _proving(rows, logs, reason)
        self._names |= {rows.group_names[group] for group in np.unique(rows.group[proving]).tolist()}
        if not self._names:
            return np.zeros(len(rows), np.bool_)
        of_group = np.array([name in self._names for name in rows.group_names], np.bool_)
        flags: Flags = of_group[rows.group] & ~rows.share
        self._names &= {rows.group_names[group] for group in np.unique(rows.group[flags]).tolist()}
        return flags


def _proving(rows: CommitRows, logs: GroupLogs, reason: Codes) -> Flags:
    open_from, log_end = logs.open_from[logs.of_row], logs.log_end[logs.of_row]
    sound = (reason == KNOWN) & (logs.reason[logs.of_row] == KNOWN) & ~rows.share
    proving: Flags = sound & (open_from != ABSENT) & (rows.offset > open_from) & (rows.offset <= log_end)
    return proving
