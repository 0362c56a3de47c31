"""The levels of a topic's configurations, combined as in Kafka (`KafkaConfigSchema`, `DynamicBrokerConfig`).

The strongest level that sets a configuration wins: the topic, the broker dynamically, all brokers dynamically, the broker's
``server.properties``, Kafka's default. On a broker's level, its names for the configuration are tried one after the other
(``log.retention.ms`` before ``log.retention.minutes``). So a dynamic ``log.retention.minutes`` beats a static ``log.retention.ms``.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from streaming.errors import FormatError
from streaming.rules.config_values import ALL, BY_NAME, STRENGTH, Pairs, Rejected, Setting, ValueSource


@dataclass(frozen=True, slots=True)
class Configs:
    """The settings of some levels for one topic, or for all topics of a broker; at most one value for each configuration.

    ``static_known``: ``server.properties`` is among the levels, so a configuration that is not set here really has Kafka's default.
    ``topic_known``: the topic's own level is among them, so for a configuration that it does not set, the broker's value counts. A setting
    that is assumed counts only where no level sets it.
    """

    settings: tuple[Setting, ...] = ()
    static_known: bool = False
    topic_known: bool = False
    rejected: tuple[Rejected, ...] = ()

    def over(self, weaker: "Configs") -> "Configs":
        """Combine these levels with weaker ones."""
        better = {each.name for each in weaker.settings if each.source is not ValueSource.ASSUMED}
        kept = tuple(each for each in self.settings if each.source is not ValueSource.ASSUMED or each.name not in better)
        names = {each.name for each in kept}
        return Configs(
            kept + tuple(each for each in weaker.settings if each.name not in names),
            self.static_known or weaker.static_known,
            self.topic_known or weaker.topic_known,
            self.rejected + weaker.rejected,
        )

    def text(self) -> str:
        """The JSON that an agent sends: for each known level an object of names and values, in a fixed order."""
        known = {ValueSource.STATIC: self.static_known, ValueSource.TOPIC: self.topic_known}
        levels: dict[str, dict[str, str]] = {source: {} for source, there in known.items() if there}
        for setting in sorted(self.settings, key=lambda setting: setting.name):
            levels.setdefault(setting.source, {})[setting.name] = setting.value
        return json.dumps(levels, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """Configurations from the options for topics with a name that fully matches ``pattern``, used where no metadata log is readable."""

    pattern: re.Pattern[str]
    configs: Configs


def pattern_configs(topic: str, patterns: Iterable[TopicPattern]) -> Configs:
    """The settings of the first matching pattern for a topic; none if none matches."""
    return next((pattern.configs for pattern in patterns if pattern.pattern.fullmatch(topic)), Configs())


def topic_configs(pairs: Pairs) -> Configs:
    """The settings of a topic's own level. Names that are not used here are ignored."""
    values = dict(pairs)
    return _collected((config.by_topic(values) for config in ALL), topic_known=True)


def broker_configs(pairs: Pairs, source: ValueSource) -> Configs:
    """The settings of a broker, under a broker's names: dynamic for it, dynamic for all brokers, or in its ``server.properties``."""
    values = dict(pairs)
    return _collected((config.by_broker(values, source) for config in ALL), static_known=source is ValueSource.STATIC)


def _collected(
    levels: Iterable[tuple[Setting | None, list[Rejected]]], *, static_known: bool = False, topic_known: bool = False
) -> Configs:
    settings: list[Setting] = []
    rejected: list[Rejected] = []
    for setting, refused in levels:
        rejected += refused
        if setting is not None:
            settings.append(setting)
    return Configs(tuple(settings), static_known, topic_known, tuple(rejected))


def read_configs(text: str) -> Configs:
    """Read the text of `Configs.text`, maybe of another version. Names and levels that are not known here are ignored.

    The empty text means that the broker's metadata log could not be read, so nothing is known.

    Raises:
        FormatError: it is no such text.
    """
    if not text:
        return Configs()
    try:
        levels = json.loads(text)
        pairs = [(ValueSource(source), values.items()) for source, values in levels.items() if source in STRENGTH]
        settings = (
            Setting(name, BY_NAME[name].parse(value), source) for source, values in pairs for name, value in values if name in BY_NAME
        )
        return Configs(tuple(settings), ValueSource.STATIC in levels, ValueSource.TOPIC in levels)
    except (ValueError, TypeError, AttributeError) as error:
        raise FormatError(f"configurations of a topic that cannot be read: {error}") from error
