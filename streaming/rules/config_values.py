"""The configurations of logs that are used here: their names on topics and on brokers, what values are valid, Kafka's defaults.

A value that cannot be read counts as not set, and is reported (`TopicConfig`, `LogConfig`, `ServerLogConfigs`). In
``server.properties`` it may be a variable, such as ``${env:HOURS}``, whose value only the broker knows: what stands in for it is assumed.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

UNLIMITED = -1

Pairs = Iterable[tuple[str, str]]
"""Configurations as they are stored: names and values."""

POLICIES = ("compact", "delete")

_MAX_INT, _MAX_LONG = 2**31 - 1, 2**63 - 1
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")


class ValueSource(StrEnum):
    """The level that a value comes from, the strongest first."""

    TOPIC = "topic"
    DYNAMIC = "dynamic"
    STATIC = "static"
    ASSUMED = "assumed"  # a level that could set it, or what it sets, is not known: a weaker one, or Kafka's default, is used


STRENGTH = {source: rank for rank, source in enumerate(ValueSource)}
"""0 for the strongest level."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The effective value of a configuration, by its name for topics, in the unit of that name."""

    name: str
    value: str
    source: ValueSource


@dataclass(frozen=True, slots=True)
class Rejected:
    """A value that cannot be read, and the name under which it was set."""

    name: str
    value: str
    source: ValueSource


def _whole(lowest: int, largest: int = _MAX_LONG) -> Callable[[str], str]:
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


def _policy(text: str) -> str:
    wanted = {part.strip() for part in text.split(",")} if text else set()
    if not wanted <= set(POLICIES):
        raise ValueError(text)
    return ",".join(sorted(wanted))


@dataclass(frozen=True, slots=True)
class _Synonym:
    """A broker's name for a configuration; ``scale``: how many units of the topic's name are one unit of it."""

    name: str
    scale: int = 1


@dataclass(frozen=True, slots=True)
class ConfigDefinition:
    """One configuration: how its value is parsed, Kafka's default, and its names. The first name that is set counts."""

    name: str
    parse: Callable[[str], str]
    default: str
    of_broker: tuple[_Synonym, ...]
    of_topic: tuple[str, ...] = ()  # only if they differ from its own name

    def by_topic(self, values: dict[str, str]) -> tuple[Setting | None, list[Rejected]]:
        return self._first(((name, 1) for name in self.of_topic or (self.name,)), values, ValueSource.TOPIC)

    def by_broker(self, values: dict[str, str], source: ValueSource) -> tuple[Setting | None, list[Rejected]]:
        setting, rejected = self._first(((synonym.name, synonym.scale) for synonym in self.of_broker), values, source)
        if rejected and source is ValueSource.STATIC:
            setting = Setting(self.name, self.default if setting is None else setting.value, ValueSource.ASSUMED)
        return setting, rejected

    def _first(
        self, names: Iterable[tuple[str, int]], values: dict[str, str], source: ValueSource
    ) -> tuple[Setting | None, list[Rejected]]:
        rejected: list[Rejected] = []
        for name, scale in names:
            if name in values:
                try:
                    return Setting(self.name, self._scaled(values[name].strip(), scale), source), rejected
                except ValueError:
                    rejected.append(Rejected(name, values[name], source))
        return None, rejected

    def _scaled(self, text: str, scale: int) -> str:
        value = self.parse(text)
        return value if scale == 1 else self.parse(str(int(value) * scale if int(value) > 0 else int(value)))


def _of_broker(name: str, parse: Callable[[str], str], default: str) -> ConfigDefinition:
    return ConfigDefinition(name, parse, default, (_Synonym(name),))


_HOURS, _MINUTES = 3_600_000, 60_000
_WEEK = str(168 * _HOURS)
_ANY = -_MAX_LONG - 1

ALL = (
    ConfigDefinition("cleanup.policy", _policy, "delete", (_Synonym("log.cleanup.policy"),)),
    ConfigDefinition(
        "retention.ms",
        _whole(_ANY),
        _WEEK,
        (_Synonym("log.retention.ms"), _Synonym("log.retention.minutes", _MINUTES), _Synonym("log.retention.hours", _HOURS)),
    ),
    ConfigDefinition("retention.bytes", _whole(_ANY), str(UNLIMITED), (_Synonym("log.retention.bytes"),)),
    ConfigDefinition("local.retention.ms", _whole(-2), "-2", (_Synonym("log.local.retention.ms"),)),
    ConfigDefinition("local.retention.bytes", _whole(-2), "-2", (_Synonym("log.local.retention.bytes"),)),
    ConfigDefinition("remote.storage.enable", _flag, "false", ()),
    ConfigDefinition("remote.log.copy.disable", _flag, "false", ()),
    ConfigDefinition("segment.ms", _whole(1), _WEEK, (_Synonym("log.roll.ms"), _Synonym("log.roll.hours", _HOURS))),
    ConfigDefinition(
        "segment.bytes",
        _whole(1, _MAX_INT),
        str(1 << 30),
        (_Synonym("log.segment.bytes"),),
        ("internal.segment.bytes", "segment.bytes"),  # the first one is Kafka's own, for tests: it allows less than the minimum size
    ),
    ConfigDefinition("min.compaction.lag.ms", _whole(0), "0", (_Synonym("log.cleaner.min.compaction.lag.ms"),)),
    ConfigDefinition("max.compaction.lag.ms", _whole(1), str(_MAX_LONG), (_Synonym("log.cleaner.max.compaction.lag.ms"),)),
    ConfigDefinition("min.cleanable.dirty.ratio", _ratio, "0.5", (_Synonym("log.cleaner.min.cleanable.ratio"),)),
    ConfigDefinition("min.insync.replicas", _whole(1, _MAX_INT), "1", (_Synonym("min.insync.replicas"),)),
    ConfigDefinition("file.delete.delay.ms", _whole(0), "60000", (_Synonym("log.segment.delete.delay.ms"),)),
    ConfigDefinition("message.timestamp.type", _timestamp_type, "CreateTime", (_Synonym("log.message.timestamp.type"),)),
    # Only brokers have these. They have no name for topics, and are listed here because they are found in the same way.
    _of_broker("log.retention.check.interval.ms", _whole(1), "300000"),
    _of_broker("log.cleaner.enable", _flag, "true"),
    _of_broker("metadata.log.segment.bytes", _whole(1, _MAX_INT), str(1 << 30)),
    _of_broker("metadata.log.segment.ms", _whole(1), _WEEK),
    _of_broker("num.recovery.threads.per.data.dir", _whole(1, _MAX_INT), "2"),
    _of_broker("offsets.retention.minutes", _whole(1, _MAX_INT), "10080"),
    _of_broker("producer.id.expiration.ms", _whole(1, _MAX_INT), "86400000"),
    _of_broker("transactional.id.expiration.ms", _whole(1, _MAX_INT), "604800000"),
)
BY_NAME = {known.name: known for known in ALL}

NAMES = frozenset(name for known in ALL for name in (known.name, *known.of_topic, *(synonym.name for synonym in known.of_broker)))
"""Every name of a configuration that is used here, for topics and for brokers."""
