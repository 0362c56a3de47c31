"""The settings of each topic of a broker, combined from its metadata log, its ``server.properties`` and the options of segtail."""

import logging
from collections.abc import Callable

from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.broker_processes import RunningBrokers
from streaming.kafka.formats.cluster_image import ClusterImage
from streaming.rules.config_values import Configs, ValueSource, broker_configs, topic_configs

log = logging.getLogger(__name__)

Pairs = tuple[tuple[str, str], ...]


class TopicConfigs:
    """The configurations of one broker's topics. They change while the broker runs: call `refresh` before reading them.

    Args:
        static: the settings in the broker's ``server.properties``, None if they are not known.
        running: the settings that the broker was started with, None if they are not known; asked at each refresh.
    """

    def __init__(
        self,
        broker: int,
        static: Configs | None,
        running: Callable[[], Configs | None] = lambda: None,
    ) -> None:
        self.rejected = 0
        """The number of values so far that could not be read. Each is counted and logged once."""
        self._broker = broker
        self._static, self._running = static or Configs(), running
        self._image: ClusterImage | None = None
        self._of_broker: tuple[Pairs, Pairs] | None = None
        self._below = self._static
        self._topics: dict[str, tuple[Pairs, Configs, str]] = {}
        self._logged: set[tuple[str, str, str]] = set()

    def refresh(self, image: ClusterImage | None) -> None:
        """Use the current image of the metadata log, None if the log cannot be read."""
        of_broker = None if image is None else (image.broker_configs(self._broker), image.default_broker_configs())
        running = self._running()
        restarted = running is not None and running != self._static
        if running is not None:
            self._static = running
            self._complain("", running)
        if restarted or (image is None) != (self._image is None) or of_broker != self._of_broker:
            self._topics.clear()
            self._below = self._static
            for pairs in reversed(of_broker or ()):
                dynamic = broker_configs(pairs, ValueSource.DYNAMIC)
                self._complain("", dynamic)
                self._below = dynamic.over(self._below)
        self._image, self._of_broker = image, of_broker

    @property
    def of_broker(self) -> Configs:
        """The settings of the broker, without those of topics."""
        return self._below

    def of(self, topic: str) -> Configs:
        """The settings of a topic, from all levels."""
        return self._found(topic)[1]

    def text(self, topic: str) -> str:
        """The settings of a topic, packed as text (`Configs.text`)."""
        return self._found(topic)[2]

    def _found(self, topic: str) -> tuple[Pairs, Configs, str]:
        pairs = () if self._image is None else self._image.topic_configs(topic)
        answer = self._topics.get(topic)
        if answer is not None and answer[0] == pairs:
            return answer
        own = Configs() if self._image is None else topic_configs(pairs)
        self._complain(topic, own)
        configs = own.over(self._below)
        answer = self._topics[topic] = (pairs, configs, configs.text())
        return answer

    def _complain(self, topic: str, configs: Configs) -> None:
        for refused in configs.rejected:
            what = (topic, refused.name, refused.value)
            if what not in self._logged:
                self._logged.add(what)
                self.rejected += 1
                log.warning(
                    "value of a configuration cannot be read: another level, or Kafka's default, stands in",
                    extra={
                        "broker": self._broker,
                        "topic": topic,
                        "config": refused.name,
                        "value": refused.value,
                        "source": refused.source,
                    },
                )


def running_configs(log_dirs: LogDirs, given: Callable[[int], bool] = lambda _: False) -> Callable[[int], "TopicConfigs"]:
    """Makes the configurations of a broker's topics, with what the process was started with that runs with these log dirs.

    Args:
        given: whether options say what a broker is started with, so that no operator has to be told to give it.
    """
    brokers = RunningBrokers(given=given)
    return lambda broker: TopicConfigs(broker, None, running=lambda: brokers.configs(broker, log_dirs.of(broker)))
