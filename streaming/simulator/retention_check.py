"""Which segments a retention check deletes (`UnifiedLog.deleteOldSegments`), with the end of the log as high watermark."""

from collections.abc import Sequence

from streaming.simulator.segment_writer import LogConfig, Segment


def count_deletable(segments: Sequence[Segment], config: LogConfig, log_start_offset: int, now: int) -> int:
    """How many segments go, counted from the oldest: by log start offset, by size, by time, each on what the one before it left.

    The active segment may be among them, unless it is empty. A compacted log only loses what lies before its start.
    """
    count = sum(after.base_offset <= log_start_offset for after in segments[1:])
    if config.compacted:
        return count
    limit = len(segments) if segments[-1].size else len(segments) - 1
    if config.retention_bytes >= 0:
        count += _by_size(segments[count:], limit - count, config.retention_bytes)
    if config.retention_ms >= 0:
        count += _by_time(segments[count:limit], now - config.retention_ms)
    return count


def _by_size(segments: Sequence[Segment], limit: int, retention_bytes: int) -> int:
    excess = sum(segment.size for segment in segments) - retention_bytes
    count = 0
    while count < limit and excess >= segments[count].size:
        excess -= segments[count].size
        count += 1
    return count


def _by_time(segments: Sequence[Segment], oldest: int) -> int:
    count = 0
    while count < len(segments) and segments[count].largest_timestamp() < oldest:
        count += 1
    return count
