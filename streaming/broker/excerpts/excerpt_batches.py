"""The record batches of an excerpt as rows, one for each, made when they are read."""

from collections.abc import Generator, Sequence

import numpy as np
import pyarrow as pa

from streaming.broker.disk.locate import window
from streaming.broker.disk.logdirs import LogDir
from streaming.broker.excerpts.excerpt_files import OpenExcerpt, name_of, opened
from streaming.broker.excerpts.excerpt_walk import Unread, WalkedPart, parts_of
from streaming.broker.protocol.excerpt_messages import Excerpt
from streaming.common.arrays import Longs
from streaming.common.rows import BATCHES, CODECS
from streaming.errors import AgentError
from streaming.kafka.formats.layout import CURRENT_MAGIC, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT

_CODECS = pa.array(CODECS)
_MOST_MS = ((1 << 63) - 1) // 1000


def batches_of(log_dirs: Sequence[LogDir], excerpt: Excerpt) -> Generator[pa.RecordBatch, None, Unread | None]:
    """The rows of an excerpt (`streaming.common.rows.BATCHES`); returns what of it cannot be read, None if that is nothing.

    Raises:
        GoneError: its segment is not there any more.
        AgentError: the excerpt is not valid, or its segment cannot be read now.
    """
    with opened(log_dirs, excerpt) as segment:
        parts = parts_of(segment, window())
        while True:
            try:
                part = next(parts)
            except StopIteration as end:
                unread: Unread | None = end.value
                return unread
            except OSError as error:
                raise AgentError(f"{name_of(excerpt)} cannot be read: {error}") from error
            yield _rows(segment, part)


def _rows(segment: OpenExcerpt, part: WalkedPart) -> pa.RecordBatch:
    batches, partition = part.batches, segment.partition
    count, current = len(batches), batches.magic == CURRENT_MAGIC

    def producer(field: str) -> Longs:
        values: Longs = np.where(current, batches.headers[field].astype(np.int64), -1)
        return values

    columns = {
        "broker": pa.repeat(partition.log_dir.broker, count),
        "log_dir": pa.repeat(str(partition.log_dir.path), count),
        "topic": pa.repeat(partition.topic, count),
        "partition": pa.repeat(partition.partition, count),
        "topic_id": pa.repeat(partition.topic_id, count),
        "segment": pa.repeat(segment.excerpt.segment, count),
        "position": batches.positions + part.position,
        "size": batches.size,
        "base_offset": batches.base_offset,
        "last_offset": batches.last_offset,
        "records": batches.records,
        "leader_epoch": batches.leader_epoch,
        "magic": batches.magic,
        "codec": _CODECS.take(pa.array(batches.codec)),
        "transactional": current & ((batches.attributes & TRANSACTIONAL_BIT) != 0),
        "control": batches.control,
        "log_append_time": (batches.attributes & TIMESTAMP_TYPE_BIT) != 0,
        "max_timestamp": _times(batches.max_timestamp),
        "producer_id": producer("producer_id"),
        "producer_epoch": producer("producer_epoch"),
        "base_sequence": producer("base_sequence"),
    }
    arrays = [pa.array(values).cast(BATCHES.field(name).type) for name, values in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, schema=BATCHES)


def _times(milliseconds: Longs) -> pa.Array:
    """None where there is none, or a client has written one that no timestamp can hold."""
    held = (milliseconds >= 0) & (milliseconds <= _MOST_MS)
    return pa.array(np.where(held, milliseconds, 0) * 1000, pa.int64(), mask=~held)
