"""The limits of a topic's logs, which result from its configurations (`LogConfig`, `UnifiedLog`), on each broker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np

from streaming.common.arrays import Longs
from streaming.errors import FormatError
from streaming.rules.config_values import (
    BY_NAME,
    POLICIES,
    STRENGTH,
    UNLIMITED,
    Configs,
    Setting,
    TopicPattern,
    ValueSource,
    pattern_configs,
    read_configs,
)

log = logging.getLogger(__name__)

_WHOLE = -2

# For these topics, configurations decide neither tiered storage nor, for the metadata log, the policy (`UnifiedLog.isRemoteLogEnabled`,
# `KafkaRaftLog.createLog`).
_METADATA_TOPIC = "__cluster_metadata"
_NEVER_REMOTE = frozenset(
    {_METADATA_TOPIC, "__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata"},
)

KAFKA_3_4 = 8
"""The first metadata.version that a broker of Kafka 3.4 supports (`MetadataVersion.IBP_3_4_IV0`)."""

KAFKA_3_7 = 15
"""The first metadata.version that a broker of Kafka 3.7 supports (`MetadataVersion.IBP_3_7_IV0`)."""


class Limiter:
    """The limits of every topic on every broker, from what agents send and from the job's settings.

    The limits of a topic's logs on a broker: from its agent's text, and with less priority from the job's settings.

    Args:
        static: returns the configurations in ``server.properties`` files, by node id; a new mapping if a file has changed.
        assumed: the assumed configuration of brokers without such a file.
        patterns: configurations of topics from the settings, which count if no metadata log gives any.
        tried: settings of topics that are tried: they count before all others.
    """

    def __init__(
        self,
        static: Callable[[], Mapping[int, Configs]],
        assumed: Configs | None = None,
        patterns: Sequence[TopicPattern] = (),
        tried: Callable[[str], Configs] | None = None,
    ) -> None:
        self._static = static
        self._assumed = assumed or Configs()
        self._patterns = tuple(patterns)
        self._tried = tried
        self._logged: set[int] = set()
        self._held: tuple[Mapping[int, Configs], LimitsOf] | None = None

    def trying(self, tried: Callable[[str], Configs]) -> Limiter:
        """The same, with settings that are tried."""
        return Limiter(self._static, self._assumed, self._patterns, tried)

    def now(self) -> LimitsOf:
        """The present limits of a topic on a broker by its agent's text: for one page, and from any thread."""
        static, held = self._static(), self._held
        if held is None or held[0] is not static:
            held = self._held = static, lru_cache(1 << 16)(partial(self._of, static))
        return held[1]

    def given(self, broker: int) -> Configs:
        """What the settings say of a broker's own level."""
        return self._static().get(broker, self._assumed)

    def is_given(self, broker: int) -> bool:
        """Whether the settings have a broker's own level, be it that of every broker."""
        return broker in self._static() or self._assumed != Configs()

    def min_isr(self, broker: int) -> int:
        """min.insync.replicas if the metadata log sets none: that of the broker, else the largest known one."""
        static = self._static()
        given = [static[broker]] if broker in static else [self._assumed, *static.values()]
        return max(effective_limits("", configs).min_insync_replicas for configs in given)

    def _of(self, static: Mapping[int, Configs], broker: int, topic: str, configs: str) -> Limits:
        limits = self._limits(static, broker, topic, configs)
        if static and limits.assumed and broker not in static and broker not in self._logged:
            self._logged.add(broker)
            log.warning(
                "no server.properties is of this broker, so its limits are assumed",
                extra={"broker": broker, "nodes": ", ".join(map(str, sorted(static)))},
            )
        return limits

    def _limits(self, static: Mapping[int, Configs], broker: int, topic: str, configs: str) -> Limits:
        try:
            own = read_configs(configs)
        except FormatError:  # an agent of another version: its values are not understood and are assumed
            own = Configs()
        given = Configs() if own.topic_known else pattern_configs(topic, self._patterns)
        known = given.over(own).over(static.get(broker, self._assumed))  # a topic's own settings come before a broker's
        return effective_limits(topic, known if self._tried is None else self._tried(topic).over(known))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a topic's logs on one broker; times in milliseconds, sizes in bytes.

    ``retention_ms`` and ``retention_bytes`` are the limits that delete from the broker's disk, `UNLIMITED` for none. If segments are copied
    to remote storage (``remote_copy``), they are the ``local.`` ones.

    ``record_retention_ms`` is ``retention.ms`` itself: how long a record is kept by its timestamp, on the disk or in remote storage;
    `UNLIMITED` where the topic does not delete.

    ``source`` is the level of the retention limit. If a time and a size both limit, it is the stronger level. If neither does, it is the
    level that removes the limit in time. If the limit in time is assumed, it is `ValueSource.ASSUMED`. If the topic does not delete, it is
    the level of its policy.

    ``check_interval_ms`` is how often the broker checks what it may delete. ``min_insync_known``: ``min_insync_replicas`` is no default
    that is used only because the value is not known. ``cleanup_policy`` is as Kafka writes it, empty if the logs are neither compacted nor
    deleted. A broker without a cleaner does not delete from topics that should also be compacted (`LogManager.cleanupLogs`).
    ``compression`` is the codec that a broker writes, "producer" for what comes, "" if a level that may set it is not known.
    """

    cleanup_policy: str
    deletes: bool
    compacts: bool
    retention_ms: int
    retention_bytes: int
    record_retention_ms: int
    segment_ms: int
    segment_bytes: int
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
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
    source: ValueSource
    offsets_retention_ms: int
    offsets_retention_known: bool  # as ``min_insync_known``
    compression: str

    @property
    def assumed(self) -> bool:
        """Whether the limits that delete are Kafka's defaults, because the real ones are not known."""
        return self.source is ValueSource.ASSUMED

    @property
    def expires_ms(self) -> int:
        """How long a record is kept by its timestamp at most; `UNLIMITED` where it is kept for ever, or where that is not known."""
        return UNLIMITED if self.assumed or not self.deletes else self.record_retention_ms

    @property
    def judges_expiry(self) -> bool:
        """Whether it is known for how long records are kept, and they are not kept for ever."""
        return self.expires_ms >= 0

    @property
    def roll_ms(self) -> int:
        """The maximum time, by its records, after which a segment is rolled (`LogConfig.maxSegmentMs`)."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compacts else self.segment_ms


LimitsOf = Callable[[int, str, str], Limits]
"""The limits of a topic, from broker, topic and the text that its agent sends."""


def effective_limits(topic: str, configs: Configs) -> Limits:
    """The limits of a topic that result from its configurations, with Kafka's defaults for what is not set."""
    values = _Values(configs if configs.topic_known else _BUILT_IN.get(topic, Configs()).over(configs))
    metadata = topic == _METADATA_TOPIC  # pruned by its snapshots only, whatever is configured
    compacts, deletes = "compact" in values.policy and not metadata, "delete" in values.policy and not metadata
    remote = values.text("remote.storage.enable") == "true" and not compacts and topic not in _NEVER_REMOTE
    copies = remote and values.text("remote.log.copy.disable") == "false"
    return Limits(
        cleanup_policy=",".join(name for name, wanted in zip(POLICIES, (compacts, deletes), strict=True) if wanted),
        deletes=deletes and (values.text("log.cleaner.enable") == "true" or not compacts),
        compacts=compacts,
        retention_ms=_retention(values, "retention.ms", copies),
        retention_bytes=_retention(values, "retention.bytes", copies),
        record_retention_ms=_retention(values, "retention.ms", local=False) if deletes else UNLIMITED,
        # The metadata log has none of the options that other logs have (`KafkaMetadataLog.apply`).
        segment_ms=values.number("metadata.log.segment.ms" if metadata else "segment.ms"),
        segment_bytes=values.number("metadata.log.segment.bytes" if metadata else "segment.bytes"),
        min_compaction_lag_ms=values.number("min.compaction.lag.ms"),
        max_compaction_lag_ms=values.number("max.compaction.lag.ms"),
        min_cleanable_dirty_ratio=float(values.text("min.cleanable.dirty.ratio")),
        min_insync_replicas=values.number("min.insync.replicas"),
        min_insync_known=values.source("min.insync.replicas") is not ValueSource.ASSUMED,
        file_delete_delay_ms=values.number("file.delete.delay.ms"),
        check_interval_ms=values.number("log.retention.check.interval.ms"),
        producer_expiration_ms=values.number("producer.id.expiration.ms"),
        transactional_id_expiration_ms=values.number("transactional.id.expiration.ms"),
        log_append_time=values.text("message.timestamp.type") == "LogAppendTime",
        remote_storage=remote,
        remote_copy=copies,
        source=ValueSource.STATIC if metadata else _limit_source(values, deletes, copies),
        offsets_retention_ms=values.number("offsets.retention.minutes") * 60_000,
        offsets_retention_known=values.source("offsets.retention.minutes") is not ValueSource.ASSUMED,
        compression=values.text("compression.type") if values.source("compression.type") is not ValueSource.ASSUMED else "",
    )


