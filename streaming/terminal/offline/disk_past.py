"""What the disks show of the time before they were read: since when commits stand, and when the next records were appended."""

from collections.abc import Iterable

import numpy as np

from streaming.cluster.consumers.group_lag import ABSENT, Lags
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.cluster.consumers.group_past import AppendedNext, with_seen
from streaming.cluster.consumers.group_questions import distinct
from streaming.common.arrays import Longs
from streaming.common.log_key import LogKey
from streaming.kafka.groups.commit_table import CommitRows
from streaming.terminal.offline.coordinator_replay import AsOf
from streaming.terminal.offline.local_agent import LocalAgent


class DiskPast:
    """As `GroupPast`.

    Args:
        agent: of the logs that groups read, which it has counted by the time that it is asked.
    """

    def __init__(self, as_of: Iterable[AsOf], agent: LocalAgent, now_ms: int) -> None:
        self._since = {key: value for each in as_of for key, value in each.since.items()}
        self._agent, self._now_ms = agent, now_ms

    def since(self, rows: CommitRows) -> Longs:
        """Since when commits stand, by the coordinators' logs."""
        keys = zip(rows.group.tolist(), rows.topic.tolist(), rows.partition.tolist(), rows.offset.tolist(), strict=True)
        stands = (
            (self._since.get((rows.group_names[group], rows.topic_names[topic], partition)), offset)
            for group, topic, partition, offset in keys
        )
        return np.array([ABSENT if held is None or held[0] != offset else held[1] for held, offset in stands], np.int64)

    def appended(self, logs: GroupLogs, lags: Lags) -> AppendedNext:
        """When the next records were appended. Each is looked up once, whoever reads it."""
        unseen = np.flatnonzero((lags.next_offset >= 0) & (lags.next_append_ms < 0))
        log, offset, of_item = distinct(logs.of_row[unseen], lags.next_offset[unseen])
        timestamp = np.empty(len(log), np.int64)
        timestamp[of_item] = lags.next_timestamp_ms[unseen]
        places = zip(log.tolist(), offset.tolist(), timestamp.tolist(), strict=True)
        bounds = [self._agent.appended(_key(logs, number), at, own, self._now_ms) for number, at, own in places]
        earliest, latest = (np.full(len(lags.start), ABSENT, np.int64) for _ in range(2))
        earliest[unseen] = np.array([each.earliest_ms for each in bounds], np.int64)[of_item]
        latest[unseen] = np.array([each.latest_ms for each in bounds], np.int64)[of_item]
        return with_seen(lags, earliest, latest)


def _key(logs: GroupLogs, number: int) -> LogKey:
    return LogKey(int(logs.broker[number]), logs.topics[number], int(logs.partition[number]), logs.topic_ids[number])
