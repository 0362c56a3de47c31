"""Partitions that grow as a bench wants them to, written as a live broker writes them.

Batches have one size and are never compressed. Each carries the offset and the leader epoch of its log, the time of its append, and the
id, epoch and next sequence number of an idempotent producer, which is what a client has been by default since 3.0; its CRC is right.

What a live broker does and this does not: it rolls no segments, deletes none, and writes no index entries behind the first batch. All
partitions have one replica, so the high watermark is the end of the log.
"""

import os
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import UUID

import google_crc32c

from streaming.kafka.formats import names
from streaming.simulator.batch_writer import Batch, BatchEntry, Record, encode
from streaming.simulator.broker import Controller
from streaming.simulator.log import LogDir
from streaming.simulator.segment_writer import LogConfig

RECORDS = 20
PARTITIONS_A_TOPIC = 100

HEARTBEAT_SECONDS = 0.5
"""How often an idle controller writes."""

HIGH_WATERMARK_SECONDS = 5.0
"""How often a broker writes its high watermarks (``replica.high.watermark.checkpoint.interval.ms``)."""

FLUSH_SECONDS = 60.0
"""How often it writes recovery points and log starts (``log.flush.offset.checkpoint.interval.ms``)."""

MOST_OPEN = 10_000
"""How many files are kept open for appends."""

_CONFIG = LogConfig(segment_bytes=1 << 30)
_FIRST_PRODUCER_ID = 1000
_TICK_SECONDS = 0.1
_HEADER_BYTES, _CHECKED_FROM = 61, 21
_OFFSET = struct.Struct(">q")
_CRC = struct.Struct(">I")
_CRC_AT = 17
_STAMP = struct.Struct(">qqqhi")  # base timestamp, max timestamp, producer id, producer epoch, base sequence
_STAMP_AT = 27
_NO_PRODUCER = (-1, -1, -1)


