"""What limits a topic's logs: its effective configuration, as Kafka puts it together (`KafkaConfigSchema`, `DynamicBrokerConfig`).

The strongest level that sets a configuration wins: the topic, the broker dynamically, all brokers dynamically, the broker's
``server.properties``, Kafka's default. Inside a level of a broker its names for it are tried one after the other (``log.retention.ms``
before ``log.retention.minutes``), so a dynamic ``log.retention.minutes`` does beat a static ``log.retention.ms``. A value that cannot be
read counts as not set, and is named.
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
"""Configurations as they are written: names and values."""

_MAX_INT, _MAX_LONG = 2**31 - 1, 2**63 - 1
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_POLICIES = ("compact", "delete")
_TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")

# Their logs follow neither policy nor tiering by configuration (`UnifiedLog.isRemoteLogEnabled`, `KafkaRaftLog.createLog`).
_METADATA_TOPIC = "__cluster_metadata"
_NEVER_REMOTE = frozenset(
    {_METADATA_TOPIC, "__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata"},
)


class Source(StrEnum):
    """Which level a value comes from, the strongest first."""

    TOPIC = "topic"
    DYNAMIC = "dynamic"
    STATIC = "static"
    ASSUMED = "assumed"  # a level is not known that could set it: a weaker one, or Kafka's default, stands in


_STRENGTH = {source: place for place, source in enumerate(Source)}


@dataclass(frozen=True, slots=True)
class Setting:
    """The value that counts for a configuration, by its topic's name, in the unit of that name."""

    name: str
    value: str
    source: Source


@dataclass(frozen=True, slots=True)
class Rejected:
    """A value that cannot be read, under the name that it was set by."""

    name: str
    value: str
    source: Source


@dataclass(frozen=True, slots=True)
class Configs:
    """What is set at some levels for one topic, or for all of a broker's; at most one value for a configuration.

    ``static_known``: ``server.properties`` is among the levels, so what is not set here is Kafka's default indeed. ``topic_known``: the
    topic's own level is, so what is not set there is what its broker says.
    """

    settings: tuple[Setting, ...] = ()
    static_known: bool = False
    topic_known: bool = False
    rejected: tuple[Rejected, ...] = ()

    def over(self, weaker: "Configs") -> "Configs":
        """These levels above weaker ones."""
        own = {setting.name for setting in self.settings}
        rest = tuple(setting for setting in weaker.settings if setting.name not in own)
        return Configs(
            self.settings + rest,
            self.static_known or weaker.static_known,
            self.topic_known or weaker.topic_known,
            self.rejected + weaker.rejected,
        )

    def text(self) -> str:
        """The JSON in which an agent hands them over: for each level that is known an object of names and values, in a fixed order."""
        known = {Source.STATIC: self.static_known, Source.TOPIC: self.topic_known}
        levels: dict[str, dict[str, str]] = {source: {} for source, there in known.items() if there}
        for setting in sorted(self.settings, key=lambda setting: setting.name):
            levels.setdefault(setting.source, {})[setting.name] = setting.value
        return json.dumps(levels, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What limits a topic's logs on one broker; times in milliseconds, sizes in bytes.

    ``retention_ms`` and ``retention_bytes`` are what deletes from the broker's disk, `UNLIMITED` where nothing does: the ``local.`` ones
    where segments are copied to remote storage (``remote_copy``). ``source`` is where the retention limit comes from: of a time and a size
    that both limit, the stronger level; where neither does, the one that lifts the limit in time; `Source.ASSUMED` where that in time is
    assumed; of a topic that does not delete, where its policy comes from.
    ``check_interval_ms`` is how often the broker looks for what it may delete. ``min_insync_known``: no default stands in for
    ``min_insync_replicas`` because nobody knows it. ``cleanup_policy`` is as Kafka writes it, empty where the logs are neither compacted
    nor deleted; a broker without a cleaner does not delete what should be compacted too (`LogManager.cleanupLogs`).
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
        """After how much time of its records a segment is rolled at the latest (`LogConfig.maxSegmentMs`)."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compacts else self.segment_ms


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """Configurations that people give for the topics whose whole name matches ``pattern``, where no metadata log tells them."""

    pattern: re.Pattern[str]
    configs: Configs


def pattern_configs(topic: str, patterns: Iterable[TopicPattern]) -> Configs:
    """What the first pattern that matches sets for a topic; nothing where none does."""
    return next((pattern.configs for pattern in patterns if pattern.pattern.fullmatch(topic)), Configs())


# --- the configurations, by the names of a topic


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
    """A broker's name for a configuration; ``scale``: how many of the topic's unit one of it is."""

    name: str
    scale: int = 1


@dataclass(frozen=True, slots=True)
class _Known:
    """One configuration: how its value is read, Kafka's default, and its names, the first that is set counts."""

    name: str
    parse: Callable[[str], str]
    default: str
    of_broker: tuple[_Synonym, ...]
    of_topic: tuple[str, ...] = ()  # where there are others than its own

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
        ("internal.segment.bytes", "segment.bytes"),  # the first is Kafka's own, for tests: it goes below the least size
    ),
    _Known("segment.jitter.ms", _whole(0), "0", (_Synonym("log.roll.jitter.ms"), _Synonym("log.roll.jitter.hours", _HOURS))),
    _Known("min.compaction.lag.ms", _whole(0), "0", (_Synonym("log.cleaner.min.compaction.lag.ms"),)),
    _Known("max.compaction.lag.ms", _whole(1), str(_MAX_LONG), (_Synonym("log.cleaner.max.compaction.lag.ms"),)),
    _Known("delete.retention.ms", _whole(0), "86400000", (_Synonym("log.cleaner.delete.retention.ms"),)),
    _Known("min.cleanable.dirty.ratio", _ratio, "0.5", (_Synonym("log.cleaner.min.cleanable.ratio"),)),
    _Known("min.insync.replicas", _whole(1, _MAX_INT), "1", (_Synonym("min.insync.replicas"),)),
    _Known("file.delete.delay.ms", _whole(0), "60000", (_Synonym("log.segment.delete.delay.ms"),)),
    _Known("message.timestamp.type", _timestamp_type, "CreateTime", (_Synonym("log.message.timestamp.type"),)),
    # a broker's alone: they have no name as a topic's, and stand among them because they are looked up in the same way
    _of_broker("log.retention.check.interval.ms", _whole(1), "300000"),
    _of_broker("log.cleaner.enable", _flag, "true"),
    _of_broker("metadata.log.segment.bytes", _whole(1, _MAX_INT), str(1 << 30)),
    _of_broker("metadata.log.segment.ms", _whole(1), _WEEK),
    _of_broker("producer.id.expiration.ms", _whole(1, _MAX_INT), "86400000"),
    _of_broker("transactional.id.expiration.ms", _whole(1, _MAX_INT), "604800000"),
)
_BY_NAME = {known.name: known for known in _ALL}

