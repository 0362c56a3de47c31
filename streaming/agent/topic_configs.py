"""What is set for each topic of a broker, put together from its metadata log, its ``server.properties`` and what people assume."""

import logging
from collections.abc import Sequence

from streaming.kafka.metadata import ClusterImage
from streaming.rules.limits import Configs, Source, TopicPattern, broker_configs, pattern_configs, topic_configs

log = logging.getLogger(__name__)

Pairs = tuple[tuple[str, str], ...]


class TopicConfigs:
    """The configurations of one broker's topics. They change while the broker runs: `refresh` before asking.

    Args:
        static: what the broker's ``server.properties`` sets, None where that is not known.
        patterns: what topics are taken to set where no metadata log can be read.
    """

    def __init__(self, broker: int, static: Configs | None, patterns: Sequence[TopicPattern] = ()) -> None:
        self.rejected = 0
        """Values that could not be read, so far; each counts and is logged once."""
        self._broker = broker
        self._static = static or Configs()
        self._patterns = patterns
        self._image: ClusterImage | None = None
        self._of_broker: tuple[Pairs, Pairs] | None = None
        self._below = self._static
        self._topics: dict[str, tuple[Pairs, Configs, str]] = {}
        self._told: set[tuple[str, str, str]] = set()

    def refresh(self, image: ClusterImage | None) -> None:
        """Go on with what the metadata log tells now; None where it cannot be read."""
        of_broker = None if image is None else (image.broker_configs(self._broker), image.default_broker_configs())
        if (image is None) != (self._image is None) or of_broker != self._of_broker:
            self._topics.clear()
            self._below = self._static
            for pairs in reversed(of_broker or ()):
                dynamic = broker_configs(pairs, Source.DYNAMIC)
                self._complain("", dynamic)
                self._below = dynamic.over(self._below)
        self._image, self._of_broker = image, of_broker

    def of(self, topic: str) -> Configs:
        """What is set for a topic, on all levels."""
        return self._found(topic)[1]

    def text(self, topic: str) -> str:
        """The same as it is handed over (`Configs.text`)."""
        return self._found(topic)[2]

    def _found(self, topic: str) -> tuple[Pairs, Configs, str]:
        pairs = () if self._image is None else self._image.topic_configs(topic)
        known = self._topics.get(topic)
        if known is not None and known[0] == pairs:
            return known
        own = pattern_configs(topic, self._patterns) if self._image is None else topic_configs(pairs)
        self._complain(topic, own)
        configs = own.over(self._below)
        known = self._topics[topic] = (pairs, configs, configs.text())
        return known

    def _complain(self, topic: str, configs: Configs) -> None:
        for refused in configs.rejected:
            what = (topic, refused.name, refused.value)
            if what not in self._told:
                self._told.add(what)
                self.rejected += 1
                log.warning(
                    "value of a configuration cannot be read: the next level stands in",
                    extra={
                        "broker": self._broker,
                        "topic": topic,
                        "config": refused.name,
                        "value": refused.value,
                        "source": refused.source,
                    },
                )
