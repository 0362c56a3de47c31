"""Gives every event row to the shard that folds it, and packs all rows of a shard into one value."""

import zlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.broker.protocol.event_tables import events_table
from streaming.common.arrays import Longs
from streaming.common.event_row import Event
from streaming.common.rows import PACKED, Kind, pack_rows


def shard_of(topic: str, partition: int, shards: int) -> int:
    """The shard that holds all replicas of a partition. It never changes, because it is part of the checkpoint."""
    return zlib.crc32(_spelled(partition), _begun(topic)) % shards


def _begun(topic: str) -> int:
    """The checksum of a partition's name, up to its number."""
    return zlib.crc32(f"{topic}-".encode())


def _spelled(partition: int) -> bytes:
    return str(partition).encode()


def by_shard(events: pa.Table, shards: int) -> pa.Table:
    """Events as rows of `streaming.common.rows.PACKED`, one for each shard that has any; the closing row of a census goes to every shard.

    An ``ARRIVED`` row goes to the same shard as another row, so that no shard is folded for it alone.
    """
    rows = events.combine_chunks()
    closing, arrived = (pc.equal(rows["kind"], str(kind)).to_numpy() for kind in (Kind.CENSUS_END, Kind.ARRIVED))
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


def _shards_of(rows: pa.Table, shards: int) -> Longs:
    """`shard_of` each row. A topic has many partitions and a number comes in many topics: each is spelled once."""
    topics, partitions = rows["topic"].combine_chunks().dictionary_encode(), rows["partition"].to_pylist()
    begun = [_begun(topic) for topic in topics.dictionary.to_pylist()]
    spelled = {partition: _spelled(partition) for partition in set(partitions)}
    sums = [zlib.crc32(spelled[partition], begun[topic]) for topic, partition in zip(topics.indices.to_pylist(), partitions, strict=True)]
    return np.array(sums, np.int64) % shards


def _packed(rows: pa.Table) -> bytes:
    (batch,) = rows.combine_chunks().to_batches()
    return pack_rows(batch)