class Partitions:
    """A log dir with partitions that hold one batch each. Nothing else writes to them, and it is locked as a running broker locks it.

    Args:
        directory: is made.
        batch_bytes: about the size of a batch.
        producers: how many idempotent ones take turns on each partition, each with an id of its own; 0 for clients that are not idempotent.
        earlier: instead of one batch, each partition holds so many in a closed segment, and as many again in the active one.
    """

    def __init__(self, directory: Path, count: int, batch_bytes: int, producers: int = 1, earlier: int = 0) -> None:
        self.path = directory
        self._log_dir = LogDir(directory, 1, "bench-cluster-AAAAAAAAA", UUID(int=7))
        whole = bytes(8) + one_batch(batch_bytes)
        self.batch_bytes = len(whole)
        self._header, self._payload = bytearray(whole[:_HEADER_BYTES]), whole[_HEADER_BYTES:]
        self._producers = producers
        self._files: list[Path] = []
        self._recovery_points: list[int] = []
        self._next: list[int] = []
        self._fds: dict[int, int] = {}
        for item in range(count):
            self._create(item, earlier)
        self._controller = self._assign(count)
        self._due = [0.0] * len(self._periods())
        self.keep_house(time.monotonic())

    def _create(self, item: int, earlier: int) -> None:
        topic, partition = self.place(item)
        log = self._log_dir.create(topic, partition, _topic_id(item), _CONFIG)
        for number in range(2 * earlier or 1):
            if number and number == earlier:
                log.roll()
            log.append(_Stamped(bytes(self._stamp(item, number * RECORDS)) + self._payload))
        log.close()
        self._log_dir.forget(log)
        self._files.append(log.active.path("log"))
        self._recovery_points.append(log.active.base_offset)
        self._next.append(log.log_end_offset)

    def _assign(self, count: int) -> Controller:
        """The metadata log: of a log without one nobody knows who leads it, and every row of it is unusual."""
        controller = Controller(self._log_dir, 1, UUID(int=5), [self._log_dir.directory_id], 9092, now_ms())
        for first in range(0, count, PARTITIONS_A_TOPIC):
            topic, _ = self.place(first)
            directories = [self._log_dir.directory_id] * min(PARTITIONS_A_TOPIC, count - first)
            controller.create_topic(topic, _topic_id(first), [], directories, now_ms())
        return controller

    # --- what a live broker writes besides

    def keep_house(self, now: float) -> None:
        """Write what is due at ``now`` (seconds of a monotonic clock): the controller's record, and the checkpoints of the log dir."""
        for number, (write, seconds) in enumerate(self._periods()):
            if now >= self._due[number]:
                self._due[number] = now + seconds
                write()

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Write it at its time while the block runs, on a thread."""
        ends = threading.Event()

        def keep_house() -> None:
            while not ends.wait(_TICK_SECONDS):
                self.keep_house(time.monotonic())

        keeper = threading.Thread(target=keep_house, name="broker")
        keeper.start()
        try:
            yield
        finally:
            ends.set()
            keeper.join()

    def _periods(self) -> tuple[tuple[Callable[[], None], float], ...]:
        return (self.heartbeat, HEARTBEAT_SECONDS), (self._write_high_watermarks, HIGH_WATERMARK_SECONDS), (self._flush, FLUSH_SECONDS)

    def heartbeat(self) -> None:
        """What a controller writes every half second."""
        self._controller.heartbeat(now_ms())

    def _write_high_watermarks(self) -> None:
        self._write_offsets(names.HIGH_WATERMARK_CHECKPOINT, self._next)

    def _flush(self) -> None:
        """Only what lies before the active segment is flushed; no log starts inside a segment."""
        self._write_offsets(names.RECOVERY_POINT_CHECKPOINT, self._recovery_points)
        self._log_dir.write_log_starts()

    def _write_offsets(self, name: str, offsets: Sequence[int]) -> None:
        self._log_dir.write_checkpoint(name, [(*self.place(item), offset) for item, offset in enumerate(offsets)])

    # --- appends

    def __len__(self) -> int:
        return len(self._files)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for fd in self._fds.values():
            os.close(fd)
        self._controller.log.close()
        self._log_dir.release()

    @staticmethod
    def place(item: int) -> tuple[str, int]:
        """Topic and partition."""
        return f"bench.{item // PARTITIONS_A_TOPIC}", item % PARTITIONS_A_TOPIC

    def append(self, item: int) -> int:
        """Append a batch; returns the offset behind it."""
        fd = self._fds.get(item)
        if fd is None:
            fd = self._fds[item] = os.open(self._files[item], os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        offset = self._next[item]
        os.writev(fd, (self._stamp(item, offset), self._payload))
        if len(self._fds) > MOST_OPEN:
            os.close(self._fds.pop(item))
        self._next[item] = offset + RECORDS
        return self._next[item]

    def _stamp(self, item: int, offset: int) -> bytearray:
        """The header of a partition's batch at that offset, appended now; the next call writes over it."""
        header, now, (producer_id, epoch, sequence) = self._header, now_ms(), self._producer(item, offset // RECORDS)
        _OFFSET.pack_into(header, 0, offset)
        _STAMP.pack_into(header, _STAMP_AT, now, now, producer_id, epoch, sequence)
        _CRC.pack_into(header, _CRC_AT, google_crc32c.extend(google_crc32c.value(bytes(header[_CHECKED_FROM:])), self._payload))
        return header

    def _producer(self, item: int, number: int) -> tuple[int, int, int]:
        """Who has made a partition's batch of that number: id, epoch, base sequence."""
        if not self._producers:
            return _NO_PRODUCER
        producer_id = _FIRST_PRODUCER_ID + item * self._producers + number % self._producers
        return producer_id, 0, number // self._producers * RECORDS & 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class _Stamped:
    """A whole batch, as the simulator appends it."""

    data: bytes

    def entries(self, base_offset: int, leader_epoch: int) -> Iterator[tuple[BatchEntry, bytes]]:
        """The one entry of it, and its bytes. Its offset and its leader epoch, 0, are in them."""
        del leader_epoch
        _, timestamp, producer_id, epoch, sequence = _STAMP.unpack_from(self.data, _STAMP_AT)
        entry = BatchEntry(
            base_offset=base_offset,
            last_offset=base_offset + RECORDS - 1,
            size=len(self.data),
            magic=2,
            records=RECORDS,
            control=False,
            max_timestamp=timestamp,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_sequence=sequence + RECORDS - 1 if sequence >= 0 else -1,
        )
        yield entry, self.data


def one_batch(size: int) -> bytes:
    """A batch without its base offset."""
    now, value = now_ms(), os.urandom(max(1, size // RECORDS - 10))
    return encode(Batch(records=tuple(Record(None, value, now) for _ in range(RECORDS))), 0)[8:]


def _topic_id(item: int) -> UUID:
    """Kafka keeps the first hundred for itself."""
    return UUID(int=101 + item // PARTITIONS_A_TOPIC)


def now_ms() -> int:
    """The clock, Unix milliseconds."""
    return time.time_ns() // 1_000_000
