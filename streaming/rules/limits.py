"""The limits of a topic's logs: its effective configuration, combined as in Kafka (`KafkaConfigSchema`, `DynamicBrokerConfig`).

The strongest level that sets a configuration wins: the topic, the broker dynamically, all brokers dynamically, the broker's
``server.properties``, Kafka's default. On a broker's level, its names for the configuration are tried one after the other
(``log.retention.ms`` before ``log.retention.minutes``). So a dynamic ``log.retention.minutes`` beats a static ``log.retention.ms``. A value
that cannot be read counts as not set, and is reported.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache

from streaming.errors import FormatError

UNLIMITED = -1
_WHOLE = -2

Pairs = Iterable[tuple[str, str]]
"""Configurations as they are stored: names and values."""

_MAX_INT, _MAX_LONG = 2**31 - 1, 2**63 - 1
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_POLICIES = ("compact", "delete")
_TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")

# For these topics, configurations decide neither tiered storage nor, for the metadata log, the policy (`UnifiedLog.isRemoteLogEnabled`,
# `KafkaRaftLog.createLog`).
_METADATA_TOPIC = "__cluster_metadata"
_NEVER_REMOTE = frozenset(
    {_METADATA_TOPIC, "__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata"},
)


class Source(StrEnum):
    """The level that a value comes from, the strongest first."""

    TOPIC = "topic"
    DYNAMIC = "dynamic"
    STATIC = "static"
    ASSUMED = "assumed"  # a level that could set it is not known: a weaker one, or Kafka's default, is used


_STRENGTH = {source: place for place, source in enumerate(Source)}


@dataclass(frozen=True, slots=True)
class Setting:
    """The effective value of a configuration, by its name for topics, in the unit of that name."""

    name: str
    value: str
    source: Source


@dataclass(frozen=True, slots=True)
class Rejected:
    """A value that cannot be read, and the name under which it was set."""

    name: str
    value: str
    source: Source


@dataclass(frozen=True, slots=True)
class Configs:
    """The settings of some levels for one topic, or for all topics of a broker; at most one value for each configuration.

    ``static_known``: ``server.properties`` is among the levels, so a configuration that is not set here really has Kafka's default.
    ``topic_known``: the topic's own level is among them, so for a configuration that it does not set, the broker's value counts.
    """

    settings: tuple[Setting, ...] = ()
    static_known: bool = False
    topic_known: bool = False
    rejected: tuple[Rejected, ...] = ()

    def over(self, weaker: "Configs") -> "Configs":
        """Combine these levels with weaker ones."""
        own = {setting.name for setting in self.settings}
        rest = tuple(setting for setting in weaker.settings if setting.name not in own)
        return Configs(
            self.settings + rest,
            self.static_known or weaker.static_known,
            self.topic_known or weaker.topic_known,
            self.rejected + weaker.rejected,
        )

    def text(self) -> str:
        """The JSON that an agent sends: for each known level an object of names and values, in a fixed order."""
        known = {Source.STATIC: self.static_known, Source.TOPIC: self.topic_known}
        levels: dict[str, dict[str, str]] = {source: {} for source, there in known.items() if there}
        for setting in sorted(self.settings, key=lambda setting: setting.name):
            levels.setdefault(setting.source, {})[setting.name] = setting.value
        return json.dumps(levels, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a topic's logs on one broker; times in milliseconds, sizes in bytes.

    ``retention_ms`` and ``retention_bytes`` are the limits that delete from the broker's disk, `UNLIMITED` for none. If segments are copied
    to remote storage (``remote_copy``), they are the ``local.`` ones.

    ``source`` is the level of the retention limit. If a time and a size both limit, it is the stronger level. If neither does, it is the
    level that removes the limit in time. If the limit in time is assumed, it is `Source.ASSUMED`. If the topic does not delete, it is the
    level of its policy.

    ``check_interval_ms`` is how often the broker checks what it may delete. ``min_insync_known``: ``min_insync_replicas`` is no default
    that
    is used only because the value is not known. ``cleanup_policy`` is as Kafka writes it, empty if the logs are neither compacted nor
    deleted. A broker without a cleaner does not delete from topics that should also be compacted (`LogManager.cleanupLogs`).
    """

    cleanup_policy: str
    deletes: bool
    compacts: bool
    retention_ms: int
    retention_bytes: int
    segment_ms: int
    segment_bytes: int
    segment_jitter_ms: int
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    delete_retention_ms: int
    min_cleanable_dirty_ratio: float
    min_insync_replicas: int
    min_insync_known: bool
    file_delete_delay_ms: int
    check_interval_ms: int
    producer_expiration_ms: int
    transactional_id_expiration_ms: int
    log_append_time: bool
    remote_storage: bool
    remote_copy: bool
    source: Source

    @property
    def roll_ms(self) -> int:
        """The maximum time, by its records, after which a segment is rolled (`LogConfig.maxSegmentMs`)."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compacts else self.segment_ms


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """Configurations from the options for topics with a name that fully matches ``pattern``, used where no metadata log is readable."""

    pattern: re.Pattern[str]
    configs: Configs


def pattern_configs(topic: str, patterns: Iterable[TopicPattern]) -> Configs:
    """The settings of the first matching pattern for a topic; none if none matches."""
    return next((pattern.configs for pattern in patterns if pattern.pattern.fullmatch(topic)), Configs())


# --- the configurations, by their names for topics


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
    if not wanted <= set(_POLICIES):
        raise ValueError(text)
    return ",".join(sorted(wanted))


@dataclass(frozen=True, slots=True)
class _Synonym:
    """A broker's name for a configuration; ``scale``: how many units of the topic's name are one unit of it."""

    name: str
    scale: int = 1


@dataclass(frozen=True, slots=True)
class _Known:
    """One configuration: how its value is parsed, Kafka's default, and its names. The first name that is set counts."""

    name: str
    parse: Callable[[str], str]
    default: str
    of_broker: tuple[_Synonym, ...]
    of_topic: tuple[str, ...] = ()  # only if they differ from its own name

    def by_topic(self, values: dict[str, str]) -> tuple[Setting | None, list[Rejected]]:
        return self._first(((name, 1) for name in self.of_topic or (self.name,)), values, Source.TOPIC)

    def by_broker(self, values: dict[str, str], source: Source) -> tuple[Setting | None, list[Rejected]]:
        return self._first(((synonym.name, synonym.scale) for synonym in self.of_broker), values, source)

    def _first(self, names: Iterable[tuple[str, int]], values: dict[str, str], source: Source) -> tuple[Setting | None, list[Rejected]]:
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


