"""Gives every event row to the shard that folds it, and packs all rows of a shard into one value."""

import zlib

import numpy as np
import pyarrow as pa

from streaming.broker.protocol.event_tables import events_table
from streaming.common.event_row import Event
from streaming.common.rows import PACKED, Kind, pack_rows


def shard_of(topic: str, partition: int, shards: int) -> int:
    """The shard that holds all replicas of a partition. It never changes, because it is part of the checkpoint."""
    return zlib.crc32(f"{topic}-{partition}".encode()) % shards


def by_shard(events: pa.Table, shards: int) -> pa.Table:
    """Events as rows of `streaming.common.rows.PACKED`, one for each shard that has any; the closing row of a census goes to every shard.

    An ``ARRIVED`` row goes to the same shard as another row, so that no shard is folded for it alone.
    """
    rows = events.combine_chunks()
    kinds = np.array(rows["kind"].to_pylist(), dtype=object)
    closing, arrived = kinds == str(Kind.CENSUS_END), kinds == str(Kind.ARRIVED)
    shard_of_row = _shards_of(rows, shards)
    shard_of_row[arrived] = shard_of_row[~arrived & ~closing][:1] if (~arrived & ~closing).any() else 0
    own, copied = np.flatnonzero(~closing), np.flatnonzero(closing)
    keys = np.concatenate([shard_of_row[own], np.tile(np.arange(shards), len(copied))])
    items = np.concatenate([own, np.repeat(copied, shards)])
    order = np.argsort(keys, kind="stable")
    keys, ordered = keys[order], rows.take(pa.array(items[order], pa.int64())).combine_chunks()
    found, begins, counts = np.unique(keys, return_index=True, return_counts=True)
    packed = [_packed(ordered.slice(begin, count)) for begin, count in zip(begins.tolist(), counts.tolist(), strict=True)]
    return pa.table([found.tolist(), packed], schema=PACKED)


def recall(shards: range) -> pa.Table:
    """The rows of `streaming.common.rows.PACKED` that make these shards hand out all that their state holds."""
    row = _packed(events_table("", "", [(0, [Event(kind=Kind.RECALL)])]))
    return pa.table([list(shards), [row] * len(shards)], schema=PACKED)


def _shards_of(rows: pa.Table, shards: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    known: dict[tuple[str, int], int] = {}
    keys = np.zeros(len(rows), np.int64)
    for item, name in enumerate(zip(rows["topic"].to_pylist(), rows["partition"].to_pylist(), strict=True)):
        if name not in known:
            known[name] = shard_of(*name, shards)
        keys[item] = known[name]
    return keys


def _packed(rows: pa.Table) -> bytes:
    (batch,) = rows.combine_chunks().to_batches()
    return pack_rows(batch)
