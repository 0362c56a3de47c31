"""A broker on a disk with very many partitions: some are appended to and roll, topics come and go, and a backlog appears at once."""

import os
import random
import shutil
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import UUID

from bench.partitions import PARTITIONS_A_TOPIC, RECORDS, one_batch
from bench.soak.sparse import write_sparse_log
from streaming.simulator.log import LogDir
from streaming.simulator.segment_writer import LogConfig

CLUSTER_ID = "soak-cluster-AAAAAAAAAA"
CHURNED = 10
"""Partitions of each topic that comes and goes."""

BACKLOG = "soak.backlog"
_BATCH_BYTES = 1024
_CONFIG = LogConfig(segment_bytes=1 << 30)


@dataclass(slots=True)
class _Log:
    directory: Path
    next_offset: int = 0
    segment: int = 0


@dataclass(slots=True)
class Written:
    """What a page has to show in the end: bytes of the partitions that stay, and of the backlog."""

    steady: int = 0
    backlog: int = 0
    appends: int = 0
    rolls: int = 0
    topics_made: int = 0
    topics_deleted: int = 0


@dataclass(slots=True)
class _Churned:
    name: str
    directories: list[Path] = field(default_factory=list)


class Fleet:
    """The only writer of a log dir. Not for several threads.

    Args:
        topics: so many that come and go are there at any time.
        delay_seconds: after which files that were deleted are removed.
    """

    def __init__(self, directory: Path, partitions: int, active: int, seed: int, *, topics: int, delay_seconds: float) -> None:
        self.path = directory
        self.written = Written()
        self._outside = directory.with_name(f"{directory.name}.outside")
        self._outside.mkdir(parents=True)
        self._chance = random.Random(seed)
        self._log_dir = LogDir(directory, 1, CLUSTER_ID, UUID(int=11))
        self._topics: dict[str, int] = {}
        self._batch = one_batch(_BATCH_BYTES)
        self._logs = [self._made(f"soak.{item // PARTITIONS_A_TOPIC}", item % PARTITIONS_A_TOPIC) for item in range(partitions)]
        self._active = self._logs[:: max(1, partitions // active)][:active]
        self._next = 0
        self._churned: list[_Churned] = []
        self._leaving: list[tuple[float, Path]] = []
        self._topics_kept = topics
        self._delay_seconds = delay_seconds
        for _ in range(topics):
            self.churn()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._log_dir.release()
        shutil.rmtree(self.path)
        shutil.rmtree(self._outside)

    def append(self, count: int) -> None:
        """A batch to each of the next ``count`` active partitions."""
        for _ in range(count):
            log = self._active[self._next % len(self._active)]
            self._next += 1
            self._append(log)
            self.written.appends += 1

    def roll(self) -> None:
        """An active partition begins another segment, and loses the one before, as where retention is short."""
        log = self._chance.choice(self._active)
        if log.next_offset > log.segment:
            before, log.segment = log.segment, log.next_offset
            self._append(log)
            old = log.directory / f"{before:020}.log"
            old.rename(old.with_suffix(".log.deleted"))
            self._leaving.append((time.monotonic() + self._delay_seconds, old.with_suffix(".log.deleted")))
            self.written.rolls += 1

    def churn(self) -> None:
        """A topic is made, and the oldest one that was made so is deleted."""
        made = _Churned(f"churn.{self.written.topics_made}")
        self.written.topics_made += 1
        for partition in range(CHURNED):
            log = self._made(made.name, partition)
            made.directories.append(log.directory)
        self._churned.append(made)
        if len(self._churned) > self._topics_kept:
            self.written.topics_deleted += 1
            for directory in self._churned.pop(0).directories:
                self._delete(directory)

    def begin_backlog(self, size: int) -> None:
        """A topic appears that holds so much already."""
        directory = self._outside / f"{BACKLOG}-0"
        log = self._log_dir.create(BACKLOG, 0, UUID(int=99), _CONFIG, name="backlog-being-made")
        log.close()
        self._log_dir.forget(log)
        shutil.move(log.directory, directory)
        for path in directory.glob("0*"):
            path.unlink()
        self.written.backlog = write_sparse_log(directory, size, time.time_ns() // 1_000_000)
        directory.rename(self.path / f"{BACKLOG}-0")

    def end_backlog(self) -> None:
        """It is deleted."""
        self._delete(self.path / f"{BACKLOG}-0")

    def sweep(self) -> None:
        """Remove what was deleted long enough ago."""
        now = time.monotonic()
        for due, path in [each for each in self._leaving if each[0] <= now]:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            self._leaving.remove((due, path))

    def _made(self, topic: str, partition: int) -> _Log:
        """A log with a batch in it."""
        topic_id = UUID(int=1 + self._topics.setdefault(topic, len(self._topics)))
        made = self._log_dir.create(topic, partition, topic_id, _CONFIG)
        made.close()
        self._log_dir.forget(made)
        log = _Log(made.directory)
        self._append(log)
        return log

    def _append(self, log: _Log) -> None:
        fd = os.open(log.directory / f"{log.segment:020}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        os.write(fd, struct.pack(">q", log.next_offset) + self._batch)
        os.close(fd)
        log.next_offset += RECORDS
        if not log.directory.name.startswith("churn."):
            self.written.steady += 8 + len(self._batch)

    def _delete(self, directory: Path) -> None:
        gone = directory.with_name(f"{directory.name}.{self._chance.randbytes(16).hex()}-delete")
        directory.rename(gone)
        self._leaving.append((time.monotonic() + self._delay_seconds, gone))