class _Values:
    """The value and source of every configuration, including Kafka's defaults."""

    def __init__(self, configs: Configs) -> None:
        self._set = {setting.name: setting for setting in configs.settings}
        self._default = ValueSource.STATIC if configs.static_known else ValueSource.ASSUMED
        self._topic_known = configs.topic_known

    def text(self, name: str) -> str:
        return self._set[name].value if name in self._set else BY_NAME[name].default

    def number(self, name: str) -> int:
        return int(self.text(name))

    def limit(self, name: str) -> int:
        return max(self.number(name), UNLIMITED)

    def source(self, name: str) -> ValueSource:
        if not self._topic_known:  # the topic may set it
            return ValueSource.ASSUMED
        return self._set[name].source if name in self._set else self._default

    @cached_property
    def policy(self) -> frozenset[str]:
        return frozenset(self.text("cleanup.policy").split(","))


def _created(**settings: str) -> Configs:
    return Configs(tuple(Setting(name.replace("_", "."), value, ValueSource.TOPIC) for name, value in settings.items()))


_BUILT_IN = {
    "__consumer_offsets": _created(cleanup_policy="compact", segment_bytes=str(100 << 20)),
    "__transaction_state": _created(cleanup_policy="compact", segment_bytes=str(100 << 20), min_insync_replicas="2"),
    "__share_group_state": _created(cleanup_policy="delete", retention_ms="-1", segment_bytes=str(100 << 20)),
    "__remote_log_metadata": _created(cleanup_policy="delete", retention_ms="-1"),
}
"""The settings with which brokers create their own topics, used if later changes are not known: then each value is assumed.

From `transactionTopicConfigs`, `groupMetadataTopicConfigs`, `shareGroupStateTopicConfigs`, `createRemoteLogMetadataTopicRequest`.
"""


