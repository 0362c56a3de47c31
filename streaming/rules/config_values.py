"""The configurations of logs that are used here: their names on topics and on brokers, what values are valid, Kafka's defaults.

A value that cannot be read counts as not set, and is reported (`TopicConfig`, `LogConfig`, `ServerLogConfigs`). In
``server.properties`` it may be a variable, such as ``${env:HOURS}``, whose value only the broker knows: what stands in for it is assumed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from streaming.errors import FormatError

UNLIMITED = -1

Pairs = Iterable[tuple[str, str]]
"""Configurations as they are stored: names and values."""

POLICIES = ("compact", "delete")

_MAX_INT, MAX_LONG = 2**31 - 1, 2**63 - 1
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_THROTTLED = re.compile(r" *(\*|none|([0-9]{1,10}:[0-9]{1,10}( *, *[0-9]{1,10}:[0-9]{1,10})*)?) *", re.ASCII)
_TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
_COMPRESSION_TYPES = ("uncompressed", "gzip", "snappy", "lz4", "zstd", "producer")

_Synonym = tuple[str, int]
"""A broker's name for a configuration, and how many units of the topic's name are one unit of it."""

_HOURS, _MINUTES = 3_600_000, 60_000
_WEEK = str(168 * _HOURS)
_ANY = -MAX_LONG - 1


def topic_configs(pairs: Pairs) -> Configs:
    """The settings of a topic's own level. Names that are not used here are ignored."""
    values = dict(pairs)
    return _collected((config.by_topic(values) for config in ALL), topic_known=True)


class ValueSource(StrEnum):
    """The level that a value comes from, the strongest first."""

    TOPIC = "topic"
    DYNAMIC = "dynamic"
    STATIC = "static"
    ASSUMED = "assumed"  # a level that could set it, or what it sets, is not known: a weaker one, or Kafka's default, is used


@dataclass(frozen=True, slots=True)
class Setting:
    """The effective value of a configuration, by its name for topics, in the unit of that name.

    Or one that cannot be read, as it was set, with the name under which it was.
    """

    name: str
    value: str
    source: ValueSource


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
    rejected: tuple[Setting, ...] = ()

    def over(self, weaker: Configs) -> Configs:
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


def _collected(levels: Iterable[tuple[Setting | None, list[Setting]]], *, static_known: bool = False, topic_known: bool = False) -> Configs:
    settings: list[Setting] = []
    rejected: list[Setting] = []
    for setting, refused in levels:
        rejected += refused
        if setting is not None:
            settings.append(setting)
    return Configs(tuple(settings), static_known, topic_known, tuple(rejected))


def _whole(lowest: int, largest: int = MAX_LONG) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not _NUMBER.fullmatch(text) or not lowest <= int(text) <= largest:
            raise ValueError(text)
        return str(int(text))

    return parse


def _ratio(text: str) -> str:
    if not _DECIMAL.fullmatch(text) or not 0 <= float(text) <= 1:
        raise ValueError(text)
    return str(float(text))


def _flag(text: str) -> str:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower()


def _timestamp_type(text: str) -> str:
    if text not in _TIMESTAMP_TYPES:
        raise ValueError(text)
    return text


def _compression(text: str) -> str:
    """What a broker makes of batches (`BrokerCompressionType`)."""
    if text not in _COMPRESSION_TYPES:
        raise ValueError(text)
    return text


def _throttled(text: str) -> str:
    """Replicas as PARTITION:BROKER, or all of a topic (`ThrottledReplicaListValidator`)."""
    if not _THROTTLED.fullmatch(text):
        raise ValueError(text)
    return text.replace(" ", "")


def _policy(text: str) -> str:
    wanted = {part.strip() for part in text.split(",")} if text else set()
    if not wanted <= set(POLICIES):
        raise ValueError(text)
    return ",".join(sorted(wanted))


@dataclass(frozen=True, slots=True)
class ConfigDefinition:
    """One configuration: how its value is parsed, Kafka's default, and its names. The first name that is set counts."""

    name: str
    parse: Callable[[str], str]
    default: str
    of_broker: tuple[_Synonym, ...]
    of_topic: tuple[str, ...] = ()  # only if they differ from its own name

    def by_topic(self, values: dict[str, str]) -> tuple[Setting | None, list[Setting]]:
        return self._first(((name, 1) for name in self.of_topic or (self.name,)), values, ValueSource.TOPIC)

    def by_broker(self, values: dict[str, str], source: ValueSource) -> tuple[Setting | None, list[Setting]]:
        setting, rejected = self._first(self.of_broker, values, source)
        if rejected and source is ValueSource.STATIC:
            setting = Setting(self.name, self.default if setting is None else setting.value, ValueSource.ASSUMED)
        return setting, rejected

    def _first(self, names: Iterable[tuple[str, int]], values: dict[str, str], source: ValueSource) -> tuple[Setting | None, list[Setting]]:
        rejected: list[Setting] = []
        for name, scale in names:
            if name in values:
                try:
                    return Setting(self.name, self._scaled(values[name].strip(), scale), source), rejected
                except ValueError:
                    rejected.append(Setting(name, values[name], source))
        return None, rejected

    def _scaled(self, text: str, scale: int) -> str:
        value = self.parse(text)
        return value if scale == 1 else self.parse(str(int(value) * scale if int(value) > 0 else int(value)))


