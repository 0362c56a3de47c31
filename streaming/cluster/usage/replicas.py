"""What is known of log dirs and of the replicas in them, before anything is reckoned: from a disk, or from a job's table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.rules.limits import Limits
from streaming.rules.restart_cost import RecoveryPoints, reading_seconds
from streaming.rules.segment_columns import SegmentColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartFacts:
    """What a start after a crash reads of a log dir; -1 where it is not known.

    ``left_logs``, ``left_bytes``: of a start that is going on.
    """

    logs: int = -1
    scanned: int = -1
    not_fsynced: int = -1
    rate: float = -1.0  # bytes a second of a recovery that was seen
    threads: int = -1  # that each log dir has
    clean: bool = False  # its broker was shut down in an orderly way, and has not started since
    left_logs: int = -1
    left_bytes: int = -1
    working: tuple[str, ...] = ()  # some logs that it reads

    def seconds(self, size: int) -> float:
        """How long it takes to read so many bytes, by the recovery that was seen; -1 if none was."""
        return reading_seconds(size, self.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirFacts:
    """A log dir; sizes in bytes, -1 if they are not known."""

    broker: int
    log_dir: str
    up: bool
    problem: str
    device: int  # of its file system
    free: int
    capacity: int
    checkpoint_ms: int
    kinds: Mapping[str, tuple[int, int]]  # what is in it by kind, on the disk and by length
    unread: Mapping[str, str]  # what could not be read of it, by path with the reason
    waiting: int = 0  # what is deleted and will be unlinked within the delay for that
    others_day: int = -1  # what others take of its file system in a day
    restart: RestartFacts = RestartFacts()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplicaSizes:
    """Directories of replicas, whatever their state: arrays have one item for each."""

    topics: Sequence[str]
    partition: Longs
    directory: Longs  # the number of the log dir
    taken: Longs  # on the disk, and ``not_live`` the part of it that is no live log
    apparent: Longs
    segments: Longs
    not_live: Longs
    live: NDArray[np.bool_]
    unread: NDArray[np.bool_]  # live logs that could not be read, so that nothing is known of them but what they take


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogsThere:
    """The live logs among replicas: ``items`` are their numbers there. Times are the largest of a first batch, -1 if not known."""

    items: Longs
    logs: SegmentColumns
    limits: Sequence[Limits]
    first_ms: Longs
    active_first_ms: Longs
    watched: NDArray[np.float64]  # bytes a second by which each grows now, -1 where nobody has watched that
    points: RecoveryPoints  # their recovery points
    assigned: Longs  # how many replicas the partition of each has, -1 where that is not known
    away: Longs  # its broker where that has no process, else -1
