"""The replay of any log of a group coordinator, by its topic."""

from streaming.common.log_key import LogKey
from streaming.kafka.formats.names import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from streaming.kafka.groups.commit_log import CommitLog
from streaming.kafka.groups.log_replay import GroupLimit
from streaming.kafka.groups.share_log import ShareLog

Replay = CommitLog | ShareLog

COORDINATED_TOPICS = frozenset({OFFSETS_TOPIC, SHARE_STATE_TOPIC})
"""The topics whose logs contain how far groups are."""


def new_replay(log: LogKey, edition: str, limit: GroupLimit) -> Replay:
    """An empty replay of a log of one of these topics."""
    return ShareLog(log, edition, limit) if log.topic == SHARE_STATE_TOPIC else CommitLog(log, edition, limit)
