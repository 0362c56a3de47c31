"""The space that retention frees, and when a disk is full in spite of it: the rule of `retention_rule`, carried on into the future.

A log grows as it did. Its existing segments go one by one, at the first check at which the rule lets them. Records that are appended from
now on go in the same way; there the average is taken, so that a log counts as if half a segment of it were always filled.

Compaction frees an amount that is not known before. So a compacted log is taken as growing or as not growing, by the caller's choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streaming.common.arrays import Flags, Floats, Longs
from streaming.rules.retention_rule import Growth, SegmentColumns

NEVER = np.inf

WINDOW_MS = 86_400_000
"""Growth is that of the last day: a shorter time would not contain the night."""

LEAST_MS = 600_000
"""If all of a log is younger than this, its growth so far says little of what comes: see `carried_until`."""

LASTS = 10
"""What was seen for a while is foretold for so many times as long, and no further: a pace of a minute for ten minutes."""

MAY_LAST = 100
"""For so many times as long it is told as what may be, beside what is foretold."""

QUIET_MS = 60_000
"""A log to which nothing was appended for less than this is taken as one that goes on to grow."""

_SHORTEST_MS = 1_000  # growth of less than a second is as one of a second

_STAMPED_AT_ONCE_MS, _STAMPED_WITHIN_MS = 5_000, 60_000
"""A log whose newest record is stamped when its file was last written, give or take the first, has the clock's times; within the second its
stamps are as far apart as its writes."""

_CLOCK_END = (1 << 42) - 1  # the year 2109: times above it are cut to it, so that a log's number fits above them

HORIZON_MS = 366 * 86_400_000
"""The end of the outlook: no growth stays the same for longer."""

MOVE_MS = 86_400_000
"""So long nothing of a log is deleted that moves to another log dir: when the move ends is not known, and the disk may fill before."""


def outlook_of(
    logs: SegmentColumns,
    growth: Floats,
    active_first_ms: Longs,
    now_ms: int,
    *,
    compacted_grow: bool = False,
    until: Floats | None = None,
) -> Outlook:
    """The future of logs that grow as they did.

    Everything is taken as replicated by the time at which it may go, and as copied to remote storage if it has to be.

    Args:
        growth: bytes a millisecond, nan if it is not known.
        active_first_ms: the largest time of the first batch of each active segment, -1 if that is not known.
        compacted_grow: logs that are compacted and not deleted grow as if nothing were ever compacted; else they stay as they are.
        until: when each log grows no more, as far as is foretold; None if they all go on.
    """
    deletes = logs.limit("deletes") > 0
    pace = np.where(np.isnan(growth), 0.0, growth)
    if not compacted_grow:
        pace = np.where((logs.limit("compacts") > 0) & ~deletes, 0.0, pace)
    if not len(pace):
        nothing = np.empty(0)
        return Outlook(gone=nothing, present=nothing, appended=nothing, appended_gone=nothing, growth=pace, level=nothing, owner=logs.owner)
    rolled, fill = _rolls(logs, pace, active_first_ms, now_ms)
    timed = np.where(deletes & (logs.limit("retention_ms") >= 0), logs.limit("retention_ms"), NEVER)
    sized = np.where(deletes & (logs.limit("retention_bytes") >= 0), logs.limit("retention_bytes"), NEVER)
    gone = _gone(logs, timed, sized, pace, rolled, now_ms)
    appended_gone = gone[logs.last]
    gone[logs.last] = np.where(_goes_at_once(logs, timed, sized, now_ms), float(now_ms), appended_gone)
    late = logs.limit("check_interval_ms") + logs.limit("file_delete_delay_ms")
    checked = np.where(logs.moving, now_ms + MOVE_MS, now_ms)
    return Outlook(
        gone=np.maximum(gone, checked[logs.owner]) + late[logs.owner],
        present=logs.size.astype(np.float64),
        appended=pace * np.maximum(rolled - now_ms, 0.0),
        appended_gone=np.maximum(appended_gone, checked) + late,
        growth=pace,
        level=np.minimum(np.where(pace > 0, np.maximum(appended_gone, checked) + fill / 2, NEVER), NEVER if until is None else until),
        owner=logs.owner,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outlook:
    """The future of some logs. Times are Unix milliseconds, `NEVER` for what does not come.

    How fast logs grow, from the times of their own segments: what was appended before anybody watched is known in no other way.

    Of each segment: ``gone`` is when its space is free at the latest, ``present`` the bytes that are there now and free then. Of each log:
    ``appended`` are the bytes that come to its active segment before that is rolled, ``appended_gone`` when they are free, ``growth`` is in
    bytes a millisecond, 0 where it is not known, and ``level`` from when on as much is deleted as is appended, or no growth is foretold.
    """

    gone: Floats
    present: Floats
    appended: Floats
    appended_gone: Floats
    growth: Floats
    level: Floats
    owner: Longs

    def freed_by(self, at_ms: float) -> Floats:
        """The bytes of each log's present segments that are free by then."""
        found: Floats = np.bincount(self.owner, self.present * (self.gone <= at_ms), minlength=len(self.growth))  # type: ignore[assignment]
        return found

    def deleted_again_by(self, at_ms: float, now_ms: int) -> Floats:
        """The bytes of each log that are appended from now on and are free again by then: after ``level`` as many as come."""
        rolled = np.where(self.appended_gone <= np.minimum(at_ms, self.level), self.appended, 0.0)
        return np.minimum(rolled + self.growth * np.clip(at_ms - self.level, 0.0, None), self.growth * (at_ms - now_ms))

    def full_at(self, logs: Flags, free: int, now_ms: int, *, waiting: int = 0, unlinked_ms: float = 0.0, others: float = 0.0) -> float:
        """When a file system with so many free bytes is full, `NEVER` if not within `HORIZON_MS`.

        Args:
            logs: those that lie on it.
            waiting: the bytes there that are deleted and only have to be unlinked, which they are by ``unlinked_ms``.
            others: the bytes that others take there in a millisecond.
        """
        if free <= 0:
            return float(now_ms)
        segments = np.flatnonzero(logs[self.owner] & np.isfinite(self.gone))
        rolled = np.flatnonzero(logs & np.isfinite(self.appended_gone))
        levels = np.flatnonzero(logs & np.isfinite(self.level))
        times = np.concatenate([self.gone[segments], self.appended_gone[rolled], self.level[levels], [unlinked_ms, now_ms + HORIZON_MS]])
        times = np.maximum(times, now_ms)
        drops = np.concatenate([self.present[segments], self.appended[rolled], np.zeros(len(levels)), [waiting, 0.0]])
        slows = np.concatenate([np.zeros(len(segments) + len(rolled)), self.growth[levels], [0.0, 0.0]])
        order = np.argsort(times, kind="stable")
        times, drops, slows = times[order], drops[order], slows[order]
        pace = others + float(self.growth[logs].sum()) - np.concatenate([[0.0], np.cumsum(slows)[:-1]])  # up to each of the times
        grown = np.cumsum(pace * np.diff(times, prepend=now_ms))
        before = grown - np.concatenate([[0.0], np.cumsum(drops)[:-1]])  # right before each of them
        over = np.flatnonzero((before >= free) & (times <= now_ms + HORIZON_MS))
        if not len(over):
            return NEVER
        at = int(over[0])
        return float(times[at] - (before[at] - free) / max(pace[at], 1e-12))