NAMES = frozenset(name for known in _ALL for name in (known.name, *known.of_topic, *(synonym.name for synonym in known.of_broker)))
"""Every name, a topic's or a broker's, whose value says something here."""


# --- from what is written to limits


def topic_configs(pairs: Pairs) -> Configs:
    """What a topic sets for itself; names that say nothing here are passed over."""
    values = dict(pairs)
    return _collected((known.by_topic(values) for known in _ALL), topic_known=True)


def broker_configs(pairs: Pairs, source: Source) -> Configs:
    """What is set for a broker, dynamically for it or for all, or by its ``server.properties``, under a broker's names."""
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
    """The configurations in what `Configs.text` wrote, maybe in another version: names and levels not known here are passed over.

    The empty text is that of a broker whose metadata log could not be read: nothing is known.

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
    """The value and source of every configuration, Kafka's defaults among them."""

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
"""What brokers set for their own topics when they make them, where nobody can tell what was set since (`transactionTopicConfigs`,
`groupMetadataTopicConfigs`, `shareGroupStateTopicConfigs`, `createRemoteLogMetadataTopicRequest`)."""


def effective_limits(topic: str, configs: Configs) -> Limits:
    """What the configurations come to for a topic, Kafka's defaults where nothing is set."""
    values = _Values(configs if configs.topic_known else _BUILT_IN.get(topic, Configs()).over(configs))
    metadata = topic == _METADATA_TOPIC  # pruned by its snapshots alone, whatever is configured
    compacts, deletes = "compact" in values.policy and not metadata, "delete" in values.policy and not metadata
    remote = values.text("remote.storage.enable") == "true" and not compacts and topic not in _NEVER_REMOTE
    copies = remote and values.text("remote.log.copy.disable") == "false"
    return Limits(
        cleanup_policy=",".join(name for name, wanted in zip(_POLICIES, (compacts, deletes), strict=True) if wanted),
        deletes=deletes and (values.text("log.cleaner.enable") == "true" or not compacts),
        compacts=compacts,
        retention_ms=_retention(values, "retention.ms", copies),
        retention_bytes=_retention(values, "retention.bytes", copies),
        # the metadata log knows none of the options that other logs have (`KafkaMetadataLog.apply`)
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
    """`_WHOLE` of a local limit stands for the whole one (`LogConfig.localRetentionMs`)."""
    own = values.number(f"local.{name}") if local else _WHOLE
    return values.limit(name) if own == _WHOLE else own


def _limit_source(values: _Values, deletes: bool, local: bool) -> Source:
    if not deletes:
        return values.source("cleanup.policy")
    timed = _source(values, "retention.ms", local)
    if timed is Source.ASSUMED:  # a size that nobody sets deletes nothing, a time does
        return timed
    limiting = [
        _source(values, name, local) for name in ("retention.ms", "retention.bytes") if _retention(values, name, local) != UNLIMITED
    ]
    return min(limiting, key=_STRENGTH.__getitem__, default=timed)


def _source(values: _Values, name: str, local: bool) -> Source:
    """Where a limit as `_retention` has it comes from."""
    whole = values.source(name)
    if not local:
        return whole
    own = values.source(f"local.{name}")  # assumed: a level that nobody knows may set one
    return whole if values.number(f"local.{name}") == _WHOLE and own is not Source.ASSUMED else own


@lru_cache(maxsize=1 << 16)
def limits_of(topic: str, text: str) -> Limits:
    """What limits a topic, by the text that an agent handed over. Raises FormatError as `read_configs`."""
    return effective_limits(topic, read_configs(text))
