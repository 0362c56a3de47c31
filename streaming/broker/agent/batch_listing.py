"""Lists segments, and scans the record batches of one segment on request, for people who explore."""

import logging
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from streaming.broker.disk.locate import walk_on, window
from streaming.broker.disk.logdirs import LogDir, Partition, list_partitions
from streaming.broker.disk.segment_files import OpenSegment, Segment, list_segments
from streaming.broker.protocol.segment_list import Log
from streaming.common.rows import BATCHES, CODECS
from streaming.errors import AgentError
from streaming.kafka.formats.layout import CURRENT_MAGIC, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from streaming.kafka.formats.names import DirState
from streaming.kafka.scan.headers import Batches

log = logging.getLogger(__name__)


def list_logs(log_dirs: Sequence[LogDir]) -> list[Log]:
    """List every segment of every live log that is on disk now.

    Raises:
        AgentError: a log dir cannot be read.
    """
    found: list[Log] = []
    for log_dir in log_dirs:
        try:
            partitions = list_partitions(log_dir)
        except OSError as error:
            raise AgentError(f"log dir {log_dir.path} cannot be read: {error}") from error
        for partition in partitions:
            if partition.state is DirState.LIVE:
                found.extend(_segments(partition))
    return found


def _segments(partition: Partition) -> list[Log]:
    try:
        segments = list_segments(partition.path)
    except OSError as error:  # usually it was deleted after it was listed
        log.info("log is excluded", extra={"path": str(partition.path), "error": str(error)})
        return []
    where = partition.log_dir
    return [Log(where.broker, str(where.path), partition.topic, partition.partition, each.base_offset, each.size) for each in segments]


def scan_segment(log_dirs: Sequence[LogDir], wanted: Log) -> Iterator[pa.RecordBatch]:
    """Read the batches of one segment (`streaming.common.rows.BATCHES`), up to the last one that is complete and sound.

    Raises:
        AgentError: there is no such segment, or it no longer exists.
    """
    try:
        partition, segment, file = _open(log_dirs, wanted)
    except OSError as error:
        raise AgentError(f"{_name(wanted)} cannot be read: {error}") from error
    return _scan(partition, segment, file)


def _scan(partition: Partition, segment: Segment, file: OpenSegment) -> Iterator[pa.RecordBatch]:
    try:
        for position, scanned in walk_on(file, 0, segment.base_offset, window()):
            yield _columns(partition, segment, position, scanned.batches)
    finally:
        file.close()


def _open(log_dirs: Sequence[LogDir], wanted: Log) -> tuple[Partition, Segment, OpenSegment]:
    for log_dir in log_dirs:
        if str(log_dir.path) == wanted.log_dir:
            for partition in list_partitions(log_dir):
                if (partition.topic, partition.partition, partition.state) == (wanted.topic, wanted.partition, DirState.LIVE):
                    for segment in list_segments(partition.path):
                        if segment.base_offset == wanted.segment:
                            return partition, segment, OpenSegment(segment.path, segment.base_offset)
    raise AgentError(f"{_name(wanted)} is not there any more")


def _name(wanted: Log) -> str:
    return f"segment {wanted.segment} of {wanted.topic}-{wanted.partition} in {wanted.log_dir}"


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