def _rolls(logs: SegmentColumns, pace: Floats, active_first_ms: Longs, now_ms: int) -> tuple[Floats, Floats]:
    """When each active segment is rolled (`now_ms` if its log does not grow), and how long a segment is filled."""
    segment_bytes, segment_ms = logs.limit("segment_bytes"), logs.limit("roll_ms").astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        full = np.where(pace > 0, np.maximum(segment_bytes - logs.size[logs.last], 0) / pace, NEVER)
        fill = np.where(pace > 0, np.minimum(segment_bytes / pace, segment_ms), 0.0)
    aged = np.where(active_first_ms >= 0, active_first_ms + segment_ms - now_ms, segment_ms)
    return np.where(pace > 0, now_ms + np.maximum(np.minimum(full, aged), 0.0), float(now_ms)), fill


def _gone(logs: SegmentColumns, timed: Floats, sized: Floats, pace: Floats, rolled: Floats, now_ms: int) -> Floats:
    """When the rule lets each segment go: a size, or its time once those before it are gone, or the log start."""
    owner, last = logs.owner, logs.last
    below = ~logs.active & (logs.following <= logs.log_start[owner])  # they hold up nothing
    own = np.where(below, 0.0, np.clip(logs.largest, 0, _CLOCK_END))
    own[last] = np.where(pace > 0, np.maximum(own[last], np.minimum(rolled, _CLOCK_END)), own[last])
    expires = own + timed[owner] + 1
    prefix = running_max(own.astype(np.int64), owner) + timed[owner] + 1
    after = logs.before[last + 1][owner] - logs.before[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        until = np.where(pace[owner] > 0, (sized[owner] - after) / pace[owner], NEVER)
    surplus = np.where(after >= sized[owner], float(now_ms), now_ms + until)
    surplus[last] = np.where(pace > 0, rolled + _ratio(sized, pace), np.where(sized == 0, float(now_ms), NEVER))
    both = np.isfinite(timed) & np.isfinite(sized)
    gone = np.where(np.isfinite(sized)[owner], np.minimum(surplus, prefix), prefix)
    _after_size(logs, np.flatnonzero(both), surplus, expires, gone)
    gone = np.where(below, float(now_ms), gone)
    empty = (logs.size[last] == 0) & (pace <= 0)  # an empty active segment never goes
    gone[last] = np.where(empty, NEVER, gone[last])
    return gone


def running_max(values: Longs, owner: Longs) -> Longs:
    """The largest value of each log's segments up to each of them; values from 0 on."""
    shift = owner << 42
    found: Longs = np.maximum.accumulate(np.minimum(values, _CLOCK_END) + shift) - shift
    return found


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found: Floats = np.where(denominator > 0, numerator / np.maximum(denominator, 1e-300), NEVER)
    return found


def _after_size(logs: SegmentColumns, both: Longs, surplus: Floats, expires: Floats, gone: Floats) -> None:
    """Set when segments of logs with both limits go: time counts for what size has left, and may have taken one that blocked others."""
    before = np.zeros(len(both))
    for rank in range(int(logs.count[both].max(initial=0))):
        there = logs.count[both] > rank
        at = logs.first[both[there]] + rank
        gone[at] = np.minimum(surplus[at], np.maximum(before[there], expires[at]))
        before[there] = gone[at]


def _goes_at_once(logs: SegmentColumns, timed: Floats, sized: Floats, now_ms: int) -> Flags:
    """Which logs' active segments the next check rolls and deletes: nothing was appended for as long as the limit, or no byte may stay."""
    newest = running_max(np.maximum(logs.largest, 0), logs.owner)[logs.last]
    found: Flags = (logs.size[logs.last] > 0) & ((newest + timed + 1 <= now_ms) | (sized == 0))
    return found


def growth_of(logs: SegmentColumns, first_ms: Longs, now_ms: int) -> Floats:
    """The bytes that were appended to each log in a millisecond, on average over the last `WINDOW_MS`; nan if that is not known.

    A segment was written between the largest time of those before it and its own. If the log begins later, because retention has deleted
    what was before or because the log is young, the average is over the time since then.

    A log that is silent may have stopped, or write once a night; both look the same until it writes again. One that is older than the
    window is taken to go on as it did in all its time, if that is less. A younger one shows no rhythm: silent for a tenth of its time, its
    growth is not known, and silent for longer than it was written, it has stopped and does not grow.

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
    begin = start[logs.first]
    since = np.maximum(begin, now_ms - WINDOW_MS)
    began = since[logs.owner]
    within = np.clip(end - np.maximum(start, began), 0, None) / np.maximum(end - start, 1)
    share = np.where(end > start, within, end >= began)  # all of it at one moment
    appended = np.add.reduceat(logs.size * share, logs.first)
    span = now_ms - since
    known = np.where(logs.total > 0, (first_ms >= 0) | (since > begin), span >= LEAST_MS)
    mean = appended / np.maximum(span, _SHORTEST_MS)

    silent_ms, older = now_ms - _last_written(logs, now_ms), since > begin
    at_all = np.minimum(mean, logs.total / np.maximum(now_ms - begin, _SHORTEST_MS))
    mean = np.where(older & (silent_ms > QUIET_MS), at_all, mean)
    rests = ~older & (silent_ms > np.maximum(QUIET_MS, span // LASTS))
    stopped = rests & (silent_ms > np.maximum(end[logs.last] - since, 0))
    return np.where(~known, np.nan, np.where(stopped, 0.0, np.where(rests, np.nan, mean)))


def _last_written(logs: SegmentColumns, now_ms: int) -> Longs:
    """When something was last appended to each log: by its newest record and its file, whichever is later and no time to come."""
    found: Longs = np.zeros(len(logs.first), np.int64)
    for times in (logs.largest[logs.last], logs.modified[logs.last]):
        found = np.where(times <= now_ms, np.maximum(found, times), found)
    return found


def carried_until(logs: SegmentColumns, first_ms: Longs, now_ms: int) -> Floats:
    """Until when the growth of each log is foretold: of a young one for `LASTS` times as long as it is there; `NEVER` for all others.

    A log that does not begin at offset 0 is not young, however new its first record is: retention has deleted what was before.
    """
    age_ms = np.where((first_ms >= 0) & (logs.base[logs.first] == 0), np.maximum(now_ms - first_ms, _SHORTEST_MS), LEAST_MS)
    return np.where(age_ms < LEAST_MS, now_ms + LASTS * age_ms.astype(np.float64), NEVER)


def growth_now(logs: SegmentColumns, watched: Floats, active_first_ms: Longs, now_ms: int) -> Growth:
    """How logs grow from now on: as they were watched to, or else as their lists of segments show it; a single one by its first record.

    Args:
        watched: bytes a second of each log, below 0 where that is not known.
        active_first_ms: see `Growth`.
    """
    silent_ms = now_ms - _last_written(logs, now_ms) if len(logs.first) else np.empty(0, np.int64)
    single = (logs.count == 1) & (active_first_ms >= 0) & (silent_ms <= logs.limit("check_interval_ms"))
    since = logs.size[logs.last] * 1000.0 / np.maximum(now_ms - active_first_ms, _SHORTEST_MS)
    shown = np.where(single, since, mean_rates(logs, now_ms))
    return Growth(rate=np.where(watched >= 0, watched, shown), active_first_ms=active_first_ms)


def mean_rates(logs: SegmentColumns, now_ms: int) -> Floats:
    """Bytes a second by which each log has grown, as its list of segments shows it: from the newest record of its first segment to now.

    A rate never mixes clocks: what lies between two stamps took as long as these are apart, and the time since the last write is told by
    the file. Where stamps are far from the writes of their files, as in a backfill or a mirror, the files tell all of it.

    It is 0 for a log of one segment, whose times show nothing about its beginning. It is 0, too, if nothing was appended for longer than a
    segment took to fill, and longer than a check interval: such a log has stopped, and its mean rate would put off its growth for ever.
    """
    written, (newest, oldest) = logs.modified[logs.last], np.minimum([logs.largest[logs.last], logs.largest[logs.first]], _CLOCK_END)
    by_files = (np.abs(written - newest) > _STAMPED_WITHIN_MS) & (written <= now_ms) & (logs.modified[logs.first] <= written)
    took_ms = np.where(by_files, written - logs.modified[logs.first], np.maximum(newest - oldest, 0))
    by_stamps = (np.abs(written - newest) <= _STAMPED_AT_ONCE_MS) | (written > now_ms)
    span = np.maximum(np.where(by_stamps, now_ms - oldest, took_ms + now_ms - written), 1) / 1000
    grown = logs.bytes_between(logs.first + 1, logs.last + 1)
    filled_ms = took_ms // np.maximum(logs.count - 1, 1)
    # a producer's timestamps may be hours old in a backfill, or ahead of now: then the time of the file shows the append
    idle_ms = now_ms - np.where(newest > now_ms, written, np.maximum(newest, written))
    stopped = idle_ms > np.maximum(filled_ms, logs.limit("check_interval_ms"))
    rates: Floats = np.where(logs.unknown[logs.first] | stopped, 0.0, grown / span)
    return rates