def _of_broker(name: str, parse: Callable[[str], str], default: str) -> _Known:
    return _Known(name, parse, default, (_Synonym(name),))


_HOURS, _MINUTES = 3_600_000, 60_000
_WEEK = str(168 * _HOURS)
_ANY = -_MAX_LONG - 1

_ALL = (
    _Known("cleanup.policy", _policy, "delete", (_Synonym("log.cleanup.policy"),)),
    _Known(
        "retention.ms",
        _whole(_ANY),
        _WEEK,
        (_Synonym("log.retention.ms"), _Synonym("log.retention.minutes", _MINUTES), _Synonym("log.retention.hours", _HOURS)),
    ),
    _Known("retention.bytes", _whole(_ANY), str(UNLIMITED), (_Synonym("log.retention.bytes"),)),
    _Known("local.retention.ms", _whole(-2), "-2", (_Synonym("log.local.retention.ms"),)),
    _Known("local.retention.bytes", _whole(-2), "-2", (_Synonym("log.local.retention.bytes"),)),
    _Known("remote.storage.enable", _flag, "false", ()),
    _Known("remote.log.copy.disable", _flag, "false", ()),
    _Known("segment.ms", _whole(1), _WEEK, (_Synonym("log.roll.ms"), _Synonym("log.roll.hours", _HOURS))),
    _Known(
        "segment.bytes",
        _whole(1, _MAX_INT),
        str(1 << 30),
        (_Synonym("log.segment.bytes"),),
        ("internal.segment.bytes", "segment.bytes"),  # the first one is Kafka's own, for tests: it allows less than the minimum size
    ),
    _Known("segment.jitter.ms", _whole(0), "0", (_Synonym("log.roll.jitter.ms"), _Synonym("log.roll.jitter.hours", _HOURS))),
    _Known("min.compaction.lag.ms", _whole(0), "0", (_Synonym("log.cleaner.min.compaction.lag.ms"),)),
    _Known("max.compaction.lag.ms", _whole(1), str(_MAX_LONG), (_Synonym("log.cleaner.max.compaction.lag.ms"),)),
    _Known("delete.retention.ms", _whole(0), "86400000", (_Synonym("log.cleaner.delete.retention.ms"),)),
    _Known("min.cleanable.dirty.ratio", _ratio, "0.5", (_Synonym("log.cleaner.min.cleanable.ratio"),)),
    _Known("min.insync.replicas", _whole(1, _MAX_INT), "1", (_Synonym("min.insync.replicas"),)),
    _Known("file.delete.delay.ms", _whole(0), "60000", (_Synonym("log.segment.delete.delay.ms"),)),
    _Known("message.timestamp.type", _timestamp_type, "CreateTime", (_Synonym("log.message.timestamp.type"),)),
    # Only brokers have these. They have no name for topics, and are listed here because they are found in the same way.
    _of_broker("log.retention.check.interval.ms", _whole(1), "300000"),
    _of_broker("log.cleaner.enable", _flag, "true"),
    _of_broker("metadata.log.segment.bytes", _whole(1, _MAX_INT), str(1 << 30)),
    _of_broker("metadata.log.segment.ms", _whole(1), _WEEK),
    _of_broker("producer.id.expiration.ms", _whole(1, _MAX_INT), "86400000"),
    _of_broker("transactional.id.expiration.ms", _whole(1, _MAX_INT), "604800000"),
)
_BY_NAME = {known.name: known for known in _ALL}

