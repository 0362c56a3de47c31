"""Give every event row the key of the fold."""

import zlib

import numpy as np
import pyarrow as pa

from streaming.rows import SHARD, SHARDED_EVENTS, Kind


def shard_of(topic: str, partition: int, shards: int) -> int:
    """The shard in which all replicas of a partition meet. Never changes: it is part of the checkpoint."""
    return zlib.crc32(f"{topic}-{partition}".encode()) % shards


def with_shards(events: pa.Table, shards: int) -> pa.Table:
    """Events with their shard (`streaming.rows.SHARDED_EVENTS`); the closing row of a full picture goes to every shard."""
    known: dict[tuple[str, int], int] = {}
    keys = []
    for name in zip(events["topic"].to_pylist(), events["partition"].to_pylist(), strict=True):
        if name not in known:
            known[name] = shard_of(*name, shards)
        keys.append(known[name])
    closing = np.flatnonzero(np.array(events["kind"].to_pylist(), dtype=object) == str(Kind.BEAT_END))
    rows = events.append_column(SHARD, pa.array(keys, pa.int32()))
    if not len(closing):
        return rows.cast(SHARDED_EVENTS)
    others = rows.filter(pa.compute.not_equal(rows["kind"], str(Kind.BEAT_END)))
    copies = events.take(np.repeat(closing, shards))
    copies = copies.append_column(SHARD, pa.array(list(range(shards)) * len(closing), pa.int32()))
    return pa.concat_tables([others, copies]).cast(SHARDED_EVENTS)
