"""How fast logs grow, from the times of their own segments: what was appended before anybody watched is known in no other way."""

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Longs
from streaming.rules.retention_passes import Growth
from streaming.rules.segment_columns import SegmentColumns

Floats = NDArray[np.float64]

WINDOW_MS = 86_400_000
"""Growth is that of the last day: a shorter time would not contain the night."""

LEAST_MS = 600_000
"""If all of a log is younger than this, its growth is not known yet."""

_STAMPED_AT_ONCE_MS, _STAMPED_WITHIN_MS = 5_000, 60_000
"""A log whose newest record is stamped when its file was last written, give or take the first, has the clock's times; within the second its
stamps are as far apart as its writes."""

_CLOCK_END = 1 << 42  # the year 2109: times above it are cut to it, so that a log's number fits above them


def growth_of(logs: SegmentColumns, first_ms: Longs, now_ms: int, window_ms: int = WINDOW_MS) -> Floats:
    """The bytes that were appended to each log in a millisecond, on average over the last ``window_ms``; nan if that is not known.

    A segment was written between the largest time of those before it and its own. If the log begins later, because retention has deleted
    what was before or because the log is young, the average is over the time since then.

    Args:
        first_ms: the time of the first batch on the disk, -1 if that is not known.
    """
    if not len(logs.first):
        return np.empty(0)
    end = running_max(np.clip(logs.largest, 0, now_ms), logs.owner)
    start = np.empty_like(end)
    start[1:] = end[:-1]
    start[logs.first] = np.where(first_ms >= 0, np.minimum(first_ms, now_ms), end[logs.first])
    start = np.maximum(start, start[logs.first][logs.owner])  # a compacted log may begin with empty segments
    since = np.maximum(start[logs.first], now_ms - window_ms)
    began = since[logs.owner]
    within = np.clip(end - np.maximum(start, began), 0, None) / np.maximum(end - start, 1)
    share = np.where(end > start, within, end >= began)  # all of it at one moment
    appended = np.add.reduceat(logs.size * share, logs.first)
    span = now_ms - since
    known = (span >= LEAST_MS) & ((first_ms >= 0) | (since > start[logs.first]) | (logs.total == 0))
    return np.where(known, appended / np.maximum(span, 1), np.nan)


def growth_now(logs: SegmentColumns, watched: Floats, active_first_ms: Longs, now_ms: int) -> Growth:
    """How logs grow from now on: as they were watched to, or else as their lists of segments show it.

    Args:
        watched: bytes a second of each log, below 0 where that is not known.
        active_first_ms: see `Growth`.
    """
    return Growth(rate=np.where(watched >= 0, watched, mean_rates(logs, now_ms)), active_first_ms=active_first_ms)


def mean_rates(logs: SegmentColumns, now_ms: int) -> Floats:
    """Bytes a second by which each log has grown, as its list of segments shows it: from the newest record of its first segment to now.

    A rate never mixes clocks: what lies between two stamps took as long as these are apart, and the time since the last write is told by
    the file. Where stamps are far from the writes of their files, as in a backfill or a mirror, the files tell all of it.

    It is 0 for a log of one segment, whose times show nothing about its beginning. It is 0, too, if nothing was appended for longer than a
    segment took to fill, and longer than a check interval: such a log has stopped, and its mean rate would put off its growth for ever.
    """
    written, newest, oldest = logs.modified[logs.last], logs.largest[logs.last], logs.largest[logs.first]
    by_files = (np.abs(written - newest) > _STAMPED_WITHIN_MS) & (written <= now_ms) & (logs.modified[logs.first] <= written)
    took_ms = np.where(by_files, written - logs.modified[logs.first], np.maximum(newest - oldest, 0))
    by_stamps = (np.abs(written - newest) <= _STAMPED_AT_ONCE_MS) | (written > now_ms)
    span = np.maximum(np.where(by_stamps, now_ms - oldest, took_ms + now_ms - written), 1) / 1000
    grown = logs.bytes_between(logs.first + 1, logs.last + 1)
    filled_ms = np.maximum(logs.largest[logs.last] - logs.largest[logs.first], 0) // np.maximum(logs.count - 1, 1)
    # a producer's timestamps may be hours old in a backfill: then the time of the file shows the append
    idle_ms = now_ms - np.maximum(logs.largest[logs.last], logs.modified[logs.last])
    stopped = idle_ms > np.maximum(filled_ms, logs.limit("check_interval_ms"))
    rates: Floats = np.where(logs.unknown[logs.first] | stopped, 0.0, grown / span)
    return rates


def running_max(values: Longs, owner: Longs) -> Longs:
    """The largest value of each log's segments up to each of them; values from 0 on."""
    shift = owner << 42
    found: Longs = np.maximum.accumulate(np.minimum(values, _CLOCK_END - 1) + shift) - shift
    return found
