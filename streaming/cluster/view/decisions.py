"""A catalog as columns, and the rows in it that belong to logs of the table: found by key, for all logs at once."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.common.catalog.catalog_tables import LATER, SCHEMAS, Catalog, key_of, spelled, together
from streaming.common.log_key import KEY

NOWHERE = -1
"""The index of something that a catalog does not contain."""


class Decisions:
    """What is decided, as far as one agent knows. Numbers and units as in `catalog_tables`; counts are -1 if not known.

    ``configs`` belong to topics, ``leader`` to ``eligible_replicas`` to partitions, the others to logs.
    """

    def __init__(self, catalog: Catalog) -> None:
        topics, partitions, logs = (table.combine_chunks() for table in catalog.tables)
        self._catalog = catalog
        self._keys = tuple(spelled(table, key_of(table.schema)) for table in (topics, partitions, logs))
        self.configs: list[str] = topics["configs"].to_pylist()
        self.leader, self.leader_epoch = _longs(partitions["leader"]), _longs(partitions["leader_epoch"])
        self.leader_metadata_version = _longs(partitions["leader_metadata_version"])
        self.replicas, self.adding_replicas = _lengths(partitions["replicas"]), _lengths(partitions["adding_replicas"])
        self.in_sync_replicas = _lengths(partitions["isr"])
        self.isr: pa.ListArray = together(partitions["isr"])
        self.eligible: pa.ListArray = together(partitions["eligible"])
        self.eligible_replicas = _lengths(partitions["eligible"])
        self.high_watermark, self.cleaner_checkpoint = _longs(logs["high_watermark"]), _longs(logs["cleaner_checkpoint"])
        self.recovery_point, self.recovery_position, self.moving = (
            _longs(pc.fill_null(logs[name], LATER[name])) for name in ("recovery_point", "recovery_position", "moving")
        )
        self.epochs: NDArray[np.object_] = together(pc.fill_null(logs["epochs"], LATER["epochs"])).to_numpy(zero_copy_only=False)

    def is_same(self, other: "Decisions") -> bool:
        """Whether both have the same table objects, which means that nothing was sent between them. Contents are not compared."""
        return all(mine is its for mine, its in zip(self._catalog.tables, other._catalog.tables, strict=True))

    def find(self, keys: "Keys") -> "FoundRows":
        """The rows that belong to some logs."""
        of = (keys.topics, keys.partitions, keys.logs)
        topics, partitions, logs = (_found(wanted, known) for wanted, known in zip(of, self._keys, strict=True))
        return FoundRows(topics=topics, partitions=partitions, logs=logs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Keys:
    """The keys of some logs in each of a catalog's tables, in the form used there."""

    topics: pa.Array
    partitions: pa.Array
    logs: pa.Array

    def take(self, items: Longs) -> "Keys":
        """The keys of some of the logs."""
        some = pa.array(items)
        return Keys(topics=self.topics.take(some), partitions=self.partitions.take(some), logs=self.logs.take(some))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoundRows:
    """The row numbers of some logs in each of a catalog's tables, `NOWHERE` if there is none."""

    topics: Longs
    partitions: Longs
    logs: Longs


def keys_of(brokers: Longs, topics: list[str], topic_ids: list[str], partitions: Longs) -> Keys:
    """The keys of some logs."""
    columns = [pa.array(brokers), pa.array(topics, pa.string()), pa.array(partitions), pa.array(topic_ids, pa.string())]
    rows = pa.Table.from_arrays(columns, names=KEY)
    of_topics, of_partitions, of_logs = (spelled(rows, key_of(schema)) for schema in SCHEMAS)
    return Keys(topics=of_topics, partitions=of_partitions, logs=of_logs)


def _found(wanted: pa.Array, values: pa.Array) -> Longs:
    found: Longs = pc.fill_null(pc.index_in(wanted, value_set=values), NOWHERE).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _longs(column: Any) -> Longs:
    values: Longs = together(column).to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def _lengths(column: Any) -> Longs:
    return _longs(pc.fill_null(pc.list_value_length(together(column)), -1))
