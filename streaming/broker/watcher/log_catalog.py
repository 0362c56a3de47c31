"""Makes the catalog of the logs that an agent watches, from metadata logs, configurations and checkpoints."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from streaming.broker.watcher.cluster_knowledge import LEADER_UNKNOWN, Cluster
from streaming.broker.watcher.offset_checkpoints import Checkpoints
from streaming.broker.watcher.recovery_points import RecoveryPositions
from streaming.broker.watcher.tail import Tail
from streaming.common.catalog.catalog_tables import LOGS, NOTHING_DECIDED, PARTITIONS, TOPICS, UNREADABLE
from streaming.common.catalog.editions import Editions
from streaming.common.log_key import LogKey
from streaming.kafka.formats.metadata_partitions import PartitionState


def topics_of(logs: Iterable[LogKey], cluster: Cluster) -> pa.Table:
    """The configuration of each topic on each broker."""
    first = {(log.broker, log.topic, log.topic_id): log for log in logs}
    return _table([(*key, cluster.configs(log)) for key, log in first.items()], TOPICS)


def partitions_of(logs: Iterable[LogKey], cluster: Cluster) -> pa.Table:
    """The leader and the replicas of each partition."""
    first = {(log.topic, log.topic_id, log.partition): log for log in logs}
    return _table([(*key, *_assigned(cluster.partition(log), cluster)) for key, log in first.items()], PARTITIONS)


def logs_of(tails: Iterable[Tail], checkpoints: Checkpoints, recovery: RecoveryPositions) -> pa.Table:
    """The offsets of each log in the checkpoints of its log dir. A log that is in two log dirs for a moment has one row."""
    recovery.begin()
    rows = {}
    for tail in tails:
        log, where = tail.cursor.log, tail.partition
        offsets = [checkpoints.high_watermark(where), checkpoints.cleaned(where), checkpoints.log_start(where)]
        point, position = recovery.of(tail)
        offsets.append(point)
        if tail.away:  # its log dir may never have been read: then it is not known whether there is an entry
            offsets = [UNREADABLE if offset < 0 else offset for offset in offsets]
        rows[log] = (log.broker, log.topic, log.topic_id, log.partition, *offsets, position)
    return _table(list(rows.values()), LOGS)


def _assigned(state: PartitionState | None, cluster: Cluster) -> tuple[object, ...]:
    if state is None:
        return (*LEADER_UNKNOWN, None, None, None, -1, None)
    version = cluster.metadata_version(state.leader) if state.leader >= 0 else -1
    eligible = () if state.isr else state.eligible_leader_replicas
    return state.leader, state.leader_epoch, state.assigned_replicas, state.adding_replicas, state.isr, version, eligible


def _table(rows: list[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.Table.from_arrays([pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)], schema=schema)


class LogCatalog:
    """Keeps the catalog of a watcher's logs, and rebuilds only the parts that may have changed. Only the watcher's thread calls `look`."""

    def __init__(self, cluster: Cluster, checkpoints: Checkpoints) -> None:
        self.editions = Editions()
        self._cluster = cluster
        self._checkpoints = checkpoints
        self.recovery = RecoveryPositions(checkpoints)
        """The recovery points of the logs, as they were found last."""
        self._catalog = NOTHING_DECIDED
        self._logs: list[tuple[LogKey, bool]] | None = None  # the logs, and whether each is away
        self._version = -1  # of the metadata logs and configurations

    def look(self, tails: Sequence[Tail], *, replaced: bool) -> None:
        """Update the catalog to the present state of these logs; ``replaced``: some checkpoint file was replaced."""
        logs, version = [(tail.cursor.log, tail.away) for tail in tails], self._cluster.version()
        others = logs != self._logs
        catalog = self._catalog
        if others or version != self._version:
            ids = [log for log, _ in logs]
            catalog = replace(catalog, topics=topics_of(ids, self._cluster), partitions=partitions_of(ids, self._cluster))
        if others or replaced:
            catalog = replace(catalog, logs=logs_of(tails, self._checkpoints, self.recovery))
        if catalog is not self._catalog:
            self._catalog, self._logs, self._version = catalog, logs, version
            self.editions.update(catalog)
