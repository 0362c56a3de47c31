"""What the metadata logs in the log dirs say of leaders and topics, as each broker has read it."""

import logging

from streaming.disk.logdirs import LogDir
from streaming.disk.metadata_log import MetadataLog
from streaming.errors import FormatError
from streaming.kafka.metadata import ClusterImage
from streaming.kafka.names import METADATA_TOPIC
from streaming.watcher.events import LogId

log = logging.getLogger(__name__)

LEADER_UNKNOWN = (-2, -1)


class ClusterView:
    """One image a broker, kept up to date by `refresh`; only the watcher's thread changes it."""

    def __init__(self, log_dirs: tuple[LogDir, ...]) -> None:
        self._followers = {
            broker: _Follower(broker, [log_dir for log_dir in log_dirs if log_dir.broker == broker])
            for broker in sorted({log_dir.broker for log_dir in log_dirs})
        }

    def refresh(self) -> None:
        """Read what was appended to the metadata logs."""
        for follower in self._followers.values():
            follower.refresh()

    def leader(self, key: LogId) -> tuple[int, int]:
        """(leader, leader epoch) of a partition as this log's broker knows it, (-2, -1) if it does not."""
        image = self._followers[key.broker].image
        topic_id = _topic_id(image, key)
        state = image.partition(topic_id, key.partition) if image is not None and topic_id is not None else None
        return LEADER_UNKNOWN if state is None else (state.leader, state.leader_epoch)

    def has_topic(self, key: LogId) -> bool | None:
        """Whether the topic still exists, None if nobody can tell."""
        image = self._followers[key.broker].image
        if image is None:
            return None
        return key.topic == METADATA_TOPIC or _topic_id(image, key) is not None

    def unreadable(self) -> list[int]:
        """Brokers whose metadata log is not there or cannot be read."""
        return [broker for broker, follower in self._followers.items() if follower.image is None]


def _topic_id(image: ClusterImage | None, key: LogId) -> str | None:
    if image is None:
        return None
    if key.topic_id:
        return key.topic_id if image.topic_name(key.topic_id) is not None else None
    return image.topic_id(key.topic)


class _Follower:
    """Follows the metadata log of one broker, which lies in one of its log dirs."""

    def __init__(self, broker: int, log_dirs: list[LogDir]) -> None:
        self.image: ClusterImage | None = None
        self._broker = broker
        self._log = MetadataLog(log_dirs)
        self._complained = ""

    def refresh(self) -> None:
        try:
            self.image = self._log.advance(self.image)
            self._complained = ""
        except (OSError, FormatError) as error:
            self.image = None
            self._log.restart()
            if str(error) != self._complained:  # looked at five times a second: said once
                self._complained = str(error)
                log.warning("the metadata log cannot be read: leaders are not known", extra={"broker": self._broker, "error": str(error)})