def _of_broker(name: str, parse: Callable[[str], str], default: str) -> ConfigDefinition:
    return ConfigDefinition(name, parse, default, ((name, 1),))


ALL = (
    ConfigDefinition("cleanup.policy", _policy, "delete", (("log.cleanup.policy", 1),)),
    ConfigDefinition(
        "retention.ms",
        _whole(_ANY),
        _WEEK,
        (("log.retention.ms", 1), ("log.retention.minutes", _MINUTES), ("log.retention.hours", _HOURS)),
    ),
    ConfigDefinition("retention.bytes", _whole(_ANY), str(UNLIMITED), (("log.retention.bytes", 1),)),
    ConfigDefinition("local.retention.ms", _whole(-2), "-2", (("log.local.retention.ms", 1),)),
    ConfigDefinition("local.retention.bytes", _whole(-2), "-2", (("log.local.retention.bytes", 1),)),
    ConfigDefinition("remote.storage.enable", _flag, "false", ()),
    ConfigDefinition("remote.log.copy.disable", _flag, "false", ()),
    ConfigDefinition("segment.ms", _whole(1), _WEEK, (("log.roll.ms", 1), ("log.roll.hours", _HOURS))),
    ConfigDefinition(
        "segment.bytes",
        _whole(1, _MAX_INT),
        str(1 << 30),
        (("log.segment.bytes", 1),),
        ("internal.segment.bytes", "segment.bytes"),  # the first one is Kafka's own, for tests: it allows less than the minimum size
    ),
    ConfigDefinition("min.compaction.lag.ms", _whole(0), "0", (("log.cleaner.min.compaction.lag.ms", 1),)),
    ConfigDefinition("max.compaction.lag.ms", _whole(1), str(MAX_LONG), (("log.cleaner.max.compaction.lag.ms", 1),)),
    ConfigDefinition("min.cleanable.dirty.ratio", _ratio, "0.5", (("log.cleaner.min.cleanable.ratio", 1),)),
    ConfigDefinition("min.insync.replicas", _whole(1, _MAX_INT), "1", (("min.insync.replicas", 1),)),
    ConfigDefinition("file.delete.delay.ms", _whole(0), "60000", (("log.segment.delete.delay.ms", 1),)),
    ConfigDefinition("message.timestamp.type", _timestamp_type, "CreateTime", (("log.message.timestamp.type", 1),)),
    ConfigDefinition("compression.type", _compression, "producer", (("compression.type", 1),)),
    ConfigDefinition("leader.replication.throttled.replicas", _throttled, "", ()),
    ConfigDefinition("follower.replication.throttled.replicas", _throttled, "", ()),
    # Only brokers have these. They have no name for topics, and are listed here because they are found in the same way.
    _of_broker("leader.replication.throttled.rate", _whole(0), str(MAX_LONG)),
    _of_broker("follower.replication.throttled.rate", _whole(0), str(MAX_LONG)),
    _of_broker("log.retention.check.interval.ms", _whole(1), "300000"),
    _of_broker("log.cleaner.enable", _flag, "true"),
    _of_broker("metadata.log.segment.bytes", _whole(1, _MAX_INT), str(1 << 30)),
    _of_broker("metadata.log.segment.ms", _whole(1), _WEEK),
    _of_broker("num.recovery.threads.per.data.dir", _whole(1, _MAX_INT), "2"),
    _of_broker("offsets.retention.minutes", _whole(1, _MAX_INT), "10080"),
    _of_broker("producer.id.expiration.ms", _whole(1, _MAX_INT), "86400000"),
    _of_broker("transactional.id.expiration.ms", _whole(1, _MAX_INT), "604800000"),
)


NAMES = frozenset(name for known in ALL for name in (known.name, *known.of_topic, *(name for name, _ in known.of_broker)))
"""Every name of a configuration that is used here, for topics and for brokers."""


def pattern_configs(topic: str, patterns: Iterable[TopicPattern]) -> Configs:
    """The settings of the first matching pattern for a topic; none if none matches."""
    return next((pattern.configs for pattern in patterns if pattern.pattern.fullmatch(topic)), Configs())


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """Configurations from the options for topics with a name that fully matches ``pattern``, used where no metadata log is readable."""

    pattern: re.Pattern[str]
    configs: Configs


def broker_configs(pairs: Pairs, source: ValueSource) -> Configs:
    """The settings of a broker, under a broker's names: dynamic for it, dynamic for all brokers, or in its ``server.properties``."""
    values = dict(pairs)
    return _collected((config.by_broker(values, source) for config in ALL), static_known=source is ValueSource.STATIC)


def read_configs(text: str) -> Configs:
    """Read the text of `Configs.text`, maybe of another version. Names and levels that are not known here are ignored.

    The levels of a topic's configurations, combined as in Kafka (`KafkaConfigSchema`, `DynamicBrokerConfig`). The strongest level
    that sets a configuration wins: the topic, the broker dynamically, all brokers dynamically, the broker's ``server.properties``,
    Kafka's default. On a broker's level, its names for the configuration are tried one after the other (``log.retention.ms`` before
    ``log.retention.minutes``). So a dynamic ``log.retention.minutes`` beats a static ``log.retention.ms``.

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


STRENGTH = {source: rank for rank, source in enumerate(ValueSource)}
"""0 for the strongest level."""


BY_NAME = {known.name: known for known in ALL}
