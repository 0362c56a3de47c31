"""Batches one by one, for people who explore: which segments there are, and the record batches of one of them, scanned when asked for."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from streaming.agent.messages import Log
from streaming.disk.logdirs import LogDir, Partition, list_partitions
from streaming.disk.segments import OpenSegment, Segment, list_segments
from streaming.errors import AgentError
from streaming.kafka.headers import Batches
from streaming.kafka.layout import CURRENT_MAGIC, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from streaming.kafka.names import DirState
from streaming.rows import BATCHES, CODECS
from streaming.watcher.locate import walk_on, window


def list_logs(log_dirs: Sequence[LogDir]) -> list[Log]:
    """Every segment of every live log that lies on disk now."""
    return [
        Log(partition.log_dir.broker, str(partition.log_dir.path), partition.topic, partition.partition, segment.base_offset, segment.size)
        for log_dir in log_dirs
        for partition in list_partitions(log_dir)
        if partition.state is DirState.LIVE
        for segment in list_segments(partition.path)
    ]


def scan_segment(log_dirs: Sequence[LogDir], log: Log) -> Iterator[pa.RecordBatch]:
    """The batches of one segment (`streaming.rows.BATCHES`), up to the last one that is whole and sound.

    Raises:
        AgentError: there is no such segment (any more).
    """
    partition, segment = _find(log_dirs, log)
    file = OpenSegment(segment.path, segment.base_offset)
    try:
        for position, scanned in walk_on(file, 0, segment.base_offset, window()):
            yield _columns(partition, segment, position, scanned.batches)
    finally:
        file.close()


def _find(log_dirs: Sequence[LogDir], log: Log) -> tuple[Partition, Segment]:
    for log_dir in log_dirs:
        if str(log_dir.path) == log.log_dir:
            for partition in list_partitions(log_dir):
                if (partition.topic, partition.partition, partition.state) == (log.topic, log.partition, DirState.LIVE):
                    for segment in list_segments(partition.path):
                        if segment.base_offset == log.segment:
                            return partition, segment
    raise AgentError(f"segment {log.segment} of {log.topic}-{log.partition} in {log.log_dir} is not there any more")


def _columns(partition: Partition, segment: Segment, position: int, batches: Batches) -> pa.RecordBatch:
    count, current = len(batches), batches.magic == CURRENT_MAGIC
    names = np.array(CODECS)

    def producer(field: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        values: np.ndarray[tuple[int], np.dtype[np.int64]] = np.where(current, batches.headers[field].astype(np.int64), -1)
        return values

    columns = {
        "broker": np.full(count, partition.log_dir.broker),
        "log_dir": [str(partition.log_dir.path)] * count,
        "topic": [partition.topic] * count,
        "partition": np.full(count, partition.partition),
        "topic_id": [partition.topic_id] * count,
        "segment": np.full(count, segment.base_offset),
        "position": batches.positions + position,
        "size": batches.size,
        "base_offset": batches.base_offset,
        "last_offset": batches.last_offset,
        "records": batches.records,
        "leader_epoch": batches.leader_epoch,
        "magic": batches.magic,
        "codec": names[batches.codec].tolist(),
        "transactional": current & ((batches.attributes & TRANSACTIONAL_BIT) != 0),
        "control": batches.control,
        "log_append_time": (batches.attributes & TIMESTAMP_TYPE_BIT) != 0,
        "max_timestamp": pa.array(batches.max_timestamp * 1000, pa.int64(), mask=batches.max_timestamp < 0).cast(pa.timestamp("us", "UTC")),
        "producer_id": producer("producer_id"),
        "producer_epoch": producer("producer_epoch"),
        "base_sequence": producer("base_sequence"),
    }
    arrays = [
        values if isinstance(values, pa.Array) else pa.array(values).cast(BATCHES.field(name).type) for name, values in columns.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=BATCHES)
