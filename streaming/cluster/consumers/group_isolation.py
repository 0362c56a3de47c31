"""Which groups read uncommitted: those that have committed an offset which no consumer of committed data gets.

The isolation of consumers is not on disk, and it is that of all consumers of a group, as far as anybody sets it sensibly. A consumer with
``read_committed`` never gets beyond the first record of a transaction that is open, so an offset behind it is the proof. A transaction
whose marker is in the log proves nothing: the high watermark, and with it the last stable offset, may be known too late. Nor does one
whose first record is deleted, for then consumers begin at the log start, which is behind it; and that may be known too late as well.
"""

from dataclasses import dataclass

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT, KNOWN, Codes
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.commit_table import CommitRows

LOG_START_MS = 75_000
"""After so long a log start is known: brokers write those that a client has moved within a minute
(`log.flush.start.offset.checkpoint.interval.ms`)."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """An offset behind the first record of an open transaction: the log by its code, that record's offset, and since when it is known."""

    code: int
    open_from: int
    since_ms: int


class Isolations:
    """Remembers what was proved of a group as long as it has offsets. For one thread."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._seen: dict[str, _Seen] = {}

    def update(self, rows: CommitRows, logs: GroupLogs, reason: Codes, data_ms: Longs, steady_ms: int, *, once: bool) -> Flags:
        """Take over what the commits of a round prove. Returns which of them are of groups that read uncommitted.

        Args:
            reason: the code of why each commit cannot count.
            data_ms: up to when each log is known, by the steady clock, `ABSENT` where it is not.
            once: nobody will look again.
        """
        self._see(rows, logs, _proving(rows, logs, reason), steady_ms)
        if self._seen:
            self._prove(logs, data_ms, once)
        if not self._names:
            return np.zeros(len(rows), np.bool_)
        of_group = np.array([name in self._names for name in rows.group_names], np.bool_)
        flags: Flags = of_group[rows.group] & ~rows.share
        self._names &= {rows.group_names[group] for group in np.unique(rows.group[flags]).tolist()}
        return flags

    def _see(self, rows: CommitRows, logs: GroupLogs, proving: Flags, steady_ms: int) -> None:
        groups, where = np.unique(rows.group[proving], return_index=True)
        logs_of = logs.of_row[proving][where]
        for group, log in zip(groups.tolist(), logs_of.tolist(), strict=True):
            name = rows.group_names[group]
            if name not in self._names:
                self._seen.setdefault(name, _Seen(int(logs.code[log]), int(logs.open_from[log]), steady_ms))

    def _prove(self, logs: GroupLogs, data_ms: Longs, once: bool) -> None:
        for name, seen in list(self._seen.items()):
            log = int(np.searchsorted(logs.code, seen.code))
            if log == len(logs) or logs.code[log] != seen.code or logs.log_start[log] > seen.open_from:
                del self._seen[name]
            elif once or data_ms[log] - seen.since_ms >= LOG_START_MS:
                del self._seen[name]
                self._names.add(name)


def _proving(rows: CommitRows, logs: GroupLogs, reason: Codes) -> Flags:
    open_from, log_end = logs.open_from[logs.of_row], logs.log_end[logs.of_row]
    sound = (reason == KNOWN) & (logs.reason[logs.of_row] == KNOWN) & ~rows.share
    proving: Flags = sound & (open_from != ABSENT) & (rows.offset > open_from) & (rows.offset <= log_end)
    return proving
