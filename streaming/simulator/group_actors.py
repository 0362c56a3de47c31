"""Consumer groups at work. Each is a generator like the producers': it reads on and commits, every five seconds, as auto-commit does."""

from collections.abc import Sequence

from streaming.simulator.actors import Actor
from streaming.simulator.group_coordinator import GroupCoordinator
from streaming.simulator.log import PartitionLog
from streaming.simulator.workload import Reading

COMMIT_MS = 5_000


def consumer_group(reading: Reading, sources: Sequence[PartitionLog], coordinator: GroupCoordinator, first_due: int) -> Actor:
    """Reads committed records from the beginning; what was deleted before it was read is passed over, as by ``auto.offset.reset=earliest``.

    A group that has stopped commits the same offsets again and again: its members are there, and process nothing.

    Args:
        sources: the partitions of its topic.
    """
    now = yield first_due
    coordinator.join(reading.group, sources, now)
    stops = None if reading.stops_after_ms is None else now + reading.stops_after_ms
    offsets = [log.log_start_offset for log in sources]
    ends = offsets
    while True:
        now = yield now + COMMIT_MS
        if stops is None or now < stops:
            offsets = [_read_on(log, offset, before, reading.pace) for log, offset, before in zip(sources, offsets, ends, strict=True)]
            ends = [log.log_end_offset for log in sources]
        coordinator.commit(reading.group.name, sources, offsets, now)


def _read_on(log: PartitionLog, offset: int, end_before: int, pace: float) -> int:
    """How far a consumer comes that reads ``pace`` offsets for each one that was appended since ``end_before``."""
    there = max(offset, log.log_start_offset)
    return min(log.last_stable_offset(), there + round((log.log_end_offset - end_before) * pace))
