"""When each group committed, by a clock that can be believed: coordinators stamp commits, and a coordinator's clock may be wrong.

A stamp of a time to come shows nothing, and neither does one that was old when it came. A job sees a commit come: between two
polls. Coordinators themselves go by the stamps, so when offsets expire is told by these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from streaming.broker.protocol.group_json import OLD_DATA_MS
from streaming.cluster.consumers.group_lag import ABSENT, Lags
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.cluster.view.transaction_columns import READ_AFTER_MS
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.commit_table import CommitRows, Commits
from streaming.kafka.groups.group_rows import GroupFacts, PendingCommit
from streaming.kafka.groups.membership import SHORT_MS

AHEAD_MS = 60_000
"""A clock that is ahead by no more than that is right."""

LATE_MS = 600_000
"""What comes so long after its stamp was stamped by a clock that is behind; an agent that was away for a moment is none."""

PendingKey = tuple[str, str, int, int, int]

WITHIN_TIMES = 2
"""A group is in its rhythm for so many times its usual interval after a commit."""


def last_commits(rows: CommitRows, committed_ms: Longs) -> Longs:
    """When each group last committed, by its number; `ABSENT` where it has no commit, or where that is not known."""
    last = np.full(len(rows.group_names), ABSENT, np.int64)
    np.maximum.at(last, rows.group, committed_ms)
    return last


def committed_ms(stamp_ms: Longs, before_ms: Longs, before_stamp_ms: Longs, last_ms: int, now_ms: int) -> Longs:
    """When commits were made, `ABSENT` where that is not known.

    Args:
        before_ms: what is known of the commit that each had in the round before, at ``last_ms``.
        before_stamp_ms: the stamp of that one, `ABSENT` where there was none.
    """
    came = (before_stamp_ms != ABSENT) & (stamp_ms != before_stamp_ms)
    late = came & (stamp_ms < last_ms - LATE_MS)
    when = np.where(came & is_ahead(stamp_ms, now_ms), now_ms, np.where(late, min(last_ms, now_ms), believed(stamp_ms, now_ms)))
    same = (before_stamp_ms == stamp_ms) & (before_ms != ABSENT)
    found: Longs = np.where(stamp_ms < 0, ABSENT, np.where(same, np.minimum(before_ms, now_ms), when))
    return found


def is_ahead(stamp_ms: Longs, now_ms: int) -> Flags:
    """Which stamps are of a time to come."""
    ahead: Flags = stamp_ms > now_ms + AHEAD_MS
    return ahead


def believed(stamp_ms: Longs, now_ms: int) -> Longs:
    """The stamps, `ABSENT` where they are of a time to come."""
    return np.where(is_ahead(stamp_ms, now_ms), ABSENT, np.minimum(stamp_ms, now_ms))


class PendingTimes:
    """Since when commits wait for a transaction: not since a time to come.

    Args:
        watches: whether there are polls before and after.

    Only the thread that polls uses it.
    """

    def __init__(self, *, watches: bool) -> None:
        self._watches = watches
        self._first_ms: dict[PendingKey, int] = {}

    def update(self, pending: Iterable[PendingCommit], now_ms: int) -> tuple[PendingCommit, ...]:
        """What waits in this poll. A commit that is stamped ahead has waited since it was first seen; for a command that polls
        once it is not known since when.
        """
        if not self._watches:
            return tuple(replace(each, commit_ms=ABSENT) if each.commit_ms > now_ms + AHEAD_MS else each for each in pending)
        found, first_ms = [], dict[PendingKey, int]()
        for each in pending:
            if each.commit_ms > now_ms or self._key(each) in self._first_ms:
                key = self._key(each)
                first_ms[key] = min(self._first_ms.get(key, now_ms), now_ms)
                each = replace(each, commit_ms=min(each.commit_ms, first_ms[key]))
            found.append(each)
        self._first_ms = first_ms
        return tuple(found)

    @staticmethod
    def _key(pending: PendingCommit) -> PendingKey:
        return pending.group, pending.topic, pending.partition, pending.producer_id, pending.record_offset


class GroupPast(Protocol):
    """What a command that polls once knows of the time before: since when commits stand, and when records were appended."""

    def since(self, rows: CommitRows) -> Longs:
        """Since when each of these commits stands, `ABSENT` where that is not known: from the coordinators' logs."""
        ...

    def appended(self, logs: GroupLogs, lags: Lags) -> AppendedNext:
        """When the next records were appended, which no poll saw: from the logs' files."""
        ...


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