NAMES = frozenset(name for known in _ALL for name in (known.name, *known.of_topic, *(synonym.name for synonym in known.of_broker)))
"""Every name of a configuration that is used here, for topics and for brokers."""


# --- from stored values to limits


def topic_configs(pairs: Pairs) -> Configs:
    """The settings of a topic's own level. Names that are not used here are ignored."""
    values = dict(pairs)
    return _collected((known.by_topic(values) for known in _ALL), topic_known=True)


def broker_configs(pairs: Pairs, source: Source) -> Configs:
    """The settings of a broker, under a broker's names: dynamic for it, dynamic for all brokers, or in its ``server.properties``."""
    values = dict(pairs)
    return _collected((known.by_broker(values, source) for known in _ALL), static_known=source is Source.STATIC)


def _collected(found: Iterable[tuple[Setting | None, list[Rejected]]], *, static_known: bool = False, topic_known: bool = False) -> Configs:
    settings: list[Setting] = []
    rejected: list[Rejected] = []
    for setting, refused in found:
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
        pairs = [(Source(source), values.items()) for source, values in levels.items() if source in _STRENGTH]
        settings = (
            Setting(name, _BY_NAME[name].parse(value), source) for source, values in pairs for name, value in values if name in _BY_NAME
        )
        return Configs(tuple(settings), Source.STATIC in levels, Source.TOPIC in levels)
    except (ValueError, TypeError, AttributeError) as error:
        raise FormatError(f"configurations of a topic that cannot be read: {error}") from error


class _Values:
    """The value and source of every configuration, including Kafka's defaults."""

    def __init__(self, configs: Configs) -> None:
        self._set = {setting.name: setting for setting in configs.settings}
        self._default = Source.STATIC if configs.static_known else Source.ASSUMED
        self._topic_known = configs.topic_known

    def text(self, name: str) -> str:
        return self._set[name].value if name in self._set else _BY_NAME[name].default

    def number(self, name: str) -> int:
        return int(self.text(name))

    def limit(self, name: str) -> int:
        return max(self.number(name), UNLIMITED)

    def source(self, name: str) -> Source:
        if not self._topic_known:  # the topic may set it
            return Source.ASSUMED
        return self._set[name].source if name in self._set else self._default

    @cached_property
    def policy(self) -> frozenset[str]:
        return frozenset(self.text("cleanup.policy").split(","))


def _assumed(**settings: str) -> Configs:
    return Configs(tuple(Setting(name.replace("_", "."), value, Source.ASSUMED) for name, value in settings.items()))


