"""Log dirs for tests, written as a broker writes them.

A test says only what it is about::

    disk = log_dir(tmp_path)
    log = partition(disk, "orders", 0)
    log.append(batch(3), batch(2))
    log.roll()
"""

from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

from streaming.simulator.batch_writer import Batch, Codec, Record, end_transaction
from streaming.simulator.log import LogDir, PartitionLog
from streaming.simulator.segment_writer import LogConfig

CLUSTER_ID = "AAECAwQFBgcICQoLDA0ODw"
NOW = 1_700_000_000_000


def log_dir(path: Path, name: str = "d0", *, broker: int = 1, cluster_id: str = CLUSTER_ID) -> LogDir:
    """A formatted log dir without partitions at ``path / name``."""
    return LogDir(path / name, broker, cluster_id, UUID(int=broker << 64 | sum(name.encode())))


def partition(
    directory: LogDir,
    topic: str,
    number: int = 0,
    *,
    topic_id: UUID | int | None = 1,
    base_offset: int = 0,
    name: str | None = None,
    segment_bytes: int = 1 << 20,
    index_interval_bytes: int = 4096,
    preallocate: bool = False,
    retention_bytes: int = -1,
) -> PartitionLog:
    """A new empty partition. ``topic_id`` may be a small number, or None for a log without ``partition.metadata``."""
    config = LogConfig(
        segment_bytes=segment_bytes, index_interval_bytes=index_interval_bytes, preallocate=preallocate, retention_bytes=retention_bytes
    )
    identity = UUID(int=topic_id) if isinstance(topic_id, int) else topic_id
    return directory.create(topic, number, identity, config, base_offset=base_offset, name=name)


def delete(directory: LogDir, log: PartitionLog) -> PartitionLog:
    """Delete the partition: its directory is renamed and keeps its files until ``log.remove()``."""
    log.rename(f"{log.name}.{0:032x}-delete")
    directory.forget(log)
    return log


def batch(
    records: int = 1,
    *,
    value_bytes: int = 100,
    timestamp: int = NOW,
    codec: Codec = Codec.NONE,
    producer: int = -1,
    epoch: int = 0,
    sequence: int = 0,
    transactional: bool = False,
    keys: Iterable[bytes | None] = (),
) -> Batch:
    """A data batch of that many records, a millisecond apart; with a ``producer`` an idempotent one."""
    values = [bytes((65 + n % 26,)) * value_bytes for n in range(records)]
    named = [*keys, *[None] * records]
    return Batch(
        records=tuple(Record(named[n], values[n], timestamp + n) for n in range(records)),
        codec=codec,
        producer_id=producer,
        producer_epoch=epoch if producer >= 0 else -1,
        base_sequence=sequence if producer >= 0 else -1,
        transactional=transactional,
    )


def commit(producer: int, *, epoch: int = 1, timestamp: int = NOW) -> Batch:
    """The COMMIT marker of a producer whose data had the epoch before."""
    return end_transaction(committed=True, producer_id=producer, producer_epoch=epoch, coordinator_epoch=0, timestamp=timestamp)


def abort(producer: int, *, epoch: int = 1, timestamp: int = NOW) -> Batch:
    """The ABORT marker of a producer whose data had the epoch before."""
    return end_transaction(committed=False, producer_id=producer, producer_epoch=epoch, coordinator_epoch=0, timestamp=timestamp)
