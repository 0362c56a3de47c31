"""By how much what is known of each commit is older than the round: a job may be behind its agents, and an agent may stand still.

An answer is as of its data. What a group has not read for a minute, by data of a minute ago, it may have read since then. An agent that
goes on after it has stood still may tell first that a log begins later, and then what groups had committed before that.
"""

from collections.abc import Collection, Mapping

import numpy as np

from streaming.broker.protocol.group_json import OLD_DATA_MS
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.cluster.view.transaction_columns import READ_AFTER_MS
from streaming.common.arrays import Flags, Longs
from streaming.kafka.groups.commit_table import Commits


class DataAges:
    """For one thread. It remembers up to when agents were read that are no longer there."""

    def __init__(self) -> None:
        self._read_ms: dict[str, int] = {}
        self._gap_ms: dict[str, int] = {}  # when the data of each agent was last old

    def read(self, read_ms: Mapping[str, int], now_ms: int, steady_ms: int) -> None:
        """Up to when each agent is read, in a round. What agents say does not become older, and the clock of ``steady_ms`` is not set."""
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
