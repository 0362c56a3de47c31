"""Sets the times of files that a simulated broker has written at a time of a test's own."""

import os
from pathlib import Path

from streaming.simulator.log import PartitionLog


def newest_segment(log: PartitionLog) -> Path:
    """The file that a log appends to."""
    return max(log.directory.glob("*.log"))


def written_at(log: PartitionLog, at_ms: int) -> None:
    """The last append to a log was at that time."""
    os.utime(newest_segment(log), ns=(at_ms * 1_000_000, at_ms * 1_000_000))