def _retention(values: _Values, name: str, local: bool) -> int:
    """Return a retention limit. The value `_WHOLE` of a local limit means the whole one (`LogConfig.localRetentionMs`)."""
    own = values.number(f"local.{name}") if local else _WHOLE
    return values.limit(name) if own == _WHOLE else own


def _limit_source(values: _Values, deletes: bool, local: bool) -> ValueSource:
    if not deletes:
        return values.source("cleanup.policy")
    timed = _source(values, "retention.ms", local)
    if timed is ValueSource.ASSUMED:  # by default a size deletes nothing, but a time does
        return timed
    limiting = [
        _source(values, name, local) for name in ("retention.ms", "retention.bytes") if _retention(values, name, local) != UNLIMITED
    ]
    return min(limiting, key=STRENGTH.__getitem__, default=timed)


def _source(values: _Values, name: str, local: bool) -> ValueSource:
    """The level that a limit of `_retention` comes from."""
    whole = values.source(name)
    if not local:
        return whole
    own = values.source(f"local.{name}")  # assumed: a level that is not known may set one
    return whole if values.number(f"local.{name}") == _WHOLE and own is not ValueSource.ASSUMED else own


@lru_cache(maxsize=1 << 16)
def limits_of(topic: str, text: str) -> Limits:
    """The limits of a topic, from the text that an agent sent. Raises FormatError as `read_configs` does."""
    return effective_limits(topic, read_configs(text))


def producer_expiration(limits: Limits, metadata_version: int) -> int:
    """After how many milliseconds of silence a broker forgets a producer. Up to Kafka 3.3 it is the time for a transactional id (KIP-854).

    A release that is not known counts as a later one.
    """
    return limits.transactional_id_expiration_ms if 0 <= metadata_version < KAFKA_3_4 else limits.producer_expiration_ms


def effective_min_isr(min_insync_replicas: Longs, replicas: Longs, metadata_version: Longs) -> Longs:
    """How many replicas of each partition have to be in sync before a producer with acks=all may write.

    How many replicas have to be in sync, and how a leader behaves while fewer are (`Partition.effectiveMinIsr`,
    `Partition.isUnderMinIsr`). Since Kafka 3.7, a partition with fewer replicas than ``min.insync.replicas`` uses their number
    instead. Also, a leader advances its high watermark only while enough replicas are in sync, whatever producers request. Before
    3.7, neither was the case. A leader's release is known by the highest metadata.version that its registration supports, because the
    finalized level of the cluster lags behind the binaries.

    Args:
        min_insync_replicas: the configured value.
        replicas: how many there are, including those that are being added.
        metadata_version: the highest that the leader supports, -1 if it names none or that is not known.
    """
    effective: Longs = np.where(metadata_version < KAFKA_3_7, min_insync_replicas, np.minimum(min_insync_replicas, replicas))
    return effective


def may_stand(limits: Limits, isr: int, replicas: int, metadata_version: int) -> bool:
    """Whether the leader may be unable to advance its high watermark, although all in-sync replicas hold more.

    True also if the leader's release or ``min.insync.replicas`` is not known, so that a high watermark is never reported higher than it is.
    """
    if isr >= replicas or 0 <= metadata_version < KAFKA_3_7:
        return False
    return not limits.min_insync_known or isr < limits.min_insync_replicas
