"""When retention will delete an offset of a log: what `streaming.rules.retention_rule` deletes, at times to come.

Only the first segments of a log are ever deleted. So an offset is deleted when every segment up to its own may go: below the log start,
not needed by ``retention.bytes``, or with a largest timestamp more than ``retention.ms`` ago. The broker deletes at the first check after
that, which may come a whole check interval later, and an active segment that gets more records stays until it is rolled. So each loss has
an earliest and a latest time; the earliest is that of the log as it is written to, and beside it is what it were if nothing more came.

A high watermark in the active segment is taken to follow the log's end. One further back is taken to stay, and nothing beyond it is
deleted.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming.common.arrays import Flags, Longs
from streaming.rules.retention_rule import ABSENT, FAR, Growth, RetentionPasses, SegmentColumns, after_start

Paces = NDArray[np.float64]

_AT_ONCE = 1 << 20  # so many pairs of an offset and a segment are compared at once

_NONE: Longs = np.empty(0, np.int64)


def losses(logs: SegmentColumns, growth: Growth, owner: Longs, offset: Longs, now_ms: int, away: Longs | None = None) -> Losses:
    """Compute when retention deletes offsets.

    Args:
        owner: the log of each offset, as an index in ``logs``.
        offset: offsets at or above their log's start.
        away: the broker of each log that has no process, as `streaming.rules.retention_rule.away_of` has it; None if all of them run.
    """
    if not len(owner):
        return NOTHING
    passes = RetentionPasses(logs)
    moments = passes.moments(growth, now_ms)
    goes, goes_silent, goes_late = (
        np.where(passes.below_start & passes.replicated, 0, np.where(_may_go(passes, logs), np.minimum(by_time, moments.by_size), FAR))
        for by_time in (moments.by_time, moments.by_time_if_silent, moments.by_time_if_it_grows)
    )
    unknown = passes.unknown & ~passes.below_start & (moments.by_size > now_ms)
    item = _holding(logs, owner, offset)
    ranges = np.stack([logs.first[owner], item + 1], axis=1).ravel()
    last, silent, latest = (np.maximum.reduceat(np.append(each, 0), ranges)[::2] for each in (goes, goes_silent, goes_late))
    sized = np.maximum.reduceat(np.append(np.where(moments.by_size < moments.by_time, goes, ABSENT), ABSENT), ranges)[::2]
    not_known = np.logical_or.reduceat(np.append(unknown, False), ranges)[::2]
    deletes = (logs.limit("deletes") > 0) & (logs.limit("remote_storage") == 0) & (logs.high_watermark >= 0)
    known = deletes[owner] & ~not_known & (last < FAR)
    first_check = np.maximum(last, now_ms)
    interval = np.minimum(logs.limit("check_interval_ms"), FAR)[owner]
    # one of unknown time may go as soon as those before it
    pace = paces(logs, np.where(unknown, 0, goes_late), _ends(logs, growth, moments.rolled, now_ms), owner, offset, item, now_ms)
    # if nothing more comes, only the active segment goes earlier
    whole_ms = np.maximum.reduceat(np.where(unknown, 0, goes), logs.first)[owner]
    left = np.maximum(logs.following[logs.last[owner]] - offset, 0)
    pace = np.maximum(pace, np.where(whole_ms < FAR, left * 1000 / np.maximum(whole_ms - now_ms, 1), 0.0))
    goes = np.where(unknown, FAR, goes)

    missing = np.full(len(owner), ABSENT) if away is None else away[owner]
    at_ms, start_of = after_start(np.where(known, last, ABSENT), missing)
    timed, at_start = at_ms != ABSENT, (start_of != ABSENT) & (last <= now_ms)

    def end(due: Longs, some: Flags) -> Longs:
        return np.where(some, logs.following[due], ABSENT)

    last_due = _due(logs, goes, owner, item, first_check + interval)
    grows = logs.active[last_due] & (growth.rate[owner] > 0)
    return Losses(
        at_ms=at_ms,
        silent_ms=np.where(timed & (silent < last), silent, ABSENT),
        latest_ms=np.where(timed, np.maximum(latest, now_ms) + interval, ABSENT),
        first_end=end(_due(logs, goes, owner, item, first_check), timed | at_start),
        last_end=np.where(grows, ABSENT, end(last_due, timed)),
        by_size=known & (sized == last),
        pace=np.where(timed, pace, float(ABSENT)),
        start_of=start_of,
        at_start=at_start,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Losses:
    """One item for each offset that was asked for.

    How fast a reader has to be so that it is always ahead of what deletes the first segments of a log: one pace for each offset. It
    must have read each segment before that goes, this one and all after it: many records that were appended at once go at once,
    whenever the first of them does.

    ``at_ms``: the earliest time at which a check of the broker deletes it, in Unix milliseconds. It is in the past if a check is due.
    ``silent_ms``: that if nothing more is appended to its log, where that is earlier, else `ABSENT`.
    ``latest_ms``: by then the broker has checked, also if the log goes on to grow. Both are `ABSENT` if it will not be deleted, or if that
    is not known: the time of a segment or the high watermark is not known, or its records are also in remote storage. ``first_end``: the
    end of what a check at the earliest time deletes; ``last_end``: of what one an interval later does, `ABSENT` also where that is in a
    segment to which more comes until then. ``by_size``: ``retention.bytes`` deletes it, and not ``retention.ms``: with a higher limit it
    would stay. ``pace``: a reader that begins there and reads so many offsets a second is ahead of deletion for all that the log holds now,
    `ABSENT` as ``at_ms``.

    ``start_of``: the broker, without a process, that has to be started before that, `ABSENT` if none has: then there are no times.
    ``at_start``: it is due, so that the first check after that start deletes it; ``first_end`` is then what a start now would delete.
    """

    at_ms: Longs
    silent_ms: Longs
    latest_ms: Longs
    first_end: Longs
    last_end: Longs
    by_size: Flags
    pace: Paces
    start_of: Longs
    at_start: Flags

    def take(self, places: Longs) -> Losses:
        """Some of the items."""
        return Losses(**{each.name: getattr(self, each.name)[places] for each in fields(self)})

    def spread(self, items: Longs, count: int) -> Losses:
        """The same as items among so many, of which nothing is known of the others."""

        def among(column: NDArray[Any]) -> NDArray[Any]:
            whole = np.full(count, column.dtype != np.bool_ and ABSENT, column.dtype)
            whole[items] = column
            return whole

        return Losses(**{each.name: among(getattr(self, each.name)) for each in fields(self)})


NOTHING = Losses(
    at_ms=_NONE,
    silent_ms=_NONE,
    latest_ms=_NONE,
    first_end=_NONE,
    last_end=_NONE,
    by_size=np.empty(0, np.bool_),
    pace=np.empty(0),
    start_of=_NONE,
    at_start=np.empty(0, np.bool_),
)
"""What is known of no offsets."""


def _may_go(passes: RetentionPasses, logs: SegmentColumns) -> Flags:
    """Which segments are not empty, and replicated. The active one is replicated if the high watermark has reached it."""
    reached = logs.active & (logs.high_watermark[logs.owner] > logs.base)
    may: Flags = passes.full & (passes.replicated | reached)
    return may


def _holding(logs: SegmentColumns, owner: Longs, offset: Longs) -> Longs:
    """The segment that holds each offset: the last of its log that does not begin after it."""
    item = np.empty(len(owner), np.int64)
    for log in np.unique(owner).tolist():
        first, last = int(logs.first[log]), int(logs.last[log])
        mine = owner == log
        item[mine] = np.maximum(np.searchsorted(logs.base[first : last + 1], offset[mine], side="right") - 1 + first, first)
    return item


def paces(logs: SegmentColumns, goes: Longs, ends: Longs, owner: Longs, offset: Longs, item: Longs, now_ms: int) -> Paces:
    """Offsets a second from now on, 0 where nothing is deleted.

    Args:
        goes: from when on each segment may be deleted once those before it are, Unix milliseconds, `FAR` for never.
        ends: up to which offset each will hold records then.
        owner: the log of each offset, as an index in ``logs``.
        item: the segment that holds it.
    """
    found = np.zeros(len(owner))
    for log in np.unique(owner).tolist():
        mine, first, last = np.flatnonzero(owner == log), int(logs.first[log]), int(logs.last[log])
        gone_ms = np.maximum.accumulate(goes[first : last + 1])
        seconds = np.where(gone_ms < FAR, np.maximum(gone_ms - now_ms, 1) / 1000, np.inf)
        found[mine] = _most(ends[first : last + 1], seconds, offset[mine], item[mine] - first)
    return found


def _most(ends: Longs, seconds: Paces, offset: Longs, item: Longs) -> Paces:
    """The highest pace that a segment of one log needs, for each offset: of its own segment and of those after it."""
    found, step = np.empty(len(offset)), max(_AT_ONCE // len(ends), 1)
    number = np.arange(len(ends))
    for start in range(0, len(offset), step):
        some = slice(start, start + step)
        needed = np.maximum(ends - offset[some, None], 0) / seconds
        found[some] = np.where(number >= item[some, None], needed, 0.0).max(axis=1)
    return found


def _ends(logs: SegmentColumns, growth: Growth, rolled_ms: Longs, now_ms: int) -> Longs:
    """The end of each segment when it gets no more records: the active one goes on to grow, by as many offsets for its bytes as so far."""
    ends = logs.following.copy()
    size = logs.bytes_between(logs.first, logs.last + 1)
    dense = (logs.log_end - logs.base[logs.first]) / np.maximum(size, 1)
    comes = growth.rate * np.maximum(np.minimum(rolled_ms, FAR) - now_ms, 0) / 1000 * dense
    ends[logs.last] += np.minimum(comes, FAR).astype(np.int64)
    return ends


def _due(logs: SegmentColumns, goes: Longs, owner: Longs, item: Longs, checked_ms: Longs) -> Longs:
    """The last segment that goes with each segment ``item`` if the broker checks at these times."""
    until = item.copy()
    while True:
        following = np.minimum(until + 1, logs.last[owner])
        more = (following > until) & (goes[following] <= checked_ms)
        if not more.any():
            return until
        until[more] += 1
