"""What the metadata logs in the log dirs say of leaders, replicas, topics and brokers, as each broker has read it."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable

from streaming.agent.messages import BrokerStatus, Led, Registered
from streaming.agent.topic_configs import TopicConfigs
from streaming.disk.availability import LogDirs
from streaming.disk.logdirs import LogDir
from streaming.disk.metadata_log import MetadataLog, read_quorum_state
from streaming.errors import FormatError
from streaming.kafka.metadata import ClusterImage
from streaming.kafka.metadata_partitions import PartitionState
from streaming.kafka.names import INTERNAL_TOPICS, METADATA_TOPIC, TRANSACTION_TOPIC
from streaming.rules.limits import limits_of
from streaming.watcher.cluster import LEADER_UNKNOWN as LEADER_UNKNOWN
from streaming.watcher.events import LogId

log = logging.getLogger(__name__)


class ClusterView:
    """One image a broker, kept up to date by `refresh`; only the watcher's thread changes it and asks for more than a partition.

    Partitions and brokers are as the image tells that has come furthest: a broker that is down has not heard that it leads no more.

    Args:
        configs: the configurations of a broker's topics, besides what the metadata log tells.
    """

    def __init__(self, log_dirs: LogDirs, configs: Callable[[int], TopicConfigs] = lambda broker: TopicConfigs(broker, None)) -> None:
        self._log_dirs = log_dirs
        self._followers = _Followers(lambda broker: _Follower(broker, log_dirs.of(broker), configs(broker)))
        self._followers.meet(log_dirs.brokers)
        self._newest: ClusterImage | None = None

    def refresh(self) -> None:
        """Read what was appended to the metadata logs."""
        self._followers.meet(self._log_dirs.brokers)
        for follower in self._followers.values():
            follower.refresh()
        images = [follower.image for follower in self._followers.values() if follower.image is not None]
        self._newest = max(images, key=lambda image: image.next_offset, default=None)

    # --- of a log

    def leader(self, key: LogId) -> tuple[int, int]:
        """(leader, leader epoch) of a partition, (-2, -1) if no broker here knows them."""
        state = self.partition(key)
        return LEADER_UNKNOWN if state is None else (state.leader, state.leader_epoch)

    def partition(self, key: LogId) -> PartitionState | None:
        """Replicas and leader of a partition, None if no broker here knows them."""
        image = self._newest
        topic_id = _topic_id(image, key)
        return image.partition(topic_id, key.partition) if image is not None and topic_id is not None else None

    def has_topic(self, key: LogId) -> bool | None:
        """Whether the topic still exists, None if nobody can tell."""
        image = self._followers[key.broker].image
        if image is None:
            return None
        return key.topic == METADATA_TOPIC or _topic_id(image, key) is not None

    def rejected_configs(self) -> int:
        """Values of configurations that could not be read, so far."""
        return sum(follower.configs.rejected for follower in self._followers.values())

    def configs(self, key: LogId) -> str:
        """What is set for the topic of a log, on all levels that its broker's files tell, as it is handed over (`Configs.text`)."""
        return self._followers[key.broker].configs.text(key.topic)

    def compacts(self, key: LogId) -> bool:
        """Whether a log is compacted, as far as that is known."""
        return key.topic in INTERNAL_TOPICS or limits_of(key.topic, self.configs(key)).compacts

    def version(self) -> int:
        """Another number whenever what is known of partitions or configurations may have changed."""
        return sum(follower.version for follower in self._followers.values())

    # --- of a broker

    def unreadable(self) -> list[int]:
        """Brokers whose metadata log is not there or cannot be read."""
        return [broker for broker, follower in list(self._followers.items()) if follower.image is None]

    def statuses(self) -> list[BrokerStatus]:
        """What each broker's copy says of the cluster."""
        return [follower.status() for follower in list(self._followers.values())]

    def lists(self, log_dir: LogDir) -> bool | None:
        """Whether the registration of a log dir's broker lists it; None where nobody can tell (before Kafka 3.7)."""
        state = None if self._newest is None else self._newest.broker(log_dir.broker)
        if state is None or not state.log_dirs or log_dir.directory_id is None:
            return None
        return log_dir.directory_id in state.log_dirs


def _topic_id(image: ClusterImage | None, key: LogId) -> str | None:
    if image is None:
        return None
    if key.topic_id:
        return key.topic_id if image.topic_name(key.topic_id) is not None else None
    return image.topic_id(key.topic)


class _Followers(dict[int, "_Follower"]):
    """By broker. The log dirs of one may all be unavailable at first, although places in its logs are known."""

    def __init__(self, make: Callable[[int], "_Follower"]) -> None:
        super().__init__()
        self._make = make

    def meet(self, brokers: Iterable[int]) -> None:
        """See to it that each of them is followed."""
        for broker in brokers:
            if broker not in self:
                self[broker] = self._make(broker)

    def __missing__(self, broker: int) -> "_Follower":
        follower = self[broker] = self._make(broker)
        return follower


class _Follower:
    """Follows the metadata log of one broker, which lies in one of its log dirs."""

    def __init__(self, broker: int, log_dirs: Iterable[LogDir], configs: TopicConfigs) -> None:
        self.image: ClusterImage | None = None
        self.configs = configs
        self.version = 0
        self._broker = broker
        self._log_dirs = log_dirs
        self._log = MetadataLog(log_dirs)
        self._complained = ""
        self._seen = (0, 0)  # changes of the image when it was last looked at
        self._led: list[Led] = []
        self._led_at = -1  # the version that they were counted at

    def refresh(self) -> None:
        before = self.image
        try:
            self.image = self._log.advance(self.image)
            self._complained = ""
        except (OSError, FormatError) as error:
            self.image = None
            self._log.restart()
            if str(error) != self._complained:  # looked at five times a second: said once
                self._complained = str(error)
                log.warning("the metadata log cannot be read: leaders are not known", extra={"broker": self._broker, "error": str(error)})
        seen = (0, 0) if self.image is None else (self.image.changes, self.image.config_changes)
        if self.image is not before or seen != self._seen:
            self._seen = seen
            self.configs.refresh(self.image)
            self.version += 1

    def status(self) -> BrokerStatus:
        image = self.image
        return BrokerStatus(
            broker=self._broker,
            readable=image is not None,
            metadata_offset=-1 if image is None else image.next_offset,
            registered=[] if image is None else [Registered(each.broker_id, each.fenced) for each in image.brokers()],
            controller=self._controller(),
            led=self._count_led(),
            transaction_partitions=None if image is None else len(image.partition_numbers(image.topic_id(TRANSACTION_TOPIC) or "")),
        )

    def _count_led(self) -> list[Led]:
        if self._led_at != self.version:
            counts = Counter[int]() if self.image is None else Counter(state.leader for state in self.image.partitions())
            self._led = [Led(broker, count) for broker, count in sorted(counts.items()) if broker >= 0]
            self._led_at = self.version
        return self._led

    def _controller(self) -> int:
        try:
            return read_quorum_state(self._log_dirs).leader_id
        except (OSError, FormatError):  # why, the metadata log itself tells
            return -1
