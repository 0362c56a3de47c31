"""Which transactional id each producer id was given to, by the logs of transaction coordinators in log dirs."""

import logging
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from streaming.broker.disk.locate import batches_between, window
from streaming.broker.disk.logdirs import LogDir, Partition
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.excerpts.excerpt_listing import partitions_with_start
from streaming.broker.protocol.consumer_messages import Selection
from streaming.broker.protocol.excerpt_messages import EVERYTHING, ReadUpto
from streaming.common.rows import PRODUCER_OWNERS
from streaming.errors import FormatError
from streaming.kafka.formats.names import TRANSACTION_TOPIC
from streaming.kafka.scan.coordinator_entries import producer_owners
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

_ATTEMPTS = 3
"""A cleaner may replace segments between their listing and their opening."""


def owners_in(log_dirs: Sequence[LogDir], known: Iterable[ReadUpto] = ()) -> Iterator[pa.RecordBatch]:
    """Rows of `PRODUCER_OWNERS`, log by log; the last one of a log is of its last record that names a producer.

    A log that cannot be read gives what is readable before the flaw, and is logged. So does one that has none.

    Args:
        known: logs of which everything before an offset is known.

    Raises:
        AgentError: a log dir cannot be read.
    """
    buffer = window()
    begins = {(each.broker, each.partition): each.offset for each in known}
    for partition, _ in partitions_with_start(log_dirs, Selection(topics=(TRANSACTION_TOPIC,)), _note):
        begin = begins.get((partition.log_dir.broker, partition.partition), 0)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                for rows in _owners_of(partition, begin, buffer):
                    begin = rows["offset"][-1].as_py() + 1
                    yield rows
                break
            except (FormatError, OSError) as error:
                if isinstance(error, FormatError) or attempt == _ATTEMPTS:
                    _note(partition, str(error))
                    break


def _note(partition: Partition, why: str) -> None:
    log.warning("%s cannot be read on, so some transactional ids are not known: %s", partition.path, why)


def _owners_of(partition: Partition, begin: int, buffer: Bytes) -> Iterator[pa.RecordBatch]:
    segments = list_segments(partition.path)
    if not segments:
        return
    for batches, _ in batches_between(segments, begin, EVERYTHING, buffer):
        if found := sorted(producer_owners(batches, buffer)):
            offsets, producer_ids, names = zip(*found, strict=True)
            broker, number = partition.log_dir.broker, partition.partition
            columns = ([broker] * len(found), [number] * len(found), offsets, producer_ids, names)
            yield pa.RecordBatch.from_arrays(
                [pa.array(column, each.type) for column, each in zip(columns, PRODUCER_OWNERS, strict=True)], schema=PRODUCER_OWNERS
            )
