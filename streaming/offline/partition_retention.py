"""The state of retention for every partition in log dirs, taken from the view, under the names of the metrics."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from streaming.agent.cluster_view import ClusterView
from streaming.disk.availability import LogDirs
from streaming.disk.logdirs import Partition
from streaming.formatting import format_word
from streaming.log_key import LogKey
from streaming.metrics.limiter import LimitsOf
from streaming.metrics.table import Snapshot
from streaming.metrics.view import View
from streaming.offline.doubts import refused, unread
from streaming.offline.offline_agent import OfflineAgent
from streaming.offline.single_reading import SingleReading
from streaming.rules.cleaning import UNCLEANABLE
from streaming.rules.limits import Limits
from streaming.rules.retention_rule import BLOCKED
from streaming.settings import Settings
from streaming.watcher.scope import Scope
from streaming.watcher.tail import Tail


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One partition. Fields have the names and units of the metrics, without ``segtail_partition_``; None where a metric has no value."""

    broker: int
    topic: str
    partition: int
    topic_id: str
    log_dir: str
    leader: int
    leader_epoch: int | None
    replicas: int | None
    in_sync_replicas: int | None
    min_in_sync_replicas: int | None
    log_start_offset: int
    local_log_start_offset: int | None
    log_end_offset: int
    high_watermark: int | None
    size_bytes: int
    segments: int
    active_segment_size_bytes: int
    active_segment_first_timestamp_seconds: float | None
    segment_limit_seconds: float
    segment_limit_bytes: int
    cleanup_policy: str
    limit_source: str
    oldest_record_timestamp_seconds: float | None
    retention_limit_seconds: float | None
    retention_limit_bytes: int | None
    retention_lag_seconds: float | None
    retention_overdue_seconds: float | None
    retention_check_interval_seconds: float
    retention_reclaimable_bytes: int | None
    next_deletion_timestamp_seconds: float | None
    retention_blocked: str | None
    max_timestamp_ahead_seconds: float | None
    last_stable_offset: int | None
    dirty_bytes: int | None
    dirty_ratio: float | None
    uncleanable_bytes: Mapping[str, int] | None
    cleaner_checkpoint_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``rows``: one for each replica that is exported for its partition. ``doubts``: what could not be read or understood, in sentences."""

    rows: tuple[Row, ...]
    doubts: tuple[str, ...]


def keep(log_dirs: LogDirs, topic: str | None, settings: Settings, now_ms: int, progress: Callable[[int], None] = lambda _: None) -> Answer:
    """Read all logs, or those of one topic, and judge them as of ``now_ms``, Unix milliseconds.

    Args:
        progress: called with the number of bytes that were read, again and again.

    Raises:
        UsageError: a ``server.properties`` cannot be read, or a given configuration is not valid.
    """

    listed: set[Path] = set()

    def asked(name: str, _: int = 0) -> bool:
        return topic in (None, name)

    def wants(partition: Partition) -> bool:
        if asked(partition.topic):
            listed.add(partition.path)
            return True
        return False

    def scope(cluster: ClusterView, limits_of: LimitsOf) -> Scope:
        def compacts(log: LogKey) -> bool:  # open transactions hold back the cleaner, but no deletion
            return limits_of(log.broker, log.topic, cluster.configs(log)).compacts

        return Scope(wants=wants, opens=compacts, once=True)

    with SingleReading(log_dirs, settings, scope, now_ms, progress=progress) as reading:
        seen, snapshot = reading.see()
        rows = tuple(_rows(seen, snapshot))
        there = {(row.topic, row.partition, row.broker) for row in rows}
        exported = [each for each in reading.agent.watcher.tails() if _name(each) in there]
        doubts = (
            *unread(reading.agent, asked, exported, listed),
            *refused(reading.agent, asked),
            *_without_metadata(reading.agent),
            *_without_segments(seen, snapshot),
        )
        return Answer(rows=rows, doubts=doubts)


def _name(tail: Tail) -> tuple[str, int, int]:
    log = tail.cursor.log
    return log.topic, log.partition, log.broker


def _without_metadata(agent: OfflineAgent) -> Iterator[str]:
    for each in agent.host_status.brokers:
        if each.expected and not each.readable:
            yield (
                f"the metadata log of broker {each.broker} cannot be read here, so its leaders and the limits of its topics are not known: "
                "run as the broker's user, or name the log dir that has __cluster_metadata-0 too"
            )


def _without_segments(seen: View, snapshot: Snapshot) -> Iterator[str]:
    for item, limits in enumerate(seen.logs.limits):
        if limits is None:
            topic, partition, broker = (int(seen.logs[name][item]) for name in ("topic", "partition", "broker"))
            yield f"{format_word(snapshot.topic_names[topic])}-{partition} of broker {broker}: its segments cannot be listed"


def _rows(seen: View, snapshot: Snapshot) -> Iterator[Row]:
    logs, observed = seen.logs, seen.observed
    for item, limits in enumerate(logs.limits):
        if limits is not None:
            log = {name: int(logs[name][item]) for name in (*_COPIED, *logs.derived)}
            yield _row(
                log,
                limits,
                topic=snapshot.topic_names[log["topic"]],
                topic_id=logs.topic_ids[item],
                log_dir=observed.log_dirs[log["log_dir"]][1],
            )


_COPIED = ("broker", "topic", "partition", "log_dir", "leader", "leader_epoch", "log_start_offset", "log_end_offset")


def _row(log: Mapping[str, int], limits: Limits, *, topic: str, topic_id: str, log_dir: str) -> Row:
    blocked, compacts = log["blocked"], limits.compacts
    uncleanable = {reason: log[f"uncleanable_{reason}"] for reason in UNCLEANABLE}
    return Row(
        broker=log["broker"],
        topic=topic,
        partition=log["partition"],
        topic_id=topic_id,
        log_dir=log_dir,
        leader=max(0, log["leader"]),
        leader_epoch=_value(log["leader_epoch"]),
        replicas=_value(log["replicas"]),
        in_sync_replicas=_value(log["in_sync_replicas"]),
        min_in_sync_replicas=_value(log["min_in_sync_replicas"]),
        log_start_offset=log["log_start_offset"],
        local_log_start_offset=_value(log["local_log_start_offset"]),
        log_end_offset=log["log_end_offset"],
        high_watermark=_value(log["high_watermark"]),
        size_bytes=log["size_bytes"],
        segments=log["segments"],
        active_segment_size_bytes=log["active_segment_size_bytes"],
        active_segment_first_timestamp_seconds=_seconds(log["active_segment_first_timestamp_ms"]),
        segment_limit_seconds=log["segment_limit_ms"] / 1000,
        segment_limit_bytes=log["segment_limit_bytes"],
        cleanup_policy=limits.cleanup_policy,
        limit_source=str(limits.source),
        oldest_record_timestamp_seconds=_seconds(log["oldest_record_ms"]),
        retention_limit_seconds=_seconds(log["retention_limit_ms"]),
        retention_limit_bytes=_value(log["retention_limit_bytes"]),
        retention_lag_seconds=_seconds(log["retention_lag_ms"]),
        retention_overdue_seconds=_seconds(log["retention_overdue_ms"]),
        retention_check_interval_seconds=log["check_interval_ms"] / 1000,
        retention_reclaimable_bytes=_value(log["retention_reclaimable_bytes"]),
        next_deletion_timestamp_seconds=_seconds(log["next_deletion_ms"]),
        retention_blocked=BLOCKED[blocked] if blocked >= 0 else None,
        max_timestamp_ahead_seconds=_seconds(log["max_timestamp_ahead_ms"]),
        last_stable_offset=_value(log["last_stable_offset"]) if compacts else None,
        dirty_bytes=_value(log["dirty_bytes"]),
        dirty_ratio=None if log["dirty_millionths"] < 0 else log["dirty_millionths"] / 1e6,
        uncleanable_bytes=uncleanable if compacts and log["dirty_bytes"] >= 0 else None,
        cleaner_checkpoint_offset=_value(log["cleaner_checkpoint_offset"]),
    )


def _value(number: int) -> int | None:
    return None if number < 0 else number


def _seconds(milliseconds: int) -> float | None:
    return None if milliseconds < 0 else milliseconds / 1000
