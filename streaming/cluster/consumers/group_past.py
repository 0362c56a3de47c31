"""What log dirs that are read once show of the time before: since when commits stand, and when their next records were appended."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from streaming.cluster.consumers.group_lag import Lags
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.commit_table import CommitRows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AppendedNext:
    """When the next record of each commit was appended: not before ``earliest_ms``, not after ``latest_ms``, Unix milliseconds.

    Both are `ABSENT` where nothing is left, and the same where one time is known or taken.
    """

    earliest_ms: Longs
    latest_ms: Longs

    @property
    def undated(self) -> Flags:
        """Where no one time is known."""
        undated: Flags = self.earliest_ms != self.latest_ms
        return undated


class GroupPast(Protocol):
    """For whoever looks once."""

    def since(self, rows: CommitRows) -> Longs:
        """Since when each of these commits stands, `ABSENT` where that is not known: from the coordinators' logs."""
        ...

    def appended(self, logs: GroupLogs, lags: Lags) -> AppendedNext:
        """When the next records were appended that nobody saw: from the logs' files."""
        ...


def watched(lags: Lags) -> AppendedNext:
    """For whoever watches: the time of the append where it was seen, else what the agent's files show of it."""
    return with_seen(lags, lags.next_earliest_ms, lags.next_latest_ms)


def with_seen(lags: Lags, earliest_ms: Longs, latest_ms: Longs) -> AppendedNext:
    """The bounds, with the time of the append where the broker has written it."""
    exact = lags.next_append_ms >= 0
    return AppendedNext(
        earliest_ms=np.where(exact, lags.next_append_ms, earliest_ms),
        latest_ms=np.where(exact, lags.next_append_ms, latest_ms),
    )