_BUILT_IN = {
    "__consumer_offsets": _assumed(cleanup_policy="compact", segment_bytes=str(100 << 20)),
    "__transaction_state": _assumed(cleanup_policy="compact", segment_bytes=str(100 << 20), min_insync_replicas="2"),
    "__share_group_state": _assumed(cleanup_policy="delete", retention_ms="-1", segment_bytes=str(100 << 20)),
    "__remote_log_metadata": _assumed(cleanup_policy="delete", retention_ms="-1"),
}
"""The settings with which brokers create their own topics, used if later changes are not known.

From `transactionTopicConfigs`, `groupMetadataTopicConfigs`, `shareGroupStateTopicConfigs`, `createRemoteLogMetadataTopicRequest`.
"""


def effective_limits(topic: str, configs: Configs) -> Limits:
    """The limits of a topic that result from its configurations, with Kafka's defaults for what is not set."""
    values = _Values(configs if configs.topic_known else _BUILT_IN.get(topic, Configs()).over(configs))
    metadata = topic == _METADATA_TOPIC  # pruned by its snapshots only, whatever is configured
    compacts, deletes = "compact" in values.policy and not metadata, "delete" in values.policy and not metadata
    remote = values.text("remote.storage.enable") == "true" and not compacts and topic not in _NEVER_REMOTE
    copies = remote and values.text("remote.log.copy.disable") == "false"
    return Limits(
        cleanup_policy=",".join(name for name, wanted in zip(_POLICIES, (compacts, deletes), strict=True) if wanted),
        deletes=deletes and (values.text("log.cleaner.enable") == "true" or not compacts),
        compacts=compacts,
        retention_ms=_retention(values, "retention.ms", copies),
        retention_bytes=_retention(values, "retention.bytes", copies),
        # The metadata log has none of the options that other logs have (`KafkaMetadataLog.apply`).
        segment_ms=values.number("metadata.log.segment.ms" if metadata else "segment.ms"),
        segment_bytes=values.number("metadata.log.segment.bytes" if metadata else "segment.bytes"),
        segment_jitter_ms=0 if metadata else values.number("segment.jitter.ms"),
        min_compaction_lag_ms=values.number("min.compaction.lag.ms"),
        max_compaction_lag_ms=values.number("max.compaction.lag.ms"),
        delete_retention_ms=values.number("delete.retention.ms"),
        min_cleanable_dirty_ratio=float(values.text("min.cleanable.dirty.ratio")),
        min_insync_replicas=values.number("min.insync.replicas"),
        min_insync_known=values.source("min.insync.replicas") is not Source.ASSUMED,
        file_delete_delay_ms=values.number("file.delete.delay.ms"),
        check_interval_ms=values.number("log.retention.check.interval.ms"),
        producer_expiration_ms=values.number("producer.id.expiration.ms"),
        transactional_id_expiration_ms=values.number("transactional.id.expiration.ms"),
        log_append_time=values.text("message.timestamp.type") == "LogAppendTime",
        remote_storage=remote,
        remote_copy=copies,
        source=Source.STATIC if metadata else _limit_source(values, deletes, copies),
    )


def _retention(values: _Values, name: str, local: bool) -> int:
    """Return a retention limit. The value `_WHOLE` of a local limit means the whole one (`LogConfig.localRetentionMs`)."""
    own = values.number(f"local.{name}") if local else _WHOLE
    return values.limit(name) if own == _WHOLE else own


def _limit_source(values: _Values, deletes: bool, local: bool) -> Source:
    if not deletes:
        return values.source("cleanup.policy")
    timed = _source(values, "retention.ms", local)
    if timed is Source.ASSUMED:  # by default a size deletes nothing, but a time does
        return timed
    limiting = [
        _source(values, name, local) for name in ("retention.ms", "retention.bytes") if _retention(values, name, local) != UNLIMITED
    ]
    return min(limiting, key=_STRENGTH.__getitem__, default=timed)


def _source(values: _Values, name: str, local: bool) -> Source:
    """The level that a limit of `_retention` comes from."""
    whole = values.source(name)
    if not local:
        return whole
    own = values.source(f"local.{name}")  # assumed: a level that is not known may set one
    return whole if values.number(f"local.{name}") == _WHOLE and own is not Source.ASSUMED else own


@lru_cache(maxsize=1 << 16)
def limits_of(topic: str, text: str) -> Limits:
    """The limits of a topic, from the text that an agent sent. Raises FormatError as `read_configs` does."""
    return effective_limits(topic, read_configs(text))