def watched(lags: Lags) -> AppendedNext:
    """When the next records were appended, for a job: the time of the append where it was seen, else what the agent's files show of it."""
    return with_seen(lags, lags.next_earliest_ms, lags.next_latest_ms)


def with_seen(lags: Lags, earliest_ms: Longs, latest_ms: Longs) -> AppendedNext:
    """The bounds, with the time of the append where the broker has written it."""
    exact = lags.next_append_ms >= 0
    return AppendedNext(
        earliest_ms=np.where(exact, lags.next_append_ms, earliest_ms),
        latest_ms=np.where(exact, lags.next_append_ms, latest_ms),
    )


def usual_intervals(names: Sequence[str], groups: Mapping[str, GroupFacts]) -> Longs:
    """The usual interval of each group, `ABSENT` where it is not known."""
    each = map(groups.get, names)
    return np.array([ABSENT if facts is None else facts.interval_ms for facts in each], np.int64)


def rhythm_ms(interval_ms: Longs) -> Longs:
    """For how long groups may pause and are in their rhythm; 0 for those that commit all the time, and where the interval is not known."""
    return np.where(interval_ms > SHORT_MS, WITHIN_TIMES * interval_ms, 0)


class DataAges:
    """How old the data of each agent is. It remembers up to when agents were read that are no longer there.

    By how much what is known of each commit is older than the round: a job may be behind its agents, and an agent may stand still. An
    answer is as of its data. What a group has not read for a minute, by data of a minute ago, it may have read since then. An agent
    that goes on after it has stood still may tell first that a log begins later, and then what groups had committed before that.

    Only the thread that polls uses it.
    """

    def __init__(self) -> None:
        self._read_ms: dict[str, int] = {}
        self._gap_ms: dict[str, int] = {}  # when the data of each agent was last old

    def read(self, read_ms: Mapping[str, int], now_ms: int, steady_ms: int) -> None:
        """Up to when each agent is read, in a poll. Answers of agents do not become older, and the clock of ``steady_ms`` is not set."""
        for agent, at_ms in read_ms.items():
            self._read_ms[agent] = max(self._read_ms.get(agent, at_ms - now_ms + steady_ms), at_ms - now_ms + steady_ms)
        self._gap_ms |= {agent: steady_ms for agent, at_ms in self._read_ms.items() if steady_ms - at_ms > OLD_DATA_MS}

    def data_age_ms(self, commits: Commits, logs: GroupLogs, steady_ms: int) -> Longs:
        """How old is what each commit is judged by: of its coordinator and of the log that it is of, what is older. 0 where nothing is
        known of that."""
        if not len(commits.rows):
            return np.empty(0, np.int64)
        coordinators = self._ages([log.agent for log in commits.logs], steady_ms)
        return np.maximum(coordinators[commits.rows.log], self._ages(logs.agents, steady_ms)[logs.of_row])

    def in_doubt(self, commits: Commits) -> Flags:
        """Which commits are perhaps older than the logs that they are held against: the agent of their coordinator stands still, or has
        lately done so and has not surely read since then all that was there."""
        doubtful = np.array([self._doubtful(log.agent) for log in commits.logs], np.bool_)
        return doubtful[commits.rows.log] if len(commits.rows) else np.empty(0, np.bool_)

    def _doubtful(self, agent: str) -> bool:
        return agent in self._gap_ms and self._read_ms[agent] < self._gap_ms[agent] + READ_AFTER_MS

    def _ages(self, agents: Collection[str], steady_ms: int) -> Longs:
        return np.array([max(steady_ms - self._read_ms.get(agent, steady_ms), 0) for agent in agents], np.int64)
