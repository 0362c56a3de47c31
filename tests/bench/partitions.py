"""Partitions that grow as a bench wants them to: batches of one size, stamped with their offset and written as a broker would."""

import os
import struct
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import UUID

from streaming.simulator.batch_writer import Batch, Record, encode
from streaming.simulator.controller import Controller
from streaming.simulator.log_dir import LogDir
from streaming.simulator.segment_writer import LogConfig

RECORDS = 20
PARTITIONS_A_TOPIC = 100
_CONFIG = LogConfig(segment_bytes=1 << 30)


class Partitions:
    """A log dir with partitions that hold one batch each. Nothing else writes to them.

    Args:
        directory: is made.
        batch_bytes: about the size of a batch, which is never compressed.
    """

    def __init__(self, directory: Path, count: int, batch_bytes: int) -> None:
        self.path = directory
        log_dir = LogDir(directory, 1, "bench-cluster-AAAAAAAAA", UUID(int=7))
        self.batch = one_batch(batch_bytes)
        self._files: list[Path] = []
        for item in range(count):
            topic, partition = self.place(item)
            log = log_dir.create(topic, partition, _topic_id(item), _CONFIG)
            log.close()
            self._files.append(log.directory / f"{0:020}.log")
        self._next = [0] * count
        self._fds: dict[int, int] = {}
        for item in range(count):
            self.append(item)
            os.close(self._fds.pop(item))
        self._controller = self._assign(log_dir, count)
        log_dir.release()

    def _assign(self, log_dir: LogDir, count: int) -> Controller:
        """The metadata log: of a log without one nobody knows who leads it, and every row of it is unusual."""
        controller = Controller(log_dir, 1, UUID(int=5), [log_dir.directory_id], 9092, now_ms())
        for first in range(0, count, PARTITIONS_A_TOPIC):
            topic, _ = self.place(first)
            directories = [log_dir.directory_id] * min(PARTITIONS_A_TOPIC, count - first)
            controller.create_topic(topic, _topic_id(first), [], directories, now_ms())
        return controller

    def heartbeat(self) -> None:
        """What a controller writes every half second."""
        self._controller.heartbeat(now_ms())

    def __len__(self) -> int:
        return len(self._files)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for fd in self._fds.values():
            os.close(fd)
        self._controller.log.close()

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
        os.write(fd, struct.pack(">q", offset) + self.batch)  # the CRC leaves the base offset out: a leader stamps it
        self._next[item] = offset + RECORDS
        return self._next[item]


def one_batch(size: int) -> bytes:
    """A batch without its base offset."""
    now = now_ms()
    value = os.urandom(max(1, size // RECORDS - 10))
    return encode(Batch(records=tuple(Record(None, value, now) for _ in range(RECORDS))), 0)[8:]


def _topic_id(item: int) -> UUID:
    """Kafka keeps the first hundred for itself."""
    return UUID(int=101 + item // PARTITIONS_A_TOPIC)


def now_ms() -> int:
    """The clock, Unix milliseconds."""
    return time.time_ns() // 1_000_000
