"""When retention will delete an offset of a log: the rule of `streaming.rules.retention_rule`, computed for times to come.

Only the first segments of a log are ever deleted. So an offset is deleted when every segment up to its own may go: below the log start,
not needed by ``retention.bytes``, or with a largest timestamp more than ``retention.ms`` ago. The broker deletes at the first check after
that.

A log with an in-rate goes on to grow at it. Then its active segment gets newer records until it is rolled, by its size or its age. A high
watermark in the active segment is taken to follow the log's end; one further back is taken to stay, and nothing beyond it is deleted.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.rules.config_values import UNLIMITED
from streaming.rules.segment_columns import ABSENT, SegmentColumns

_FAR = 1 << 52  # beyond any clock: times and limits above it are cut to it, so that sums of a few fit into 64 bits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Growth:
    """How logs grow, one item for each.

    ``rate``: bytes a second; 0 for a log to which nothing is appended. ``active_first_ms``: the timestamp of the first record of the active
    segment, `ABSENT` if it is not known: then only its size rolls it.
    """

    rate: NDArray[np.float64]
    active_first_ms: Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Losses:
    """One item for each offset that was asked for.

    ``at_ms``: the earliest time at which a check of the broker deletes it, in Unix milliseconds. It is in the past if a check is due.
    `ABSENT` if it will not be deleted, or if that is not known: the time of a segment or the high watermark is not known, or its records
    are also in remote storage. ``end_offset``: the end of what that check deletes. The check may come a whole interval later, so every
    segment counts that is due by then. ``by_size``: ``retention.bytes`` deletes it, and not ``retention.ms``: with a higher limit it
    would stay.
    """

    at_ms: Longs
    end_offset: Longs
    by_size: Flags


def losses(logs: SegmentColumns, growth: Growth, owner: Longs, offset: Longs, now_ms: int) -> Losses:
    """Compute when retention deletes offsets.

    Args:
        owner: the log of each offset, as an index in ``logs``.
        offset: offsets at or above their log's start.
    """
    if not len(owner):
        return Losses(at_ms=np.empty(0, np.int64), end_offset=np.empty(0, np.int64), by_size=np.empty(0, np.bool_))
    by_time, by_size = _by_time(logs, growth, now_ms), _by_size(logs, growth, now_ms)
    goes = np.where(_may_go(logs), np.minimum(by_time, by_size), _FAR)
    below_start = ~logs.active & (logs.following <= logs.log_start[logs.owner])
    goes[below_start & _may_go(logs)] = 0
    unknown = logs.unknown & (logs.limit("retention_ms") != UNLIMITED)[logs.owner] & ~below_start & (by_size > now_ms)
    item = _holding(logs, owner, offset)
    ranges = np.stack([logs.first[owner], item + 1], axis=1).ravel()
    last = np.maximum.reduceat(np.append(goes, 0), ranges)[::2]
    sized = np.maximum.reduceat(np.append(np.where(by_size < by_time, goes, ABSENT), ABSENT), ranges)[::2]
    not_known = np.logical_or.reduceat(np.append(unknown, False), ranges)[::2]
    deletes = (logs.limit("deletes") > 0) & (logs.limit("remote_storage") == 0) & (logs.high_watermark >= 0)
    known = deletes[owner] & ~not_known & (last < _FAR)
    return Losses(
        at_ms=np.where(known, last, ABSENT),
        end_offset=np.where(known, logs.following[_due_with(logs, np.where(unknown, _FAR, goes), owner, item, last, now_ms)], ABSENT),
        by_size=known & (sized == last),
    )


def _due_with(logs: SegmentColumns, goes: Longs, owner: Longs, item: Longs, at_ms: Longs, now_ms: int) -> Longs:
    """The last segment that is due at the latest check that deletes each segment ``item``, which goes at ``at_ms``."""
    checked = np.maximum(at_ms, now_ms) + np.minimum(logs.limit("check_interval_ms"), _FAR)[owner]
    until = item.copy()
    while True:
        following = np.minimum(until + 1, logs.last[owner])
        more = (following > until) & (goes[following] <= checked)
        if not more.any():
            return until
        until[more] += 1


def mean_rates(logs: SegmentColumns, now_ms: int) -> NDArray[np.float64]:
    """Bytes a second by which each log has grown, as its list of segments shows it: from the newest record of its first segment to now.

    It is 0 for a log of one segment, whose times show nothing about its beginning. It is 0, too, if nothing was appended for longer than a
    segment took to fill, and longer than a check interval: such a log has stopped, and its mean rate would put off its growth for ever.
    """
    span = np.maximum(now_ms - logs.largest[logs.first], 1) / 1000
    grown = logs.bytes_between(logs.first + 1, logs.last + 1)
    written_ms = np.maximum(logs.largest[logs.last] - logs.largest[logs.first], 0) // np.maximum(logs.count - 1, 1)
    # a producer's timestamps may be hours old in a backfill: then the time of the file shows the append
    idle_ms = now_ms - np.maximum(logs.largest[logs.last], logs.modified[logs.last])
    stopped = idle_ms > np.maximum(written_ms, logs.limit("check_interval_ms"))
    rates: NDArray[np.float64] = np.where(logs.unknown[logs.first] | stopped, 0.0, grown / span)
    return rates


def _may_go(logs: SegmentColumns) -> Flags:
    """Which segments are replicated and not empty. The active one is replicated if the high watermark has reached it."""
    reached = np.where(logs.active, logs.base + 1, logs.following)
    may: Flags = (logs.high_watermark[logs.owner] >= reached) & ~(logs.active & (logs.size == 0))
    return may


def _by_time(logs: SegmentColumns, growth: Growth, now_ms: int) -> Longs:
    """From when on each segment is older than the limit; `_FAR` without one. If its newest record is not known, it has no meaning."""
    limit = np.minimum(logs.limit("retention_ms"), _FAR)
    newest = np.minimum(logs.largest, _FAR)
    newest[logs.last] += np.maximum(_rolled_ms(logs, growth, now_ms) - now_ms, 0)
    expiry = newest + limit[logs.owner] + 1  # a segment stays at its limit, and goes a millisecond later
    return np.where((limit != UNLIMITED)[logs.owner], expiry, _FAR)


def _rolled_ms(logs: SegmentColumns, growth: Growth, now_ms: int) -> Longs:
    """When the active segment of each log gets no more records: at once if nothing is appended, else when it is rolled."""
    left = np.maximum(logs.limit("segment_bytes") - logs.size[logs.last], 0)
    by_size = now_ms + _milliseconds_for(left, growth.rate)
    by_age = np.minimum(growth.active_first_ms, _FAR) + np.minimum(logs.limit("roll_ms"), _FAR)
    by_age = np.where(growth.active_first_ms >= 0, np.maximum(by_age, now_ms), _FAR)
    return np.where(growth.rate > 0, np.minimum(by_size, by_age), now_ms)


def _by_size(logs: SegmentColumns, growth: Growth, now_ms: int) -> Longs:
    """From when on so many bytes come after each segment that it is not needed; `_FAR` without a limit or without growth.

    A segment that is not needed already has been so at the latest since the last write to the segment that made it so.
    """
    limit, rate = logs.limit("retention_bytes"), growth.rate[logs.owner]
    ends = logs.before[logs.last + 1]
    missing = limit[logs.owner] - (ends[logs.owner] - logs.before[1:])
    made_so = np.searchsorted(logs.before, logs.before[1:] + np.minimum(limit, _FAR)[logs.owner], side="left") - 1
    since = logs.modified[np.clip(made_so, logs.first[logs.owner], logs.last[logs.owner])]
    # what is appended to the active segment comes after it only when it is rolled
    first_roll = np.where(logs.active, np.maximum(_rolled_ms(logs, growth, now_ms)[logs.owner] - now_ms, 0), 0)
    comes = now_ms + first_roll + _milliseconds_for(np.maximum(missing, 0), rate)
    goes = np.where(missing <= 0, since, comes)
    return np.where(limit[logs.owner] != UNLIMITED, goes, _FAR)


def _milliseconds_for(count: Longs, rate: NDArray[np.float64]) -> Longs:
    """The time in which so many bytes come; `_FAR` if they never do."""
    comes = np.full(len(count), _FAR, np.int64)
    grows = rate > 0
    comes[grows] = np.minimum(count[grows] * 1000.0 / rate[grows], _FAR).astype(np.int64)
    return comes


def _holding(logs: SegmentColumns, owner: Longs, offset: Longs) -> Longs:
    """The segment that holds each offset: the last of its log that does not begin after it."""
    item = np.empty(len(owner), np.int64)
    for log in np.unique(owner).tolist():
        first, last = int(logs.first[log]), int(logs.last[log])
        mine = owner == log
        item[mine] = np.maximum(np.searchsorted(logs.base[first : last + 1], offset[mine], side="right") - 1 + first, first)
    return item
