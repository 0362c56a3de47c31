"""Makes the catalog of the logs that an agent watches, from metadata logs, configurations and checkpoints."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from streaming.broker.watcher.cluster_knowledge import LEADER_UNKNOWN, Cluster
from streaming.broker.watcher.cursors import unpack
from streaming.broker.watcher.offset_checkpoints import Checkpoints
from streaming.broker.watcher.recovery_points import RecoveryPositions
from streaming.broker.watcher.tail import Tail
from streaming.common.arrays import Longs
from streaming.common.catalog.catalog_tables import LOGS, NOTHING_DECIDED, PARTITIONS, TOPICS, UNREADABLE, packed_epochs
from streaming.common.catalog.editions import Editions
from streaming.common.log_key import LogKey
from streaming.kafka.formats.former_leaders import Begun
from streaming.kafka.formats.metadata_partitions import PartitionState


def topics_of(logs: Iterable[LogKey], cluster: Cluster) -> pa.Table:
    """The configuration of each topic on each broker."""
    first = {(log.broker, log.topic, log.topic_id): log for log in logs}
    return _table([(*key, cluster.configs(log)) for key, log in first.items()], TOPICS)


def partitions_of(logs: Iterable[LogKey], cluster: Cluster) -> pa.Table:
    """The leader and the replicas of each partition."""
    first = {(log.topic, log.topic_id, log.partition): log for log in logs}
    return _table([(*key, *_assigned(cluster.partition(log), cluster)) for key, log in first.items()], PARTITIONS)


class LogRows:
    """The table `LOGS` of some logs: their offsets in the checkpoints of their log dirs, and their leader epochs. Only the watcher's thread
    uses it.

    Args:
        moving: as `streaming.broker.watcher.registry.LogRegistry.moving`.
    """

    def __init__(
        self,
        tails: Sequence[Tail],
        cluster: Cluster,
        checkpoints: Checkpoints,
        recovery: RecoveryPositions,
        moving: Collection[tuple[int, str, int]] = (),
    ) -> None:
        self._tails = tails
        self._cluster = cluster
        self._checkpoints = checkpoints
        self._recovery = recovery
        logs = [tail.cursor.log for tail in tails]
        keys = [[log.broker for log in logs], [log.topic for log in logs], [log.topic_id for log in logs], [log.partition for log in logs]]
        self._keys = [pa.array(column, each.type) for column, each in zip(keys, LOGS, strict=False)]
        self._offsets: Longs = np.empty((len(LOGS) - len(keys) - 2, len(tails)), np.int64)
        self._moving = pa.array(
            [int((log.broker, log.topic, log.partition) in moving) for log in logs] if moving else np.zeros(len(logs), int)
        )
        self._epochs = [b""] * len(tails)
        self._made_of: list[tuple[bytes, Begun]] = [(b"", ())] * len(tails)
        self.read_again(range(len(tails)))
        self.date_epochs()

    def read_again(self, changed: Iterable[int]) -> None:
        """Take over the offsets of some logs, by their indexes, and of those whose position is to be looked up again."""
        self._recovery.begin(self._tails)
        unsettled = self._recovery.unsettled
        again = [number for number, tail in enumerate(self._tails) if tail in unsettled] if unsettled else []
        numbers = sorted({*changed, *again})
        if numbers:
            self._offsets[:, numbers] = self._read([self._tails[number] for number in numbers])
        self._read_epochs(numbers)

    def date_epochs(self) -> None:
        """Take over when leader epochs began: the metadata may show that by now."""
        self._read_epochs(range(len(self._tails)))

    def _read_epochs(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            tail = self._tails[number]
            begun, (stored, dated) = self._cluster.epochs_begun(tail.cursor.log), self._made_of[number]
            if begun is not dated or tail.epochs != stored:  # most have no other ones than before
                self._made_of[number] = tail.epochs, begun
                starts = {each.epoch: each.start_offset for each in unpack(tail.epochs)}
                self._epochs[number] = packed_epochs(starts, dict(begun))

    def _read(self, tails: Sequence[Tail]) -> Longs:
        checkpoints, places = self._checkpoints, [tail.partition for tail in tails]
        points, positions = zip(*self._recovery.of(tails), strict=True)
        rows = [checkpoints.high_watermarks(places), checkpoints.cleaned(places), checkpoints.log_starts(places), points, positions]
        found = np.array(rows, np.int64)
        # a log dir that is away may never have been read: then it is not known whether there is an entry
        away = np.array([tail.away for tail in tails], bool)
        found[:-1][(found[:-1] < 0) & away] = UNREADABLE
        return found

    def table(self) -> pa.Table:
        """The rows as they are now."""
        columns = [*map(pa.array, self._offsets.copy()), self._moving, pa.array(self._epochs, pa.binary())]
        return pa.Table.from_arrays([*self._keys, *columns], schema=LOGS)


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
        self._tails: Sequence[Tail] | None = None
        self._rows: LogRows | None = None  # of these logs
        self._version = -1  # of the metadata logs and configurations
        self._moving: Collection[tuple[int, str, int]] = ()

    def look(self, tails: Sequence[Tail], changed: Collection[int] | None, moving: Collection[tuple[int, str, int]] = ()) -> None:
        """Update the catalog to the present state of these logs.

        Args:
            tails: as `streaming.broker.watcher.watched_logs.WatchedLogs.all` returns them.
            changed: the indexes of those with other offsets in a checkpoint, None if nobody has looked.
            moving: as `streaming.broker.watcher.registry.LogRegistry.moving`.
        """
        others, version = tails is not self._tails, self._cluster.version()
        catalog, dated = self._catalog, version != self._version and self._rows is not None
        if others or version != self._version:
            ids = [tail.cursor.log for tail in tails]
            catalog = replace(catalog, topics=topics_of(ids, self._cluster), partitions=partitions_of(ids, self._cluster))
        if others or self._rows is None or moving is not self._moving:
            self._rows, self._moving = LogRows(tails, self._cluster, self._checkpoints, self.recovery, moving), moving
            catalog = replace(catalog, logs=self._rows.table())
        elif dated or changed or (changed is not None and self.recovery.unsettled):
            if dated:
                self._rows.date_epochs()
            self._rows.read_again(changed or ())
            catalog = replace(catalog, logs=self._rows.table())
        if catalog is not self._catalog:
            self._catalog, self._tails, self._version = catalog, tails, version
            self.editions.update(catalog)
