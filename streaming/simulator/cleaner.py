"""The results of the cleaner: segments replaced by other files under the same name (`Cleaner`, `LocalLog.replaceSegments`)."""

import os
from collections.abc import Container

from streaming.simulator.batch_writer import Batch, BatchEntry
from streaming.simulator.log import PartitionLog
from streaming.simulator.segment_writer import WrittenSegment


def clean(log: PartitionLog, keep: Container[int], now: int) -> int:
    """Clean every inactive segment that has something to lose, and note how far this came; see `compact`.

    Returns:
        The bytes that went.
    """
    freed = 0
    for segment in log.segments[:-1]:
        if any(entry.records and entry.base_offset not in keep for entry in segment.entries):
            freed += compact(log, segment.base_offset, keep, now)
    log.first_dirty_offset = log.active.base_offset
    return freed


def compact(log: PartitionLog, base_offset: int, keep: Container[int], now: int = 0) -> int:
    """Rewrite one inactive segment with those of its batches whose base offsets are in ``keep``; their bytes stay as they are.

    The last batch stays as an empty one, because the end of a cleaning round is marked so.

    Returns:
        The bytes that went.
    """
    index = next(n for n, segment in enumerate(log.segments[:-1]) if segment.base_offset == base_offset)
    old = log.segments[index]
    content = old.path("log").read_bytes()
    cleaned = WrittenSegment(log.directory, base_offset, log.config, old.producers, suffix=".cleaned")
    for entry, position in zip(old.entries, old.positions, strict=True):
        if entry.base_offset in keep:
            cleaned.append([entry], content[position : position + entry.size])
        elif entry is old.entries[-1]:
            for empty, data in _emptied(entry).entries(entry.base_offset, log.leader_epoch_at(entry.base_offset)):
                cleaned.append([empty], data)
    cleaned.finish()
    # The cleaner sets the time of the last source segment.
    modified = old.path("log").stat().st_mtime_ns
    os.utime(cleaned.path("log"), ns=(modified, modified))
    cleaned.rename(".swap")
    log.replace_segment(index, cleaned, now)
    return old.size - cleaned.size


def _emptied(entry: BatchEntry) -> Batch:
    last_delta = entry.last_offset - entry.base_offset
    return Batch(
        records=(),
        last_offset_delta=last_delta,
        max_timestamp=entry.max_timestamp,
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        base_sequence=(entry.last_sequence - last_delta) & 0x7FFFFFFF if entry.last_sequence >= 0 else -1,
        transactional=entry.transactional,
        control=entry.control,
    )
